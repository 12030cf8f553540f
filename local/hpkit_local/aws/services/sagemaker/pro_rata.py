"""ComputeQuotaResources as the service stores them: fractions filled in pro rata.

Source: SageMaker developer guide, "HyperPod task governance: compute allocation". Accelerators add vCPU and memory;
vCPU adds memory, memory adds vCPU (both with 0 accelerators); a MIG partition adds vCPU and memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpkit.catalog import find_instance_type
from hpkit_local.aws.backend import Record
from hpkit_local.aws.errors import ServiceError

__all__ = ["Shape", "fill_pro_rata", "shape_of"]

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
            raise _refuse(where, f"Count cannot be combined with {', '.join(fractions)} for {instance_type}")
        return resource
    if not fractions:
        raise _refuse(where, f"{instance_type} needs Count or one of {', '.join(FRACTIONS)}")
    if "Accelerators" in resource and "AcceleratorPartition" in resource:
        raise _refuse(where, f"Accelerators and AcceleratorPartition exclude each other for {instance_type}")
    shape = shape_of(instance_type)
    return resource if shape is None else _pro_rata(resource, shape, where)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ComputeQuotaResourceConfig.html
def _pro_rata(resource: Record, shape: Shape, where: str) -> Record:
    ratio: float | None
    if resource.get("Accelerators"):
        if not shape.accelerators:
            raise _refuse(where, f"{resource['InstanceType']} has no accelerators")
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
        raise _refuse(where, f"{resource['InstanceType']} has no partition {partition['Type']} (it has: {known})")
    ratio: float = partition["Count"] / (most * shape.accelerators)
    return ratio


def _refuse(where: str, text: str) -> ServiceError:
    return ServiceError("ValidationException", f"{where}: {text}")
