"""Live NodeClasses and NodePools in the form of the organization file."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hpkit.adopt.live_platform import LivePlatform
from hpkit.catalog import find_instance_type

__all__ = ["autoscaling_of", "leave_counts_to_karpenter"]

_REQUIREMENT = ("key", "operator", "values")
_BUDGET = ("nodes", "schedule", "duration", "reasons")
_TEMPLATE = ("nodeClassRef", "requirements", "taints", "expireAfter")


def autoscaling_of(live: LivePlatform, changes: list[str]) -> dict[str, Any]:
    """Return the section `autoscaling`; what the file can't express is added to changes."""
    spec: dict[str, Any] = {}
    if live.cluster.get("ClusterRole"):
        spec["clusterRole"] = live.cluster["ClusterRole"]
    spec["nodeClasses"] = [
        {"name": node_class["metadata"]["name"], "instanceGroups": list(node_class["spec"].get("instanceGroups", ()))}
        for node_class in sorted(live.node_classes, key=_name)
    ]
    pools = [_pool(each, changes) for each in sorted(live.node_pools, key=_name)]
    return spec | ({"nodePools": pools} if pools else {})


def leave_counts_to_karpenter(spec: dict[str, Any]) -> list[str]:
    """Set the counts of Karpenter's groups to zero in an environment's data, and return the assumptions.

    A quota that doesn't fit the other groups relies on nodes that Karpenter adds. The file marks it as `elastic`, but
    no API returns that: the smaller quotas of a type are assumed to be the reserved ones.
    """
    autoscaled = {name for each in spec["autoscaling"]["nodeClasses"] for name in each["instanceGroups"]}
    groups = spec["cluster"]["instanceGroups"]
    for group in groups:
        if group["name"] in autoscaled:
            group["instanceCount"] = 0
    added = {kind for group in groups if group["name"] in autoscaled for kind in _types(group)}
    assumed = []
    for instance_type in sorted(added):
        unassigned = Fraction(sum(group["instanceCount"] for group in groups if _types(group) == [instance_type]))
        for team, row, amount in _quotas(spec, instance_type):
            if amount <= unassigned:
                unassigned -= amount
            else:
                row["elastic"] = True
                assumed.append(
                    f"the quota of {team} on {instance_type} is elastic: it relies on nodes that Karpenter adds"
                )
    return assumed


def _types(group: Mapping[str, Any]) -> list[str]:
    return [group["instanceType"]] if "instanceType" in group else list(group.get("instanceTypes", ()))


def _quotas(spec: Mapping[str, Any], instance_type: str) -> list[tuple[str, dict[str, Any], Fraction]]:
    """Return team, row and amount in instances of all quotas on a type, the smallest first."""
    instance = find_instance_type(instance_type)
    rows = (
        (team, row)
        for team, own in spec.get("governance", {}).get("allocations", {}).items()
        for row in own
        if row["instanceType"] == instance_type
    )
    amounts = [(team, row, _instances(row, instance.accelerators if instance else None)) for team, row in rows]
    return sorted(amounts, key=lambda each: (each[2], each[0]))


def _instances(row: Mapping[str, Any], accelerators: int | None) -> Fraction:
    """Return a quota in instances; only counts of instances and accelerators are converted."""
    return Fraction(row.get("count", 0)) + Fraction(row.get("accelerators", 0), accelerators or 1)


def _name(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["name"])


def _pool(found: Mapping[str, Any], changes: list[str]) -> dict[str, Any]:
    name, spec = _name(found), found["spec"]
    template = spec["template"]["spec"]
    pool: dict[str, Any] = {"name": name, "nodeClass": template["nodeClassRef"]["name"]}
    pool["requirements"] = [_without_absent(each, _REQUIREMENT) for each in template.get("requirements", ())]
    if spec.get("limits"):
        pool["limits"] = dict(spec["limits"])
    disruption = spec.get("disruption", {})
    pool["disruption"] = _without_absent(disruption, ("consolidationPolicy", "consolidateAfter"))
    if disruption.get("budgets"):
        pool["disruption"]["budgets"] = [_without_absent(each, _BUDGET) for each in disruption["budgets"]]
    pool |= _without_absent(template, ("expireAfter", "taints")) | _without_absent(spec, ("weight",))
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels:
        pool["labels"] = dict(labels)
    unsaid = sorted(set(template) - set(_TEMPLATE))
    if unsaid:
        changes.append(f"the NodePool {name} has {', '.join(unsaid)}, which the file can't express")
    return pool


def _without_absent(source: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: source[name] for name in names if source.get(name) is not None}
