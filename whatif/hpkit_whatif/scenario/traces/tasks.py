"""Tasks of a trace as tasks of a scenario, in the order of their submission, however large the trace is."""

from __future__ import annotations

import heapq
import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from typing import Final, TextIO

from hpkit_whatif.scenario.model import MOST_NAME, MOST_PODS, MOST_SECONDS, TaskSpec
from hpkit_whatif.scenario.names import Names
from hpkit_whatif.scenario.traces.model import Shape, Tally, TraceTask
from hpkit_whatif.scenario.traces.teams import Teams
from hpkit_whatif.scenario.workloads import Tasks

__all__ = ["convert_tasks"]

_SORTED_AT_ONCE: Final = 100_000
_MOST_OPEN: Final = 200
# For `#` and a number behind a name.
_ROOM: Final = 10

_Key = tuple[float, str, str, float, int, int]


def convert_tasks(
    tasks: Iterable[TraceTask],
    shape: Shape,
    teams: Teams,
    tally: Tally,
    *,
    plan_tasks: Tasks | None = None,
    at_once: int = _SORTED_AT_ONCE,
) -> Iterator[TaskSpec]:
    """Return a trace's tasks as tasks of a scenario, starting at the submission of the first.

    Tasks without an exact counterpart are counted in tally: a part of a GPU becomes a whole GPU, and GPUs beyond one
    instance become more pods. Tasks without GPUs or run time are omitted, and so are those that can never run, if a
    plan is given. at_once: how many are held in memory; the rest is in files.
    """
    begin: float | None = None
    task_names = Names()
    for key in _sorted(_keys(tasks, shape, teams, tally, plan_tasks), at_once):
        submit, name, team, run, pods, accelerators = key
        begin = submit if begin is None else begin
        if submit - begin > MOST_SECONDS:
            tally.add("tasks are submitted more than 100 years after the first one: left out", f"task {name}")
            continue
        spec = _spec(_once(name, task_names, tally), shape, team, pods, accelerators)
        yield spec.model_copy(update={"submit": submit - begin, "run": run})


def _spec(name: str, shape: Shape, team: str, pods: int, accelerators: int) -> TaskSpec:
    return TaskSpec.model_construct(
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
        submit=0.0,
        run=None,
    )


def _once(name: str, taken_names: Names, tally: Tally) -> str:
    """Return a new name: what was created again with the same name is another task."""
    # The length of a name in the CSV, minus space for a number.
    name = " ".join(name.encode("utf-8", "replace").decode().split())
    if len(name) > MOST_NAME:
        tally.add(f"tasks have a name of more than {MOST_NAME} characters, which is shortened", f"task {name[:20]}…")
        name = name[: MOST_NAME - _ROOM].rstrip()
    if not name:
        tally.add("tasks have no name; they are named `task` with a number", "no name")
        name = "task"
    if taken_names.add(name):
        return name
    tally.add("tasks have the name of an earlier task, and get a number", f"task {name}")
    short = name[: MOST_NAME - _ROOM].rstrip()
    return next(other for number in count(2) if taken_names.add(other := f"{short}#{number}"))


def _keys(
    tasks: Iterable[TraceTask], shape: Shape, teams: Teams, tally: Tally, plan_tasks: Tasks | None
) -> Iterator[_Key]:
    for task in tasks:
        if not task.gpus:
            tally.add("tasks request no GPU: left out", task.place)
            continue
        if not task.run:
            tally.add("tasks have a run time of 0: left out", task.place)
            continue
        if task.run > MOST_SECONDS:
            tally.add("tasks ran for more than 100 years: left out", task.place)
            continue
        gpus = math.ceil(task.gpus)
        if gpus != task.gpus:
            tally.add("tasks share a GPU, which quota doesn't support; they get a whole GPU", task.place)
        pods, gpus_per_pod = task.pods, gpus
        if gpus > shape.accelerators:
            tally.add(
                f"tasks have more GPUs in a pod than {shape.instance_type}; they are split into more pods", task.place
            )
            gpus_per_pod = next(size for size in range(shape.accelerators, 0, -1) if gpus % size == 0)
            pods *= gpus // gpus_per_pod
        if pods > MOST_PODS:
            tally.add(f"tasks have more than {MOST_PODS:,} pods: left out", task.place)
            continue
        team = teams.team(task.group)
        refusal = None if plan_tasks is None else plan_tasks.refusal(_spec(task.name, shape, team, pods, gpus_per_pod))
        if refusal is not None:
            tally.add(f"tasks can never run for {team}: left out", f"{task.place}; it {refusal}")
            continue
        yield task.submit, task.name, team, task.run, pods, gpus_per_pod


def _sorted(keys: Iterator[_Key], at_once: int) -> Iterator[_Key]:
    """Sort by submission time, with a maximum number in memory."""
    first = sorted(islice(keys, at_once))
    if len(first) < at_once:
        yield from first
        return
    with ExitStack() as stack:
        runs: list[Iterable[_Key]] = [_stored(stack, first)]
        while part := sorted(islice(keys, at_once)):
            runs.append(_stored(stack, part))
            if len(runs) >= _MOST_OPEN:
                # The number of open files is limited; merged files become one file.
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
