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
    totals: dict[str, Counter[str]] = {}
    for resource in resources:
        totals.setdefault(resource["InstanceType"], Counter()).update(_of_resource(resource))
    return {instance_type: dict(total) for instance_type, total in totals.items()}


def whole(instance_type: str, count: int = 1) -> Amounts:
    """Return what so many instances have."""
    instance = _find_instance(instance_type)
    amounts_each = {
        "cpu": 1000 * (instance.vcpu or 0),
        "memory": _GIB * (instance.memory_gib or 0),
        EFA: instance.efa_interfaces or 0,
    }
    if instance.accelerator_resource:
        amounts_each[instance.accelerator_resource] = instance.accelerators or 0
    return {name: count * amount for name, amount in amounts_each.items()}


def quantity(resource: str, amount: int) -> str:
    """Return the amount as Kubernetes writes it."""
    # The API server writes whole CPUs so.
    cores, rest = divmod(amount, 1000)
    return str(amount) if resource != "cpu" else f"{amount}m" if rest else str(cores)


def _of_resource(resource: Mapping[str, Any]) -> Amounts:
    if "Count" in resource:
        return whole(resource["InstanceType"], int(resource["Count"]))
    amounts_held = {
        "cpu": round(1000 * Fraction(str(resource.get("VCpu", 0)))),
        "memory": round(_GIB * Fraction(str(resource.get("MemoryInGiB", 0)))),
    }
    if resource.get("Accelerators"):
        instance = _find_instance(resource["InstanceType"])
        if not instance.accelerator_resource or not instance.accelerators:
            raise UnknownTypeError(f"{instance.name} has no accelerators that are known")
        amounts_held[instance.accelerator_resource] = int(resource["Accelerators"])
        # An interface cannot be split: part of an instance has as many as its share holds whole ones.
        amounts_held[EFA] = math.floor(
            Fraction(int(resource["Accelerators"]), instance.accelerators) * (instance.efa_interfaces or 0)
        )
    if "AcceleratorPartition" in resource:
        amounts_held[f"nvidia.com/{resource['AcceleratorPartition']['Type']}"] = int(
            resource["AcceleratorPartition"]["Count"]
        )
    return amounts_held


def _find_instance(name: str) -> InstanceType:
    instance = find_instance_type(name)
    if instance is None or None in (instance.vcpu, instance.memory_gib, instance.accelerators):
        raise UnknownTypeError(f"vCPUs, memory or accelerators of instance type {name} are not known")
    return instance
