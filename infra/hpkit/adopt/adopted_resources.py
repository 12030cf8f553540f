"""The resources that an adoption imports or refers to, with their IDs in other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpkit.adopt.handover_model import AdoptedResource
from hpkit.adopt.imports import Imports
from hpkit.adopt.live_platform import LivePlatform
from hpkit.plan.model import Plan

__all__ = ["adopted_resources"]

# They exist only in the state.
_OURS_ALONE = ("hyperpod:index:ChangeGuard", "hyperpod:index:Readiness")


def adopted_resources(plan: Plan, live: LivePlatform, imports: Imports) -> list[AdoptedResource]:
    """Return the resources that Pulumi will own, and those that the file only refers to."""
    found = [_imported(each, live) for each in imports.entries if each["type"] not in _OURS_ALONE]
    return [*found, *_named(plan, live)]


def _imported(entry: Mapping[str, Any], live: LivePlatform) -> AdoptedResource:
    ids = {str(entry["id"])}
    if entry["type"] == "hyperpod:index:Cluster":
        ids.add(str(live.cluster["ClusterName"]))
    for quota in live.quotas:
        if quota["ComputeQuotaArn"] == entry["id"]:
            ids.add(str(quota["Name"]))
    for policy in live.policies:
        if policy["ClusterSchedulerConfigArn"] == entry["id"]:
            ids.add(str(policy["Name"]))
    if entry["type"] == "aws:eks/addon:Addon":
        ids.add(str(live.addons[entry["logicalName"]].described.get("addonArn", entry["id"])))
    return AdoptedResource(str(entry["type"]), str(entry["logicalName"]), frozenset(ids), "imported")


def _named(plan: Plan, live: LivePlatform) -> Iterator[AdoptedResource]:
    spec = plan.spec
    if spec.network.existing is not None:
        yield _existing("aws:ec2/vpc:Vpc", spec.network.existing.vpc_id)
        for subnet in sorted(live.zones):
            yield _existing("aws:ec2/subnet:Subnet", subnet)
        for group in spec.network.existing.security_group_ids:
            yield _existing("aws:ec2/securityGroup:SecurityGroup", group)
    if spec.eks.existing is not None:
        yield _existing("aws:eks/cluster:Cluster", live.eks_name, str(live.eks.get("arn", live.eks_name)))
    if spec.storage is not None and spec.storage.existing is not None:
        yield _existing("aws:s3/bucket:Bucket", spec.storage.existing.bucket)
    roles = [
        *(group.spec.execution_role for group in plan.own_groups),
        spec.autoscaling.cluster_role if spec.autoscaling else None,
        *(role for addon in spec.addons.values() for role in (addon.role, addon.service_account_role_arn)),
    ]
    for role in sorted({role for role in roles if role}):
        yield _existing("aws:iam/role:Role", role.rpartition("/")[2], role)


def _existing(token: str, name: str, *ids: str) -> AdoptedResource:
    return AdoptedResource(token, name, frozenset({name, *ids}), "existing")
