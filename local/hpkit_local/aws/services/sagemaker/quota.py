"""Compute quotas: a team's reservation and sharing.

ComputeQuotaResources as the service stores them: fractions filled in pro rata. Source: SageMaker developer guide,
"HyperPod task governance: compute allocation". Accelerators add vCPU and memory; vCPU adds memory, memory adds vCPU
(both with 0 accelerators); a MIG partition adds vCPU and memory.
"""

from dataclasses import dataclass
from typing import Any

from hpkit.catalog import find_instance_type
from hpkit_local.aws.api import given, operation
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
from hpkit_local.aws.services.sagemaker.rules import conflict, reject

__all__ = ["QUOTA", "fill_pro_rata", "stored_config"]

FRACTIONS = ("Accelerators", "VCpu", "MemoryInGiB", "AcceleratorPartition")


@dataclass(frozen=True)
class Shape:
    """The resources of one instance of a type."""

    vcpu: float
    memory_gib: float
    accelerators: int
    mig_per_accelerator: dict[str, int] | None


def shape_of(instance_type: str) -> Shape | None:
    """Return the shape of a type, None if one of its values isn't known."""
    details = find_instance_type(instance_type)
    if details is None or details.vcpu is None or details.memory_gib is None or details.accelerators is None:
        return None
    profiles = details.mig_profiles
    most = None if profiles is None else {profile.name: profile.max_per_accelerator for profile in profiles}
    return Shape(details.vcpu, details.memory_gib, details.accelerators, most)


def fill_pro_rata(resources: list[Record], member: str) -> list[Record]:
    """Check and complete the ComputeQuotaResources of a quota."""
    return [_fill(resource, f"{member}.{index}") for index, resource in enumerate(resources, start=1)]


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ComputeQuotaResourceConfig.html
def _fill(resource: Record, where: str) -> Record:
    fractions = [name for name in FRACTIONS if name in resource]
    instance_type = resource["InstanceType"]
    if "Count" in resource:
        if fractions:
            raise _reject(where, f"Count cannot be combined with {', '.join(fractions)} for {instance_type}")
        return resource
    if not fractions:
        raise _reject(where, f"{instance_type} needs Count or one of {', '.join(FRACTIONS)}")
    if "Accelerators" in resource and "AcceleratorPartition" in resource:
        raise _reject(where, f"Accelerators and AcceleratorPartition exclude each other for {instance_type}")
    shape = shape_of(instance_type)
    return resource if shape is None else _pro_rata(resource, shape, where)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ComputeQuotaResourceConfig.html
def _pro_rata(resource: Record, shape: Shape, where: str) -> Record:
    ratio: float | None
    if resource.get("Accelerators"):
        if not shape.accelerators:
            raise _reject(where, f"{resource['InstanceType']} has no accelerators")
        ratio = resource["Accelerators"] / shape.accelerators
    elif "AcceleratorPartition" in resource:
        ratio = _partition_ratio(resource, shape, where)
    elif "VCpu" in resource:
        ratio = resource["VCpu"] / shape.vcpu
    elif "MemoryInGiB" in resource:
        ratio = resource["MemoryInGiB"] / shape.memory_gib
    else:
        ratio = 0.0
    if ratio is None:
        return resource
    filled = {"VCpu": round(shape.vcpu * ratio, 2), "MemoryInGiB": round(shape.memory_gib * ratio, 2), **resource}
    return filled if "AcceleratorPartition" in resource else {"Accelerators": 0, **filled}


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AcceleratorPartitionConfig.html
def _partition_ratio(resource: Record, shape: Shape, where: str) -> float | None:
    """Return the share of an instance that partitions use: their number relative to the maximum on its accelerators."""
    if shape.mig_per_accelerator is None:
        return None
    partition = resource["AcceleratorPartition"]
    most = shape.mig_per_accelerator.get(partition["Type"])
    if most is None:
        known = ", ".join(shape.mig_per_accelerator) or "none"
        raise _reject(where, f"{resource['InstanceType']} has no partition {partition['Type']} (it has: {known})")
    ratio: float = partition["Count"] / (most * shape.accelerators)
    return ratio


def _reject(where: str, text: str) -> ServiceError:
    return reject(f"{where}: {text}")


QUOTA = VersionedResource("quotas", kind="quota", title="ComputeQuota", path="compute-quota")
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
    for quota in ctx.table("quotas").values():
        if quota["cluster"] != params["ClusterArn"]:
            continue
        if quota["name"] == params["Name"]:
            raise conflict(f"ComputeQuota with name '{params['Name']}' already exists")
        if version_of(quota, QUOTA, None)[1]["ComputeQuotaTarget"]["TeamName"] == team:
            raise conflict(f"Team '{team}' already has ComputeQuota '{quota['id']}' on this cluster")
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
            raise reject(f"TeamName of ComputeQuota '{entry['id']}' cannot change from {old} to {new}")
        body["ComputeQuotaTarget"] = {**body["ComputeQuotaTarget"], **params["ComputeQuotaTarget"]}
    if "ComputeQuotaConfig" in params:
        body["ComputeQuotaConfig"] = stored_config(params["ComputeQuotaConfig"])
    body.update(given(params, "ActivationState", "Description"))
    return begin_update(ctx, QUOTA, entry, target=params["TargetVersion"], body=body)
