"""A pod's requests, and the nodes that its specification allows, by the rules of Kubernetes and Kueue.

Lenient: user-written specifications can contain anything, and unreadable parts are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

__all__ = ["claims_of", "may_go_to", "pod_requests", "selects"]

Number = TypeVar("Number", int, Decimal)
Convert = Callable[[str, object], Number]


def pod_requests(spec: Mapping[str, Any], amount: Convert[Number]) -> dict[str, Number]:
    """Return a pod's requests: the sum of its containers, or an init container that requests more.

    amount: returns the given quantity of a resource. A limit without a request counts as one (Kubernetes, Resource
    Management for Pods and Containers). An init container that always restarts runs together with the others (Sidecar
    Containers).
    """
    first: list[Mapping[Any, Any]] = list(_mappings(spec.get("initContainers")))
    sidecars: list[Mapping[Any, Any]] = [each for each in first if each.get("restartPolicy") == "Always"]
    total: dict[str, Number] = {}
    for container in (*_mappings(spec.get("containers")), *sidecars):
        for name, requested in _of_container(container, amount).items():
            total[name] = total[name] + requested if name in total else requested
    for container in first:
        if container not in sidecars:
            for name, requested in _of_container(container, amount).items():
                total[name] = max(total.get(name, requested), requested)
    return total


def claims_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the names of the PersistentVolumeClaims that a pod mounts."""
    volumes = (_mapping(volume.get("persistentVolumeClaim")) for volume in _mappings(spec.get("volumes")))
    return [str(volume["claimName"]) for volume in volumes if volume.get("claimName")]


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches labels; an empty one matches all (Kubernetes, Labels and Selectors)."""
    if any(labels.get(key) != value for key, value in _mapping(selector.get("matchLabels")).items()):
        return False
    for term in _mappings(selector.get("matchExpressions")):
        value, values = labels.get(str(term.get("key"))), term.get("values") or ()
        matches = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not matches.get(str(term.get("operator")), False):
            return False
    return True


def _of_container(container: Mapping[str, Any], amount: Convert[Number]) -> dict[str, Number]:
    resources = _mapping(container.get("resources"))
    asked = {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))}
    return {str(name): amount(str(name), text) for name, text in asked.items()}


def may_go_to(spec: Mapping[str, Any], labels: Mapping[str, str], keys: Collection[str]) -> bool:
    """Return whether a pod's node selector and required node affinity admit nodes with these labels.

    keys: the labels that are checked; requirements on others are ignored (Kueue 0.19.2, flavorSelector of
    pkg/scheduler/flavorassigner).
    """
    selected = _mapping(spec.get("nodeSelector"))
    if any(key in keys and labels.get(key) != value for key, value in selected.items()):
        return False
    affinity = _mapping(_mapping(spec.get("affinity")).get("nodeAffinity"))
    required = _mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [
        [expression for expression in _mappings(term.get("matchExpressions")) if expression.get("key") in keys]
        for term in _mappings(required.get("nodeSelectorTerms"))
    ]
    return not terms or any(all(_matches(each, labels) for each in term) for term in terms)


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    given = expression.get("values")
    values = given if isinstance(given, list | tuple) else ()
    key, operator = expression.get("key"), expression.get("operator")
    has_key = key in labels
    return {
        "In": has_key and labels.get(str(key)) in values,
        "NotIn": not has_key or labels.get(str(key)) not in values,
        "Exists": has_key,
        "DoesNotExist": not has_key,
    }.get(str(operator), True)


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> Iterable[Mapping[Any, Any]]:
    return [_mapping(each) for each in value] if isinstance(value, list | tuple) else []
