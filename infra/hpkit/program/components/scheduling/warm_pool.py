"""Warm pools: placeholder pods keep nodes of a NodePool ready, and any other pod preempts them.

The pods have a priority below every default, so the scheduler preempts them immediately; pending again, they make
Karpenter add the next node. Source: Kubernetes documentation, pod priority and preemption (node overprovisioning).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from hpkit.config.models.autoscaling import NodePool, WarmPool
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component

__all__ = ["WarmPools"]

_NAME = "hpkit-warm-pool"
# Below 0, which every pod has that names no PriorityClass.
_PRIORITY = -10
_NODE_POOL_LABEL = "karpenter.sh/nodepool"
# Nodes may take minutes, or wait for capacity: an `up` has nothing to gain from waiting for them.
_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}


class WarmPools(Component):
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
        namespace = k8s.core.v1.Namespace(_NAME, metadata={"name": _NAME}, opts=inside)
        priority = k8s.scheduling.v1.PriorityClass(
            _NAME,
            metadata={"name": _NAME},
            value=_PRIORITY,
            preemption_policy="Never",
            description="Placeholder pods that give way to every other pod",
            opts=inside,
        )
        for pool in specs:
            if pool.warm_pool is not None:
                # Not apps.v1.Deployment: checking a plain dict against its types takes mypy 18 GB.
                CustomResource(
                    f"warm-pool-{pool.name}",
                    api_version="apps/v1",
                    kind="Deployment",
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
