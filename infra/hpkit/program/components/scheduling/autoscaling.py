"""Managed Karpenter inside the cluster: HyperpodNodeClasses, NodePools, optionally KEDA."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi

from hpkit.catalog import keda_chart
from hpkit.config.models.autoscaling import Autoscaling as Spec
from hpkit.config.models.autoscaling import Keda, NodeClass, NodePool, WarmPool
from hpkit.plan.existing import KEDA_ACCOUNT
from hpkit.plan.model import Plan
from hpkit.program.components.access.pod_identity import PodRoles
from hpkit.program.components.addons.operators import release
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext, KubernetesObject, document

__all__ = ["Autoscaling"]

# The pods have a priority below every default, so the scheduler preempts them immediately; pending again, they make
# Karpenter add the next node. Source: Kubernetes documentation, pod priority and preemption (node overprovisioning).
_NAME = "hpkit-warm-pool"
# Below 0, which every pod has that names no PriorityClass.
_PRIORITY = -10
_NODE_POOL_LABEL = "karpenter.sh/nodepool"
# Nodes may take minutes, or wait for capacity: an `up` has nothing to gain from waiting for them.
_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}


class _WarmPools(Component):
    """A Deployment of placeholder pods for each NodePool that has a warm pool."""

    def __init__(
        self,
        name: str,
        specs: Sequence[NodePool],
        pools: Mapping[str, pulumi.Resource],
        *,
        eks: Eks,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Build; specs: the NodePools with a warm pool, pools: the NodePool registered for each name."""
        super().__init__(name, opts=opts)
        inside = self.child(provider=eks.kubernetes)
        namespace = KubernetesObject(_NAME, "core/v1:Namespace", metadata={"name": _NAME}, opts=inside)
        priority = KubernetesObject(
            _NAME,
            "scheduling.k8s.io/v1:PriorityClass",
            metadata={"name": _NAME},
            value=_PRIORITY,
            preemptionPolicy="Never",
            description="Placeholder pods that give way to every other pod",
            opts=inside,
        )
        for pool in specs:
            if pool.warm_pool is not None:
                KubernetesObject(
                    f"warm-pool-{pool.name}",
                    "apps/v1:Deployment",
                    metadata={"name": pool.name, "namespace": _NAME, "annotations": _NOT_AWAITED},
                    spec=_deployment(pool, pool.warm_pool),
                    opts=self.child(after=[namespace, priority, pools[pool.name]], provider=eks.kubernetes),
                )
        self.register_outputs({"nodePools": [pool.name for pool in specs]})


def _deployment(pool: NodePool, warm: WarmPool) -> dict[str, Any]:
    requests = dict(sorted(warm.requests.items()))
    labels = {"app.kubernetes.io/name": _NAME, _NODE_POOL_LABEL: pool.name}
    container = {
        "name": "pause",
        "image": warm.image,
        "resources": {"requests": requests, "limits": requests},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    pod: dict[str, Any] = {
        "priorityClassName": _NAME,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "nodeSelector": {_NODE_POOL_LABEL: pool.name},
        "containers": [container],
    }
    if pool.taints:
        pod["tolerations"] = [
            {"key": taint.key, "operator": "Equal", "value": taint.value or "", "effect": taint.effect}
            for taint in pool.taints
        ]
    return {
        "replicas": warm.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


_NODE_CLASS_GROUP: Final = "karpenter.sagemaker.amazonaws.com"
_NODE_CLASS_KIND: Final = "HyperpodNodeClass"


def _node_class_spec(node_class: NodeClass) -> dict[str, Any]:
    """Return the spec of a HyperpodNodeClass."""
    return {"instanceGroups": sorted(node_class.instance_groups)}


def _node_pool_spec(pool: NodePool) -> dict[str, Any]:
    """Return the spec of a NodePool."""
    template: dict[str, Any] = {
        "nodeClassRef": {"group": _NODE_CLASS_GROUP, "kind": _NODE_CLASS_KIND, "name": pool.node_class},
        "requirements": [
            {
                "key": requirement.key,
                "operator": requirement.operator,
                **({"values": list(requirement.values)} if requirement.values else {}),
            }
            for requirement in pool.requirements
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
            node_class.name: KubernetesObject(
                f"node-class-{node_class.name}",
                f"{_NODE_CLASS_GROUP}/v1:{_NODE_CLASS_KIND}",
                metadata={"name": node_class.name, "annotations": _READY},
                spec=_node_class_spec(node_class),
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
            _WarmPools("warm-pools", warm, pools, eks=eks, opts=self.child())
        if spec.keda is not None:
            self._keda(spec.keda, plan, context, workspace_arn, [*after, *nodes])
        self.register_outputs({"nodeClasses": sorted(classes)})

    def _keda(
        self,
        spec: Keda,
        plan: Plan,
        context: DeployContext,
        workspace_arn: pulumi.Input[str] | None,
        after: Sequence[pulumi.Resource],
    ) -> None:
        pods = PodRoles(self, plan, context, self._eks)
        pods.associate(
            "keda",
            KEDA_ACCOUNT,
            description="Pods of KEDA's operator",
            existing_role=spec.role,
            policy=document(
                "keda",
                workspace=workspace_arn if spec.prometheus else None,
                metrics="*" if spec.cloudwatch else None,
                queues=spec.sqs,
            ),
        )
        release(self, keda_chart(), context, self._eks, after=[*after, *pods.in_force("keda-pod-identity")])

    def _pool(self, pool: NodePool, node_class: pulumi.Resource) -> pulumi.Resource:
        return KubernetesObject(
            f"node-pool-{pool.name}",
            "karpenter.sh/v1:NodePool",
            metadata={"name": pool.name, "annotations": _READY},
            spec=_node_pool_spec(pool),
            opts=self.child(after=[node_class], provider=self._eks.kubernetes, custom_timeouts=_UNTIL_DRAINED),
        )
