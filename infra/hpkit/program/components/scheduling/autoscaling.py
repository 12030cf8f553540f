"""Managed Karpenter inside the cluster: HyperpodNodeClasses, NodePools, optionally KEDA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from hpkit.catalog import CHARTS_FOLDER, keda_chart
from hpkit.config.models.autoscaling import Autoscaling as Spec
from hpkit.config.models.autoscaling import Keda, NodePool
from hpkit.plan.existing import KEDA_ACCOUNT
from hpkit.plan.karpenter import (
    NODE_CLASS_KIND,
    NODE_CLASS_VERSION,
    NODE_POOL_KIND,
    NODE_POOL_VERSION,
    node_class_spec,
    node_pool_spec,
)
from hpkit.plan.model import Plan
from hpkit.program.components.access.pod_identity import PodRoles
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.components.scheduling.warm_pool import WarmPools
from hpkit.program.iam.documents import keda_policy

__all__ = ["Autoscaling"]

# With this condition, the service reports that groups and subnets are valid; before, a pool can't add nodes.
_READY = {"pulumi.com/waitFor": "condition=Ready"}
# A NodePool is gone when its nodes are drained and deleted, which takes longer than the ten minutes that Pulumi waits.
_UNTIL_DRAINED = pulumi.CustomTimeouts(delete="1h")


class Autoscaling(Component):
    """NodeClasses and NodePools of one environment, each waited for until it is Ready."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        spec: Spec,
        context: DeployContext,
        *,
        eks: Eks,
        workspace_arn: pulumi.Input[str] | None,
        after: Sequence[pulumi.Resource],
        nodes: Sequence[pulumi.Resource],
        groups: Mapping[str, pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Create it.

        workspace_arn: of Managed Prometheus, None without one; after: the cluster with autoscaling on; nodes: what
        waits for nodes, on which KEDA's pods run; groups: the resource of each autoscaled group.
        """
        super().__init__(name, opts=opts)
        self._eks = eks
        classes = {
            node_class.name: CustomResource(
                f"node-class-{node_class.name}",
                api_version=NODE_CLASS_VERSION,
                kind=NODE_CLASS_KIND,
                metadata={"name": node_class.name, "annotations": _READY},
                spec=node_class_spec(node_class),
                opts=self.child(
                    after=[*after, *(groups[group] for group in sorted(node_class.instance_groups) if group in groups)],
                    provider=eks.kubernetes,
                ),
            )
            for node_class in spec.node_classes
        }
        pools = {pool.spec.name: self._pool(pool.spec, classes[pool.spec.node_class]) for pool in plan.node_pools}
        warm = [pool.spec for pool in plan.node_pools if pool.spec.warm_pool is not None]
        if warm:
            WarmPools("warm-pools", warm, pools, eks=eks, opts=self.child())
        if spec.keda is not None:
            chart = context.in_project(f"{CHARTS_FOLDER}/{keda_chart().file}")
            self._keda(spec.keda, PodRoles(self, plan, context, eks), workspace_arn, [*after, *nodes], chart)
        self.register_outputs({"nodeClasses": sorted(classes)})

    def _keda(
        self,
        spec: Keda,
        pods: PodRoles,
        workspace_arn: pulumi.Input[str] | None,
        after: Sequence[pulumi.Resource],
        chart: str,
    ) -> None:
        pods.associate(
            "keda",
            KEDA_ACCOUNT,
            description="Pods of KEDA's operator",
            existing_role=spec.role,
            policy=document(
                lambda workspace_arn: keda_policy(workspace_arn, cloudwatch=spec.cloudwatch, queues=spec.sqs),
                workspace_arn=workspace_arn if spec.prometheus else None,
            ),
        )
        k8s.helm.v3.Release(
            "keda",
            name="keda",
            namespace=KEDA_ACCOUNT.namespace,
            create_namespace=True,
            # The package that was verified before the run, because Helm trusts whatever a repository serves.
            chart=chart,
            version=keda_chart().version,
            opts=self.child(after=[*after, *pods.in_force("keda-pod-identity")], provider=self._eks.kubernetes),
        )

    def _pool(self, pool: NodePool, node_class: pulumi.Resource) -> pulumi.Resource:
        return CustomResource(
            f"node-pool-{pool.name}",
            api_version=NODE_POOL_VERSION,
            kind=NODE_POOL_KIND,
            metadata={"name": pool.name, "annotations": _READY},
            spec=node_pool_spec(pool),
            opts=self.child(after=[node_class], provider=self._eks.kubernetes, custom_timeouts=_UNTIL_DRAINED),
        )
