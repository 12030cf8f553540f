"""What the account uses already: instances of other HyperPod clusters, and which things are this stack's own."""

from collections.abc import Mapping
from typing import Any

from hpkit.plan.model import Plan
from hpkit.preflight.calls import CLUSTERS, VPCS, cluster, tags
from hpkit.preflight.model import Answers, Failure

__all__ = ["has_own_cluster", "instances_in_use", "other_clusters", "owned", "owns_cluster", "owns_network"]

_OWNERS = ("hpkit:organization", "hpkit:environment")


def owned(plan: Plan, found: Mapping[str, str]) -> bool:
    """Return whether tags say that something is this stack's own."""
    return all(found.get(key) == plan.tags[key] for key in _OWNERS)


def owns_cluster(plan: Plan, answers: Answers, arn: str) -> bool:
    """Return whether a HyperPod cluster carries this stack's tags; what cannot be read is not taken for its own."""
    answer = answers.of(tags(arn))
    return not isinstance(answer, Failure) and owned(plan, _tags(answer))


def has_own_cluster(plan: Plan, answers: Answers) -> bool:
    """Return whether this stack's own HyperPod cluster is there, which holds part of what the plan needs."""
    listed = answers.of(CLUSTERS)
    if isinstance(listed, Failure):
        return False
    same = [each["ClusterArn"] for each in listed["ClusterSummaries"] if each["ClusterName"] == plan.spec.cluster.name]
    return any(owns_cluster(plan, answers, arn) for arn in same)


def owns_network(plan: Plan, answers: Answers) -> bool:
    """Return whether a VPC with this stack's tags is there, so that it counts among the used ones."""
    answer = answers.of(VPCS)
    return not isinstance(answer, Failure) and any(owned(plan, _tags(vpc)) for vpc in answer["Vpcs"])


def other_clusters(plan: Plan, answers: Answers) -> list[dict[str, Any]] | Failure:
    """Return every HyperPod cluster of the region but the one with the plan's name."""
    listed = answers.of(CLUSTERS)
    if isinstance(listed, Failure):
        return listed
    found = []
    for summary in listed["ClusterSummaries"]:
        if summary["ClusterName"] == plan.spec.cluster.name:
            continue
        described = answers.of(cluster(summary["ClusterArn"]))
        if isinstance(described, Failure):
            # Deleted between the two calls: nothing is used any more.
            if described.is_absence:
                continue
            return described
        found.append(described)
    return found


def instances_in_use(plan: Plan, answers: Answers) -> dict[tuple[str, bool], int] | Failure:
    """Return (instance type, Spot) → instances that other HyperPod clusters hold or are about to."""
    clusters = other_clusters(plan, answers)
    if isinstance(clusters, Failure):
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
