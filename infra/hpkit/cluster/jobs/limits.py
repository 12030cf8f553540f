"""Checks what admission policies and the LimitRange of the teams' namespaces reject in a job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hpkit.cluster.jobs.kinds import PodTemplate, Unit
from hpkit.plan.capacity import quantity
from hpkit.plan.lustre import CLAIM
from hpkit.plan.model import TeamPlan
from hpkit.plan.pods import claims_of, mapping, mappings
from hpkit.plan.team_limits import (
    MIG_PREFIX,
    NOT_READY,
    REPLICA_TYPES,
    TOLERATED_SECONDS,
    WORK_KEYS,
    PodLimits,
    is_kueue_key,
    repository_team,
)

__all__ = ["Breach", "Severity", "breaches", "breaches_of_claims", "breaches_of_pods"]

Path = tuple[str | int, ...]
Severity = Literal["error", "warning"]
_METADATA = ("labels", "annotations")
_SCHEDULING = ("spec", "runPolicy", "schedulingPolicy", "priorityClass")


@dataclass(frozen=True, slots=True)
class Breach:
    """A problem of a job, its position in the document, and its fix.

    check: which kind of problem. instead: the key and value that replace the last step of the path, if that fixes it.
    """

    path: Path
    message: str
    fix: str
    check: str = "team-limits"
    severity: Severity = "error"
    instead: tuple[str, Mapping[str, str]] | None = None


def breaches(unit: Unit, templates: tuple[PodTemplate, ...]) -> Iterator[Breach]:
    """Yield the problems of a job itself: Kueue's labels and annotations, and fields that Kueue doesn't count."""
    places = {(): unit.content, **{pods.path: pods.template for pods in templates}}
    for place, document in places.items():
        for field in _METADATA:
            for key in mapping(mapping(document.get("metadata")).get(field)):
                # Another check reports misspelled topology keys.
                if is_kueue_key(str(key)) and key not in WORK_KEYS and "/podset-" not in str(key):
                    yield Breach(
                        (*place, "metadata", field, str(key)),
                        f"members can't set {key}: it belongs to Kueue",
                        "Remove it, and use a Job instead of the group" if "/pod-group-" in str(key) else "Remove it",
                    )
    spec = mapping(unit.content.get("spec"))
    yield from _replica_types(spec)
    elastic = mapping(spec.get("elasticPolicy"))
    if "metrics" in elastic or (elastic and unit.kind == "HyperPodPyTorchJob"):
        yield Breach(
            ("spec", "elasticPolicy", *(("metrics",) if "metrics" in elastic else ())),
            "the operator would add pods while the job runs, which Kueue doesn't count",
            "Remove it, and set the number of pods in replicas",
        )
    if value := mapping(mapping(spec.get("runPolicy")).get("schedulingPolicy")).get("priorityClass"):
        yield Breach(
            _SCHEDULING,
            f"the PriorityClass {value} of the scheduling policy isn't allowed",
            "Remove it, and set the job's priority with the label kueue.x-k8s.io/priority-class",
        )


def _replica_types(spec: Mapping[Any, Any]) -> Iterator[Breach]:
    for field, names in REPLICA_TYPES.items():
        for name in mapping(spec.get(field)):
            if name not in names:
                yield Breach(
                    ("spec", field, str(name)),
                    f"Kueue doesn't count replicas of the type {name}",
                    f"Use one of {', '.join(names)}",
                )


def breaches_of_pods(pods: PodTemplate, team: TeamPlan, limits: PodLimits) -> Iterator[Breach]:
    """Yield the problems of a job's pods."""
    spec, path = mapping(pods.template.get("spec")), (*pods.path, "spec")
    seconds = spec.get("terminationGracePeriodSeconds")
    if isinstance(seconds, int) and not 1 <= seconds <= limits.grace_seconds:
        yield Breach(
            (*path, "terminationGracePeriodSeconds"),
            f"its pods can take {seconds} seconds to stop; the limit is 1–{limits.grace_seconds}",
            f"Set 1–{limits.grace_seconds}",
        )
    if str(spec.get("priorityClassName") or "").startswith("system-"):
        yield Breach(
            (*path, "priorityClassName"),
            f"its pods have the system PriorityClass {spec['priorityClassName']}",
            "Remove it, and set the job's priority with the label kueue.x-k8s.io/priority-class",
        )
    if spec.get("nodeName"):
        yield Breach(
            (*path, "nodeName"),
            f"its pods name the node {spec['nodeName']}, which bypasses the scheduler",
            "Use nodeSelector or affinity",
        )
    accounts = ("default", *team.spec.service_accounts)
    for field in ("serviceAccountName", "serviceAccount"):
        if (account := spec.get(field)) and account not in accounts:
            yield Breach(
                (*path, field),
                f"its pods use the service account {account}, which the team doesn't have",
                f"Use {' or '.join(accounts)}, or add it to `teams[{team.name}].serviceAccounts`",
            )
            break
    if spec.get("resourceClaims"):
        yield Breach(
            (*path, "resourceClaims"),
            "its pods claim devices, which the queue doesn't count",
            "Request accelerators as resources, such as nvidia.com/gpu",
        )
    yield from _affinity(spec, path, team)
    yield from _tolerations(spec, path, limits)
    yield from _volumes(spec, path, limits)
    # Of the others, Kueue counts the template.
    yield from _containers(spec, path, team, limits, completed=pods.alone or not pods.path)


