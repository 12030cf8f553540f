"""What a quota reserves, as numbers: measures of instance types that can be summed and compared.

Does not: know how many accelerators an instance has. A whole instance and a fraction are measures of their own,
and only one measure is ever compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["WHOLE", "Measure", "Row", "Rows", "filled", "grown", "larger", "lesser", "rows_of", "shrunk", "total"]

WHOLE: Final = "Count"
_PARTITION: Final = "AcceleratorPartition"
# The service fills these in, pro rata, where a row states only another fraction (API reference,
# ComputeQuotaResourceConfig; developer guide, "HyperPod task governance: compute allocation").
_PRO_RATA: Final = frozenset({"VCpu", "MemoryInGiB"})


class Measure(NamedTuple):
    """One thing that is counted: `Count`, `Accelerators`, `VCpu`, … of an instance type."""

    kind: str
    name: str

    def __str__(self) -> str:
        return self.kind if self.name == WHOLE else f"{self.name} of {self.kind}"


Rows = dict[Measure, float]
Row = Mapping[str, Any]


def rows_of(config: Mapping[str, Any]) -> Rows:
    """Return what a quota reserves by measure (configuration in API form)."""
    rows: Rows = {}
    for row in config.get("ComputeQuotaResources", []):
        for name, value in row.items():
            measure, number = Measure(row["InstanceType"], name), value
            if name == _PARTITION:
                measure, number = Measure(row["InstanceType"], f"{name} {value.get('Type')}"), value.get("Count")
            if isinstance(number, (int, float)):
                rows[measure] = rows.get(measure, 0) + number
    return rows


def filled(rows: Rows, like: Rows) -> Rows:
    """Complete fractions with what the service filled in: a figure that is not stated is no change."""
    kinds = {measure.kind for measure in rows if measure.name != WHOLE}
    return {
        **{measure: value for measure, value in like.items() if measure.name in _PRO_RATA and measure.kind in kinds},
        **rows,
    }


def grown(old: Rows, new: Rows) -> set[Measure]:
    """Return the measures that are more than before."""
    return {measure for measure, value in filled(new, old).items() if value > filled(old, new).get(measure, 0)}


def shrunk(old: Rows, new: Rows) -> set[Measure]:
    """Return the measures that are less than before."""
    return grown(new, old)


def larger(one: Rows, other: Rows) -> Rows:
    """Return the larger of two values, measure by measure."""
    return {measure: max(one.get(measure, 0), other.get(measure, 0)) for measure in one.keys() | other.keys()}


def total(many: Iterable[Rows]) -> Rows:
    """Return the sum of all."""
    result: Rows = {}
    for rows in many:
        for measure, value in rows.items():
            result[measure] = result.get(measure, 0) + value
    return result


def lesser(live: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Return the rows on the way from `live` to `new`: what gives room is given, nothing is taken yet.

    A type that goes from whole instances to fractions, or back, keeps its live row: what of it is less depends on
    the shape of the type.
    """
    wanted = {_form(row): row for row in new}
    kinds = {row["InstanceType"] for row in new}
    return [_least(row, wanted.get(_form(row), row)) for row in live if row["InstanceType"] in kinds]


def _form(row: Row) -> tuple[Any, ...]:
    return row["InstanceType"], WHOLE in row, bool(row.get("Accelerators")), row.get(_PARTITION, {}).get("Type")


def _least(row: Row, other: Row) -> Row:
    """Take the smaller figure of each that is stated; what is not stated follows, pro rata."""
    least = dict(other)
    for name, value in other.items():
        if name == _PARTITION:
            least[name] = {**value, "Count": min(value["Count"], row[name]["Count"])}
        elif isinstance(value, (int, float)):
            least[name] = min(value, row.get(name, value))
    return least
