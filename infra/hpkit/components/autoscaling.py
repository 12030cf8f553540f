"""Managed Karpenter inside the cluster: HyperpodNodeClasses, NodePools, optionally KEDA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from hpkit.components.base import Component, DeployContext, document
from hpkit.components.eks import Eks
from hpkit.components.pod_identity import PodRoles
from hpkit.components.warm_pool import WarmPools
from hpkit.config.autoscaling import Autoscaling as Spec
from hpkit.config.autoscaling import Keda, NodePool
from hpkit.iam.documents import keda_policy
from hpkit.plan.existing import KEDA_ACCOUNT
from hpkit.plan.model import Plan

__all__ = ["Autoscaling"]

_NODE_CLASS_GROUP = "karpenter.sagemaker.amazonaws.com"
_NODE_CLASS = "HyperpodNodeClass"
# The service says by this condition that groups and subnets are right; until then a pool has nothing to grow with.
_READY = {"pulumi.com/waitFor": "condition=Ready"}
_KEDA_VERSION = "2.17.2"


class Autoscaling(Component):
    """Node classes and node pools of one environment, each waited for until it is Ready."""

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
        groups: Mapping[str, pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Build.

        workspace_arn: of Managed Prometheus, None without one; after: the cluster with autoscaling on; groups: what
        stands for each autoscaled group.
        """
        super().__init__(name, opts=opts)
        self._eks = eks
        classes = {
            each.name: CustomResource(
                f"node-class-{each.name}",
                api_version=f"{_NODE_CLASS_GROUP}/v1",
                kind=_NODE_CLASS,
                metadata={"name": each.name, "annotations": _READY},
                spec={"instanceGroups": sorted(each.instance_groups)},
                opts=self.child(
                    after=[*after, *(groups[group] for group in sorted(each.instance_groups) if group in groups)],
                    provider=eks.kubernetes,
                ),
            )
            for each in spec.node_classes
        }
        pools = {pool.spec.name: self._pool(pool.spec, classes[pool.spec.node_class]) for pool in plan.node_pools}
        warm = [pool.spec for pool in plan.node_pools if pool.spec.warm_pool is not None]
        if warm:
            WarmPools("warm-pools", warm, pools, eks=eks, opts=self.child())
        if spec.keda is not None:
            self._keda(spec.keda, PodRoles(self, plan, context, eks), workspace_arn, after)
        self.register_outputs({"nodeClasses": sorted(classes)})

    def _keda(
        self, spec: Keda, pods: PodRoles, workspace_arn: pulumi.Input[str] | None, after: Sequence[pulumi.Resource]
    ) -> None:
        identity = pods.associate(
            "keda",
            KEDA_ACCOUNT,
            description="Pods of KEDA's operator",
            given=spec.role,
            policy=document(keda_policy, workspace_arn=workspace_arn),
        )
        k8s.helm.v3.Release(
            "keda",
            name="keda",
            namespace=KEDA_ACCOUNT.namespace,
            create_namespace=True,
            chart="keda",
            version=_KEDA_VERSION,
            repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo="https://kedacore.github.io/charts"),
            opts=self.child(after=[*after, identity], provider=self._eks.kubernetes),
        )

    def _pool(self, pool: NodePool, node_class: pulumi.Resource) -> pulumi.Resource:
        return CustomResource(
            f"node-pool-{pool.name}",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={"name": pool.name, "annotations": _READY},
            spec=_pool_spec(pool),
            opts=self.child(after=[node_class], provider=self._eks.kubernetes),
        )


def _pool_spec(pool: NodePool) -> dict[str, Any]:
    template: dict[str, Any] = {
        "nodeClassRef": {"group": _NODE_CLASS_GROUP, "kind": _NODE_CLASS, "name": pool.node_class},
        "requirements": [
            {"key": each.key, "operator": each.operator, **({"values": list(each.values)} if each.values else {})}
            for each in pool.requirements
        ],
        "expireAfter": pool.expire_after,
    }
    if pool.taints:
        template["taints"] = [taint.model_dump(by_alias=True, exclude_none=True) for taint in pool.taints]
    disruption: dict[str, Any] = {
        "consolidationPolicy": pool.disruption.consolidation_policy,
        "consolidateAfter": pool.disruption.consolidate_after,
    }
    if pool.disruption.budgets:
        disruption["budgets"] = [
            {key: value for key, value in budget.model_dump(by_alias=True, exclude_none=True).items() if value != ()}
            for budget in pool.disruption.budgets
        ]
    spec: dict[str, Any] = {
        "template": {
            **({"metadata": {"labels": dict(sorted(pool.labels.items()))}} if pool.labels else {}),
            "spec": template,
        },
        "disruption": disruption,
    }
    if pool.limits:
        spec["limits"] = dict(sorted(pool.limits.items()))
    if pool.weight is not None:
        spec["weight"] = pool.weight
    return spec
