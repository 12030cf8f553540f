"""A team's access: only its own namespace, in Kubernetes bindings and in EKS access entries alike."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.text.formatting import listing
from hpkit_policies.model import (
    UNKNOWN,
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

# In any version of the API, and also as a patch of an existing object.
_ROLE_BINDING: Final = re.compile(r"kubernetes:rbac\.authorization\.k8s\.io/\w+:RoleBinding(?:Patch)?")
_CLUSTER_ROLE_BINDING: Final = re.compile(r"kubernetes:rbac\.authorization\.k8s\.io/\w+:ClusterRoleBinding(?:Patch)?")
_CLUSTER_ROLE: Final = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
_READ: Final = ("get", "list", "watch")
_ENTRY: Final = "aws:eks/accessEntry:AccessEntry"
_ASSOCIATION: Final = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
# What reads, and no Secrets; AmazonEKSAdminViewPolicy reads those too, and is for viewers of the whole cluster.
_READING: Final = ("AmazonEKSAdminViewPolicy", "AmazonEKSViewPolicy", "AmazonSagemakerHyperpodUserClusterPolicy")
_GROUP: Final = "hyperpod:team:"
_NAMESPACE: Final = "hyperpod-ns-"

_CLUSTER_RESOURCES = Parameter(
    "clusterResources",
    "What a team may read in the whole cluster. A ClusterRole that grants more must not be bound to a team.",
    default=[
        "clusterqueues",
        "cohorts",
        "customresourcedefinitions",
        "namespaces",
        "nodes",
        "resourceflavors",
        "topologies",
        "workloadpriorityclasses",
        "workspacetemplates",
    ],
)
_ADMINISTRATORS = Parameter("administrators", "ARNs of roles that may administer EKS clusters. Empty: any role.")
_CLUSTER_POLICIES = Parameter(
    "clusterPolicies",
    "Access policies that a team may have in the whole cluster.",
    # It reads names of nodes, queues and priorities, and no team's objects.
    default=["AmazonSagemakerHyperpodUserClusterPolicy"],
)


def _bound(resources: Sequence[Resource], settings: Settings) -> Results:
    teams = _TeamNames(of_type(resources, _ENTRY))
    for binding in _bindings(resources, _ROLE_BINDING):
        yield from unknown_as_undecided(_in_namespace(binding, teams), binding)
    roles = {role.get_or_unknown("metadata.name", role.name): role for role in of_type(resources, _CLUSTER_ROLE)}
    for binding in _bindings(resources, _CLUSTER_ROLE_BINDING):
        yield from unknown_as_undecided(_in_cluster(binding, teams, roles, settings), binding)


def _bindings(resources: Sequence[Resource], types: re.Pattern[str]) -> list[Resource]:
    return [resource for resource in resources if types.fullmatch(resource.type)]


def _in_namespace(binding: Resource, teams: "_TeamNames") -> Results:
    role, namespace = binding.get("roleRef.name"), binding.get("metadata.namespace", "default")
    for team in teams.teams_among(binding.get("subjects", [])):
        if namespace != f"{_NAMESPACE}{team}":
            yield Violation(
                f"`{binding.name}` grants team `{team}` the role `{role}` in namespace `{namespace}`",
                f"Bind it in `{_NAMESPACE}{team}`.",
                binding,
            )


def _in_cluster(binding: Resource, teams: "_TeamNames", roles: Mapping[Any, Resource], settings: Settings) -> Results:
    name = binding.get("roleRef.name")
    for team in teams.teams_among(binding.get("subjects", [])):
        excess = (
            _more_than_reads(roles[name], settings) if name in roles else "permissions that this stack doesn't define"
        )
        if excess:
            yield Violation(
                f"`{binding.name}` grants team `{team}` the role `{name}` in every namespace: {excess}",
                f"Bind it in `{_NAMESPACE}{team}`, or limit it to reading "
                f"{listing(settings[_CLUSTER_RESOURCES.name])}.",
                binding,
            )


def _more_than_reads(role: Resource, settings: Settings) -> str | None:
    """Return the first permission in a ClusterRole beyond what a team may read in the cluster."""
    for rule in role.get("rules", []):
        for verb in rule.get("verbs") or ():
            for resource in (*(rule.get("resources") or ()), *(rule.get("nonResourceURLs") or ())):
                if verb not in _READ or resource not in settings[_CLUSTER_RESOURCES.name]:
                    return f"{verb} {resource}"
    return None


class _TeamNames:
    """Return the names of a team's members in the API: its group, others in their access entries, their pods' accounts.

    Source: EKS user guide, access entries (Kubernetes groups and user name); Kubernetes, "Authenticating", service
    accounts.
    """

    def __init__(self, entries: Sequence[Resource]) -> None:
        self._teams: dict[str, str] = {}
        for entry in entries:
            listed = entry.get_or_unknown("kubernetesGroups", [])
            groups = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
            team = next((each.removeprefix(_GROUP) for each in groups if each.startswith(_GROUP)), None)
            names = (*groups, entry.get_or_unknown("userName"), entry.get_or_unknown("principalArn"))
            self._teams |= {name: team for name in names if team is not None and isinstance(name, str)}

    def teams_among(self, subjects: Sequence[Any]) -> Iterator[str]:
        """Yield the teams among the subjects of a binding."""
        for subject in subjects:
            name = subject.get("name") if isinstance(subject, Mapping) else None
            if not isinstance(name, str):
                continue
            team = self._account(subject, name) or self._teams.get(name)
            if team is not None:
                yield team
            elif name.startswith(_GROUP):
                yield name.removeprefix(_GROUP)

    @staticmethod
    def _account(subject: Mapping[str, Any], name: str) -> str | None:
        """Return the team of a service account, as which any member can run a pod; None for another subject."""
        found = re.fullmatch(rf"system:serviceaccounts?:{_NAMESPACE}([^:]+)(?::.*)?", name)
        if found:
            return found[1]
        namespace = subject.get("namespace") if subject.get("kind") == "ServiceAccount" else None
        of_team = isinstance(namespace, str) and namespace.startswith(_NAMESPACE)
        return str(namespace).removeprefix(_NAMESPACE) if of_team else None


def _scoped(resources: Sequence[Resource], settings: Settings) -> Results:
    entries = of_type(resources, _ENTRY)
    for association in of_type(resources, _ASSOCIATION):
        own = [entry for entry in entries if _same_principal(entry, association)]
        yield from unknown_as_undecided(_scoped_one(association, own, settings), association)


def _same_principal(entry: Resource, association: Resource) -> bool:
    """Match by ARN; if it isn't known yet, by the entry itself or by the same source."""
    one, other = entry.get_or_unknown("principalArn"), association.get_or_unknown("principalArn")
    if UNKNOWN not in (one, other):
        return bool(one == other)
    sources = set(association.property_dependencies.get("principalArn", ()))
    return entry.urn in sources or bool(sources & set(entry.property_dependencies.get("principalArn", ())))


