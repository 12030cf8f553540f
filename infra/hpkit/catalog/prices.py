"""On-demand prices by region, each with source and date: HyperPod instances, and other resources of a platform.

The catalog has prices of instances. `hpkit catalog refresh` writes a project's own prices from the AWS Price List to
`stacks/prices.json`: a region in that file replaces the catalog's prices of that region.

Discounts, training plans, Spot and data transfer aren't included. Prices that aren't in the table are unknown.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from hpkit.catalog.instances import Source, read_data
from hpkit.errors import InputError
from hpkit.root import project_root

__all__ = [
    "HOURS_PER_MONTH",
    "PRICE_FILE",
    "Price",
    "RegionPrices",
    "dated_regions",
    "find_price",
    "near_monthly_cost",
    "near_note",
    "near_price",
    "price_note",
    "region_prices",
    "regions_of_price_file",
]

# The month of AWS's own pricing calculator: 8,760 hours a year ÷ 12.
HOURS_PER_MONTH: Final = 730
# A project's own prices, relative to its folder.
PRICE_FILE: Final = "stacks/prices.json"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one instance in a region: US dollars per hour, on demand."""

    instance_type: str
    region: str
    hourly: Decimal
    source: Source

    @property
    def monthly(self) -> Decimal:
        """Return US dollars a month of 730 hours."""
        return self.hourly * HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class RegionPrices:
    """The prices of one region, in US dollars.

    instances: an hour of an instance, by type. platform: other prices, by the names of `hpkit.catalog.price_list`.
    """

    region: str
    source: Source
    instances: Mapping[str, Decimal]
    platform: Mapping[str, Decimal]


def regions_of_price_file(text: str) -> dict[str, RegionPrices]:
    """Return region → its prices, from the contents of a price file. Raises ValueError for invalid contents."""
    try:
        data = json.loads(text)
        sources = {key: Source(**value) for key, value in data["sources"].items()}
        return {
            block["region"]: RegionPrices(
                block["region"],
                sources[block["source"]],
                _amounts(block["hourly"]),
                _amounts(block.get("platform", {})),
            )
            for block in data["prices"]
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from error


def _amounts(row: Mapping[str, Any]) -> dict[str, Decimal]:
    amounts = {}
    for name, text in row.items():
        try:
            amount = Decimal(str(text))
        except InvalidOperation:
            raise ValueError(f"the price of {name} is {text!r}") from None
        if not amount.is_finite() or amount <= 0:
            raise ValueError(f"the price of {name} is {text!r}")
        amounts[name] = amount
    return amounts


@cache
def _catalog() -> dict[str, RegionPrices]:
    return regions_of_price_file(json.dumps(read_data("prices.json")))


@cache
def _merged(path: Path, _changed: tuple[int, int]) -> dict[str, RegionPrices]:
    try:
        return {**_catalog(), **regions_of_price_file(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{PRICE_FILE} isn't a file of prices: {error}. Restore it from git, or delete it and run "
            "`hpkit catalog refresh`"
        ) from None


def region_prices() -> Mapping[str, RegionPrices]:
    """Return region → its prices: the catalog's, and instead of them the project's own where it has some.

    Raises InputError if the project's file can't be read.
    """
    path = project_root() / PRICE_FILE
    try:
        state = path.stat()
    except OSError:
        return _catalog()
    return _merged(path, (state.st_mtime_ns, state.st_size))


def find_price(instance_type: str, region: str) -> Price | None:
    """Return a price with its source, or None if it isn't known.

    Another region's price never replaces it, because prices differ by region.
    """
    prices = region_prices().get(region)
    hourly = None if prices is None else prices.instances.get(instance_type)
    return None if prices is None or hourly is None else Price(instance_type, region, hourly, prices.source)


def near_price(instance_type: str, region: str) -> Price | None:
    """Return a price to show as "about": the region's own, or that of one on the same continent, or None.

    Its region tells which. Where both are known, prices in us-east-1 and us-west-2 are exactly the same
    (ml.p4d.24xlarge).
    """
    own = find_price(instance_type, region)
    if own is not None:
        return own
    continent = region.partition("-")[0]
    near = sorted(
        region_name
        for region_name, prices in region_prices().items()
        if instance_type in prices.instances and region_name.partition("-")[0] == continent
    )
    return find_price(instance_type, near[0]) if near else None


def near_monthly_cost(instance_type: str, region: str, instances: Fraction) -> tuple[int, str] | None:
    """Return whole US dollars a month of so many instances, and whose region's price it is; None: no price is near."""
    near = near_price(instance_type, region)
    return None if near is None else (round(Fraction(near.monthly) * instances), near.region)


def dated_regions(regions: Iterable[str]) -> str:
    """Return regions with the day of their prices: `us-east-1 (2026-09-16), us-west-2 (2026-11-26)`."""
    known = region_prices()
    return ", ".join(f"{region} ({known[region].source.date})" for region in sorted(regions))


def near_note(regions: Iterable[str]) -> str:
    """Return the line that states which regions' prices are shown as "about"."""
    return f"about: prices of {dated_regions(regions)}; the stack's region has none"


def price_note(region: str, used: Iterable[str], *, is_unknown: bool = False) -> str:
    """Return the lines that state the regions and dates of the prices in a sum; "" without prices.

    is_unknown: whether a price is missing.
    """
    own, others = {region} & set(used), set(used) - {region}
    lines = [f"at prices of {dated_regions(own)}"] if own else []
    lines += [near_note(others)] if others else []
    if is_unknown and region not in region_prices():
        lines.append("unknown: hpkit has no price nearby; `hpkit catalog refresh` reads the region's prices from AWS")
    return "\n".join(lines)
