"""Records what a running cluster's teams requested, as a scenario.

Converts Kueue's Workloads to tasks of a scenario, without side effects. Deleted Workloads are missing: Kueue keeps a
Workload as long as its job exists, and its metrics are sums over queues, which don't show single tasks.

Reads the placement that Workloads request and the nodes' places, in a scenario's form, without side effects. Earlier
places aren't known: a scenario's topology is that of the nodes when they were read.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, TextIO

from hpkit.catalog import NETWORK_LAYERS, find_instance_type
from hpkit.cluster.live.model import KubernetesNode, Observed, Task
from hpkit.cluster.live.model import Task as Workload
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit.text.formatting import plural
from hpkit_whatif.scenario.model import MOST_NAME, MOST_PODS, Placement, Rack, TaskSpec, written_duration
from hpkit_whatif.scenario.workloads import Tasks, scenario_model

__all__ = ["Recorded", "Yaml", "recorded", "writing"]

NOT_READ = "Workloads request a placement that a scenario can't express"
_GIB: Final = 1024**3
_MOST_PRIORITY: Final = 100
_FRACTIONS: Final = 3


def parse_placement(workload: Task) -> tuple[Placement | None, str | None]:
    """Return how close a Workload's pods must be, and the parts that aren't supported; None if nothing is requested.

    Source: Kueue 0.19 API, PodSetTopologyRequest: required and preferred name the node label of a level. A scenario has
    HyperPod's network layers, for all pods of a task.
    """
    requests = [pods.topology for pods in workload.pod_sets]
    wishes = {request and (request.mode, request.level) for request in requests}
    if wishes <= {None}:
        return None, None
    if len(wishes) > 1:
        return None, "not the same for all of their pods: they get no placement"
    (first, *others) = [request for request in requests if request is not None]
    layer = None
    if first.level is not None:
        if first.level not in NETWORK_LAYERS:
            return None, f"by {first.level}: they get no placement"
        layer = NETWORK_LAYERS.index(first.level) + 1
    elif first.mode is None:
        return None, f"by {', '.join(first.more)}: they get no placement"
    left = None
    if more := sorted({key for request in (first, *others) for key in request.more}):
        left = f"by {', '.join(more)}: they keep only the outer placement"
    elif others:
        left = "separately for each kind of their pods: all pods of a task are placed together"
    return Placement(mode=first.mode or "unconstrained", layer=layer), left


def group_racks(
    nodes: Iterable[KubernetesNode], instance_types: Iterable[str]
) -> tuple[tuple[Rack, ...], Mapping[str, int]]:
    """Return the places of nodes with these instance types, and how many of each type have no place."""
    types = frozenset(instance_types)
    node_counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    without: Counter[str] = Counter()
    for node in nodes:
        if node.instance_type not in types or find_instance_type(node.instance_type) is None:
            continue
        if len(node.layers) == len(NETWORK_LAYERS):
            node_counts[node.instance_type, node.layers] += 1
        else:
            without[node.instance_type] += 1
    racks = [
        Rack(instance_type=instance_type, nodes=min(count, MOST_PODS), layers=layers)
        for (instance_type, layers), count in sorted(node_counts.items())
    ]
    return tuple(racks), without


@dataclass(frozen=True, slots=True)
class Recorded:
    """The tasks of a period, in the order of their submission; until: its length in seconds; said: what is omitted.

    topology: the nodes' places, if a task requests a placement.
    """

    until: float
    tasks: tuple[TaskSpec, ...]
    notes: tuple[str, ...]
    topology: tuple[Rack, ...] = ()


def recorded(observed: Observed, plan: Plan, *, since: float) -> Recorded:
    """Return what the teams of a plan requested in the last seconds before the cluster was read.

    A task's run time is that after its last admission. What runs or waits at the end has no run time, because it isn't
    known yet. What began earlier exists from the beginning, with its remaining run time.
    """
    window = _Window(observed, plan, since)
    tasks = sorted(window.tasks(), key=lambda task: (task.submit, task.name))
    return Recorded(since, tuple(tasks), tuple(window.notes()), window.racks)


class _Window:
    """The recorded period, and what is omitted from it."""

    def __init__(self, observed: Observed, plan: Plan, since: float) -> None:
        self._observed = observed
        self._end = observed.time.timestamp()
        self._begin = self._end - since
        self._quota = {
            team.name: tuple(dict.fromkeys(each.instance_type for each in team.quota_resources)) for team in plan.teams
        }
        self._classes = {each.name for each in plan.policy.priority_classes} if plan.policy else set()
        self.racks, self._unplaced = self._topology(plan)
        self._of = Tasks(plan, scenario_model(plan))
        self._of_places = Tasks(plan, scenario_model(plan, self.racks)) if self.racks else self._of
        self._names: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def tasks(self) -> Iterator[TaskSpec]:
        for workload in sorted(self._observed.tasks, key=lambda each: (each.created, each.uid)):
            found = self._task(workload)
            if found is not None:
                yield found

    def notes(self) -> Iterator[str]:
        """Return notes for readers: what was omitted or changed, and what can't be known."""
        for reason, count in self._counts.most_common():
            yield f"{reason} ({count:,})"
        yield from self._unplaced
        oldest = min((each.created for each in self._observed.tasks), default=None)
        if oldest is not None and oldest.timestamp() > self._begin:
            yield f"the oldest remaining Workload is from {oldest:%Y-%m-%d %H:%M} UTC; earlier ones are unknown"
        yield "Workloads of deleted jobs are missing, because Kueue keeps a Workload only as long as its job"

    def _topology(self, plan: Plan) -> tuple[tuple[Rack, ...], tuple[str, ...]]:
        """Return the nodes' places if a team's task requests a placement, and what isn't known about them."""
        has_topology = any(
            pods.topology for each in self._observed.tasks if each.team in self._quota for pods in each.pod_sets
        )
        if not has_topology:
            return (), ()
        if not plan.topology_aware_scheduling:
            return (), ("the stack has no topology-aware scheduling, so a simulation ignores placement",)
        racks, without = group_racks(self._observed.nodes, {kind for kinds in self._quota.values() for kind in kinds})
        notes = [
            f"{plural(count, 'node')} of {instance_type} without labels for all network layers: left out of `topology`"
            for instance_type, count in sorted(without.items())
        ]
        if racks:
            notes.append("`topology` has the current nodes; the places of earlier nodes are unknown")
        else:
            notes.append("no node has network layer labels; without `topology`, a simulation ignores placement")
        return racks, tuple(notes)

    def _task(self, workload: Workload) -> TaskSpec | None:
        times = self._times(workload)
        if times is None:
            return None
        if workload.team not in self._quota:
            self._left_out("are in namespaces that don't belong to a team of this stack: left out")
            return None
        instance_type = self._instance_type(workload)
        if instance_type is None:
            return None
        size = self._size(workload, instance_type)
        if size is None:
            return None
        pods, accelerators, cpus, memory = size
        submit, run = times
        spec = TaskSpec.model_construct(
            name=self._name(workload),
            team=workload.team,
            priority=self._priority(workload),
            instance_type=instance_type,
            count=None,
            accelerators=accelerators,
            v_cpu=cpus,
            memory_in_gib=memory,
            pods=pods,
            placement=self._placement(workload),
            submit=submit,
            run=run,
        )
        if self._of.rejection(spec) is not None:
            self._left_out("request more than their team can ever have in this stack: left out")
            return None
        if self._of_places.rejection(spec) is not None:
            self._left_out("don't fit on the current nodes: left out")
            return None
        return spec

    def _left_out(self, reason: str) -> None:
        self._counts[f"Workloads {reason}"] += 1

    def _times(self, workload: Workload) -> tuple[float, float | None] | None:
        """Return submission and run time; None for what isn't part of the period."""
        created = workload.created.timestamp()
        finished, admitted = _since(workload, "Finished"), _since(workload, "Admitted")
        if created > self._end or (finished is not None and finished <= self._begin):
            return None
        if not workload.active and finished is None:
            self._left_out("are stopped, and request nothing: left out")
            return None
        # The period begins at a fraction of a second; times in Kubernetes are whole seconds.
        submit = max(0.0, round(created - self._begin, 3))
        if admitted is None:
            if finished is not None:
                self._left_out("ended before they were admitted: left out")
                return None
            self._counts["Workloads are waiting at the end; their run time is unknown, so they have no `run`"] += 1
            return submit, None
        if admitted < self._begin:
            self._counts[
                "Workloads were already running at the beginning; they are submitted then, for their remaining time"
            ] += 1
        if finished is None:
            self._counts["Workloads are running at the end; their run time is unknown, so they have no `run`"] += 1
            return submit, None
        run = finished - max(admitted, self._begin)
        if run <= 0:
            self._left_out("ran for less than a second, and were left out")
            return None
        return submit, run

    def _instance_type(self, workload: Workload) -> str | None:
        instance_types = {flavor for flavor, _ in workload.usage} or set(self._quota[workload.team])
        if len(instance_types) != 1:
            reason = "run" if workload.usage else "wait, and may run"
            self._left_out(f"{reason} on several instance types, and a task can have only one: left out")
            return None
        (instance_type,) = instance_types
        if find_instance_type(instance_type) is None or instance_type not in self._quota[workload.team]:
            self._left_out(f"run on {instance_type}, for which their team has no quota in this stack: left out")
            return None
        return instance_type

    def _size(self, workload: Workload, instance_type: str) -> tuple[int, int | None, float, float] | None:
        """Return pods and the requests of each: accelerators, vCPUs, memory in GiB.

        Nothing is omitted: values that a task doesn't set would be filled in pro rata, but Kueue counts only requests.
        """
        requested = dict(workload.requests)
        instance = find_instance_type(instance_type)
        resource = instance.accelerator_resource if instance is not None else None
        accelerators = int(requested.get(resource, Decimal(0))) if resource else 0
        if any(name.startswith("nvidia.com/mig-") and amount for name, amount in requested.items()):
            self._left_out("request MIG partitions, which a task can't: left out")
            return None
        pods = workload.pods
        if accelerators % pods:
            # Launchers and workers become pods of the same size, with the same sum of requests.
            self._counts["Workloads have pods of different sizes; they get pods of the same size"] += 1
            most = (instance.accelerators if instance is not None else None) or 1
            each = next(size for size in range(most, 0, -1) if accelerators % size == 0)
            pods = accelerators // each
        cpus, memory = requested.get("cpu", Decimal(0)) / pods, requested.get("memory", Decimal(0)) / pods / _GIB
        if not (accelerators or cpus or memory):
            self._left_out("request nothing: left out")
            return None
        return pods, accelerators // pods or None, _amount(cpus), _amount(memory)

    def _placement(self, workload: Workload) -> Placement | None:
        placement, left = parse_placement(workload)
        if left is not None:
            self._counts[f"{NOT_READ}, {left}"] += 1
        return placement

    def _priority(self, workload: Workload) -> str | int:
        name = (workload.priority_class or "").removesuffix("-priority")
        if name in self._classes:
            return name
        if not 0 <= workload.priority <= _MOST_PRIORITY:
            self._counts["Workloads have a priority that isn't a weight from 0 to 100; they get 0"] += 1
            return 0
        return workload.priority

    def _name(self, workload: Workload) -> str:
        name = f"{workload.team}/{workload.owner_name}"[: MOST_NAME - 10]
        self._names[name] += 1
        # A job that was created again with the same name is another task.
        return name if self._names[name] == 1 else f"{name}#{self._names[name]}"


