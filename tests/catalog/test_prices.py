"""Prices: exact, sourced, never guessed; and which products of the AWS Price List are read."""

import datetime
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.catalog import find_instance_type, find_region
from hpkit.catalog.instances import read_data
from hpkit.catalog.price_list import PRODUCTS, Found, read_products
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


SAGEMAKER, EKS, EC2, VPC, FSX = PRODUCTS
USAGE = "USW2-Cluster:ml.g5.xlarge"


def product(*prices, usage=USAGE, unit="Hrs", currency="USD", **attributes):
    """Return the text of a product with a tier per price; the first tier starts at 0."""
    tiers = {
        f"tier{index}": {"unit": unit, "beginRange": str(100 * index), "pricePerUnit": {currency: price}}
        for index, price in enumerate(prices)
    }
    terms = {"OnDemand": {"term": {"priceDimensions": dict(reversed(tiers.items()))}}}
    return json.dumps({"product": {"attributes": {"usagetype": usage, **attributes}}, "terms": terms})


def read(query, *texts):
    found = Found()
    read_products(query, texts, found)
    return found


@pytest.mark.parametrize("usage", ["Cluster:ml.g5.xlarge", "USE1-Cluster:ml.g5.xlarge", "EU-Cluster:ml.g5.xlarge"])
def test_an_instance_type_is_read_from_its_usage_type_with_any_prefix(usage):
    assert read(SAGEMAKER, product("1.4080000000", usage=usage)) == Found({"ml.g5.xlarge": Decimal("1.408")})


@pytest.mark.parametrize(
    ("query", "usage", "unit", "key"),
    [
        (SAGEMAKER, "USW2-Cluster:VolumeUsage.gp3", "GB-Mo", "hyperPodVolumeGbMonth"),
        (EKS, "USE1-AmazonEKS-Hours:perCluster", "hours", "eksClusterHour"),
        (EKS, "AmazonEKS-Hours:extendedSupport", "Hours", "eksExtendedSupportHour"),
        (EC2, "NatGateway-Hours", "Hrs", "natGatewayHour"),
        (EC2, "EU-NatGateway-Bytes", "GB", "natGatewayGb"),
        (VPC, "EUC1-VpcEndpoint-Hours", "Hrs", "interfaceEndpointHour"),
        (FSX, "USW2-Storage.SSD.1000", "GB-Mo", "lustreGbMonth.1000"),
    ],
)
def test_other_prices_are_read_by_usage_type(query, usage, unit, key):
    assert read(query, product("0.5", usage=usage, unit=unit)) == Found({}, {key: Decimal("0.5")})


@pytest.mark.parametrize(
    "usage",
    ["USW2-ReservedCluster:ml.g5.xlarge", "USW2-Studio:ml.g5.xlarge", "RegionalNatGateway-Hours", "USW2-Storage"],
)
def test_other_usage_types_are_left_out_without_a_word(usage):
    assert [read(query, product("1", usage=usage)) for query in PRODUCTS] == [Found()] * len(PRODUCTS)


def test_outposts_and_local_zones_have_prices_of_their_own():
    here, there = (product(price, locationType=kind) for price, kind in (("1", "AWS Region"), ("2", "AWS Outposts")))
    assert read(SAGEMAKER, here, there) == Found({"ml.g5.xlarge": Decimal(1)})


def test_of_tiers_the_first_that_costs_something_counts():
    assert read(SAGEMAKER, product("0", "1.5", "1.25")).instances == {"ml.g5.xlarge": Decimal("1.5")}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["{"], "a product: not JSON"),
        (["[]"], "a product: not a JSON object"),
        (["{}"], "a product: without product.attributes"),
        ([7], "a product: not a JSON object"),
        ([json.dumps({"product": {"attributes": {}}})], "a product: without the attribute usagetype"),
        ([json.dumps({"product": {"attributes": {"usagetype": USAGE}}})], f"{USAGE}: without terms.OnDemand"),
        ([json.dumps({"product": {"attributes": {"usagetype": USAGE}}, "terms": {"OnDemand": {}}})], "on-demand term"),
        ([product("0.0000000000")], f"{USAGE}: without a price in USD per Hrs"),
        ([product("1", unit="Quantity")], f"{USAGE}: without a price in USD per Hrs"),
        ([product("1", currency="CNY")], f"{USAGE}: without a price in USD per Hrs"),
        ([product("free")], f"{USAGE}: 'free' isn't an amount"),
        ([product("-1")], f"{USAGE}: '-1' isn't an amount"),
        ([product("1"), product("2")], "ml.g5.xlarge has 2 on-demand prices: $1, $2"),
    ],
)
def test_what_cannot_be_used_is_skipped_with_a_reason(texts, reason):
    other = product("3", usage="USW2-Cluster:ml.g5.48xlarge")
    found = read(SAGEMAKER, *texts, other)
    assert found.instances == {"ml.g5.48xlarge": Decimal(3)}
    (skipped,) = found.skipped
    assert skipped.startswith("AmazonSageMaker: ")
    assert reason in skipped


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["product", "attributes", "usagetype", "terms", "OnDemand", "priceDimensions", "USD"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(JSON.map(json.dumps) | st.text() | JSON, max_size=4),
    st.dictionaries(st.from_regex(r"ml\.[a-z0-9]{2,4}\.\d?xlarge", fullmatch=True), st.decimals(0, 500, places=10)),
)
def test_any_list_of_products_is_read_without_an_error(others, prices):
    texts = [product(str(price), usage=f"APN1-Cluster:{name}") for name, price in prices.items()]
    found = read(SAGEMAKER, *others, *texts)
    assert {name: price for name, price in prices.items() if price} == found.instances
    assert len(found.skipped) == len(others) + sum(not price for price in prices.values())
