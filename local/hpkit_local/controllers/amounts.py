"""ComputeQuotaResources as amounts of Kubernetes resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from hpkit.catalog import Amounts, amounts_of_instances, amounts_of_part

__all__ = ["amounts"]


def amounts(resources: Iterable[Mapping[str, Any]]) -> dict[str, Amounts]:
    """Return the sum of the resources, by instance type."""
    totals: dict[str, Counter[str]] = {}
    for resource in resources:
        totals.setdefault(resource["InstanceType"], Counter()).update(_of_resource(resource))
    return {kind: dict(total) for kind, total in totals.items()}


def _of_resource(resource: Mapping[str, Any]) -> Amounts:
    if "Count" in resource:
        return amounts_of_instances(resource["InstanceType"], int(resource["Count"]))
    partition = resource.get("AcceleratorPartition")
    return amounts_of_part(
        resource["InstanceType"],
        vcpu=Fraction(str(resource.get("VCpu", 0))),
        memory_gib=Fraction(str(resource.get("MemoryInGiB", 0))),
        accelerators=int(resource.get("Accelerators") or 0),
        partition=None if partition is None else (partition["Type"], int(partition["Count"])),
    )
