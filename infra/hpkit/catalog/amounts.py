"""The amounts of an instance type that task governance counts, in whole base units: millicores, bytes, units."""

import math
from fractions import Fraction
from typing import Final

from hpkit.catalog.instances import InstanceType, find_instance_type
from hpkit.errors import CatalogError

__all__ = [
    "EFA",
    "MIG_LABEL",
    "QUEUE_RESOURCES",
    "Amounts",
    "amounts_of_instances",
    "amounts_of_part",
    "countable_type",
    "quantity_of",
]

EFA: Final = "vpc.amazonaws.com/efa"
# By this label of a node, the NVIDIA GPU Operator partitions its GPUs.
MIG_LABEL: Final = "nvidia.com/mig.config"
# The resources that a team's queue counts, in the order of `flavorsUsage` in the HyperPod CLI's walkthrough of task
# governance.
QUEUE_RESOURCES: Final = ("cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neurondevice", EFA)
_GIB: Final = 1024**3
Amounts = dict[str, int]


def amounts_of_instances(instance_type: str, count: int = 1) -> Amounts:
    """Return the amounts of whole instances. Raises CatalogError for a type whose values aren't known."""
    details = countable_type(instance_type)
    amounts = {
        "cpu": 1000 * (details.vcpu or 0),
        "memory": _GIB * (details.memory_gib or 0),
        EFA: details.efa_interfaces or 0,
    }
    if details.accelerator_resource:
        amounts[details.accelerator_resource] = details.accelerators or 0
    return {name: count * amount for name, amount in amounts.items()}


def amounts_of_part(
    instance_type: str,
    *,
    vcpu: Fraction,
    memory_gib: Fraction,
    accelerators: int = 0,
    partition: tuple[str, int] | None = None,
) -> Amounts:
    """Return the amounts of a part of an instance; partition: MIG profile and number.

    Raises CatalogError for a type whose values aren't known.
    """
    details = countable_type(instance_type)
    amounts = {"cpu": round(1000 * vcpu), "memory": round(_GIB * memory_gib)}
    if accelerators and details.accelerator_resource and details.accelerators:
        amounts[details.accelerator_resource] = accelerators
        # Interfaces can't be split: part of an instance has the whole ones in its share.
        amounts[EFA] = math.floor(Fraction(accelerators, details.accelerators) * (details.efa_interfaces or 0))
    if partition is not None:
        profile, count = partition
        amounts[f"nvidia.com/{profile}"] = count
    return amounts


def quantity_of(resource: str, amount: int) -> str:
    """Return an amount in base units as a Kubernetes quantity; the API server writes whole CPUs without a unit."""
    cores, rest = divmod(amount, 1000)
    return str(amount) if resource != "cpu" else f"{amount}m" if rest else str(cores)


def countable_type(name: str) -> InstanceType:
    """Return a type whose vCPUs, memory and accelerators are known. Raises CatalogError for any other."""
    details = find_instance_type(name)
    if details is None or None in (details.vcpu, details.memory_gib, details.accelerators):
        raise CatalogError(f"vCPUs, memory or accelerators of instance type {name} aren't known")
    return details
