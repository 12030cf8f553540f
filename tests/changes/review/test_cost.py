"""Monthly cost: known costs are summed exactly, unknown ones are named, and none is guessed."""

import json
from decimal import Decimal
from types import SimpleNamespace

import pytest

from hpkit.catalog import find_kubernetes_version
from hpkit.catalog.prices import PRICE_FILE
from hpkit.changes.plan_diff import Change
from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.cost import maximum_cost, minimum_cost, platform_cost, total
from hpkit.changes.review.formatting import cost, cost_change
from hpkit.changes.review.model import Cost
from hpkit.changes.review.tables import summary_rows
from hpkit.plan.derive import derive
from tests.builders import group, organization, text_of, typed
from tests.changes.review.builders import review_of
from tests.documents import plain

OWN = ("us-west-2",)
PRICES = {"ml.g5.8xlarge": Decimal(10), "ml.g5.12xlarge": Decimal(30)}


def price(name, region):
    assert region == "us-west-2"
    return SimpleNamespace(monthly=PRICES[name], region=region) if name in PRICES else None


def plan(*groups, pools=None, classes=("burst",)):
    autoscaling = {
        "nodeClasses": [{"name": "burst", "instanceGroups": list(classes)}],
        "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": pools}],
    }
    environment = {} if pools is None else {"autoscaling": autoscaling}
    return derive(typed(organization(groups=list(groups), environment=environment)), "dev")


def flexible(name, types, count):
    return {"name": name, "instanceTypes": types, "instanceCount": count}


def test_standing_groups_are_summed_and_those_of_karpenter_are_not():
    cost = minimum_cost(
        plan(group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0), pools={"nodes": "5"}), price
    )
    assert cost == Cost(Decimal(120), own=OWN)
    assert cost.complete


def test_a_type_without_a_price_is_named_and_the_rest_still_counts():
    found = minimum_cost(plan(group("gpu", "ml.g5.12xlarge", 1), group("new", "ml.p5en.48xlarge", 2)), price)
    assert found == Cost(Decimal(30), ("2 × ml.p5en.48xlarge",), own=OWN)
    assert cost(found) == "at least $30"


def test_a_flexible_group_costs_at_least_its_cheapest_type():
    found = minimum_cost(plan(flexible("mix", ["ml.g5.12xlarge", "ml.g5.8xlarge"], 3)), price)
    assert found == Cost(Decimal(30), ("3 × ml.g5.12xlarge | ml.g5.8xlarge above the cheapest type",), own=OWN)


def test_a_flexible_group_with_a_type_of_unknown_price_has_no_known_cost():
    found = minimum_cost(plan(flexible("mix", ["ml.g5.12xlarge", "ml.p5en.48xlarge"], 3)), price)
    assert found == Cost(Decimal(0), ("3 × ml.g5.12xlarge | ml.p5en.48xlarge",))
    assert cost(found) == "unknown"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"capacityType": "Spot"}, "Spot"),
        ({"trainingPlanArn": "arn:aws:sagemaker:us-west-2:123456789012:training-plan/tp"}, "training plan"),
    ],
)
def test_what_is_not_bought_on_demand_has_no_price_on_demand(more, why):
    found = minimum_cost(plan(group("gpu", "ml.g5.12xlarge", 4, **more)), price)
    assert found == Cost(Decimal(0), (f"4 × ml.g5.12xlarge ({why})",))


def test_the_maximum_fills_a_pool_with_its_dearest_type():
    groups = (group("one", "ml.g5.8xlarge", 0), group("two", "ml.g5.12xlarge", 0))
    cost = maximum_cost(
        plan(group("gpu", "ml.g5.8xlarge", 1), *groups, pools={"nodes": "5"}, classes=["one", "two"]), price
    )
    assert cost == Cost(Decimal(10 + 5 * 30), own=OWN)


def test_a_pool_without_a_limit_has_no_maximum():
    found = maximum_cost(plan(group("gpu", "ml.g5.8xlarge", 1), group("burst", "ml.g5.8xlarge", 0), pools={}), price)
    assert found == Cost(Decimal(10), (), ("NodePool pool",), own=OWN)
    assert cost(found) == "unbounded"


