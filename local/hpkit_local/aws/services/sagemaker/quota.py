"""Compute quotas: a team's reservation and sharing."""

from __future__ import annotations

from typing import Any

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
from hpkit_local.aws.services.sagemaker.pro_rata import fill_pro_rata

__all__ = ["QUOTA", "stored_config"]

QUOTA = VersionedResource(
    "quotas",
    kind="quota",
    title="ComputeQuota",
    path="compute-quota",
)
register(QUOTA)
DEFAULT_BORROW_LIMIT = 50


def stored_config(config: Record) -> Record:
    """Return the configuration as the service stores it: resources filled in pro rata, defaults written out."""
    sharing: dict[str, Any] = dict(config.get("ResourceSharingConfig") or {"Strategy": "LendAndBorrow"})
    if sharing["Strategy"] == "LendAndBorrow" and "AbsoluteBorrowLimits" not in sharing:
        sharing.setdefault("BorrowLimit", DEFAULT_BORROW_LIMIT)
    if "AbsoluteBorrowLimits" in sharing:
        sharing["AbsoluteBorrowLimits"] = fill_pro_rata(sharing["AbsoluteBorrowLimits"], "AbsoluteBorrowLimits")
    return {
        "ComputeQuotaResources": fill_pro_rata(config.get("ComputeQuotaResources", []), "ComputeQuotaResources"),
        "ResourceSharingConfig": sharing,
        "PreemptTeamTasks": config.get("PreemptTeamTasks", "LowerPriority"),
    }


def _target(given: Record) -> Record:
    return {"TeamName": given["TeamName"], "FairShareWeight": given.get("FairShareWeight", 0)}


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateComputeQuota.html
@operation("sagemaker", "CreateComputeQuota")
def create_compute_quota(ctx: Context, params: Record) -> Record:
    """One quota per team; names are unique within a cluster."""
    cluster_by_arn(ctx, params["ClusterArn"])
    team = params["ComputeQuotaTarget"]["TeamName"]
    for existing in ctx.table("quotas").values():
        if existing["cluster"] != params["ClusterArn"]:
            continue
        if existing["name"] == params["Name"]:
            raise ServiceError("ConflictException", f"ComputeQuota with name '{params['Name']}' already exists")
        if version_of(existing, QUOTA, None)[1]["ComputeQuotaTarget"]["TeamName"] == team:
            raise ServiceError(
                "ConflictException", f"Team '{team}' already has ComputeQuota '{existing['id']}' on this cluster"
            )
    body: Record = {
        "ComputeQuotaConfig": stored_config(params["ComputeQuotaConfig"]),
        "ComputeQuotaTarget": _target(params["ComputeQuotaTarget"]),
        "ActivationState": params.get("ActivationState", "Enabled"),
    }
    return created(ctx, QUOTA, params, body)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateComputeQuota.html
@operation("sagemaker", "UpdateComputeQuota")
def update_compute_quota(ctx: Context, params: Record) -> Record:
    """Return a new version; the team stays. A given configuration replaces the old one."""
    entry = find(ctx, QUOTA, params["ComputeQuotaId"])
    body = dict(version_of(entry, QUOTA, None)[1])
    if "ComputeQuotaTarget" in params:
        old, new = body["ComputeQuotaTarget"]["TeamName"], params["ComputeQuotaTarget"]["TeamName"]
        if old != new:
            raise ServiceError(
                "ValidationException",
                f"TeamName of ComputeQuota '{entry['id']}' cannot change from {old} to {new}",
            )
        body["ComputeQuotaTarget"] = {**body["ComputeQuotaTarget"], **params["ComputeQuotaTarget"]}
    if "ComputeQuotaConfig" in params:
        body["ComputeQuotaConfig"] = stored_config(params["ComputeQuotaConfig"])
    body.update({member: params[member] for member in ("ActivationState", "Description") if member in params})
    return begin_update(ctx, QUOTA, entry, target=params["TargetVersion"], body=body)
