"""Kubernetes RBAC: no binding, for any subject, grants control of the cluster or a way to get it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.text.formatting import listing
from hpkit_policies.model import (
    Parameter,
    Policy,
    Resource,
    Results,
    Settings,
    Violation,
    of_type,
    unknown_as_undecided,
)

__all__ = ["POLICIES"]

_RBAC: Final = re.compile(
    r"kubernetes:rbac\.authorization\.k8s\.io/\w+:(?P<scope>Cluster)?(?P<thing>RoleBinding|Role)(?:Patch)?"
)
_CONFIG_MAPS: Final = ("kubernetes:core/v1:ConfigMap", "kubernetes:core/v1:ConfigMapPatch")
# Kubernetes documentation, "Role Based Access Control Good Practices", privilege escalation risks.
_VERBS: Final = frozenset({"*", "approve", "bind", "escalate", "impersonate", "sign"})
_READ: Final = frozenset({"get", "list", "watch"})
# Write access to these changes what everyone can do, or what is rejected.
_WRITTEN: Final = frozenset(
    {
        *("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
        *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations"),
        *("validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"),
        *("apiservices", "certificatesigningrequests", "customresourcedefinitions", "namespaces", "nodes"),
        "serviceaccounts/token",
    }
)
# Write access to these in every namespace lets a subject run as any service account of the cluster. So does read access
# to Secrets.
_WRITTEN_EVERYWHERE: Final = frozenset(
    {
        *("cronjobs", "daemonsets", "deployments", "jobs", "pods", "pods/exec", "replicasets", "statefulsets"),
        *("persistentvolumes", "secrets", "serviceaccounts"),
    }
)
_ANY_USE: Final = frozenset({"nodes/proxy"})
# The user-facing role of Kubernetes that reads, and neither Secrets nor RBAC.
_BUILT_IN: Final = frozenset({"view"})
_EVERYBODY: Final = re.compile(r"system:(?:(?:un)?authenticated|anonymous|serviceaccounts)")
_AGGREGATED: Final = "rbac.authorization.k8s.io/aggregate-to-"
_ACCEPTED: Final = Parameter("bindings", "Names of bindings whose permissions are accepted.")


def _hand_out_little(resources: Sequence[Resource], settings: Settings) -> Results:
    roles: dict[tuple[Any, Any], list[Resource]] = {}
    for role, match in _matching(resources, "Role"):
        scope = "" if match["scope"] else role.get_or_unknown("metadata.namespace", "default")
        roles.setdefault((scope, role.get_or_unknown("metadata.name")), []).append(role)
        yield from unknown_as_undecided(_aggregates(role), role)
    for binding, match in _matching(resources, "RoleBinding"):
        if binding.name not in settings[_ACCEPTED.name]:
            everywhere = match["scope"] is not None
            yield from unknown_as_undecided(_binding(binding, roles, everywhere=everywhere), binding)
    for resource in of_type(resources, *_CONFIG_MAPS):
        yield from unknown_as_undecided(_access_map(resource), resource)


def _matching(resources: Sequence[Resource], subject: str) -> Iterator[tuple[Resource, re.Match[str]]]:
    for resource in resources:
        match = _RBAC.fullmatch(resource.type)
        if match is not None and match["thing"] == subject:
            yield resource, match


def _binding(binding: Resource, roles: Mapping[tuple[Any, Any], Sequence[Resource]], *, everywhere: bool) -> Results:
    subjects = list(map(_subject, binding.get("subjects", [])))
    name, namespace = binding.get("roleRef.name"), binding.get("metadata.namespace", "default")
    scope = "" if binding.get("roleRef.kind") == "ClusterRole" else namespace
    rights = next(_escalating(name, roles.get((scope, name)), everywhere=everywhere), None)
    everybody = [each for each in subjects if _EVERYBODY.fullmatch(each)]
    if subjects and rights:
        yield Violation(
            f"`{binding.name}` grants {listing(subjects)} the role `{name}` in "
            f"{'the cluster' if everywhere else namespace}: {rights}",
            f"Bind a role of this stack with only the required permissions, or list the binding in `{_ACCEPTED.name}`.",
            binding,
        )
    elif everybody:
        yield Violation(
            f"`{binding.name}` grants {listing(everybody)}, and so every team, the role `{name}`",
            f"Name the subjects, or list the binding in `{_ACCEPTED.name}`.",
            binding,
        )


def _escalating(name: Any, roles: Sequence[Resource] | None, *, everywhere: bool) -> Iterator[str]:
    """Yield permissions in a role that lead to more; a role outside the stack could grant anything."""
    if roles is None:
        if name not in _BUILT_IN:
            yield "this stack doesn't define what it grants"
        return
    for role in roles:
        if role.get("aggregationRule"):
            yield "its rules are aggregated from other roles by label"
        for rule in role.get("rules", []):
            yield from _of_rule(rule, everywhere=everywhere)


def _of_rule(rule: Mapping[str, Any], *, everywhere: bool) -> Iterator[str]:
    verbs = sorted(rule.get("verbs") or ())
    resources = {each.removesuffix("/*") for each in rule.get("resources") or ()}
    sensitive = _WRITTEN | (_WRITTEN_EVERYWHERE if everywhere else frozenset())
    for verb in verbs:
        reads = verb in _READ
        reached = resources & _ANY_USE
        reached |= {"*"} & resources
        reached |= set() if reads else resources & sensitive
        reached |= resources & {"secrets"} if everywhere else set()
        if verb in _VERBS:
            yield f"{verb} {listing(sorted(resources) or ['URLs'])}"
        yield from (f"{verb} {each}" for each in sorted(reached))


def _aggregates(role: Resource) -> Results:
    """Yield a role whose rules Kubernetes adds to roles that others have been bound to."""
    for label in role.get("metadata.labels", {}):
        if label.startswith(_AGGREGATED):
            yield Violation(
                f"`{role.name}` adds its rules to the role {label.removeprefix(_AGGREGATED)}, for everyone who has "
                "that role",
                f"Remove the label `{label}`, and bind the role.",
                role,
            )


def _access_map(config_map: Resource) -> Results:
    """Yield the ConfigMap that maps AWS identities to groups of Kubernetes, in addition to the access entries."""
    if (config_map.get("metadata.namespace"), config_map.get("metadata.name")) == ("kube-system", "aws-auth"):
        yield Violation(
            f"`{config_map.name}` writes aws-auth, which can make any role an administrator unnoticed",
            "Use access entries.",
            config_map,
        )


def _subject(subject: Mapping[str, Any]) -> str:
    """Return a subject by the name that it has as a user or group."""
    if subject.get("kind") == "ServiceAccount":
        return f"system:serviceaccount:{subject.get('namespace')}:{subject.get('name')}"
    return str(subject.get("name"))


POLICIES = (
    Policy(
        name="bindings-grant-no-escalation",
        description="Bindings grant no one permissions that lead to more. These are permissions of a cluster "
        "administrator, of other identities, of RBAC and admission, or of a role outside the stack.",
        validate_stack=_hand_out_little,
        parameters=(_ACCEPTED,),
    ),
)
