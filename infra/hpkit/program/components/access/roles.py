"""IAM roles and their permissions, created only here, so that each role has the environment's permissions boundary."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from hpkit.plan.existing import (
    cluster_role,
    makes_karpenter_role,
    makes_node_role,
    overridden_places,
    volume_keys,
    watches_alarms,
)
from hpkit.plan.model import Plan
from hpkit.plan.names import role_name
from hpkit.plan.registry import pulled_repositories
from hpkit.program.components.cluster.network import Network
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.components.storage.aws_storage import Storage
from hpkit.program.iam.documents import instance_role_policy
from hpkit.program.iam.live import AwsAccount, managed_policy

__all__ = ["Identity", "Roles"]


class Roles:
    """Creates roles of one environment, as children of a component. Their tags are the provider's default tags."""

    def __init__(self, component: Component, plan: Plan, account: AwsAccount) -> None:
        self._component, self._plan, self._account = component, plan, account

    def make(
        self, purpose: str, *, trust: pulumi.Output[str], description: str, name: str | None = None
    ) -> aws.iam.Role:
        """Return a new role; trust: its trust policy.

        name: set if a service requires another name than hpkit's for this purpose.
        """
        return aws.iam.Role(
            purpose,
            name=name or role_name(self._plan, purpose),
            description=description,
            assume_role_policy=trust,
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


class Identity(Component):
    """Roles of one environment.

    - control_plane_role_arn: None for an existing EKS cluster.
    - node_role_arn: None if every group has its own role.
    - karpenter_role_arn: created or given; None without autoscaling.
    - for_control_plane, for_nodes: policies that must be in effect before an EKS or HyperPod cluster is created, and
      until it is deleted. HyperPod assumes its roles to remove nodes and their network interfaces.
    """

    control_plane_role_arn: pulumi.Output[str] | None = None
    node_role_arn: pulumi.Output[str] | None = None
    karpenter_role_arn: pulumi.Output[str] | None = None
    _control_plane: aws.iam.Role

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        network: Network,
        storage: Storage,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._account = plan, context.account
        self._roles = Roles(self, plan, context.account)
        self.for_control_plane: list[pulumi.Resource] = []
        self.for_nodes: list[pulumi.Resource] = []
        if plan.spec.eks.existing is None:
            trust = document("service-trust-from-account", self._account, service="eks.amazonaws.com")
            role = self._roles.make("control-plane", trust=trust, description="The EKS control plane")
            self.for_control_plane.append(self._roles.attach(role, "AmazonEKSClusterPolicy", name="control-plane"))
            self._control_plane, self.control_plane_role_arn = role, role.arn
        if makes_node_role(plan):
            self.node_role_arn = self._node_role(network, storage).arn
        given = cluster_role(plan)
        if given is not None:
            self.karpenter_role_arn = pulumi.Output.from_input(given)
        elif makes_karpenter_role(plan):
            self.karpenter_role_arn = self._karpenter_role().arn
        self.register_outputs({"nodeRoleArn": self.node_role_arn, "karpenterRoleArn": self.karpenter_role_arn})

    def allow_secrets_key(self, key_arn: pulumi.Input[str]) -> pulumi.Resource:
        """Let the control plane's role use the key of the Kubernetes Secrets, as long as for_control_plane."""
        return self._roles.allow(self._control_plane, "control-plane", document("secrets-key", key=key_arn))

    def _node_role(self, network: Network, storage: Storage) -> aws.iam.Role:
        trust = document("sagemaker-trust", self._account)
        role = self._roles.make("nodes", trust=trust, description="Execution role of the HyperPod instance groups")
        attached = self._roles.attach(role, "AmazonSageMakerClusterInstanceRolePolicy", name="nodes")
        eks_arn = self._account.arn("eks", f"cluster/{self._plan.eks_name}")
        subnets, security_groups = overridden_places(self._plan, of_made_role=True)

        rights = self._roles.allow(
            role,
            "nodes",
            document(
                instance_role_policy,
                self._account,
                eks_arn=eks_arn,
                bucket_arn=storage.bucket_arn,
                key_arn=storage.key_arn,
                vpc_id=network.vpc_id,
                # The control plane's subnets are those of the cluster itself.
                subnet_ids=[*network.control_plane_subnet_ids, *network.node_subnet_ids.values(), *subnets],
                security_group_ids=[*network.security_group_ids, *security_groups],
                volume_keys=volume_keys(self._plan),
                watches_alarms=watches_alarms(self._plan),
                pulled=pulled_repositories(self._plan, self._account.id),
            ),
        )
        self.for_nodes += [attached, rights]
        return role

    def _karpenter_role(self) -> aws.iam.Role:
        # The service doesn't document a source account for this principal, so the trust is limited only to the service.
        trust = document("service-trust", service="hyperpod.sagemaker.amazonaws.com")
        role = self._roles.make("karpenter", trust=trust, description="Lets managed Karpenter add and delete nodes")
        self.for_nodes.append(self._roles.allow(role, "karpenter", document("karpenter-role", self._account)))
        return role
