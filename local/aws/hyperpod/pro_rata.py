"""Quota rows as the service stores them: fractions filled in pro rata.

Source: SageMaker developer guide, "HyperPod task governance: compute allocation". Accelerators bring vCPU
and memory with them; vCPU brings memory, memory brings vCPU (both with 0 accelerators); a MIG partition
brings vCPU and memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpkit.catalog import find_instance_type
from local.aws.backend import Record
from local.aws.errors import ServiceError

__all__ = ["Shape", "fill_pro_rata", "shape_of"]

FRACTIONS = ("Accelerators", "VCpu", "MemoryInGiB", "AcceleratorPartition")


@dataclass(frozen=True)
class Shape:
    """What one instance of a type has."""

    vcpu: float
    memory_gib: float
    accelerators: int
    mig_per_accelerator: dict[str, int] | None


def shape_of(instance_type: str) -> Shape | None:
    """Return the shape of a type, None where a figure of it is not known."""
    found = find_instance_type(instance_type)
    if found is None or found.vcpu is None or found.memory_gib is None or found.accelerators is None:
        return None
    profiles = found.mig_profiles
    most = None if profiles is None else {profile.name: profile.max_per_accelerator for profile in profiles}
    return Shape(found.vcpu, found.memory_gib, found.accelerators, most)


def fill_pro_rata(rows: list[Record], member: str) -> list[Record]:
    """Check and complete the rows of a quota."""
    return [_fill(row, f"{member}.{index}") for index, row in enumerate(rows, start=1)]


def _fill(row: Record, where: str) -> Record:
    given = [name for name in FRACTIONS if name in row]
    instance_type = row["InstanceType"]
    if "Count" in row:
        if given:
            raise _refuse(where, f"Count cannot be combined with {', '.join(given)} for {instance_type}")
        return row
    if not given:
        raise _refuse(where, f"{instance_type} needs Count or one of {', '.join(FRACTIONS)}")
    if "Accelerators" in row and "AcceleratorPartition" in row:
        raise _refuse(where, f"Accelerators and AcceleratorPartition exclude each other for {instance_type}")
    shape = shape_of(instance_type)
    return row if shape is None else _pro_rata(row, shape, where)


def _pro_rata(row: Record, shape: Shape, where: str) -> Record:
    ratio: float | None
    if row.get("Accelerators"):
        if not shape.accelerators:
            raise _refuse(where, f"{row['InstanceType']} has no accelerators")
        ratio = row["Accelerators"] / shape.accelerators
    elif "AcceleratorPartition" in row:
        ratio = _partition_ratio(row, shape, where)
    elif "VCpu" in row:
        ratio = row["VCpu"] / shape.vcpu
    elif "MemoryInGiB" in row:
        ratio = row["MemoryInGiB"] / shape.memory_gib
    else:
        ratio = 0.0
    if ratio is None:
        return row
    filled = {"VCpu": round(shape.vcpu * ratio, 2), "MemoryInGiB": round(shape.memory_gib * ratio, 2), **row}
    return filled if "AcceleratorPartition" in row else {"Accelerators": 0, **filled}


def _partition_ratio(row: Record, shape: Shape, where: str) -> float | None:
    """Return the share of an instance that partitions take: so many of the most that its accelerators hold."""
    if shape.mig_per_accelerator is None:
        return None
    partition = row["AcceleratorPartition"]
    most = shape.mig_per_accelerator.get(partition["Type"])
    if most is None:
        known = ", ".join(shape.mig_per_accelerator) or "none"
        raise _refuse(where, f"{row['InstanceType']} has no partition {partition['Type']} (it has: {known})")
    ratio: float = partition["Count"] / (most * shape.accelerators)
    return ratio


def _refuse(where: str, text: str) -> ServiceError:
    return ServiceError("ValidationException", f"{where}: {text}")
