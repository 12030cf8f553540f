"""Public traces of GPU clusters as tasks: read in one pass; what is odd in them is counted, or refused by line."""

from hpkit.scenario.traces.alibaba import alibaba_2023, alibaba_2026_spot
from hpkit.scenario.traces.model import Shape, Tally, TraceTask
from hpkit.scenario.traces.philly import philly
from hpkit.scenario.traces.tasks import tasks_of
from hpkit.scenario.traces.teams import Teams

__all__ = ["TRACES", "Shape", "Tally", "Teams", "TraceTask", "tasks_of"]

TRACES = {"alibaba-2023": alibaba_2023, "alibaba-2026-spot": alibaba_2026_spot, "philly": philly}
"""The traces by name, each with what reads its file."""
