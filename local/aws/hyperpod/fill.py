"""Quota rows as the service stores them: fractions filled in pro rata.

Source: SageMaker developer guide, "HyperPod task governance: compute allocation". Accelerators bring vCPU
and memory with them; vCPU brings memory, memory brings vCPU (both with 0 accelerators); a MIG partition
brings vCPU and memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from local.aws.errors import ServiceError
from local.aws.world import Record

__all__ = ["Shape", "fill_rows", "shape_of"]

FRACTIONS = ("Accelerators", "VCpu", "MemoryInGiB", "AcceleratorPartition")


@dataclass(frozen=True)
class Shape:
    """What one instance of a type has."""

    vcpu: float
    memory_gib: float
    accelerators: int


def shape_of(instance_type: str) -> Shape | None:
    """Return the shape of a type, None if it is not known."""
    found: Any = INSTANCE_TYPES.get(instance_type.removeprefix("ml."))
    if found is None:
        return None
    gpus = sum(gpu["Count"] for gpu in found.get("GpuInfo", {}).get("Gpus", []))
    return Shape(found["VCpuInfo"]["DefaultVCpus"], found["MemoryInfo"]["SizeInMiB"] / 1024, gpus)


def fill_rows(rows: list[Record], member: str) -> list[Record]:
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
    filled = dict(row)
    if "Accelerators" in row:
        if not shape.accelerators:
            raise _refuse(where, f"{row['InstanceType']} has no accelerators")
        ratio = row["Accelerators"] / shape.accelerators
    elif "AcceleratorPartition" in row:
        ratio = _partition_ratio(row, shape, where)
    elif "VCpu" in row:
        ratio = row["VCpu"] / shape.vcpu
    else:
        ratio = row["MemoryInGiB"] / shape.memory_gib
    filled.setdefault("VCpu", round(shape.vcpu * ratio, 2))
    filled.setdefault("MemoryInGiB", round(shape.memory_gib * ratio, 2))
    if "AcceleratorPartition" not in row:
        filled.setdefault("Accelerators", 0)
    return filled


def _partition_ratio(row: Record, shape: Shape, where: str) -> float:
    """Return a partition `mig-3g.40gb` is 3 of the 7 compute slices of a GPU."""
    if not shape.accelerators:
        raise _refuse(where, f"{row['InstanceType']} has no accelerators to partition")
    partition = row["AcceleratorPartition"]
    slices = int(partition["Type"].removeprefix("mig-").partition("g")[0])
    ratio: float = partition["Count"] * slices / (7 * shape.accelerators)
    return ratio


def _refuse(where: str, text: str) -> ServiceError:
    return ServiceError("ValidationException", f"{where}: {text}")
