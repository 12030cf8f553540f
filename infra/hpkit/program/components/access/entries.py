"""Access: entries of administrators, viewers and teams, and each team's permissions in its namespace.

A team's permissions allow some requests that must be rejected. Pod Security and admission policies reject them, and
both exist before any member of a team has permissions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import quantity_of
from hpkit.plan.lustre import has_team_volumes
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.names import GROUP_PREFIX
from hpkit.plan.principals import (
    TEAM_ROLE,
    VIEWER_GROUP,
    VIEWER_ROLE,
    access_policies_of,
    console_policies_of,
    groups_of,
)
from hpkit.plan.team_limits import most_of_pods, pod_limits
from hpkit.program.components.access.rbac import PolicyRule, cluster_rules, team_rules, viewer_rules
from hpkit.program.components.access.roles import Roles
from hpkit.program.components.admission.policies import (
    AdmissionPolicy,
    pod_security_labels,
    policies_of,
    policies_of_users,
    request_limits,
)
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext, KubernetesObject, document
from hpkit.program.iam.documents import policy_of_members, trust_of_members

__all__ = ["Access"]

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
# The program's values override those of any other manager, because the service creates the namespace.
_FORCE = {"pulumi.com/patchForce": "true"}
_REQUESTS = "hpkit-requests"
# Users see it in messages such as `exceeded quota: hpkit-quota-and-borrow-limit`.
_MOST = "hpkit-quota-and-borrow-limit"


class Access(Component):
    """Access of one environment: immediate access, and each team's access after `grant`.

    administrators: what admits them. It's created before everything in the cluster, and deleted after it, so that a
    destroy doesn't lock out the person who runs it.
    """

    administrators: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        eks: Eks,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._eks, self._context, self._after = plan, eks, context, after
        self._limits = pod_limits(plan)
        groups = groups_of(plan)
        self._made = {team.made_role: self._role(team) for team in plan.teams if team.made_role}
        administrators = dict.fromkeys(plan.spec.eks.administrators)
        self.administrators = [entry for each in administrators for entry in self._entry(each, groups.get(each, ()))]
        for principal in sorted(groups.keys() - administrators.keys()):
            self._entry(principal, groups[principal])

    def grant(self, quotas: Mapping[str, pulumi.Resource]) -> None:
        """Let viewers read, and each team work in its namespace.

        quotas: by team, because a quota creates the namespace. What deletes the quota, even to create it again, may
        delete the namespace with its contents, so these are created again too.

        A team without members isn't changed: its users have their permissions from elsewhere.
        """
        teams = [team for team in self._plan.teams if team.spec.members]
        policies = [
            *policies_of(teams, self._limits),
            *(policies_of_users(teams) if has_team_volumes(self._plan) else ()),
        ]
        bounds = [self._bound(policy, teams) for policy in policies] if teams else []
        if self._plan.spec.eks.viewers:
            self._cluster_role(VIEWER_ROLE, viewer_rules(), [VIEWER_GROUP])
        if teams:
            rules = cluster_rules(spaces=any("spaces" in team.spec.workloads for team in teams))
            self._cluster_role(TEAM_ROLE, rules, [f"{GROUP_PREFIX}{team.name}" for team in teams])
        for team in teams:
            quota = quotas[team.name]
            inside = [self._level(team, quota), self._requests(team, quota), *self._most(team, quota)]
            self._team(team, quota, after=[*inside, *bounds])
        administrators = self._plan.spec.eks.administrators
        self.register_outputs({"principals": sorted({*groups_of(self._plan), *administrators})})

    def _role(self, team: TeamPlan) -> list[pulumi.Resource]:
        """Return the role of a team's data scientists, and its policy."""
        if team.spec.member_role is None:
            raise ValueError(f"{team.name} has no memberRole")
        account, roles = self._context.account, Roles(self, self._plan, self._context.account)
        purpose = f"team-{team.name}"
        trust = document(trust_of_members, role=team.spec.member_role, account=account)
        role = roles.make(purpose, trust=trust, description=f"Data scientists of the team {team.name}")
        policy = json.dumps(policy_of_members(self._plan, team, account), sort_keys=True)
        return [role, roles.allow(role, purpose, policy)]

    def _entry(self, principal: str, groups: Sequence[str]) -> list[pulumi.Resource]:
        """Return the entry of a principal, and its policies."""
        entry = aws.eks.AccessEntry(
            _short(principal),
            cluster_name=self._eks.name,
            principal_arn=principal,
            kubernetes_groups=list(groups),
            type="STANDARD",
            opts=self.child(after=[*self._after, *self._made.get(principal, ())]),
        )
        policies = access_policies_of(self._plan, principal)
        return [entry, *(self._policy(principal, entry, name, policies[name]) for name in policies)]

    def _policy(
        self, principal: str, entry: pulumi.Resource, policy: str, namespaces: Sequence[str] | None
    ) -> pulumi.Resource:
        """Return the association of a policy; namespaces: None for the whole cluster."""
        scope = aws.eks.AccessPolicyAssociationAccessScopeArgs(
            type="cluster" if namespaces is None else "namespace", namespaces=namespaces
        )
        is_console = policy in console_policies_of(self._plan)
        return aws.eks.AccessPolicyAssociation(
            f"{_short(principal)}/{policy}" if is_console else _short(principal),
            cluster_name=self._eks.name,
            principal_arn=principal,
            policy_arn=f"arn:{self._context.account.partition}:eks::aws:cluster-access-policy/{policy}",
            access_scope=scope,
            # AWS identifies an association by principal and policy: deleting the old one last would remove the new one.
            opts=self.child(after=[entry], delete_before_replace=True),
        )

    def _cluster_role(self, name: str, rules: Sequence[PolicyRule], groups: Sequence[str]) -> None:
        inside = self.child(provider=self._eks.kubernetes)
        metadata = {"name": name}
        KubernetesObject(name, f"{_RBAC}/v1:ClusterRole", metadata=metadata, rules=_rules(rules), opts=inside)
        KubernetesObject(
            name,
            f"{_RBAC}/v1:ClusterRoleBinding",
            metadata=metadata,
            roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            subjects=[_group(group) for group in groups],
            opts=inside,
        )

    def _level(self, team: TeamPlan, quota: pulumi.Resource) -> pulumi.Resource:
        """Return the Pod Security level of a team's namespace."""
        labels = pod_security_labels(self._plan.spec.eks.version)
        return KubernetesObject(
            team.name,
            "core/v1:NamespacePatch",
            metadata={"name": team.namespace, "labels": labels, "annotations": _FORCE},
            opts=self.child(after=[quota], provider=self._eks.kubernetes, replace_with=[quota]),
        )

    def _requests(self, team: TeamPlan, quota: pulumi.Resource) -> pulumi.Resource:
        """Return the LimitRange of a team's namespace."""
        given, least = request_limits(self._limits)
        return KubernetesObject(
            team.name,
            "core/v1:LimitRange",
            metadata={"name": _REQUESTS, "namespace": team.namespace, "annotations": _FORCE},
            spec={"limits": [{"type": "Container", "defaultRequest": given, "min": least}]},
            opts=self.child(after=[quota], provider=self._eks.kubernetes, replace_with=[quota]),
        )

    def _most(self, team: TeamPlan, quota: pulumi.Resource) -> list[pulumi.Resource]:
        """Return the ResourceQuota of a team's namespace, which counts ending pods that Kueue no longer counts.

        Empty if the values of an instance type aren't known, because a lower limit would block admitted jobs.
        """
        most = most_of_pods(team)
        if most is None:
            return []
        hard = {f"requests.{name}": quantity_of(name, amount) for name, amount in most.items()}
        # Until its controller has read the quota, the API server rejects pods, so there is nothing to wait for.
        annotations = {**_FORCE, "pulumi.com/skipAwait": "true"}
        return [
            KubernetesObject(
                team.name,
                "core/v1:ResourceQuota",
                metadata={"name": _MOST, "namespace": team.namespace, "annotations": annotations},
                spec={"hard": hard},
                opts=self.child(after=[quota], provider=self._eks.kubernetes, replace_with=[quota]),
            )
        ]

    def _bound(self, policy: AdmissionPolicy, teams: Sequence[TeamPlan]) -> pulumi.Resource:
        """Return an admission policy in force."""
        inside = self.child(provider=self._eks.kubernetes)
        in_force = KubernetesObject(
            policy.name,
            f"{_ADMISSION}/v1:ValidatingAdmissionPolicy",
            metadata={"name": policy.name, "annotations": _FORCE},
            spec=_spec(policy, teams),
            opts=inside,
        )
        return KubernetesObject(
            policy.name,
            f"{_ADMISSION}/v1:ValidatingAdmissionPolicyBinding",
            metadata={"name": policy.name, "annotations": _FORCE},
            spec={"policyName": policy.name, "validationActions": ["Deny"]},
            # These are shared: applying one would add `Deny` next to an existing `Warn`, which the API server rejects.
            # So a change replaces the binding.
            opts=self.child(
                after=[in_force],
                provider=self._eks.kubernetes,
                replace_on_changes=["spec.validationActions"],
                delete_before_replace=True,
            ),
        )

    def _team(self, team: TeamPlan, quota: pulumi.Resource, *, after: Sequence[pulumi.Resource]) -> None:
        inside = self.child(after=[quota, *after], provider=self._eks.kubernetes, replace_with=[quota])
        metadata = {"name": TEAM_ROLE, "namespace": team.namespace}
        rules = team_rules(team.spec.workloads, ingress="Ingress" in self._limits.publish)
        KubernetesObject(team.name, f"{_RBAC}/v1:Role", metadata=metadata, rules=_rules(rules), opts=inside)
        KubernetesObject(
            team.name,
            f"{_RBAC}/v1:RoleBinding",
            metadata=metadata,
            roleRef={"apiGroup": _RBAC, "kind": "Role", "name": TEAM_ROLE},
            subjects=[_group(f"{GROUP_PREFIX}{team.name}")],
            opts=inside,
        )


