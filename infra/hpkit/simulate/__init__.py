"""A scenario on a plan: what becomes of each task, each team and the cluster; and the same under other policies."""

from hpkit.compiled import machine_code

__path__[:0] = machine_code(__name__)

from hpkit.simulate.report import ClusterReport, Report, TaskReport, TeamReport  # noqa: E402
from hpkit.simulate.run import Recorder, simulate  # noqa: E402

__all__ = ["ClusterReport", "Recorder", "Report", "TaskReport", "TeamReport", "simulate"]
