"""Converts tasks of a scenario to workloads of a plan's queues, and finds tasks that can never run."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from hpkit.catalog import EFA, NETWORK_LAYERS, find_instance_type
from hpkit.errors import InputError
from hpkit.plan.capacity import amounts_of
from hpkit.plan.model import Plan, QuotaResource, TeamPlan, exact
from hpkit.text.spelling import near
from hpkit_whatif.admission import (
    Grid,
    Model,
    Node,
    NoPlaceError,
    PodSet,
    Simulator,
    Topology,
    TopologyRequest,
    Workload,
    model_of,
)
from hpkit_whatif.scenario.model import Rack, TaskSpec
from hpkit_whatif.scenario.read import Located

__all__ = ["Task", "Tasks", "of_teams", "rack_nodes", "scenario_model"]

_HOST = "kubernetes.io/hostname"
_GIB = 1024**3
_LAST = ("cpu", "memory", EFA)


@dataclass(frozen=True, slots=True)
class Task:
    """A task as the simulator has it.

    place: where it was written. instances: how many of its instance type it takes, by the resource of which that is
    most. never: why it can never run, if so.
    """

    place: str
    spec: TaskSpec
    workload: Workload
    team: str
    instance_type: str
    instances: float
    never: str | None = None


def scenario_model(plan: Plan, racks: Iterable[Rack] = ()) -> Model:
    """Return the queues of a plan, with the topology of the nodes if a scenario declares it.

    Raises CatalogError for an instance type whose values aren't known.
    """
    model, racks = model_of(plan), tuple(racks)
    if not racks or not plan.topology_aware_scheduling:
        return model
    flavors = {rack.instance_type: {"type": rack.instance_type} for rack in racks}
    return replace(model, topologies=(Topology((*NETWORK_LAYERS, _HOST), tuple(rack_nodes(racks)), flavors),))


def rack_nodes(racks: Iterable[Rack]) -> Iterator[Node]:
    """Return the nodes of racks. Raises CatalogError for an instance type whose values aren't known."""
    for number, rack in enumerate(racks):
        amounts = amounts_of(QuotaResource(rack.instance_type, count=1))
        labels = dict(zip(NETWORK_LAYERS, rack.layers, strict=True))
        instance = find_instance_type(rack.instance_type)
        # The kubelet's default, unless HyperPod's limit is known.
        limit = (instance and instance.max_pods) or 110
        for place in range(rack.nodes):
            name = f"node-{number:03}-{place:04}"
            yield Node(name, {**labels, _HOST: name, "type": rack.instance_type}, {**amounts, "pods": limit})


def of_teams(tasks: Iterable[Located], teams: Collection[str], others: Counter[str]) -> Iterator[Located]:
    """Return the tasks of these teams; how many there are of which other team is counted in others."""
    for located in tasks:
        if located.spec.team in teams:
            yield located
        else:
            others[located.spec.team] += 1


