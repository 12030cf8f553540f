"""EKS add-ons in the required order: those that nodes need, the nodes, and those that need nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import TASK_GOVERNANCE, AddOn
from hpkit.catalog import addons as known_addons
from hpkit.plan.dependencies import merged
from hpkit.plan.existing import POD_ACCOUNTS, is_associated
from hpkit.plan.model import AddonPlan, Plan
from hpkit.program.components.access.pod_identity import PodRoles
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext

__all__ = ["Addons"]


class Addons(Component):
    """Some of the plan's add-ons; installed by name.

    values: hpkit's configuration of an add-on. permissions: what must be in effect before one is installed. policies:
    the permissions of a role that hpkit creates for its pods, if they depend on resources of the stack.
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
        rights: Mapping[str, Sequence[pulumi.Resource]] | None = None,
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._eks = plan, eks
        self._pods = PodRoles(self, plan, context, eks)
        self._values = values or {}
        self._policies = policies or {}
        self._rights = rights or {}
        catalog = {addon.name: addon for addon in known_addons()}
        need_nodes = {addon.name for addon in catalog.values() if addon.needs_nodes}
        own_addons = {addon.name: addon for addon in plan.addons if (addon.name in need_nodes) == needing_nodes}
        self._associated = {name for name, addon in own_addons.items() if is_associated(plan, addon)}
        for addon_name in sorted(self._associated):
            self._associate(own_addons[addon_name])
        self._in_force = self._pods.in_force(f"{name}-pod-identity")
        first = {name: [each for each in _requires(catalog, name) if each in own_addons] for name in sorted(own_addons)}
        installed: dict[str, aws.eks.Addon] = {}
        for addon_name in TopologicalSorter(first).static_order():
            installed[addon_name] = self._install(
                own_addons[addon_name], [*after, *(installed[name] for name in first[addon_name])]
            )
        self.installed = installed
        self.register_outputs({"addons": sorted(self.installed)})

    @property
    def task_governance(self) -> aws.eks.Addon | None:
        """The add-on that installs Kueue, if the plan has it."""
        return self.installed.get(TASK_GOVERNANCE)

    def _install(self, addon: AddonPlan, after: Sequence[pulumi.Resource]) -> aws.eks.Addon:
        identity = self._in_force if addon.name in self._associated else []
        rights = self._rights.get(addon.name, ())
        # Without this, the API would remove the add-on's own associations, which the program doesn't name.
        left_alone = None if addon.pod_identity else ["podIdentityAssociations"]
        return aws.eks.Addon(
            addon.name,
            addon_name=addon.name,
            addon_version=addon.version,
            cluster_name=self._eks.name,
            configuration_values=self._configuration(addon),
            resolve_conflicts_on_create="OVERWRITE",
            # An update keeps what somebody set by hand, such as CoreDNS's Corefile (EKS API reference, UpdateAddon).
            # Kueue's settings must follow a new version, if hpkit sets them.
            resolve_conflicts_on_update="OVERWRITE"
            if addon.name == TASK_GOVERNANCE and self._plan.gang_scheduling is not None
            else "PRESERVE",
            service_account_role_arn=addon.service_account_role_arn,
            opts=self.child(after=[*after, *identity, *rights], ignore_changes=left_alone),
        )

    def _configuration(self, addon: AddonPlan) -> pulumi.Output[str] | None:
        kits = self._values.get(addon.name)
        if kits is None and not addon.configuration:
            return None
        return pulumi.Output.from_input(kits or {}).apply(
            lambda known: json.dumps(merged(known, addon.configuration), sort_keys=True)
        )

    def _associate(self, addon: AddonPlan) -> None:
        self._pods.associate(
            addon.name,
            POD_ACCOUNTS[addon.name],
            description=f"Pods of the add-on {addon.name}",
            existing_role=addon.role,
            policy=self._policies.get(addon.name),
        )


def _requires(known: Mapping[str, AddOn], name: str) -> tuple[str, ...]:
    return known[name].requires if name in known else ()
