"""A quota's reservation as numbers: amounts of instance types that can be summed and compared.

A whole instance and a fraction are separate measures, and only amounts of one measure are compared. The number of
accelerators per instance isn't known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = [
    "Amounts",
    "ComputeQuotaResource",
    "Measure",
    "decreased",
    "increased",
    "minimum",
    "reserved_amounts",
]

_WHOLE: Final = "Count"
_PARTITION: Final = "AcceleratorPartition"
# The service fills these in, pro rata, where an entry states only another fraction (API reference,
# ComputeQuotaResourceConfig; developer guide, "HyperPod task governance: compute allocation").
_PRO_RATA: Final = frozenset({"VCpu", "MemoryInGiB"})


class Measure(NamedTuple):
    """One thing that is counted: `Count`, `Accelerators`, `VCpu`, … of an instance type."""

    instance_type: str
    name: str


Amounts = dict[Measure, float]
ComputeQuotaResource = Mapping[str, Any]  # an entry of ComputeQuotaResources, as the API has it


def reserved_amounts(config: Mapping[str, Any]) -> Amounts:
    """Return a quota's reservation by measure (configuration in API form)."""
    amounts: Amounts = {}
    for resource in config.get("ComputeQuotaResources", []):
        for name, value in resource.items():
            measure, number = Measure(resource["InstanceType"], name), value
            if name == _PARTITION:
                measure, number = Measure(resource["InstanceType"], f"{name} {value.get('Type')}"), value.get("Count")
            if isinstance(number, (int, float)):
                amounts[measure] = amounts.get(measure, 0) + number
    return amounts


def _with_pro_rata(amounts: Amounts, like: Amounts) -> Amounts:
    """Complete fractions with the service's values: an unset figure isn't a change."""
    types = {measure.instance_type for measure in amounts if measure.name != _WHOLE}
    filled_in = {
        measure: value
        for measure, value in like.items()
        if measure.name in _PRO_RATA and measure.instance_type in types
    }
    return {**filled_in, **amounts}


def increased(old: Amounts, new: Amounts) -> set[Measure]:
    """Return the measures that are more than before."""
    before = _with_pro_rata(old, new)
    return {measure for measure, value in _with_pro_rata(new, old).items() if value > before.get(measure, 0)}


def decreased(old: Amounts, new: Amounts) -> set[Measure]:
    """Return the measures that are less than before."""
    return increased(new, old)


def minimum(live: Sequence[ComputeQuotaResource], new: Sequence[ComputeQuotaResource]) -> list[ComputeQuotaResource]:
    """Return the resources halfway from `live` to `new`: decreases are done, and nothing has increased yet.

    A type that changes between whole instances and fractions keeps its live entry, because its decrease depends on the
    instance type.
    """
    new_by_key = {_key(resource): resource for resource in new}
    types = {resource["InstanceType"] for resource in new}
    return [
        _smaller(resource, new_by_key.get(_key(resource), resource))
        for resource in live
        if resource["InstanceType"] in types
    ]


def _key(resource: ComputeQuotaResource) -> tuple[Any, ...]:
    """Return the common part of two entries with comparable values."""
    partition = resource.get(_PARTITION, {}).get("Type")
    return resource["InstanceType"], _WHOLE in resource, bool(resource.get("Accelerators")), partition


def _smaller(resource: ComputeQuotaResource, target: ComputeQuotaResource) -> ComputeQuotaResource:
    """Use the smaller of each set figure; unset ones follow pro rata."""
    smaller = dict(target)
    for name, value in target.items():
        if name == _PARTITION:
            smaller[name] = {**value, "Count": min(value["Count"], resource[name]["Count"])}
        elif isinstance(value, (int, float)):
            smaller[name] = min(value, resource.get(name, value))
    return smaller
