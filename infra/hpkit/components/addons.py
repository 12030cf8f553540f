"""EKS add-ons in the order that works: before the nodes what nodes need, after them what needs nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import TASK_GOVERNANCE, AddOn
from hpkit.catalog import addons as known_addons
from hpkit.components.base import Component, DeployContext, document
from hpkit.components.eks import Eks
from hpkit.iam.account import managed_policy
from hpkit.iam.documents import pod_trust
from hpkit.plan.existing import POD_ACCOUNTS, PodAccount, is_associated
from hpkit.plan.merging import merged
from hpkit.plan.model import AddonPlan, Plan
from hpkit.plan.names import role_name

__all__ = ["Addons"]


class Addons(Component):
    """Some of the plan's add-ons; installed by name.

    values: what the kit tells an add-on. policies: what a role that the kit makes for its pods allows, where that
    depends on resources of the stack.
    """

    installed: Mapping[str, aws.eks.Addon]

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        eks: Eks,
        needing_nodes: bool,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
        values: Mapping[str, pulumi.Input[Mapping[str, Any]]] | None = None,
        policies: Mapping[str, pulumi.Output[str]] | None = None,
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._context, self._eks = plan, context, eks
        self._values = values or {}
        self._policies = policies or {}
        known = {addon.name: addon for addon in known_addons()}
        need_nodes = {addon.name for addon in known.values() if addon.needs_nodes}
        wanted = {addon.name: addon for addon in plan.addons if (addon.name in need_nodes) == needing_nodes}
        first = {name: [each for each in _requires(known, name) if each in wanted] for name in sorted(wanted)}
        installed: dict[str, aws.eks.Addon] = {}
        for each in TopologicalSorter(first).static_order():
            installed[each] = self._install(wanted[each], [*after, *(installed[name] for name in first[each])])
        self.installed = installed
        self.register_outputs({"addons": sorted(self.installed)})

    @property
    def task_governance(self) -> aws.eks.Addon | None:
        """The add-on that brings Kueue, if the plan has it."""
        return self.installed.get(TASK_GOVERNANCE)

    def _install(self, addon: AddonPlan, after: Sequence[pulumi.Resource]) -> aws.eks.Addon:
        identity = [self._pod_identity(addon)] if is_associated(self._plan, addon) else []
        # The API would take away associations that the add-on has of its own and the program does not name.
        left_alone = pulumi.ResourceOptions(ignore_changes=None if addon.pod_identity else ["podIdentityAssociations"])
        return aws.eks.Addon(
            addon.name,
            addon_name=addon.name,
            addon_version=addon.version,
            cluster_name=self._eks.name,
            configuration_values=self._configuration(addon),
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            service_account_role_arn=addon.service_account_role_arn,
            opts=pulumi.ResourceOptions.merge(self.child(after=[*after, *identity]), left_alone),
        )

    def _configuration(self, addon: AddonPlan) -> pulumi.Output[str] | None:
        kits = self._values.get(addon.name)
        if kits is None and not addon.configuration:
            return None
        return pulumi.Output.from_input(kits or {}).apply(
            lambda known: json.dumps(merged(known, addon.configuration), sort_keys=True)
        )

    def _pod_identity(self, addon: AddonPlan) -> aws.eks.PodIdentityAssociation:
        account = POD_ACCOUNTS[addon.name]
        role: pulumi.Input[str]
        rights: Sequence[pulumi.Resource]
        role, rights = (addon.role, ()) if addon.role is not None else self._pod_role(addon.name, account)
        return aws.eks.PodIdentityAssociation(
            addon.name,
            cluster_name=self._eks.name,
            namespace=account.namespace,
            service_account=account.name,
            role_arn=role,
            opts=self.child(after=rights),
        )

    def _pod_role(self, addon: str, account: PodAccount) -> tuple[pulumi.Output[str], Sequence[pulumi.Resource]]:
        where = self._context.account
        role = aws.iam.Role(
            addon,
            name=role_name(self._plan, addon),
            description=f"Pods of the add-on {addon}",
            assume_role_policy=document(lambda cluster_arn: pod_trust(where, cluster_arn), cluster_arn=self._eks.arn),
            permissions_boundary=self._plan.spec.permissions_boundary,
            opts=self.child(),
        )
        rights: list[pulumi.Resource] = [
            aws.iam.RolePolicyAttachment(
                f"{addon}-{policy.rpartition('/')[2]}",
                role=role.name,
                policy_arn=managed_policy(where, policy),
                opts=self.child(),
            )
            for policy in account.managed
        ]
        policy = self._policies.get(addon)
        if policy is not None:
            rights.append(aws.iam.RolePolicy(addon, name=addon, role=role.id, policy=policy, opts=self.child()))
        return role.arn, rights


def _requires(known: Mapping[str, AddOn], name: str) -> tuple[str, ...]:
    return known[name].requires if name in known else ()
