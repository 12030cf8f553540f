"""Cluster scheduler configs: the only policy of a cluster."""

from __future__ import annotations

from collections import Counter

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.sagemaker.governance import (
    VersionedResource,
    begin_update,
    cluster_by_arn,
    created,
    find,
    register,
    version_of,
)

__all__ = ["POLICY"]

PARTS = ("PriorityClasses", "FairShare", "IdleResourceSharing")


def _details(described: Record) -> Record:
    return {"StatusDetails": {part: described["Status"] for part in PARTS if part in described["SchedulerConfig"]}}


POLICY = VersionedResource(
    "policies",
    kind="policy",
    title="ClusterSchedulerConfig",
    path="cluster-scheduler-config",
    details=_details,
)
register(POLICY)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SchedulerConfig.html
def _config(config: Record) -> Record:
    """Return the configuration with the service's defaults written out, and without an empty list of classes."""
    for name, times in Counter(entry["Name"] for entry in config.get("PriorityClasses", [])).items():
        if times > 1:
            raise ServiceError(
                "ValidationException", f"Priority class names must be unique: '{name}' is given {times} times"
            )
    stated = {key: value for key, value in config.items() if value != []}
    return {"FairShare": "Enabled", "IdleResourceSharing": "Disabled", **stated}


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateClusterSchedulerConfig.html
@operation("sagemaker", "CreateClusterSchedulerConfig")
def create_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return the policy of a cluster, which can have one."""
    cluster = cluster_by_arn(ctx, params["ClusterArn"])
    for existing in ctx.table("policies").values():
        if existing["cluster"] == params["ClusterArn"]:
            raise ServiceError(
                "ConflictException",
                f"Cluster '{cluster['name']}' already has ClusterSchedulerConfig '{existing['id']}'",
            )
    body: Record = {"SchedulerConfig": _config(params["SchedulerConfig"])}
    return created(ctx, POLICY, params, body)


@operation("sagemaker", "UpdateClusterSchedulerConfig")
def update_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return a new version; a given configuration replaces the old one."""
    entry = find(ctx, POLICY, params["ClusterSchedulerConfigId"])
    body = dict(version_of(entry, POLICY, None)[1])
    if "SchedulerConfig" in params:
        body["SchedulerConfig"] = _config(params["SchedulerConfig"])
    if "Description" in params:
        body["Description"] = params["Description"]
    return begin_update(ctx, POLICY, entry, target=params["TargetVersion"], body=body)