def _scoped_one(association: Resource, entries: Sequence[Resource], settings: Settings) -> Results:
    groups = [group for entry in entries for group in entry.get("kubernetesGroups", [])]
    teams = [group.removeprefix(_GROUP) for group in groups if group.startswith(_GROUP)]
    if not teams:
        return
    policy = str(association.get("policyArn")).rpartition("/")[2]
    scope = association.get("accessScope.type")
    allowed = {f"{_NAMESPACE}{team}" for team in teams}
    if scope == "cluster":
        if policy not in settings[_CLUSTER_POLICIES.name]:
            yield Violation(
                f"`{association.name}` grants the team {listing(teams)} {policy} in the whole cluster",
                f"Set `accessScope` to the namespace {listing(sorted(allowed))}, or list the policy in "
                f"`{_CLUSTER_POLICIES.name}`.",
                association,
            )
        return
    outside = sorted(set(association.get("accessScope.namespaces", [])) - allowed)
    if outside:
        yield Violation(
            f"`{association.name}` grants the team {listing(teams)} {policy} in {listing(list(outside))}",
            f"Set the namespaces to {listing(sorted(allowed))} only.",
            association,
        )


def _administrators(association: Resource, settings: Settings) -> Results:
    policy = str(association.get("policyArn")).rpartition("/")[2]
    scope = association.get("accessScope.type")
    if policy != "AmazonEKSClusterAdminPolicy" and (scope != "cluster" or policy in _READING):
        return
    principal, listed = str(association.get("principalArn")), settings[_ADMINISTRATORS.name]
    if listed and principal not in listed:
        yield Violation(
            f"`{association.name}` grants {principal} {policy}", f"Remove it, or list it in `{_ADMINISTRATORS.name}`."
        )
    elif not re.fullmatch(r"arn:aws[\w-]*:iam::\d{12}:role/[^*?]+", principal):
        yield Violation(
            f"`{association.name}` grants {principal} {policy}", "Grant it to a role, whose sessions expire."
        )


POLICIES = (
    Policy(
        name="eks-administrators-named",
        description="Access policies that can change a whole EKS cluster are granted only to roles, and only to the "
        "listed ones if any are listed.",
        types=(_ASSOCIATION,),
        validate=_administrators,
        parameters=(_ADMINISTRATORS,),
    ),
    Policy(
        name="team-bindings-in-namespace",
        description="The group hyperpod:team:<team> has permissions only in hyperpod-ns-<team>; in other namespaces "
        "it can at most read names.",
        validate_stack=_bound,
        parameters=(_CLUSTER_RESOURCES,),
    ),
    Policy(
        name="team-access-policies-in-namespace",
        description="Access policies of a team's principals apply only to hyperpod-ns-<team>.",
        validate_stack=_scoped,
        parameters=(_CLUSTER_POLICIES,),
    ),
)
