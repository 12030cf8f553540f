"""Checks whether the names of the HyperPod and EKS clusters are free, or the existing cluster is as stated."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.model import Plan
from hpkit.plan.stated import LiveGroup, stated_differences
from hpkit.preflight.calls import CLUSTERS
from hpkit.preflight.model import CheckResult, call_failed, changed, missing, ok, unknown
from hpkit.preflight.usage import UNMARKED, cluster_ownership, live_cluster, other_clusters

__all__ = ["check_hyperpod"]

_AREA: Final = "hyperpod"
_DATE: Final = "%Y-%m-%dT%H:%M:%SZ"


def check_hyperpod(plan: Plan, responses: Responses, *, now: datetime | None = None) -> Iterator[CheckResult]:
    """Check that the cluster's name is free and that no other cluster is attached to an existing EKS cluster.

    An existing cluster must have the instance groups that the file declares. Dates of patches must be in the future.
    """
    if plan.spec.cluster.existing:
        yield _as_stated(plan, responses)
        return
    yield from _patch_dates(plan, responses, now or datetime.now(tz=UTC))
    yield _name_free(plan, responses)
    if plan.spec.eks.existing is not None:
        yield _eks_free(plan, responses)


def _as_stated(plan: Plan, responses: Responses) -> CheckResult:
    name = plan.spec.cluster.name
    subject, needed = f"HyperPod cluster {name}", "the groups of `cluster.instanceGroups`"
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return call_failed(_AREA, subject, listed, needed=needed)
    described = live_cluster(plan, responses)
    if described is None and name in [each["ClusterName"] for each in listed["ClusterSummaries"]]:
        fix = "Allow sagemaker:DescribeCluster, and run the command again"
        return unknown(_AREA, subject, why="It can't be described", fix=fix, found="exists", needed=needed)
    if described is None:
        fix = (
            f"Correct cluster.name or the region; `aws sagemaker list-clusters --region {plan.spec.region}` lists them"
        )
        return missing(_AREA, subject, found="missing", needed=needed, fix=fix)
    groups = [*described.get("InstanceGroups", ()), *described.get("RestrictedInstanceGroups", ())]
    autoscales = described.get("AutoScaling", {}).get("Mode") == "Enable"
    live = {group["InstanceGroupName"]: _live_group(group) for group in groups}
    lacks, additional = stated_differences(plan, live, autoscales=autoscales)
    if lacks:
        fix = "Correct `cluster.instanceGroups`, and run `hpkit validate`"
        return missing(_AREA, subject, found="; ".join(lacks), needed=needed, fix=fix)
    if additional:
        fix = "Add these instances to `cluster.instanceGroups`, so that teams can get quota for them"
        return changed(_AREA, subject, found="; ".join(additional), needed=needed, fix=fix)
    return ok(_AREA, subject, found=described["ClusterStatus"], needed=needed)


def _live_group(group: Mapping[str, Any]) -> LiveGroup:
    types = group.get("InstanceRequirements", {}).get("DesiredInstanceTypes") or [group["InstanceType"]]
    return LiveGroup(types, group.get("TargetCount", 0))


def _patch_dates(plan: Plan, responses: Responses, now: datetime) -> Iterator[CheckResult]:
    live = live_cluster(plan, responses) or {}
    deployed = {each["InstanceGroupName"] for each in live.get("InstanceGroups", ())}
    for group in plan.groups:
        patch = group.spec.auto_patch
        date = patch.patch_schedule.next_patch_date if patch and patch.patch_schedule else None
        if date is None or date > now:
            continue
        subject, found, needed = (
            f"nextPatchDate of {group.spec.name}",
            f"{date.astimezone(UTC):{_DATE}}",
            "in the future",
        )
        fix = f"Set a later date, such as `{now + timedelta(days=7):{_DATE}}`, or remove patchSchedule"
        if group.spec.name in deployed:
            why = "The date is in the past. HyperPod gets it only if it changed since the last `up`"
            yield unknown(_AREA, subject, why=why, fix=fix, found=found, needed=needed)
        else:
            yield missing(_AREA, subject, found=found, needed=needed, fix=fix)


def _name_free(plan: Plan, responses: Responses) -> CheckResult:
    name = plan.spec.cluster.name
    subject = f"name {name} for the HyperPod cluster"
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return call_failed(_AREA, subject, listed, needed="free")
    namesake = next((each for each in listed["ClusterSummaries"] if each["ClusterName"] == name), None)
    if namesake is None:
        return ok(_AREA, subject, found="free", needed="free")
    arn = namesake["ClusterArn"]
    owner = cluster_ownership(plan, responses, arn)
    if owner == "own":
        return ok(_AREA, subject, found=f"this stack's own, {namesake['ClusterStatus']}", needed="free")
    if owner == "unmarked":
        fix = (
            "If the stack's state contains it, no action is needed; otherwise run `hpkit aws adopt run --stack "
            f"{plan.stack}`"
        )
        return unknown(
            _AREA, subject, why=UNMARKED, fix=fix, found=f"exists, {namesake['ClusterStatus']}", needed="free"
        )
    fix = "Adopt the existing cluster, or choose another cluster.name"
    command = f"hpkit aws adopt --cluster {arn}"
    return missing(_AREA, subject, found=f"taken, {namesake['ClusterStatus']}", needed="free", fix=fix, command=command)


def _eks_free(plan: Plan, responses: Responses) -> CheckResult:
    """Check that no other HyperPod cluster is attached to the EKS cluster: the service allows one for each."""
    subject = f"EKS cluster {plan.eks_name} free for HyperPod"
    clusters = other_clusters(plan, responses)
    if isinstance(clusters, FailedCall):
        return call_failed(_AREA, subject, clusters, needed="attached to no other")
    for cluster in clusters:
        arn = cluster.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
        if arn.rpartition("/")[2] == plan.eks_name:
            fix = (
                "Use another EKS cluster, or delete that HyperPod cluster: an EKS cluster can have one HyperPod cluster"
            )
            attachment = f"attached to {cluster['ClusterName']}"
            return missing(_AREA, subject, found=attachment, needed="attached to no other", fix=fix)
    return ok(_AREA, subject, found="attached to no other", needed="attached to no other")
