"""The specs of HyperpodNodeClasses and NodePools."""

from __future__ import annotations

from typing import Any, Final

from hpkit.config.models.autoscaling import NodeClass, NodePool

__all__ = [
    "NODE_CLASS_KIND",
    "NODE_CLASS_VERSION",
    "NODE_POOL_KIND",
    "NODE_POOL_VERSION",
    "node_class_spec",
    "node_pool_spec",
]

_NODE_CLASS_GROUP: Final = "karpenter.sagemaker.amazonaws.com"
NODE_CLASS_VERSION: Final = f"{_NODE_CLASS_GROUP}/v1"
NODE_CLASS_KIND: Final = "HyperpodNodeClass"
NODE_POOL_VERSION: Final = "karpenter.sh/v1"
NODE_POOL_KIND: Final = "NodePool"


def node_class_spec(node_class: NodeClass) -> dict[str, Any]:
    """Return the spec of a HyperpodNodeClass."""
    return {"instanceGroups": sorted(node_class.instance_groups)}


def node_pool_spec(pool: NodePool) -> dict[str, Any]:
    """Return the spec of a NodePool."""
    template: dict[str, Any] = {
        "nodeClassRef": {"group": _NODE_CLASS_GROUP, "kind": NODE_CLASS_KIND, "name": pool.node_class},
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