def test_a_pool_of_spot_instances_has_no_known_cost():
    spot = group("burst", "ml.g5.8xlarge", 0, capacityType="Spot")
    found = maximum_cost(plan(group("gpu", "ml.g5.8xlarge", 1), spot, pools={"nodes": "5"}), price)
    assert found == Cost(Decimal(10), ("Spot instances of NodePool pool",), own=OWN)


def test_a_difference_is_given_only_where_the_same_is_unknown():
    exact, more = Cost(Decimal(10)), Cost(Decimal(15))
    part, grown = Cost(Decimal(10), ("1 × a",)), Cost(Decimal(15), ("2 × a",))
    assert cost_change(Change(exact, more)) == "+$5"
    assert cost_change(Change(more, exact)) == "−$5"
    assert cost_change(Change(part, grown)) == "unknown"
    assert cost_change(Change(part, Cost(Decimal(15), ("1 × a",)))) == "+$5"
    assert cost_change(Change(None, exact)) == "+$10"
    assert cost_change(Change(exact, exact)) == "no change"


def test_a_total_lacks_what_its_parts_lack():
    assert total([Cost(Decimal(1), ("a",)), None, Cost(Decimal(2), (), ("pool",))]) == Cost(
        Decimal(3), ("a",), ("pool",)
    )


def test_what_is_no_longer_described_costs_on_until_it_is_destroyed():
    base = organization(groups=[group("gpu", "ml.g5.12xlarge", 1)])
    head = organization(groups=[group("gpu", "ml.g5.12xlarge", 1)])
    head["environments"]["prod"] = head["environments"].pop("dev")
    review = review_of(text_of(base), text_of(head))
    row = next(row for row in summary_rows(review) if row[0] == "acme-dev")
    assert row[-2:] == ("about $5,176 until it is destroyed",) * 2
    stacks = plain(ChangeReview.model_validate(review))["stacks"]
    told = next(each for each in stacks if each["stack"] == "acme-dev")["minimumCost"]
    assert (told["before"]["known"], told["after"]) == ("5175.70", None)
    assert told["change"] == "about −$5,176 once it is destroyed"


def test_what_a_side_costs_that_cannot_be_read_is_unknown():
    review = review_of(text_of(organization(groups=[group("gpu", "ml.g5.12xlarge", 1)])), b"environments: [")
    for told in plain(ChangeReview.model_validate(review))["stacks"]:
        assert told["minimumCost"] == {"before": None, "after": None, "change": "unknown"}


def test_the_platform_costs_what_the_projects_prices_say_and_names_what_they_lack(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zones = [{"availabilityZone": f"us-west-2{zone}", "nodeCidr": f"10.{ord(zone)}.0.0/16"} for zone in "ab"]
    network = {"zones": zones, "natGateways": "PerZone", "endpoints": ["s3", "ecr.api", "sts"]}
    storage = {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}}
    plan = derive(typed(organization(environment={"network": network, "storage": storage})), "dev")
    before = platform_cost(plan)
    assert before.known == Decimal("0.10") * 730
    assert before.unknown == (
        "2 × NAT gateway",
        "4 × interface endpoint in a zone",
        "1,200 GiB of FSx for Lustre, 250 MB/s/TiB",
    )
    (tmp_path / "stacks").mkdir()
    platform = {
        "eksClusterHour": "0.2",
        "eksExtendedSupportHour": "0.3",
        "natGatewayHour": "0.05",
        "interfaceEndpointHour": "0.02",
        "lustreGbMonth.250": "0.1",
    }
    source = {"title": "a", "url": "https://example.com", "date": "2026-11-26"}
    block = {"region": "us-west-2", "source": "a", "hourly": {}, "platform": platform}
    (tmp_path / PRICE_FILE).write_text(json.dumps({"sources": {"a": source}, "prices": [block]}))
    hours = Decimal("0.2") + 2 * Decimal("0.05") + 4 * Decimal("0.02")
    assert platform_cost(plan) == Cost(hours * 730 + 120, own=("us-west-2",))
    ended = find_kubernetes_version(plan.spec.eks.version).end_of_standard_support
    assert platform_cost(plan, ended).known - platform_cost(plan).known == Decimal("0.3") * 730