class Tasks:
    """Creates workloads from tasks for one plan; names, teams, priorities and sizes are looked up once per kind."""

    def __init__(self, plan: Plan, model: Model) -> None:
        self._plan = plan
        self._teams = {team.name: team for team in plan.teams}
        policy = plan.policy
        self._ranked = policy is not None and policy.task_prioritization == "Rank"
        self._classes = {each.name: each.weight for each in policy.priority_classes} if policy else {}
        simulator = Simulator(model)
        self._most = {team.name: simulator.potential(team.cluster_queue) for team in plan.teams}
        self._nominal = {
            queue.name: {
                (flavor.name, resource): quota.nominal
                for group in queue.resource_groups
                for flavor in group.flavors
                for resource, quota in flavor.resources.items()
            }
            for queue in model.queues
        }
        self._flavors = {
            team: tuple(dict.fromkeys(flavor for flavor, _ in self._nominal[self._teams[team].cluster_queue]))
            for team in self._teams
        }
        self._topology = bool(model.topologies)
        self._grids = {
            flavor: Grid(topology.levels, topology.nodes, labels)
            for topology in model.topologies
            for flavor, labels in topology.flavors.items()
        }
        self._known: dict[object, tuple[tuple[PodSet, ...], int, str, float, str | None]] = {}

    def workloads(self, tasks: Iterable[Located]) -> Iterator[Task]:
        """Return the tasks as workloads, one by one; InputError if a team, class or size doesn't exist."""
        return map(self.workload, tasks)

    def workload(self, located: Located) -> Task:
        """Return one task as a workload; InputError as above."""
        spec = located.spec
        placement = spec.placement and (spec.placement.mode, spec.placement.layer)
        key = (
            spec.team,
            spec.priority,
            spec.instance_type,
            spec.count,
            spec.accelerators,
            spec.v_cpu,
            spec.memory_in_gib,
            spec.pods,
            placement,
        )
        resolved = self._known.get(key)
        if resolved is None:
            resolved = self._known[key] = self._resolve(spec, located.place)
        pod_sets, priority, instance_type, instances, never = resolved
        workload = Workload(
            spec.name,
            self._teams[spec.team].cluster_queue,
            pod_sets,
            priority=priority,
            created=spec.submit,
            run=spec.run,
            start=spec.start,
        )
        return Task(located.place, spec, workload, spec.team, instance_type, instances, never)

    def rejection(self, spec: TaskSpec) -> str | None:
        """Return why a simulation would stop at a task, as the end of a sentence; None if it wouldn't."""
        try:
            return self.workload(Located(spec, "")).never
        except InputError as error:
            return f"is rejected{error}"

    def _resolve(self, spec: TaskSpec, place: str) -> tuple[tuple[PodSet, ...], int, str, float, str | None]:
        team = self._team(spec, place)
        priority = self._priority(spec, place)
        instance_type = self._instance_type(spec, team, place)
        parts = (spec.accelerators, spec.v_cpu, spec.memory_in_gib)
        if spec.count is not None and any(part is not None for part in parts):
            raise InputError(f"{place}: task {spec.name} has count and parts of an instance; use only one of them")
        if spec.count is not None and spec.pods != 1:
            raise InputError(f"{place}: task {spec.name} has count and pods; with count, each instance has one pod")
        per_pod = self._per_pod(spec, instance_type, place)
        pods = spec.count or spec.pods
        topology = self._placement(spec, instance_type, place)
        pod_set = PodSet("main", pods, per_pod, flavors=frozenset((instance_type,)), topology=topology)
        whole = amounts_of(QuotaResource(instance_type, count=1))
        instances = pods * max(amount / whole[name] for name, amount in per_pod.items() if whole.get(name))
        return (pod_set,), priority, instance_type, instances, self._never(team, instance_type, pod_set)

    def _team(self, spec: TaskSpec, place: str) -> TeamPlan:
        found = self._teams.get(spec.team)
        if found is not None:
            return found
        meant = near(spec.team, self._teams)
        fix = f"did you mean {meant}?" if meant else f"teams there: {', '.join(self._teams) or 'none'}"
        raise InputError(f"{place}: task {spec.name} is of team {spec.team}, which {self._plan.stack} lacks; {fix}")

    def _priority(self, spec: TaskSpec, place: str) -> int:
        if isinstance(spec.priority, int):
            if not 0 <= spec.priority <= 100:
                raise InputError(f"{place}: task {spec.name} has priority {spec.priority}; weights are 0 to 100")
            return spec.priority if self._ranked else 0
        name = spec.priority.removesuffix("-priority")
        if name in self._classes:
            return self._classes[name]
        meant = near(name, self._classes)
        fix = f"did you mean {meant}?" if meant else f"classes there: {', '.join(self._classes) or 'none'}"
        raise InputError(f"{place}: task {spec.name} has priority class {spec.priority}, which doesn't exist; {fix}")

    def _instance_type(self, spec: TaskSpec, team: TeamPlan, place: str) -> str:
        flavors = self._flavors[team.name]
        if spec.instance_type is None:
            if len(flavors) == 1:
                return flavors[0]
            raise InputError(
                f"{place}: task {spec.name} names no instanceType, and team {team.name} has quota of "
                f"{', '.join(flavors) or 'none'}; set one of them"
            )
        if find_instance_type(spec.instance_type) is None or spec.instance_type not in flavors:
            raise InputError(
                f"{place}: task {spec.name} requests {spec.instance_type}, but team {team.name} has no quota for it; "
                f"it has quota for {', '.join(flavors) or 'none'}"
            )
        return spec.instance_type

    def _per_pod(self, spec: TaskSpec, instance_type: str, place: str) -> dict[str, int]:
        if not (spec.count or spec.accelerators or spec.v_cpu or spec.memory_in_gib):
            raise InputError(
                f"{place}: task {spec.name} requests nothing; set count, accelerators, vCpu or memoryInGiB"
            )
        whole = amounts_of(QuotaResource(instance_type, count=1))
        if spec.count:
            return _accelerators_first(whole)
        instance = find_instance_type(instance_type)
        if spec.accelerators and instance is not None and not instance.accelerators:
            raise InputError(f"{place}: task {spec.name} requests accelerators of {instance_type}, which has none")
        request = QuotaResource(
            instance_type,
            accelerators=spec.accelerators,
            v_cpu=exact(spec.v_cpu),
            memory_in_gib=exact(spec.memory_in_gib),
        )
        amounts = _accelerators_first({**amounts_of(request), **_requests(spec)})
        for name, amount in amounts.items():
            if amount > whole.get(name, 0):
                raise InputError(
                    f"{place}: a pod of task {spec.name} requests {_shown(name, amount)} of {name}, and "
                    f"{instance_type} has "
                    f"{_shown(name, whole.get(name, 0))}; make smaller pods (`pods: 2`), or take whole ones (`count`)"
                )
        return amounts

    def _placement(self, spec: TaskSpec, instance_type: str, place: str) -> TopologyRequest | None:
        if spec.placement is None or not self._topology:
            # As `hpkit job new` writes it: a queue with other types, too, requires it.
            return TopologyRequest("unconstrained") if instance_type in self._grids else None
        mode, layer = spec.placement.mode, spec.placement.layer
        if (layer is None) != (mode == "unconstrained"):
            raise InputError(
                f"{place}: placement of task {spec.name}: only the modes required and preferred have a layer"
            )
        return TopologyRequest(mode, None if layer is None else NETWORK_LAYERS[layer - 1])

    def _never(self, team: TeamPlan, instance_type: str, pod_set: PodSet) -> str | None:
        pods = pod_set.count
        for name, amount in pod_set.per_pod.items():
            most = self._most[team.name].get((instance_type, name), 0)
            if amount * pods > most:
                own = self._nominal[team.cluster_queue].get((instance_type, name), 0)
                return (
                    f"requests {_shown(name, amount * pods)} {name} of {instance_type}, but {team.name} can have at "
                    f"most {_shown(name, most)}: {_shown(name, own)} of its own and {_shown(name, most - own)} borrowed"
                )
        return self._without_place(instance_type, pod_set) if self._topology else None

    def _without_place(self, instance_type: str, pod_set: PodSet) -> str | None:
        """Return why its pods have no place on the scenario's nodes, were they all empty."""
        topology, grid = pod_set.topology, self._grids.get(instance_type)
        if grid is None:
            return (
                None if topology is None else f"has a placement, and the scenario's `topology` has no {instance_type}"
            )
        try:
            grid.find(topology, pod_set.count, pod_set.per_pod, empty=True)
        except NoPlaceError as error:
            under = ""
            if topology is not None and topology.mode == "required" and topology.level is not None:
                under = f" under one network node of layer {NETWORK_LAYERS.index(topology.level) + 1}"
            return (
                f"requests {pod_set.count} pods on {instance_type}{under}, and the nodes of the scenario's `topology` "
                f"have room for {error.fits_only}"
            )
        return None


def _requests(spec: TaskSpec) -> dict[str, int]:
    """Return a pod's requests as Kueue counts them: rounded up to millicores and bytes, unlike quotas."""
    asked = {"cpu": (exact(spec.v_cpu), 1000), "memory": (exact(spec.memory_in_gib), _GIB)}
    return {name: math.ceil(amount * units) for name, (amount, units) in asked.items() if amount is not None}


def _accelerators_first(amounts: dict[str, int]) -> dict[str, int]:
    """Return the requests in the order of importance, which decides what an error mentions."""
    return {name: amounts[name] for name in sorted(amounts, key=lambda name: (name in _LAST, name)) if amounts[name]}


def _shown(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{amount / 1000:g}"
    if resource == "memory":
        return f"{amount / _GIB:g} GiB"
    return str(amount)
