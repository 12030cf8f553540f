"""Budgets of teams and projects: read from the file, and compared with the cost of their quota."""

from fractions import Fraction

import pytest

from hpkit.catalog.prices import find_price
from hpkit.errors import InputError
from hpkit.plan.budgets import budget_cells, budgets_of, reserved_cost, spent
from hpkit.plan.derive import quotas_of
from hpkit.project import load_stack

P4D = "ml.p4d.24xlarge"
GIVEN = {
    "teams": {"vision": 40_000},
    "projects": {"assistant": {"teams": ["language", "speech"], "monthlyUsd": 70_000}},
}


def monthly(name, region, instances=1):
    return Fraction(find_price(name, region).monthly) * instances


def test_a_project_counts_all_of_its_teams_and_a_team_itself():
    plan = load_stack("enterprise-prod").plans["prod"]
    vision, assistant = budgets_of(GIVEN)
    costs = [spent(quotas_of(plan), each.teams, plan.spec.region) for each in (vision, assistant)]
    assert [each.dollars for each in costs] == [monthly(P4D, "us-east-1", 2), monthly(P4D, "us-east-1", 4)]
    assert [cost.exceeds(each) for cost, each in zip(costs, (vision, assistant), strict=True)] == [False, True]
    assert budget_cells(vision, costs[0]) == ("37,829", "40,000", "2,171")
    assert budget_cells(assistant, costs[1])[2] == "-5,657"


def test_a_near_regions_price_stands_in_and_what_has_none_is_named():
    near = reserved_cost([("ml.g5.12xlarge", 2)], "us-west-2")
    assert (near.dollars, near.about) == (monthly("ml.g5.12xlarge", "us-east-1", 2), ("us-east-1",))
    assert reserved_cost([("ml.g5.12xlarge", 2)], "sa-east-1").unknown == ("ml.g5.12xlarge",)
    unknown = reserved_cost([("ml.g5.12xlarge", 2), ("ml.g7.2xlarge", 1), (P4D, None)], "us-west-2")
    assert unknown.unknown == ("ml.g7.2xlarge", P4D)
    (budget,) = budgets_of({"teams": {"ada": 10_000}})
    assert budget_cells(budget, unknown) == ("at least about 10,351", "10,000", "at most about -351")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"teams": ["ada"]}, r"budget-of-teams: teams is \['ada'\]; use a map from names to budgets"),
        ({"teams": {"ada": "much"}}, "ada has the budget 'much'; use US dollars per month, such as 60000"),
        ({"teams": {"ada": True}}, "ada has the budget True"),
        ({"teams": {"ada": -1}}, "ada has the budget -1"),
        ({"projects": {"x": 5}}, "the project x is 5"),
        ({"projects": {"x": {"teams": [], "monthlyUsd": 5}}}, "the project x is"),
        ({"projects": {"x": {"teams": ["ada"]}}}, "x has the budget None"),
    ],
)
def test_what_is_no_budget_is_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        budgets_of(parameters)
