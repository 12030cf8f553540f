"""Cluster scheduler configs: the one policy of a cluster."""

from __future__ import annotations

from collections import Counter

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import action
from hpkit_local.aws.services.sagemaker.governance import (
    VersionedResource,
    arrive,
    begin_delete,
    begin_update,
    cluster_by_arn,
    cluster_document,
    document,
    find,
    listing,
    new_entry,
    vanish,
    version_of,
)

__all__: list[str] = []

POLICY = VersionedResource("policies", kind="policy", title="ClusterSchedulerConfig", path="cluster-scheduler-config")
PARTS = ("PriorityClasses", "FairShare", "IdleResourceSharing")


def _config(given: Record) -> Record:
    """Return the configuration with the service's defaults written out."""
    for name, times in Counter(entry["Name"] for entry in given.get("PriorityClasses", [])).items():
        if times > 1:
            raise ServiceError(
                "ValidationException", f"Priority class names must be unique: '{name}' is given {times} times"
            )
    return {"FairShare": "Enabled", "IdleResourceSharing": "Disabled", **given}


@operation("sagemaker", "CreateClusterSchedulerConfig")
def create_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return the policy of a cluster, which can have one."""
    cluster = cluster_by_arn(ctx, params["ClusterArn"])
    for other in ctx.table("policies").values():
        if other["cluster"] == params["ClusterArn"]:
            raise ServiceError(
                "ConflictException",
                f"Cluster '{cluster['name']}' already has ClusterSchedulerConfig '{other['id']}'",
            )
    body: Record = {"SchedulerConfig": _config(params["SchedulerConfig"])}
    if "Description" in params:
        body["Description"] = params["Description"]
    entry = new_entry(ctx, POLICY, params, body)
    entry["status"] = ctx.begin("policy.create", "policy.arrived", entry_id=entry["id"], change="create")
    return {"ClusterSchedulerConfigArn": entry["arn"], "ClusterSchedulerConfigId": entry["id"]}


@operation("sagemaker", "UpdateClusterSchedulerConfig")
def update_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return a new version; a configuration that is given replaces the old one."""
    entry = find(ctx, POLICY, params["ClusterSchedulerConfigId"])
    body = dict(version_of(entry, POLICY, None)[1])
    if "SchedulerConfig" in params:
        body["SchedulerConfig"] = _config(params["SchedulerConfig"])
    if "Description" in params:
        body["Description"] = params["Description"]
    begin_update(ctx, POLICY, entry, target=params["TargetVersion"], body=body)
    return {"ClusterSchedulerConfigArn": entry["arn"], "ClusterSchedulerConfigVersion": entry["version"]}


def policy_document(entry: Record, *, version: int | None = None) -> Record:
    """Return what DescribeClusterSchedulerConfig answers."""
    found = document(entry, POLICY, version=version)
    details = {part: entry["status"] for part in PARTS if part in found["SchedulerConfig"]}
    return {**found, "StatusDetails": details}


@operation("sagemaker", "DescribeClusterSchedulerConfig")
def describe_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return the policy, in its newest version or the one asked for."""
    entry = find(ctx, POLICY, params["ClusterSchedulerConfigId"])
    return policy_document(entry, version=params.get("ClusterSchedulerConfigVersion"))


@operation("sagemaker", "ListClusterSchedulerConfigs")
def list_cluster_scheduler_configs(ctx: Context, params: Record) -> Record:
    """Summaries, filtered, sorted and in pages."""
    entries, token = listing(ctx, POLICY, params)
    shown = (
        "ClusterSchedulerConfigArn",
        "ClusterSchedulerConfigId",
        "ClusterSchedulerConfigVersion",
        "Name",
        "CreationTime",
        "LastModifiedTime",
        "Status",
        "ClusterArn",
    )
    summaries = [{name: value for name, value in policy_document(entry).items() if name in shown} for entry in entries]
    return {"ClusterSchedulerConfigSummaries": summaries, **({"NextToken": token} if token else {})}


@operation("sagemaker", "DeleteClusterSchedulerConfig")
def delete_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Begin to delete."""
    begin_delete(ctx, POLICY, find(ctx, POLICY, params["ClusterSchedulerConfigId"]))
    return {}


@action("policy.arrived")
def arrived(ctx: Context, *, entry_id: str, change: str, failure: str = "") -> None:
    """Apply: the policy is Created or Updated, or has failed."""
    entry = find(ctx, POLICY, entry_id)
    if not failure:
        tell = ctx.controllers.policy_created if change == "create" else ctx.controllers.policy_updated
        tell(policy_document(entry), cluster_document(ctx, entry))
    arrive(ctx, POLICY, entry, change=change, failure=failure)


@action("policy.vanished")
def vanished(ctx: Context, *, entry_id: str, failure: str = "") -> None:
    """Apply: the policy is gone, or could not be deleted."""
    entry = find(ctx, POLICY, entry_id)
    if not failure:
        ctx.controllers.policy_deleted(policy_document(entry), cluster_document(ctx, entry))
    vanish(ctx, POLICY, entry, failure=failure)
