"""Checks whether a principal may do one thing: by its access policies, and by a SubjectAccessReview of its groups.

EKS authorizes by access policies in addition to RBAC. A review of another principal doesn't include them, so they are
evaluated with the most similar ClusterRoles. Source: EKS user guide, "Review access policy permissions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from hpkit.cluster.access.model import Entry, Policy
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.errors import SelectionError
from hpkit.text.spelling import near

__all__ = ["Answer", "Resource", "allows", "check", "find_resource", "resources_of"]

_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
# Every principal whose token EKS accepts is in it.
_AUTHENTICATED: Final = "system:authenticated"
_READ: Final = ("get", "list", "watch")
# Verbs that resources don't list (Kubernetes documentation, "Determine the Request Verb").
_OTHER_VERBS: Final = ("bind", "escalate", "impersonate", "use", "approve", "sign", "*")
# Access policy → the ClusterRole whose rights it gives.
_LIKE: Final[Mapping[str, str]] = {
    "AmazonEKSClusterAdminPolicy": "cluster-admin",
    "AmazonEKSAdminPolicy": "admin",
    "AmazonEKSEditPolicy": "edit",
    "AmazonEKSViewPolicy": "view",
}
_READ_ALL: Final = "AmazonEKSAdminViewPolicy"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the API, such as `jobs` of `batch`, or a part of one, such as `pods/exec`."""

    group: str
    name: str
    subresource: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Return the name as kubectl writes it: `jobs.batch`, `pods/exec`."""
        with_group = f"{self.name}.{self.group}" if self.group else self.name
        return f"{with_group}/{self.subresource}" if self.subresource else with_group


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether it's allowed and by what, and access policies whose permissions aren't known here."""

    allowed: bool
    reasons: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def resources_of(api: Kubernetes) -> tuple[Resource, ...]:
    """Return every resource that the API server serves, each once, in its group's preferred version."""
    resources: dict[tuple[str, str, str], Resource] = {}
    for path in ("/api", "/apis"):
        for group in api.get(path, accept=_DISCOVERY)["items"]:
            name = (group.get("metadata") or {}).get("name") or ""
            for version in group["versions"]:
                for each in version.get("resources") or ():
                    for resource in _resources(name, each):
                        resources.setdefault((resource.group, resource.name, resource.subresource), resource)
    return tuple(resources.values())


def _resources(group: str, served: Mapping[str, Any]) -> Iterable[Resource]:
    namespaced = served.get("scope") == "Namespaced"
    names = (*(served.get("shortNames") or ()), served.get("singularResource") or "")
    yield Resource(group, served["resource"], "", namespaced, tuple(served.get("verbs") or ()), names)
    for part in served.get("subresources") or ():
        verbs = tuple(part.get("verbs") or ())
        yield Resource(group, served["resource"], part["subresource"], namespaced, verbs, names)


def find_resource(resources: Sequence[Resource], text: str) -> Resource:
    """Return the resource for `jobs`, `job`, `jobs.batch`, `po` or `pods/exec`. Raises SelectionError."""
    whole, _, subresource = text.partition("/")
    name, _, group = whole.partition(".")
    matching = [
        resource
        for resource in resources
        if resource.subresource == subresource
        and (not group or resource.group == group)
        and (name == resource.name or name in resource.short_names)
    ]
    if not matching:
        known = {each.full_name for each in resources} | {each.name for each in resources}
        likely = near(text, known)
        raise SelectionError(f"the API server has no resource {text}" + (f"; did you mean {likely}?" if likely else ""))
    # As kubectl does: the core group first, then by name.
    return min(matching, key=lambda each: (each.group != "", each.name != name, each.group))


def check(api: Kubernetes, entry: Entry, verb: str, resource: Resource, namespace: str | None) -> Answer:
    """Return whether an entry's principal may use a verb on a resource; namespace None asks about all of them.

    Raises SelectionError for an unknown verb.
    """
    known = (*resource.verbs, *_OTHER_VERBS)
    if verb not in known:
        raise SelectionError(f"{resource.full_name} has no verb {verb}; it has {', '.join(sorted(resource.verbs))}")
    by_policy = [_by_policy(api, policy, verb, resource, namespace) for policy in entry.policies]
    reasons = [reason for reason in by_policy if reason]
    unknown = [policy.name for policy in entry.policies if policy.name not in _LIKE and policy.name != _READ_ALL]
    review = _review(api, entry, verb, resource, namespace)
    if review.get("allowed"):
        reasons.append(_in_words(str(review.get("reason") or "an authorizer that gives no reason")))
    return Answer(bool(reasons), tuple(reasons), tuple(unknown))


def _by_policy(api: Kubernetes, policy: Policy, verb: str, resource: Resource, namespace: str | None) -> str:
    if policy.namespaces and not _is_within(policy, namespace):
        return ""
    if policy.name == _READ_ALL:
        allowed = verb in _READ
    elif policy.name in _LIKE:
        rules = api.get(f"{_ROLES}/{_LIKE[policy.name]}").get("rules") or ()
        allowed = any(allows(rule, verb, resource) for rule in rules)
    else:
        return ""
    where = f"in {namespace}" if policy.namespaces else "in the whole cluster"
    return f"access policy {policy.name}, {where}" if allowed else ""


def _is_within(policy: Policy, namespace: str | None) -> bool:
    """Return whether a namespace is one of a policy's, which can have wildcards (EKS user guide, access policies)."""
    return namespace is not None and any(fnmatchcase(namespace, each) for each in policy.namespaces)


def allows(rule: Mapping[str, Any], verb: str, resource: Resource) -> bool:
    """Return whether an RBAC rule allows a request; a rule for named objects doesn't allow it for all."""
    part = f"/{resource.subresource}" if resource.subresource else ""
    names = {"*", f"{resource.name}{part}", *((f"*{part}",) if part else ())}
    return (
        not rule.get("resourceNames")
        and bool({"*", verb} & set(rule.get("verbs") or ()))
        and bool({"*", resource.group} & set(rule.get("apiGroups") or ()))
        and bool(names & set(rule.get("resources") or ()))
    )


def _review(api: Kubernetes, entry: Entry, verb: str, resource: Resource, namespace: str | None) -> Mapping[str, Any]:
    attributes = {"verb": verb, "group": resource.group, "resource": resource.name}
    if resource.subresource:
        attributes["subresource"] = resource.subresource
    if namespace is not None and resource.namespaced:
        attributes["namespace"] = namespace
    spec = {"user": entry.username, "groups": [*entry.groups, _AUTHENTICATED], "resourceAttributes": attributes}
    document = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status: Mapping[str, Any] = api.create(_REVIEWS, document)["status"]
    return status


def _in_words(reason: str) -> str:
    """Return the API server's reason for allowing it, without its prefix."""
    return reason.removeprefix("RBAC: allowed by ").replace('"', "")
