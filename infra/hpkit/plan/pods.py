"""A pod's requests, and the nodes that its specification allows, by the rules of Kubernetes and Kueue.

Lenient: user-written specifications can contain anything, and unreadable parts are ignored.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

__all__ = ["claims_of", "mapping", "mappings", "matches_all", "may_go_to", "pod_requests", "selects", "tolerates"]

Number = TypeVar("Number", int, Decimal)
Convert = Callable[[str, object], Number]
_OF_PODS: Final = ("cpu", "memory")


def pod_requests(
    spec: Mapping[str, Any],
    amount: Convert[Number],
    defaults: Mapping[str, Any] | None = None,
    *,
    completed: bool = True,
) -> dict[str, Number]:
    """Return a pod's requests, as the API server, the scheduler and Kueue count them.

    They are the sum of its containers, or what an init container requests together with the always restarting ones
    before it, if that is more. Requests of the whole pod replace the sum. The overhead is added.

    amount: returns the given quantity of a resource. defaults: requests that the namespace's LimitRange adds. A limit
    without a request counts as one: before the defaults if the API server completes the pod itself (completed), and
    after them in a pod template that Kueue counts.

    Sources: k8s.io/component-helpers 0.36, resource/helpers.go, PodRequests; Kubernetes 1.36, pkg/apis/core/v1,
    SetDefaults_Pod; Kueue 0.19.2, pkg/workload/resources.go, AdjustResources.
    """
    containers, first = mappings(spec.get("containers")), mappings(spec.get("initContainers"))

    def requests_of(container: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Number]:
        resources = mapping(container.get("resources"))
        limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
        asked = {**added, **limits, **requests} if completed else {**limits, **added, **requests}
        return {str(name): amount(str(name), text) for name, text in asked.items()}

    def together(added: Mapping[str, Any]) -> dict[str, Number]:
        return _of_containers(
            (requests_of(each, added) for each in containers),
            ((each.get("restartPolicy") == "Always", requests_of(each, added)) for each in first),
        )

    total, whole = together(defaults or {}), mapping(spec.get("resources"))
    limits, requests = ({**mapping(whole.get(part))} for part in ("limits", "requests"))
    if limits and completed:
        # The API server completes the requests of the whole pod before it adds the LimitRange's defaults.
        asked = together({})
        total |= {name: each for name, each in asked.items() if name in _OF_PODS}
        limits = {name: each for name, each in limits.items() if name not in asked}
    total |= {name: amount(name, text) for name, text in {**limits, **requests}.items() if _is_pod_level(name)}
    _add(total, {str(name): amount(str(name), text) for name, text in mapping(spec.get("overhead")).items()})
    return total


def _of_containers(
    containers: Iterable[Mapping[str, Number]], first: Iterable[tuple[bool, Mapping[str, Number]]]
) -> dict[str, Number]:
    """Return what containers request; first: for each init container, whether it stays, and its requests."""
    total: dict[str, Number] = {}
    staying: dict[str, Number] = {}
    most: dict[str, Number] = {}
    for requested in containers:
        _add(total, requested)
    for stays, requested in first:
        together = dict(staying)
        _add(together, requested)
        if stays:
            _add(total, requested)
            staying = together
        most |= {name: max(most.get(name, each), each) for name, each in together.items()}
    return total | {name: max(total.get(name, each), each) for name, each in most.items()}


def _add(total: dict[str, Number], more: Mapping[str, Number]) -> None:
    for name, each in more.items():
        total[name] = total[name] + each if name in total else each


def _is_pod_level(name: object) -> bool:
    """Return whether a resource can be requested for a whole pod (IsSupportedPodLevelResource)."""
    return name in _OF_PODS or str(name).startswith("hugepages-")


def claims_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the names of the PersistentVolumeClaims that a pod mounts."""
    volumes = (mapping(volume.get("persistentVolumeClaim")) for volume in mappings(spec.get("volumes")))
    return [str(volume["claimName"]) for volume in volumes if volume.get("claimName")]


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches labels; an empty one matches all (Kubernetes, Labels and Selectors)."""
    required = mapping(selector.get("matchLabels"))
    return all(labels.get(key) == value for key, value in required.items()) and matches_all(
        mappings(selector.get("matchExpressions")), labels
    )


def matches_all(requirements: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> bool:
    """Return whether labels meet requirements of the form key, operator, values."""
    return all(_matches(each, labels) for each in requirements)


def may_go_to(spec: Mapping[str, Any], labels: Mapping[str, str], keys: Collection[str] | None = None) -> bool:
    """Return whether a pod's node selector and required node affinity admit nodes with these labels.

    keys: the labels that are checked, by default all; requirements on others are ignored (Kueue 0.19.2, flavorSelector
    of pkg/scheduler/flavorassigner).
    """
    selected = mapping(spec.get("nodeSelector"))
    if any((keys is None or key in keys) and labels.get(key) != value for key, value in selected.items()):
        return False
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [
        [each for each in mappings(term.get("matchExpressions")) if keys is None or each.get("key") in keys]
        for term in mappings(required.get("nodeSelectorTerms"))
    ]
    return not terms or any(matches_all(term, labels) for term in terms)


def tolerates(
    tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any], resources: Collection[str] = ()
) -> bool:
    """Return whether a pod with tolerations can go to a node with a taint.

    resources: those that it requests. EKS adds a toleration for taints that have the name of one
    (ExtendedResourceToleration).
    """
    key, effect = taint.get("key"), taint.get("effect")
    if effect == "PreferNoSchedule" or (key in resources and effect == "NoSchedule"):
        return True
    return any(
        each.get("effect") in (None, "", effect)
        and (each.get("key") == key or not each.get("key"))
        and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or ""))
        for each in tolerations
    )


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    given = expression.get("values")
    values = given if isinstance(given, list | tuple) else ()
    operator, label = expression.get("operator"), labels.get(str(expression.get("key")))
    if operator in ("Gt", "Lt") and len(values) == 1:
        numbers = [str(label), str(values[0])]
        than = [int(each) for each in numbers if each.isdecimal()]
        return len(than) == 2 and (than[0] > than[1] if operator == "Gt" else than[0] < than[1])
    return {
        "In": label is not None and label in values,
        "NotIn": label is None or label not in values,
        "Exists": label is not None,
        "DoesNotExist": label is None,
    }.get(str(operator), True)


def mapping(value: Any) -> Mapping[Any, Any]:
    """Return a mapping in a user's document; an empty one if there is another value."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[Any, Any]]:
    """Return the mappings in a list of a user's document; other values count as empty ones."""
    return [mapping(each) for each in value] if isinstance(value, list | tuple) else []
