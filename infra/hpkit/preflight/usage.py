"""What the account uses already: instances of other HyperPod clusters, and which things are this stack's own."""

from collections.abc import Mapping
from typing import Any

from hpkit.plan.model import Plan
from hpkit.preflight.calls import CLUSTERS, VPCS, cluster, tags
from hpkit.preflight.model import FailedCall, Responses

__all__ = ["has_own_cluster", "instances_in_use", "other_clusters", "owned", "owns_cluster", "owns_network"]

_OWNERS = ("hpkit:organization", "hpkit:environment")


def owned(plan: Plan, found: Mapping[str, str]) -> bool:
    """Return whether tags say that something is this stack's own."""
    return all(found.get(key) == plan.tags[key] for key in _OWNERS)


def owns_cluster(plan: Plan, responses: Responses, arn: str) -> bool:
    """Return whether a HyperPod cluster carries this stack's tags; what cannot be read is not taken for its own."""
    response = responses.of(tags(arn))
    return not isinstance(response, FailedCall) and owned(plan, _tags(response))


def has_own_cluster(plan: Plan, responses: Responses) -> bool:
    """Return whether this stack's own HyperPod cluster is there, which holds part of what the plan needs."""
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return False
    same = [each["ClusterArn"] for each in listed["ClusterSummaries"] if each["ClusterName"] == plan.spec.cluster.name]
    return any(owns_cluster(plan, responses, arn) for arn in same)


def owns_network(plan: Plan, responses: Responses) -> bool:
    """Return whether a VPC with this stack's tags is there, so that it counts among the used ones."""
    response = responses.of(VPCS)
    return not isinstance(response, FailedCall) and any(owned(plan, _tags(vpc)) for vpc in response["Vpcs"])


def other_clusters(plan: Plan, responses: Responses) -> list[dict[str, Any]] | FailedCall:
    """Return every HyperPod cluster of the region but the one with the plan's name."""
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return listed
    found = []
    for summary in listed["ClusterSummaries"]:
        if summary["ClusterName"] == plan.spec.cluster.name:
            continue
        described = responses.of(cluster(summary["ClusterArn"]))
        if isinstance(described, FailedCall):
            # Deleted between the two calls: nothing is used any more.
            if described.is_absence:
                continue
            return described
        found.append(described)
    return found


def instances_in_use(plan: Plan, responses: Responses) -> dict[tuple[str, bool], int] | FailedCall:
    """Return (instance type, Spot) → instances that other HyperPod clusters hold or are about to."""
    clusters = other_clusters(plan, responses)
    if isinstance(clusters, FailedCall):
        return clusters
    used: dict[tuple[str, bool], int] = {}
    for found in clusters:
        groups = [*found.get("InstanceGroups", ()), *found.get("RestrictedInstanceGroups", ())]
        for group in groups:
            spot = "Spot" in group.get("CapacityRequirements", {})
            for name, count in _counts(group).items():
                used[name, spot] = used.get((name, spot), 0) + count
    return used


def _counts(group: Mapping[str, Any]) -> dict[str, int]:
    if "InstanceType" in group:
        return {group["InstanceType"]: max(group.get("CurrentCount", 0), group.get("TargetCount", 0))}
    return {each["InstanceType"]: each.get("CurrentCount", 0) for each in group.get("InstanceTypeDetails", ())}


def _tags(holder: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in holder.get("Tags", ())}
