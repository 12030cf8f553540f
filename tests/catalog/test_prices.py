"""Prices: exact, sourced, and never guessed."""

import datetime
from decimal import Decimal

import pytest

from hpkit.catalog import find_instance_type, find_region
from hpkit.catalog.instances import read_data
from hpkit.catalog.prices import HOURS_PER_MONTH, find_price, near_price
from hpkit.project import select

ROWS = [(block["region"], name) for block in read_data("prices.json")["prices"] for name in block["hourly"]]


@pytest.mark.parametrize(("region", "name"), ROWS)
def test_every_price_is_of_a_known_type_and_region_with_source_and_date(region, name):
    price = find_price(name, region)
    assert price is not None
    assert find_instance_type(name) is not None
    assert find_region(region) is not None
    assert price.hourly > 0
    assert price.source.url.startswith("https://")
    assert datetime.date.fromisoformat(price.source.date) >= datetime.date(2026, 9, 1)


def test_no_region_and_type_are_priced_twice():
    assert len(ROWS) == len(set(ROWS))


def test_a_price_is_exact_and_a_month_has_730_hours():
    assert find_price("ml.p4d.24xlarge", "us-east-1").hourly == Decimal("25.91001756")
    assert find_price("ml.g5.12xlarge", "us-east-1").monthly == Decimal("7.09") * HOURS_PER_MONTH == Decimal("5175.70")


@pytest.mark.parametrize(
    ("name", "region"),
    [("ml.g5.12xlarge", "eu-north-1"), ("ml.p6e-gb200.36xlarge", "us-east-1"), ("ml.none.large", "us-east-1")],
)
def test_a_price_that_is_not_in_the_table_is_unknown(name, region):
    assert find_price(name, region) is None


def test_price_follows_vcpu_within_a_family_of_processors():
    """Detect typing errors: within a family without unusual GPU counts, prices are proportional to vCPUs."""
    for family in ("c5", "c6i", "m5", "m6i", "m7i", "r6i", "r7i"):
        own = sorted(
            (find_instance_type(name).vcpu, find_price(name, region).hourly)
            for region, name in ROWS
            if region == "us-east-1" and name.startswith(f"ml.{family}.")
        )
        rates = [price / vcpu for vcpu, price in own]
        assert max(rates) <= min(rates) * Decimal("1.03"), f"{family}: {rates}"


def test_a_price_to_show_as_about_is_of_the_same_continent():
    assert near_price("ml.p4d.24xlarge", "us-west-2").region == "us-west-2"
    assert near_price("ml.g5.12xlarge", "us-west-2").region == "us-east-1"
    assert near_price("ml.g5.12xlarge", "eu-west-1") is None
    assert near_price("ml.no.such", "us-east-1") is None


def test_every_type_of_the_examples_has_a_price_or_one_about():
    for loaded in select((), ()):
        for plan in loaded.plans.values():
            for group in plan.groups:
                for name in group.spec.types:
                    assert near_price(name, plan.spec.region) is not None, (plan.stack, name)