def _group(name: str) -> dict[str, str]:
    return {"apiGroup": _RBAC, "kind": "Group", "name": name}


def _rules(rules: Sequence[PolicyRule]) -> list[dict[str, Sequence[str]]]:
    return [{"apiGroups": rule.api_groups, "resources": rule.resources, "verbs": rule.verbs} for rule in rules]


def _spec(policy: AdmissionPolicy, teams: Sequence[TeamPlan]) -> dict[str, Any]:
    namespaces = sorted(team.namespace for team in teams)
    of_teams = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchExpressions": [of_teams]},
            "resourceRules": [
                {
                    "apiGroups": list(rule.groups),
                    "apiVersions": ["*"],
                    "resources": list(rule.resources),
                    "operations": list(policy.operations),
                }
                for rule in policy.rules
            ],
        },
        "matchConditions": _expressions(policy.conditions),
        "variables": _expressions(policy.variables),
        "validations": [{"expression": each.expression, "message": each.message} for each in policy.rejections],
    }


def _expressions(named: Mapping[str, str]) -> list[dict[str, str]] | None:
    return [{"name": name, "expression": text} for name, text in named.items()] or None


def _short(principal: str) -> str:
    """Return `<account>:role/<name>` for an ARN, because resource names can't contain a double colon."""
    return principal.partition("::")[2] or principal
