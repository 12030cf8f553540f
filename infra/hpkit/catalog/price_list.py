"""Reads products of the AWS Price List, and writes a project's file of prices from them.

A product is a JSON text with its attributes and its on-demand terms. Source: AWS Billing user guide, "Reading the
service price list file"; AWS Price List API reference, GetProducts.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from hpkit.catalog.instances import Source
from hpkit.catalog.prices import RegionPrices

__all__ = [
    "LUSTRE_THROUGHPUTS",
    "PRODUCTS",
    "Found",
    "ProductQuery",
    "Rate",
    "price_changes",
    "price_file",
    "read_products",
]

# Amazon FSx for Lustre user guide, PERSISTENT_2 on SSD: throughput in MB/s per TiB.
LUSTRE_THROUGHPUTS: Final = (125, 250, 500, 1000)
# What usage types of most regions begin with: `USW2-`, `EU-`.
_PREFIX = re.compile(r"^[A-Z][A-Z0-9]*-")
_INSTANCE = re.compile(r"Cluster:(?P<type>ml\..+)")
_REGION: Final = "AWS Region"
_HOURS, _GB, _GB_MONTH = "Hrs", "GB", "GB-Mo"
# The spellings of a unit: service teams choose them.
_UNITS: Final = {_HOURS: ("hrs", "hours", "hour"), _GB: ("gb", "gigabytes"), _GB_MONTH: ("gb-mo", "gb-month")}


@dataclass(frozen=True, slots=True)
class Rate:
    """A price that isn't one of an instance type.

    key: its name in the file. title: its name in messages. usage: a pattern of the usage type, without the region's
    prefix. unit: Hrs, GB or GB-Mo.
    """

    key: str
    title: str
    usage: str
    unit: str


@dataclass(frozen=True, slots=True)
class ProductQuery:
    """Products to read: the service's code in the price list, attributes to filter by, and the prices expected."""

    service: str
    attributes: Mapping[str, str]
    rates: tuple[Rate, ...]
    has_instances: bool = False


# Usage types as AWS bills them (Cost and Usage Report, line_item_usage_type): HyperPod's instances and volumes are
# those of AmazonSageMaker with the component Cluster; extended support is charged in addition to the cluster's hour.
PRODUCTS: Final = (
    ProductQuery(
        "AmazonSageMaker",
        {"component": "Cluster"},
        (Rate("hyperPodVolumeGbMonth", "HyperPod volume", r"Cluster:VolumeUsage\.gp[23]", _GB_MONTH),),
        has_instances=True,
    ),
    ProductQuery(
        "AmazonEKS",
        {},
        (
            Rate("eksClusterHour", "EKS cluster", "AmazonEKS-Hours:perCluster", _HOURS),
            Rate("eksExtendedSupportHour", "EKS extended support", "AmazonEKS-Hours:extendedSupport", _HOURS),
        ),
    ),
    ProductQuery(
        "AmazonEC2",
        {"productFamily": "NAT Gateway"},
        (
            Rate("natGatewayHour", "NAT gateway", "NatGateway-Hours", _HOURS),
            Rate("natGatewayGb", "NAT gateway, data", "NatGateway-Bytes", _GB),
        ),
    ),
    ProductQuery(
        "AmazonVPC",
        {"productFamily": "VpcEndpoint"},
        (Rate("interfaceEndpointHour", "interface endpoint, per zone", "VpcEndpoint-Hours", _HOURS),),
    ),
    ProductQuery(
        "AmazonFSx",
        {"fileSystemType": "Lustre"},
        tuple(
            Rate(
                f"lustreGbMonth.{throughput}",
                f"FSx for Lustre, {throughput} MB/s/TiB",
                rf"Storage\.SSD\.{throughput}",
                _GB_MONTH,
            )
            for throughput in LUSTRE_THROUGHPUTS
        ),
    ),
)


@dataclass(slots=True)
class Found:
    """The prices of one region, in US dollars, and what was skipped, a sentence for each."""

    instances: dict[str, Decimal] = field(default_factory=dict)
    platform: dict[str, Decimal] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


# The first line of a project's file.
_ABOUT: Final = (
    "On-demand prices in US dollars, without discounts, data transfer or tax: hourly is an hour of a HyperPod "
    "instance, platform an hour, GB or GB-month. `hpkit catalog refresh` writes this file. What is absent is unknown."
)


class _UnreadableError(ValueError):
    """A product that isn't in the documented form, or without a price that can be used."""


