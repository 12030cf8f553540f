"""The account's current usage: instances of HyperPod clusters, and which resources belong to this stack."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hpkit.clients.calls import FailedCall, Responses
from hpkit.config.models.cluster import InstanceGroupBase
from hpkit.plan.model import Plan
from hpkit.preflight.calls import CLUSTERS, cluster, tags

__all__ = [
    "UNMARKED",
    "Ownership",
    "RunningGroup",
    "cluster_ownership",
    "count_instances",
    "count_own",
    "live_cluster",
    "other_clusters",
    "ownership",
    "running_groups",
    "without_running",
]

# unmarked: the stack sets no tags, but its HyperPod cluster is live, so the resource could belong to it.
Ownership = Literal["own", "unmarked", "other"]
UNMARKED: Final = (
    "The stack sets no tags (manageTags: false), so nothing in the account shows whether it belongs to the stack"
)


@dataclass(frozen=True, slots=True)
class RunningGroup:
    """An instance group of a live cluster, with its instances by type; own: the cluster has the plan's name."""

    name: str
    own: bool
    spot: bool
    instances: Mapping[str, int]


def ownership(plan: Plan, responses: Responses, found: Mapping[str, str]) -> Ownership:
    """Return whose a resource is, from its tags."""
    if plan.owns(found):
        return "own"
    return "unmarked" if _is_untagged_and_live(plan, responses) else "other"


def live_cluster(plan: Plan, responses: Responses) -> Mapping[str, Any] | None:
    """Return the description of the HyperPod cluster with the plan's name, or None if it can't be described.

    Its usage counts as the stack's own. If it belongs to another owner, the check of the name fails.
    """
    arn = _arn_of_name(plan, responses)
    described = None if arn is None else responses.of(cluster(arn))
    return None if isinstance(described, FailedCall) else described


def cluster_ownership(plan: Plan, responses: Responses, arn: str) -> Ownership:
    """Return whose the HyperPod cluster of this ARN is; tags that cannot be read count as none."""
    listed = responses.of(tags(arn))
    return ownership(plan, responses, {} if isinstance(listed, FailedCall) else _tags(listed))


def count_own(plan: Plan, responses: Responses, resources: Iterable[Mapping[str, Any]], *, registered: int) -> int:
    """Return how many of the registered resources of a type exist, given all resources of that type."""
    if _is_untagged_and_live(plan, responses):
        # They have no tags; the cluster is created after everything that it depends on.
        return registered
    return min(sum(plan.owns(_tags(each)) for each in resources), registered)


def other_clusters(plan: Plan, responses: Responses) -> list[Mapping[str, Any]] | FailedCall:
    """Return every HyperPod cluster of the region except the one with the plan's name."""
    clusters = _clusters(responses)
    if isinstance(clusters, FailedCall):
        return clusters
    return [described for name, described in clusters.items() if name != plan.spec.cluster.name]


def running_groups(plan: Plan, responses: Responses) -> list[RunningGroup] | FailedCall:
    """Return the instance groups of all HyperPod clusters of the region."""
    clusters = _clusters(responses)
    if isinstance(clusters, FailedCall):
        return clusters
    return [
        RunningGroup(
            name=group["InstanceGroupName"],
            own=name == plan.spec.cluster.name,
            spot="Spot" in group.get("CapacityRequirements", {}),
            instances=_instances(group),
        )
        for name, described in clusters.items()
        for group in [*described.get("InstanceGroups", ()), *described.get("RestrictedInstanceGroups", ())]
    ]


def count_instances(groups: Iterable[RunningGroup]) -> Counter[tuple[str, bool]]:
    """Return (instance type, Spot) → instances."""
    counts: Counter[tuple[str, bool]] = Counter()
    for group in groups:
        for name, count in group.instances.items():
            counts[name, group.spot] += count
    return counts


def without_running(plan: Plan, responses: Responses) -> Plan:
    """Return the plan without the nodes that run already: they have their addresses and their capacity."""
    running = running_groups(plan, responses)
    own = [] if isinstance(running, FailedCall) else [group for group in running if group.own]

    def remaining_counts(spec: InstanceGroupBase) -> dict[str, int]:
        same = count_instances(each for each in own if each.name == spec.name)
        present = sum(count for (name, _), count in same.items() if name in spec.types)
        return {"instance_count": max(spec.instance_count - present, 0)}

    return replace(
        plan,
        groups=tuple(
            replace(each, spec=each.spec.model_copy(update=remaining_counts(each.spec))) for each in plan.groups
        ),
        restricted_groups=tuple(
            replace(group, spec=group.spec.model_copy(update=remaining_counts(group.spec)))
            for group in plan.restricted_groups
        ),
    )


def _is_untagged_and_live(plan: Plan, responses: Responses) -> bool:
    """Return whether the stack sets no tags, and a cluster with its name is attached to its EKS cluster.

    This is true for every adopted platform, because `hpkit aws adopt` writes `manageTags: false`.
    """
    described = live_cluster(plan, responses)
    return not plan.spec.manage_tags and described is not None and _eks_of(described) == plan.eks_name


def _eks_of(described: Mapping[str, Any]) -> str:
    arn: str = described.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
    return arn.rpartition("/")[2]


def _arn_of_name(plan: Plan, responses: Responses) -> str | None:
    """Return the ARN of the HyperPod cluster that has the plan's name."""
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return None
    same = (each["ClusterArn"] for each in listed["ClusterSummaries"] if each["ClusterName"] == plan.spec.cluster.name)
    return next(same, None)


def _clusters(responses: Responses) -> dict[str, Mapping[str, Any]] | FailedCall:
    """Return the description of every HyperPod cluster of the region by its name."""
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return listed
    descriptions = {}
    for summary in listed["ClusterSummaries"]:
        described = responses.of(cluster(summary["ClusterArn"]))
        if isinstance(described, FailedCall):
            # Deleted between the two calls: it uses nothing any more.
            if described.is_absence:
                continue
            return described
        descriptions[summary["ClusterName"]] = described
    return descriptions


def _instances(group: Mapping[str, Any]) -> dict[str, int]:
    """Return the instances of a group by type, including those that it is about to add."""
    if "InstanceType" in group:
        return {group["InstanceType"]: max(group.get("CurrentCount", 0), group.get("TargetCount", 0))}
    return {each["InstanceType"]: each.get("CurrentCount", 0) for each in group.get("InstanceTypeDetails", ())}


def _tags(holder: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in holder.get("Tags", ())}
