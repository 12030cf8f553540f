"""A public trace of a GPU cluster as tasks, read in one pass. What cannot be a task is counted, or refused by line."""

from hpkit_whatif.scenario.traces.alibaba import alibaba_2023
from hpkit_whatif.scenario.traces.model import Shape, Tally, TraceTask
from hpkit_whatif.scenario.traces.tasks import convert_tasks
from hpkit_whatif.scenario.traces.teams import Teams

__all__ = ["TRACES", "Shape", "Tally", "Teams", "TraceTask", "convert_tasks"]

TRACES = {"alibaba-2023": alibaba_2023}
"""The traces by name, each with what reads its file."""
