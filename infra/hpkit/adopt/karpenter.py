"""Live NodeClasses and NodePools as the organization file says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpkit.adopt.live import Live

__all__ = ["autoscaling_of"]

_REQUIREMENT = ("key", "operator", "values")
_BUDGET = ("nodes", "schedule", "duration", "reasons")
_TEMPLATE = ("nodeClassRef", "requirements", "taints", "expireAfter")


def autoscaling_of(live: Live, changes: list[str]) -> dict[str, Any]:
    """Return the section `autoscaling`; changes hear of what the file cannot say."""
    spec: dict[str, Any] = {}
    if live.cluster.get("ClusterRole"):
        spec["clusterRole"] = live.cluster["ClusterRole"]
    spec["nodeClasses"] = [
        {"name": each["metadata"]["name"], "instanceGroups": list(each["spec"].get("instanceGroups", ()))}
        for each in sorted(live.node_classes, key=_name)
    ]
    pools = [_pool(each, changes) for each in sorted(live.node_pools, key=_name)]
    return spec | ({"nodePools": pools} if pools else {})


def _name(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["name"])


def _pool(found: Mapping[str, Any], changes: list[str]) -> dict[str, Any]:
    name, spec = _name(found), found["spec"]
    template = spec["template"]["spec"]
    pool: dict[str, Any] = {"name": name, "nodeClass": template["nodeClassRef"]["name"]}
    pool["requirements"] = [_of(each, _REQUIREMENT) for each in template.get("requirements", ())]
    if spec.get("limits"):
        pool["limits"] = dict(spec["limits"])
    disruption = spec.get("disruption", {})
    pool["disruption"] = _of(disruption, ("consolidationPolicy", "consolidateAfter"))
    if disruption.get("budgets"):
        pool["disruption"]["budgets"] = [_of(each, _BUDGET) for each in disruption["budgets"]]
    pool |= _of(template, ("expireAfter", "taints")) | _of(spec, ("weight",))
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels:
        pool["labels"] = dict(labels)
    unsaid = sorted(set(template) - set(_TEMPLATE))
    if unsaid:
        changes.append(f"the NodePool {name} has {', '.join(unsaid)}, which the file cannot say")
    return pool


def _of(source: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: source[name] for name in names if source.get(name) is not None}