def breaches_of_claims(pods: PodTemplate) -> Iterator[Breach]:
    """Yield the problem of pods with the claim of a team on the shared file system: groups that their image adds."""
    spec = mapping(pods.template.get("spec"))
    strict = mapping(spec.get("securityContext")).get("supplementalGroupsPolicy") == "Strict"
    if not strict and CLAIM in claims_of(spec):
        yield Breach(
            (*pods.path, "spec", "securityContext", "supplementalGroupsPolicy"),
            f"its pods mount {CLAIM}, but their supplementalGroupsPolicy isn't Strict",
            "Set `supplementalGroupsPolicy: Strict` in the pods' securityContext",
        )


def _affinity(spec: Mapping[Any, Any], path: Path, team: TeamPlan) -> Iterator[Breach]:
    for field in ("podAffinity", "podAntiAffinity"):
        stated = mapping(mapping(spec.get("affinity")).get(field))
        terms = list(mappings(stated.get("requiredDuringSchedulingIgnoredDuringExecution")))
        preferred = mappings(stated.get("preferredDuringSchedulingIgnoredDuringExecution"))
        terms += [mapping(each.get("podAffinityTerm")) for each in preferred]
        named = [term.get("namespaces") or [team.namespace] for term in terms]
        if any("namespaceSelector" in term for term in terms) or any(each != [team.namespace] for each in named):
            yield Breach(
                (*path, "affinity", field),
                f"its {field} selects pods of other namespaces",
                "Remove namespaces and namespaceSelector from its terms",
            )


def _tolerations(spec: Mapping[Any, Any], path: Path, limits: PodLimits) -> Iterator[Breach]:
    for number, toleration in enumerate(mappings(spec.get("tolerations"))):
        key = str(toleration.get("key") or "")
        short = (
            key in NOT_READY
            and toleration.get("effect") == "NoExecute"
            and isinstance(seconds := toleration.get("tolerationSeconds"), int)
            and seconds <= TOLERATED_SECONDS
        )
        if key not in limits.tolerations and not key.startswith(MIG_PREFIX) and not short:
            yield Breach(
                (*path, "tolerations", number),
                f"its pods must not tolerate {key or 'every taint'}",
                "Remove the toleration. If nodes of this environment have the taint, add its key to "
                "governance.teamLimits.tolerations",
            )


def _volumes(spec: Mapping[Any, Any], path: Path, limits: PodLimits) -> Iterator[Breach]:
    for number, volume in enumerate(mappings(spec.get("volumes"))):
        types = [name for name in volume if name != "name"]
        # Pod Security rejects hostPath, and has a separate check.
        if types and not set(types) & {*limits.volumes, "hostPath"}:
            yield Breach(
                (*path, "volumes", number),
                f"its volume {volume.get('name')} has the type {types[0]}, which isn't allowed",
                f"Use one of {', '.join(limits.volumes)}",
            )


def _containers(
    spec: Mapping[Any, Any], path: Path, team: TeamPlan, limits: PodLimits, *, completed: bool
) -> Iterator[Breach]:
    for field in ("initContainers", "containers"):
        for number, container in enumerate(mappings(spec.get(field))):
            container_path = (*path, field, number)
            owner = repository_team(str(container.get("image") or ""), limits)
            if owner is not None and owner != team.name:
                yield Breach(
                    (*container_path, "image"),
                    f"its image is in a repository of team {owner}",
                    f"Push the image to {limits.repositories}{team.name}/… and use that",
                )
            if str(container.get("image") or "").startswith("sha256:"):
                yield Breach(
                    (*container_path, "image"),
                    f"its image {container['image']} is an image ID, which can be another team's",
                    "Refer to the image by repository and tag, or by repository and digest (…@sha256:…)",
                )
            resources = mapping(container.get("resources"))
            requests, limited = mapping(resources.get("requests")), mapping(resources.get("limits"))
            for name in ("cpu", "memory"):
                if name in limited and name not in requests and not completed:
                    yield Breach(
                        (*container_path, "resources", "limits", name),
                        f"its container {container.get('name')} has a limit for {name} but no request",
                        f"Add resources.requests.{name}, for example {limited[name]}",
                    )
                if name in requests and _is_nothing(requests[name]):
                    yield Breach(
                        (*container_path, "resources", "requests", name),
                        f"its container {container.get('name')} requests no {name}",
                        f"Request what it needs, or omit {name} for the default of "
                        f"{getattr(limits.default_requests, name)}",
                    )


def _is_nothing(amount: object) -> bool:
    try:
        return not quantity(str(amount))
    except (ValueError, ZeroDivisionError):
        return False