def read_products(query: ProductQuery, products: Iterable[object], region_prices: Found) -> None:
    """Add the prices of a query's products to `region_prices`; what can't be used is added to its `skipped`.

    products: the texts of `PriceList` in an answer of GetProducts.
    """
    amounts: dict[tuple[str, bool], set[Decimal]] = {}
    for text in products:
        label = "a product"
        try:
            product = _product(text)
            usage = _usage_type(product)
            if not usage:
                continue
            label = usage
            name, unit, is_instance = _wanted(query, usage)
            prices = set(_amounts(product, unit)) if name else set()
            if prices:
                amounts.setdefault((name, is_instance), set()).update(prices)
        except _UnreadableError as error:
            region_prices.skipped.append(f"{query.service}: {label}: {error}")
    for (name, is_instance), several in sorted(amounts.items()):
        if len(several) > 1:
            listed = ", ".join(f"${each}" for each in sorted(several))
            region_prices.skipped.append(f"{query.service}: {name} has {len(several)} on-demand prices: {listed}")
            continue
        (amount,) = several
        (region_prices.instances if is_instance else region_prices.platform)[name] = amount


def _wanted(query: ProductQuery, usage: str) -> tuple[str, str, bool]:
    """Return the name of a usage type's price, its unit, and whether it's an instance type; "" for others."""
    usage_type = _PREFIX.sub("", usage)
    for rate in query.rates:
        if re.fullmatch(rate.usage, usage_type):
            return rate.key, rate.unit, False
    instance = _INSTANCE.fullmatch(usage_type) if query.has_instances else None
    return (instance["type"], _HOURS, True) if instance else ("", "", False)


def _product(text: object) -> Mapping[str, Any]:
    try:
        product = json.loads(text) if isinstance(text, str) else None
    except ValueError as error:
        raise _UnreadableError(f"not JSON: {error}") from None
    if not isinstance(product, dict):
        raise _UnreadableError("not a JSON object")
    return product


def _usage_type(product: Mapping[str, Any]) -> str:
    """Return the usage type; "" for a product of an Outpost or a Local Zone."""
    attributes = _mapping_in(product, "product", "attributes")
    usage = attributes.get("usagetype")
    if not isinstance(usage, str):
        raise _UnreadableError("without the attribute usagetype")
    return usage if attributes.get("locationType", _REGION) == _REGION else ""


def _mapping_in(value: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        raise _UnreadableError(f"without {'.'.join(keys)}")
    return value


def _amounts(product: Mapping[str, Any], unit: str) -> Iterator[Decimal]:
    """Yield the price of each on-demand term: of tiers the first that costs something."""
    terms = list(_mapping_in(product, "terms", "OnDemand").values())
    if not terms:
        raise _UnreadableError("without an on-demand term")
    for term in terms:
        tiers = sorted(_tiers(term, unit))
        priced = [amount for _, amount in tiers if amount]
        if not priced:
            raise _UnreadableError(f"without a price in USD per {unit}")
        yield priced[0]


def _tiers(term: Any, unit: str) -> Iterator[tuple[Decimal, Decimal]]:
    """Yield from where each tier counts, and its price in USD."""
    for dimension in _mapping_in(term, "priceDimensions").values():
        own = _mapping_in(dimension)
        if str(own.get("unit", "")).lower() not in _UNITS[unit]:
            continue
        if (text := _mapping_in(own, "pricePerUnit").get("USD")) is not None:
            yield _decimal(own.get("beginRange", "0")), _decimal(text)


def _decimal(text: object) -> Decimal:
    try:
        amount = Decimal(str(text))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise _UnreadableError(f"{text!r} isn't an amount")
    return amount


def price_file(
    by_region: Mapping[str, Found], before: Mapping[str, RegionPrices], source: Callable[[str], Source]
) -> str:
    """Return a project's price file, sorted.

    by_region: region → prices from the price list. before: the previous file; a region with unchanged prices keeps its
    source, so that the text doesn't change. source: the source of a region's new prices.
    """
    sources, blocks = {}, []
    for region in sorted(by_region):
        new, old = by_region[region], before.get(region)
        same = old is not None and (new.instances, new.platform) == (dict(old.instances), dict(old.platform))
        used = old.source if same and old is not None else source(region)
        sources[region] = {"title": used.title, "url": used.url, "date": used.date}
        blocks.append(
            {"region": region, "source": region, "hourly": _written(new.instances), "platform": _written(new.platform)}
        )
    data = {"about": _ABOUT, "sources": sources, "prices": blocks}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _written(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: f"{amounts[name].normalize():f}" for name in sorted(amounts)}


def price_changes(before: Mapping[str, RegionPrices], after: Mapping[str, RegionPrices]) -> Iterator[str]:
    """Yield what differs between two files, a line each; a region that is new or gone is one line."""
    for region in sorted(before.keys() | after.keys()):
        old, new = before.get(region), after.get(region)
        if old is None or new is None:
            there = old or new
            count = 0 if there is None else len(there.instances) + len(there.platform)
            yield f"{'+' if old is None else '-'} {region}: {count} prices"
            continue
        for was, now in ((old.instances, new.instances), (old.platform, new.platform)):
            for name in sorted(was.keys() | now.keys()):
                if was.get(name) != now.get(name):
                    yield _changed(f"{region} {name}", was.get(name), now.get(name))


def _changed(label: str, was: Decimal | None, now: Decimal | None) -> str:
    if was is None:
        return f"+ {label}: {now}"
    return f"- {label}: {was}" if now is None else f"~ {label}: {was} → {now}"
