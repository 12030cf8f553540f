"""ComputeQuotaResources as amounts of Kubernetes resources, in whole base units: millicores, bytes, pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from hpkit.catalog import InstanceType, find_instance_type

__all__ = ["RESOURCES", "Amounts", "UnknownTypeError", "amounts", "quantity", "whole"]

EFA = "vpc.amazonaws.com/efa"
# What a team's queue counts: names seen in flavorsUsage of the HyperPod CLI's walkthrough of task governance.
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neurondevice", EFA)
_GIB = 1024**3
Amounts = dict[str, int]


class UnknownTypeError(ValueError):
    """The catalogue does not know an instance type, or a figure of it; the message says which."""


def amounts(resources: Iterable[Mapping[str, Any]]) -> dict[str, Amounts]:
    """Return the sum of the resources, by instance type."""
    found: dict[str, Counter[str]] = {}
    for resource in resources:
        found.setdefault(resource["InstanceType"], Counter()).update(_of_resource(resource))
    return {kind: dict(total) for kind, total in found.items()}


def whole(instance_type: str, count: int = 1) -> Amounts:
    """Return what so many instances have."""
    kind = _known(instance_type)
    found = {
        "cpu": 1000 * (kind.vcpu or 0),
        "memory": _GIB * (kind.memory_gib or 0),
        EFA: kind.efa_interfaces or 0,
    }
    if kind.accelerator_resource:
        found[kind.accelerator_resource] = kind.accelerators or 0
    return {name: count * amount for name, amount in found.items()}


def quantity(resource: str, amount: int) -> str:
    """Return the amount as Kubernetes writes it."""
    # The API server writes whole CPUs so.
    cores, rest = divmod(amount, 1000)
    return str(amount) if resource != "cpu" else f"{amount}m" if rest else str(cores)


def _of_resource(resource: Mapping[str, Any]) -> Amounts:
    if "Count" in resource:
        return whole(resource["InstanceType"], int(resource["Count"]))
    found = {
        "cpu": round(1000 * Fraction(str(resource.get("VCpu", 0)))),
        "memory": round(_GIB * Fraction(str(resource.get("MemoryInGiB", 0)))),
    }
    if resource.get("Accelerators"):
        kind = _known(resource["InstanceType"])
        if not kind.accelerator_resource or not kind.accelerators:
            raise UnknownTypeError(f"{kind.name} has no accelerators that are known")
        found[kind.accelerator_resource] = int(resource["Accelerators"])
        # An interface cannot be split: part of an instance has as many as its share holds whole ones.
        found[EFA] = math.floor(Fraction(int(resource["Accelerators"]), kind.accelerators) * (kind.efa_interfaces or 0))
    if "AcceleratorPartition" in resource:
        found[f"nvidia.com/{resource['AcceleratorPartition']['Type']}"] = int(resource["AcceleratorPartition"]["Count"])
    return found


def _known(name: str) -> InstanceType:
    found = find_instance_type(name)
    if found is None or None in (found.vcpu, found.memory_gib, found.accelerators):
        raise UnknownTypeError(f"vCPUs, memory or accelerators of instance type {name} are not known")
    return found
