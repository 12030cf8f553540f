"""The role of a service account's pods through EKS Pod Identity: created here, or existing."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from hpkit.plan.existing import PodAccount
from hpkit.plan.model import Plan
from hpkit.program.components.access.roles import Roles
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.sdk import Readiness

__all__ = ["PodRoles"]

_MINUTES = 5


class PodRoles:
    """Creates associations, and the roles that they need, as children of a component.

    A pod gets its role when it's created, so what runs it must wait until its association is in effect.
    """

    def __init__(self, component: Component, plan: Plan, context: DeployContext, eks: Eks) -> None:
        self._component, self._account, self._eks = component, context.account, eks
        self._roles = Roles(component, plan, context.account)
        self._made: dict[str, aws.eks.PodIdentityAssociation] = {}

    def associate(
        self,
        name: str,
        account: PodAccount,
        *,
        description: str,
        existing_role: str | None,
        policy: pulumi.Output[str] | None,
    ) -> None:
        """Create the association of a service account, with its permissions.

        existing_role: None to create one; policy: permissions in addition to the account's managed policies, None for
        nothing.
        """
        role: pulumi.Input[str]
        rights: Sequence[pulumi.Resource]
        role, rights = (
            (existing_role, ()) if existing_role is not None else self._role(name, account, description, policy)
        )
        self._made[f"{account.namespace}/{account.name}"] = aws.eks.PodIdentityAssociation(
            name,
            cluster_name=self._eks.name,
            namespace=account.namespace,
            service_account=account.name,
            role_arn=role,
            opts=self._component.child(after=rights),
        )

    def in_force(self, name: str) -> Sequence[pulumi.Resource]:
        """Return what waits until all created associations are in effect; empty if there aren't any."""
        if not self._made:
            return []
        associations = {account: each.id for account, each in sorted(self._made.items())}
        return [
            Readiness(
                name,
                minutes=_MINUTES,
                eks_cluster_name=self._eks.name,
                pod_identity_associations=associations,
                opts=self._component.child(after=list(self._made.values())),
            )
        ]

    def _role(
        self, name: str, account: PodAccount, description: str, policy: pulumi.Output[str] | None
    ) -> tuple[pulumi.Output[str], Sequence[pulumi.Resource]]:
        trust = document("pod-trust", self._account, cluster=self._eks.arn)
        role = self._roles.make(name, trust=trust, description=description)
        rights = [
            self._roles.attach(role, managed, name=f"{name}-{managed.rpartition('/')[2]}")
            for managed in account.managed
        ]
        if policy is not None:
            rights.append(self._roles.allow(role, name, policy))
        return role.arn, rights
