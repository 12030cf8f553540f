"""On-demand prices of HyperPod instances by region, each with source and date.

Does not: know discounts, training plans, Spot, EBS volumes or data transfer. What the table lacks is unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Final

from hpkit.catalog.instances import Source, read_data

__all__ = [
    "HOURS_PER_MONTH",
    "Price",
    "find_price",
    "near_monthly_cost",
    "near_note",
    "near_price",
]

# The month of AWS's own pricing calculator: 8,760 hours a year ÷ 12.
HOURS_PER_MONTH: Final = 730


@dataclass(frozen=True, slots=True)
class Price:
    """What one instance costs in a region: US dollars an hour, on demand."""

    instance_type: str
    region: str
    hourly: Decimal
    source: Source

    @property
    def monthly(self) -> Decimal:
        """Return US dollars a month of 730 hours."""
        return self.hourly * HOURS_PER_MONTH


@cache
def _table() -> dict[tuple[str, str], Price]:
    data = read_data("prices.json")
    sources = {key: Source(**value) for key, value in data["sources"].items()}
    return {
        (name, block["region"]): Price(name, block["region"], Decimal(hourly), sources[block["source"]])
        for block in data["prices"]
        for name, hourly in block["hourly"].items()
    }


def find_price(instance_type: str, region: str) -> Price | None:
    """Return a price with its source, or None where it is not known.

    A price of another region never stands in: the same type costs differently elsewhere.
    """
    return _table().get((instance_type, region))


def near_price(instance_type: str, region: str) -> Price | None:
    """Return a price to show as "about": the region's own, else that of one on the same continent, else None.

    Its region says which. Where both are known, prices of us-east-1 and us-west-2 are the same, to the last digit
    (ml.p4d.24xlarge).
    """
    own = find_price(instance_type, region)
    if own is not None:
        return own
    continent = region.partition("-")[0]
    near = sorted(known for name, known in _table() if name == instance_type and known.partition("-")[0] == continent)
    return find_price(instance_type, near[0]) if near else None


def near_monthly_cost(instance_type: str, region: str, instances: Fraction) -> tuple[int, str] | None:
    """Return whole US dollars a month of so many instances, and whose region's price it is; None: no price is near."""
    near = near_price(instance_type, region)
    return None if near is None else (round(Fraction(near.monthly) * instances), near.region)


def near_note(regions: Iterable[str]) -> str:
    """Return the line that says whose prices are shown as "about"."""
    return f"about: at prices of {', '.join(sorted(regions))}; the catalog has none for the stack's region"
