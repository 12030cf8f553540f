"""The EKS cluster for HyperPod, created or existing, and access to its Kubernetes API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from hpkit.plan.model import Plan
from hpkit.plan.names import log_group
from hpkit.plan.principals import is_administrator
from hpkit.plan.protected import deletion_protected, kept
from hpkit.program.components.access.roles import Identity
from hpkit.program.components.cluster.network import Network
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.components.common.credentials import Credentials
from hpkit.program.sdk import Readiness

__all__ = ["Eks"]

_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
_KEY_DELETION_DAYS = 30
_HTTPS = 443
# EKS names several seconds for an access entry, KMS up to five minutes for a grant.
_KEY_MINUTES = 10
_ACCESS_MINUTES = 5


class Eks(Component):
    """The EKS cluster.

    - name, arn: the cluster's.
    - issuer: address of its OIDC provider.
    - kubeconfig: for kubectl and the Kubernetes provider, with a token from the AWS CLI.
    - kubernetes: the provider of everything in the cluster, after `connect` was called.
    - kept: IDs of created resources that must not be lost, by name in `allowReplace`.
    - key_arn: the key that is created with it; None for an existing one.
    - key_usable: what waits until other services can use that key.
    """

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    issuer: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: k8s.Provider
    kept: Mapping[str, pulumi.Output[str]]
    key_arn: pulumi.Output[str] | None = None
    key_usable: Sequence[pulumi.Resource] = ()

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        network: Network | None = None,
        identity: Identity | None = None,
        guard: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Register it; network and identity: of a cluster that is created."""
        super().__init__(name, opts=opts)
        self._plan, self._context = plan, context
        existing = plan.spec.eks.existing
        if existing is not None:
            live = aws.eks.get_cluster_output(name=existing.name, opts=pulumi.InvokeOutputOptions(parent=self))
            self._ways: list[pulumi.Resource] = []
            self.name, self.arn, self._endpoint, self.kept = live.name, live.arn, live.endpoint, {}
            self._authority = live.certificate_authorities[0].data
            self.issuer = live.identities.apply(_issuer)
        elif network is None or identity is None:
            raise ValueError(f"{plan.stack} creates its EKS cluster, which needs a network and a role")
        else:
            groups, self._ways = self._private_ways(network)
            cluster = self._build(network, identity, guard, groups=groups)
            self.name, self.arn, self._endpoint = cluster.name, cluster.arn, cluster.endpoint
            self._authority = cluster.certificate_authority.apply(lambda each: each.data or "")
            self.issuer = cluster.identities.apply(_issuer)
        self.kubeconfig = pulumi.Output.all(
            name=self.name, endpoint=self._endpoint, authority=self._authority, region=plan.spec.region
        ).apply(lambda known: _kubeconfig(known, context.credentials))
        self.register_outputs({"name": self.name, "arn": self.arn})

    def connect(self, after: Sequence[pulumi.Resource]) -> None:
        """Start what creates and deletes everything in the cluster; after: what it needs for access."""
        # Access is effective only seconds after EKS accepted it. Pulumi's plugin asks once, and fails the whole run.
        admitted = self.wait("access", minutes=_ACCESS_MINUTES, opts=self.child(after=[*self._ways, *after]))
        # Its resources are created after access is open, and deleted before it's closed.
        opts = self.child(after=[*self._ways, *after, admitted])
        self.kubernetes = k8s.Provider(
            "kubernetes", kubeconfig=self.kubeconfig, enable_server_side_apply=True, opts=opts
        )

    def wait(
        self,
        name: str,
        *,
        minutes: int,
        opts: pulumi.ResourceOptions,
        cluster_arn: pulumi.Input[str] | None = None,
        instance_groups: Sequence[str] | None = None,
        deployments: Sequence[str] | None = None,
    ) -> Readiness:
        """Return what waits until the Kubernetes API admits the deployer, or shows nodes or Deployments as ready."""
        return Readiness(
            name,
            minutes=minutes,
            eks_cluster_name=self.name,
            endpoint=self._endpoint,
            certificate_authority=self._authority,
            cluster_arn=cluster_arn,
            instance_groups=instance_groups,
            deployments=deployments,
            opts=opts,
        )

    def _private_ways(self, network: Network) -> tuple[list[pulumi.Output[str]], list[pulumi.Resource]]:
        """Return the additional security groups of the control plane's interfaces, and the rules that open access.

        Source: Amazon EKS user guide, cluster endpoint access. A security group of the control plane must admit port
        443 from connected networks. The group is a separate one: a deployer can change only groups with this
        environment's tags, and the one that EKS creates has none.
        """
        ranges = dict.fromkeys(self._plan.spec.eks.endpoint.private_from)
        if not ranges:
            return [], []
        name = f"{self._plan.stack}-kubernetes-api"
        group = aws.ec2.SecurityGroup(
            "kubernetes-api",
            name=name,
            description="The Kubernetes API, from connected networks",
            vpc_id=network.vpc_id,
            tags={"Name": name},
            opts=self.child(),
        )
        rules: list[pulumi.Resource] = [
            aws.vpc.SecurityGroupIngressRule(
                f"kubernetes-api-from-{cidr.replace('/', '-')}",
                security_group_id=group.id,
                cidr_ipv4=cidr,
                ip_protocol="tcp",
                from_port=_HTTPS,
                to_port=_HTTPS,
                opts=self.child(),
            )
            for cidr in ranges
        ]
        return [group.id], rules

    def _build(
        self,
        network: Network,
        identity: Identity,
        guard: Sequence[pulumi.Resource],
        *,
        groups: Sequence[pulumi.Output[str]],
    ) -> aws.eks.Cluster:
        plan, eks = self._plan, self._plan.spec.eks
        name = log_group(plan)
        key = aws.kms.Key(
            "key",
            description=f"Kubernetes secrets and control-plane logs of {plan.stack}",
            enable_key_rotation=True,
            deletion_window_in_days=_KEY_DELETION_DAYS,
            policy=document("key", self._context.account, log_group=name),
            opts=self.child(protect=kept(plan, "key")),
        )
        # Without it EKS creates the cluster, and won't upgrade it later.
        uses_key = identity.allow_secrets_key(key.arn)
        # EKS checks immediately whether the role may use the key, and CloudWatch Logs and ECR use it immediately. KMS
        # is eventually consistent (AWS KMS developer guide, "AWS KMS eventual consistency").
        usable = Readiness(
            "key", minutes=_KEY_MINUTES, key_arn=key.arn, opts=self.child(after=[*identity.for_control_plane, uses_key])
        )
        # Made before EKS would make it, since that one would keep its logs for ever.
        logs = aws.cloudwatch.LogGroup(
            "control-plane",
            name=name,
            retention_in_days=eks.log_retention_days,
            kms_key_id=key.arn,
            # EKS may write an existing group again after its cluster is deleted (terraform-aws-eks issues 2446, 2763).
            # It is imported, then changed (Pulumi pull request 19339). has_log_group ignores what the state holds.
            opts=self.child(after=[usable], import_id=name if self._context.has_log_group else None),
        )
        cluster = aws.eks.Cluster(
            "cluster",
            name=plan.stack,
            version=eks.version,
            role_arn=identity.control_plane_role_arn or "",
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API",
                # The creator must be able to apply what comes next, through EKS's own entry or an administrator's. EKS
                # won't create both (409 ResourceInUseException).
                bootstrap_cluster_creator_admin_permissions=not is_administrator(plan, self._context.caller),
            ),
            bootstrap_self_managed_addons=False,
            enabled_cluster_log_types=list(_LOG_TYPES),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=key.arn), resources=["secrets"]
            ),
            deletion_protection=deletion_protected(plan, "eks"),
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type=eks.support_type),
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=list(network.control_plane_subnet_ids),
                security_group_ids=[*network.security_group_ids, *groups],
                endpoint_private_access=True,
                endpoint_public_access=eks.endpoint.public,
                public_access_cidrs=list(eks.endpoint.public_cidrs) if eks.endpoint.public else None,
            ),
            opts=self.child(
                # EKS recognizes the ranges that the VPC has at its creation immediately; later ones may take it hours.
                after=[logs, uses_key, usable, *network.ranges, *identity.for_control_plane, *guard],
                protect=kept(plan, "eks"),
                # It applies only when the cluster is created; a later deployer may be another identity.
                ignore_changes=["accessConfig.bootstrapClusterCreatorAdminPermissions"],
                # The plugin's defaults are 30 and 15 minutes; deletions have taken longer.
                custom_timeouts=pulumi.CustomTimeouts(create="45m", delete="45m"),
            ),
        )
        self.kept, self.key_arn, self.key_usable = {"eks": cluster.id, "key": key.id}, key.arn, [usable]
        return cluster


def _issuer(identities: Sequence[Any]) -> str:
    """Return the address of the OIDC provider that EKS gave the cluster."""
    found: str = identities[0].oidcs[0].issuer
    return found


def _kubeconfig(values: dict[str, str], credentials: Credentials) -> str:
    name = values["name"]
    asked = ["--cluster-name", name, "--output", "json", *credentials.token_options()]
    token = ["--region", values["region"], "eks", "get-token", *asked]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": values["endpoint"], "certificate-authority-data": values["authority"]},
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "users": [
                {
                    "name": name,
                    "user": {
                        "exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": token}
                    },
                }
            ],
        },
        sort_keys=True,
    )
