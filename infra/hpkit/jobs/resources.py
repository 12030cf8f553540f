"""What the pods of a job ask for, in the simulator's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpkit.jobs.kinds import PodTemplate, mapping
from hpkit.plan.capacity import quantity
from hpkit.plan.model import Plan
from hpkit.whatif import PodSet, per_unit

__all__ = ["instance_type_of", "pod_sets_of", "requests_of"]

_SELECTOR = "node.kubernetes.io/instance-type"


def pod_sets_of(found: Sequence[PodTemplate], plan: Plan) -> tuple[PodSet, ...]:
    """Return the pod sets of a job; a pod that selects an instance type takes no other flavor."""
    sets = []
    for number, each in enumerate(found):
        chosen = instance_type_of(each.template)
        flavors = None if chosen is None else frozenset({chosen} & set(plan.capacity))
        sets.append(PodSet(f"pods-{number}", each.count, requests_of(each.template), flavors=flavors))
    return tuple(sets)


def instance_type_of(template: Mapping[str, Any]) -> str | None:
    """Return the instance type that the pods select, None where they select none."""
    found = mapping(_spec(template).get("nodeSelector")).get(_SELECTOR)
    return found if isinstance(found, str) else None


def requests_of(template: Mapping[str, Any]) -> dict[str, int]:
    """Return what one pod asks for: millicores, bytes, pieces; an amount that is none counts for nothing."""
    total: dict[str, int] = {}
    containers = _spec(template).get("containers")
    for container in containers if isinstance(containers, list) else ():
        resources = mapping(mapping(container).get("resources"))
        # A limit without a request is one (Kubernetes, Resource Management for Pods and Containers).
        asked = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
        for name, text in asked.items():
            total[name] = total.get(name, 0) + _units(name, text)
    return total


def _spec(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(template.get("spec"))


def _units(name: str, text: object) -> int:
    try:
        amount = quantity(str(text))
    except (ValueError, ZeroDivisionError):
        return 0
    return int(amount * per_unit(name))
