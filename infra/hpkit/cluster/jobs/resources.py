"""The requests of a job's pods in the simulator's units, and the instance types that they can use."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hpkit.cluster.jobs.kinds import PodTemplate
from hpkit.kueue.model import PodSet, per_unit
from hpkit.plan.capacity import INSTANCE_TYPE_KEY, quantity
from hpkit.plan.model import Plan
from hpkit.plan.pods import mapping, may_go_to, pod_requests
from hpkit.plan.team_limits import pod_limits

__all__ = ["instance_type_of", "pod_sets_of", "requests_of", "types_of"]

_KEYS: Final = (INSTANCE_TYPE_KEY,)


def pod_sets_of(templates: Sequence[PodTemplate], plan: Plan) -> tuple[PodSet, ...]:
    """Return the pod sets of a job; pods that select instance types get only their flavors."""
    sets = []
    for number, template in enumerate(templates):
        types = types_of(template.template, plan)
        flavors = None if types == tuple(plan.capacity) else frozenset(types)
        sets.append(PodSet(f"pods-{number}", template.count, requests_of(template, plan), template.least, flavors))
    return tuple(sets)


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