def _since(workload: Workload, kind: str) -> float | None:
    """Return since when a condition is True; None where it is not."""
    condition = workload.conditions.get(kind)
    found: datetime | None = condition.since if condition is not None and condition.status else None
    return None if found is None else found.timestamp()


def _amount(value: Decimal) -> float:
    return float(round(value, _FRACTIONS))


@dataclass(frozen=True, slots=True)
class Yaml:
    """A scenario as YAML: description, length in seconds, tasks, and places of nodes."""

    description: str
    until: float
    tasks: Iterable[TaskSpec]
    topology: tuple[Rack, ...] = ()

    def write(self, file: TextIO) -> int:
        """Write it with one line per task, so that it can be edited; return the number of tasks."""
        import yaml

        tasks = [_as_dict(task) for task in self.tasks]
        head = {"description": self.description, "until": written_duration(self.until)}
        yaml.safe_dump(head, file, sort_keys=False, allow_unicode=True)
        yaml.safe_dump(
            {"tasks": tasks}, file, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1_000_000
        )
        if self.topology:
            racks = [rack.model_dump(mode="json", by_alias=True) for rack in self.topology]
            yaml.safe_dump({"topology": racks}, file, sort_keys=False, default_flow_style=None, width=1_000_000)
        return len(tasks)


def _as_dict(task: TaskSpec) -> dict[str, object]:
    fields = {
        "name": task.name,
        "team": task.team,
        "priority": task.priority,
        "instanceType": task.instance_type,
        "count": task.count,
        "accelerators": task.accelerators,
        "vCpu": task.v_cpu,
        "memoryInGiB": task.memory_in_gib,
        "pods": None if task.count is not None else task.pods,
        "placement": task.placement and task.placement.model_dump(exclude_none=True),
        "submit": written_duration(task.submit),
        "run": None if task.run is None else written_duration(task.run),
    }
    return {key: value for key, value in fields.items() if value is not None}


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a file that takes its name when all is written: an error on the way leaves nothing half done.

    InputError where it cannot be written.
    """
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = half.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"{path} can't be written: {(error.strerror or str(error)).lower()}") from None
    try:
        with file:
            yield file
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
