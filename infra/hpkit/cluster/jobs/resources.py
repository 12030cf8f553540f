"""The requests of a job's pods in the simulator's units, and the instance types that they can use."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hpkit.catalog import find_instance_type
from hpkit.cluster.jobs.kinds import TOPOLOGY, PodTemplate
from hpkit.cluster.live.parse import SLICES, topology_asked
from hpkit.kueue.model import UNCONSTRAINED, PodSet, TopologyRequest, open_flavors, per_unit
from hpkit.plan.capacity import INSTANCE_TYPE_KEY, quantity
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.pods import mapping, may_go_to, pod_requests
from hpkit.plan.team_limits import pod_limits

__all__ = [
    "instance_type_of", "pod_sets_of", "requests_of", "topology_request", "types_by_topology", "types_in_queue",
    "types_of",
]  # fmt: skip

_KEYS: Final = (INSTANCE_TYPE_KEY,)


def pod_sets_of(templates: Sequence[PodTemplate], plan: Plan) -> tuple[PodSet, ...]:
    """Return the pod sets of a job; pods that select instance types get only their flavors."""
    sets = []
    for number, template in enumerate(templates):
        types = types_of(template.template, plan)
        flavors = None if types == tuple(plan.capacity) else frozenset(types)
        # Whether pods are close enough isn't checked, because nodes aren't known.
        topology = TopologyRequest("unconstrained") if topology_asked(topology_request(template.template)) else None
        requests = requests_of(template, plan)
        sets.append(PodSet(f"pods-{number}", template.count, requests, template.least, flavors, topology))
    return tuple(sets)


def topology_request(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the PodSetTopologyRequest that Kueue reads from the annotations of a pod template.

    Source: Kueue 0.19.2, podSetTopologyRequestBuilder.
    """
    annotations = mapping(mapping(template.get("metadata")).get("annotations"))
    asked = {mode: annotations[name] for mode, name in TOPOLOGY.items() if name in annotations}
    asked = asked or ({"unconstrained": True} if UNCONSTRAINED in annotations else {})
    slices = {field: annotations.get(f"kueue.x-k8s.io/podset-slice-{name}") for field, name in SLICES.items()}
    return asked | slices


def types_in_queue(team: TeamPlan) -> frozenset[str]:
    """Return the instance types of which a team has quota, or that it can borrow by name."""
    return frozenset((*(part.instance_type for part in team.quota_resources), *team.absolute_borrow_limits))


def types_by_topology(plan: Plan, team: TeamPlan, *, asks: bool) -> frozenset[str]:
    """Return the instance types of a team's queue where Kueue admits pods; asks: that request a topology.

    Task governance gives a flavor a topology if EC2 reports network layers for its type.
    """
    types = types_in_queue(team)
    if not plan.topology_aware_scheduling:
        return types
    known = {name: find_instance_type(name) for name in types}
    layers = {name: None if each is None else each.network_layers > 0 for name, each in known.items()}
    return open_flavors(layers, asks=asks)


def instance_type_of(template: Mapping[str, Any]) -> str | None:
    """Return the instance type that the pods' node selector names, None where it names none."""
    found = mapping(_spec(template).get("nodeSelector")).get(INSTANCE_TYPE_KEY)
    return found if isinstance(found, str) else None


def types_of(template: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """Return the instance types of a plan to which the pods may go, by node selector and affinity."""
    spec = _spec(template)
    return tuple(each for each in plan.capacity if may_go_to(spec, {INSTANCE_TYPE_KEY: each}, _KEYS))


def requests_of(pods: PodTemplate, plan: Plan) -> dict[str, int]:
    """Return what Kueue counts for one of a job's pods: millicores, bytes, units; invalid amounts are ignored."""
    # The API server completes every pod, including a Deployment, before Kueue counts it.
    completed = pods.alone or not pods.path
    return pod_requests(
        _spec(pods.template), _units, pod_limits(plan).default_requests.model_dump(), completed=completed
    )


def _spec(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(template.get("spec"))


def _units(name: str, text: object) -> int:
    try:
        amount = quantity(str(text))
    except (ValueError, ZeroDivisionError):
        return 0
    return int(amount * per_unit(name))
