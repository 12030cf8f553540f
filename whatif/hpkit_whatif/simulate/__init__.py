"""A scenario on a plan: what becomes of each task, each team and the cluster; and the same under other policies."""

from hpkit_whatif.simulate.report import ClusterReport, Report, TaskReport, TeamReport
from hpkit_whatif.simulate.run import Recorder, simulate

__all__ = ["ClusterReport", "Recorder", "Report", "TaskReport", "TeamReport", "simulate"]
