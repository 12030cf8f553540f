"""Compute quotas: what a team has reserved and how it shares."""

from __future__ import annotations

from typing import Any

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
from hpkit_local.aws.services.sagemaker.pro_rata import fill_pro_rata

__all__ = ["stored_config"]

QUOTA = VersionedResource("quotas", kind="quota", title="ComputeQuota", path="compute-quota")
DEFAULT_BORROW_LIMIT = 50


def stored_config(given: Record) -> Record:
    """Return the configuration as the service stores it: resources filled in pro rata, defaults written out."""
    sharing: dict[str, Any] = dict(given.get("ResourceSharingConfig") or {"Strategy": "LendAndBorrow"})
    if sharing["Strategy"] == "LendAndBorrow" and "AbsoluteBorrowLimits" not in sharing:
        sharing.setdefault("BorrowLimit", DEFAULT_BORROW_LIMIT)
    if "AbsoluteBorrowLimits" in sharing:
        sharing["AbsoluteBorrowLimits"] = fill_pro_rata(sharing["AbsoluteBorrowLimits"], "AbsoluteBorrowLimits")
    return {
        "ComputeQuotaResources": fill_pro_rata(given.get("ComputeQuotaResources", []), "ComputeQuotaResources"),
        "ResourceSharingConfig": sharing,
        "PreemptTeamTasks": given.get("PreemptTeamTasks", "LowerPriority"),
    }


def _target(given: Record) -> Record:
    return {"TeamName": given["TeamName"], "FairShareWeight": given.get("FairShareWeight", 0)}


@operation("sagemaker", "CreateComputeQuota")
def create_compute_quota(ctx: Context, params: Record) -> Record:
    """One quota per team; names are unique within a cluster."""
    cluster_by_arn(ctx, params["ClusterArn"])
    team = params["ComputeQuotaTarget"]["TeamName"]
    for other in ctx.table("quotas").values():
        if other["cluster"] != params["ClusterArn"]:
            continue
        if other["name"] == params["Name"]:
            raise ServiceError("ConflictException", f"ComputeQuota with name '{params['Name']}' already exists")
        if version_of(other, QUOTA, None)[1]["ComputeQuotaTarget"]["TeamName"] == team:
            raise ServiceError(
                "ConflictException", f"Team '{team}' already has ComputeQuota '{other['id']}' on this cluster"
            )
    body: Record = {
        "ComputeQuotaConfig": stored_config(params["ComputeQuotaConfig"]),
        "ComputeQuotaTarget": _target(params["ComputeQuotaTarget"]),
        "ActivationState": params.get("ActivationState", "Enabled"),
    }
    if "Description" in params:
        body["Description"] = params["Description"]
    entry = new_entry(ctx, QUOTA, params, body)
    entry["status"] = ctx.begin("quota.create", "quota.arrived", entry_id=entry["id"], change="create")
    return {"ComputeQuotaArn": entry["arn"], "ComputeQuotaId": entry["id"]}


@operation("sagemaker", "UpdateComputeQuota")
def update_compute_quota(ctx: Context, params: Record) -> Record:
    """Return a new version; the team stays. A configuration that is given replaces the old one."""
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
    begin_update(ctx, QUOTA, entry, target=params["TargetVersion"], body=body)
    return {"ComputeQuotaArn": entry["arn"], "ComputeQuotaVersion": entry["version"]}


def quota_document(entry: Record, *, version: int | None = None) -> Record:
    """Return what DescribeComputeQuota answers."""
    return document(entry, QUOTA, version=version)


@operation("sagemaker", "DescribeComputeQuota")
def describe_compute_quota(ctx: Context, params: Record) -> Record:
    """One quota, in its newest version or the one asked for."""
    entry = find(ctx, QUOTA, params["ComputeQuotaId"])
    return quota_document(entry, version=params.get("ComputeQuotaVersion"))


@operation("sagemaker", "ListComputeQuotas")
def list_compute_quotas(ctx: Context, params: Record) -> Record:
    """Summaries, filtered, sorted and in pages."""
    entries, token = listing(ctx, QUOTA, params)
    hidden = ("CreatedBy", "LastModifiedBy", "FailureReason", "Description")
    summaries = [
        {name: value for name, value in quota_document(entry).items() if name not in hidden} for entry in entries
    ]
    return {"ComputeQuotaSummaries": summaries, **({"NextToken": token} if token else {})}


@operation("sagemaker", "DeleteComputeQuota")
def delete_compute_quota(ctx: Context, params: Record) -> Record:
    """Begin to delete."""
    begin_delete(ctx, QUOTA, find(ctx, QUOTA, params["ComputeQuotaId"]))
    return {}


@action("quota.arrived")
def arrived(ctx: Context, *, entry_id: str, change: str, failure: str = "") -> None:
    """Apply: a quota is Created or Updated, or has failed."""
    entry = find(ctx, QUOTA, entry_id)
    if not failure:
        tell = ctx.controllers.quota_created if change == "create" else ctx.controllers.quota_updated
        tell(quota_document(entry), cluster_document(ctx, entry))
    arrive(ctx, QUOTA, entry, change=change, failure=failure)


@action("quota.vanished")
def vanished(ctx: Context, *, entry_id: str, failure: str = "") -> None:
    """Apply: a quota is gone, or could not be deleted."""
    entry = find(ctx, QUOTA, entry_id)
    if not failure:
        ctx.controllers.quota_deleted(quota_document(entry), cluster_document(ctx, entry))
    vanish(ctx, QUOTA, entry, failure=failure)
