"""IAM roles and their permissions, created only here, so that each role has the environment's permissions boundary."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from hpkit.plan.model import Plan
from hpkit.plan.names import role_name
from hpkit.program.components.common.base import Component
from hpkit.program.iam.account import AwsAccount, managed_policy

__all__ = ["Roles"]


class Roles:
    """Creates roles of one environment, as children of a component. Their tags are the provider's default tags."""

    def __init__(self, component: Component, plan: Plan, account: AwsAccount) -> None:
        self._component, self._plan, self._account = component, plan, account

    def make(
        self,
        purpose: str,
        *,
        trust: Mapping[str, object] | pulumi.Output[str],
        description: str,
        name: str | None = None,
    ) -> aws.iam.Role:
        """Return a new role; trust: its trust policy, as text if only AWS knows a part of it.

        name: set if a service requires another name than hpkit's for this purpose.
        """
        return aws.iam.Role(
            purpose,
            name=name or role_name(self._plan, purpose),
            description=description,
            assume_role_policy=json.dumps(trust, sort_keys=True) if isinstance(trust, Mapping) else trust,
            permissions_boundary=self._plan.spec.permissions_boundary,
            opts=self._component.child(),
        )

    def attach(self, role: aws.iam.Role, policy: str, *, name: str) -> pulumi.Resource:
        """Return the attachment of a managed policy of AWS to a role; policy: its name, with its path."""
        arn = managed_policy(self._account, policy)
        return aws.iam.RolePolicyAttachment(name, role=role.name, policy_arn=arn, opts=self._component.child())

    def allow(self, role: aws.iam.Role, name: str, policy: pulumi.Input[str]) -> pulumi.Resource:
        """Return the inline policy of a role, given as text."""
        return aws.iam.RolePolicy(name, name=name, role=role.id, policy=policy, opts=self._component.child())
