"""Tasks of a trace as tasks of a scenario, in the order of their submission, however large the trace is."""

from __future__ import annotations

import heapq
import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Final, TextIO

from hpkit.scenario.model import MOST_PODS, TaskSpec
from hpkit.scenario.traces.model import Shape, Tally, TraceTask
from hpkit.scenario.traces.teams import Teams

__all__ = ["tasks_of"]

_SORTED_AT_ONCE: Final = 100_000
_MOST_OPEN: Final = 200

_Key = tuple[float, str, str, float, int, int]


def tasks_of(
    tasks: Iterable[TraceTask], shape: Shape, teams: Teams, tally: Tally, *, at_once: int = _SORTED_AT_ONCE
) -> Iterator[TaskSpec]:
    """Return a trace's tasks as those of a scenario, from the first one's submission on.

    What has no counterpart is counted in tally: parts of a GPU become a whole one, GPUs beyond an instance more pods,
    tasks without GPU and of no time are left out. at_once: how many are held in memory; the rest waits in files.
    """
    begin: float | None = None
    for key in _sorted(_keys(tasks, shape, teams, tally), at_once):
        submit, name, team, run, pods, accelerators = key
        begin = submit if begin is None else begin
        yield TaskSpec.model_construct(
            name=name,
            team=team,
            priority=0,
            instance_type=shape.instance_type,
            count=None,
            accelerators=accelerators,
            v_cpu=None,
            memory_in_gib=None,
            pods=pods,
            placement=None,
            submit=submit - begin,
            run=run,
        )


def _keys(tasks: Iterable[TraceTask], shape: Shape, teams: Teams, tally: Tally) -> Iterator[_Key]:
    for task in tasks:
        if not task.gpus:
            tally.add("tasks ask for no GPU: left out", task.place)
            continue
        if not task.run:
            tally.add("tasks ran for no time: left out", task.place)
            continue
        gpus = math.ceil(task.gpus)
        if gpus != task.gpus:
            tally.add("tasks share a GPU, which quota cannot: they take a whole one", task.place)
        pods, each = task.pods, gpus
        if gpus > shape.accelerators:
            tally.add(f"tasks have more GPUs in a pod than {shape.instance_type}: they become more pods", task.place)
            each = next(size for size in range(shape.accelerators, 0, -1) if gpus % size == 0)
            pods *= gpus // each
        if pods > MOST_PODS:
            tally.add(f"tasks have more than {MOST_PODS:,} pods: left out", task.place)
            continue
        yield task.submit, task.name, teams.team(task.group), task.run, pods, each


def _sorted(keys: Iterator[_Key], at_once: int) -> Iterator[_Key]:
    """Sort by the time of submission, with no more than so many in memory."""
    first = sorted(islice(keys, at_once))
    if len(first) < at_once:
        yield from first
        return
    with ExitStack() as stack:
        runs: list[Iterable[_Key]] = [_stored(stack, first)]
        while part := sorted(islice(keys, at_once)):
            runs.append(_stored(stack, part))
            if len(runs) >= _MOST_OPEN:
                # As many files may not be open at once; what was merged is one again.
                runs = [_stored(stack, heapq.merge(*runs))]
        yield from heapq.merge(*runs)


def _stored(stack: ExitStack, part: Iterable[_Key]) -> Iterator[_Key]:
    file = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))  # noqa: SIM115 - the stack closes it
    for key in part:
        file.write(json.dumps(key) + "\n")
    file.seek(0)
    return _read(file)


def _read(file: TextIO) -> Iterator[_Key]:
    for line in file:
        submit, name, team, run, pods, accelerators = json.loads(line)
        yield submit, name, team, run, pods, accelerators
