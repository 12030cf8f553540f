"""The table of teams in the outputs, and the values that hpkit sets for add-ons."""

from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpkit.config.models.observability import MetricsProvider
from hpkit.plan.derive import derive, quotas_of
from hpkit.program.components.addons.observability import hyperpod_values
from hpkit.program.components.common.outputs import team_table
from hpkit_local.aws.services.eks.addon_catalog import ADDONS
from tests.builders import group, organization, rules, team, typed

G5 = "ml.g5.12xlarge"
NAMES = ("ada", "bob", "eve")


def plan(counts, sharing=None, groups=None):
    teams = [team(name, **({"sharing": sharing[name]} if sharing and name in sharing else {})) for name in counts]
    rows = {name: [{"instanceType": G5, "count": count}] for name, count in counts.items()}
    wanted = groups or [group("gpu", G5, max(sum(counts.values()), 1))]
    return derive(typed(organization(teams=teams, allocations=rows, groups=wanted)), "dev")


def limits(most=500):
    return st.integers(1, most).map(lambda limit: {"strategy": "LendAndBorrow", "borrowLimit": limit})


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 12), min_size=1))
def test_quotas_are_as_in_the_file_and_fit_the_capacity(counts):
    built = plan(counts)
    table = team_table(built)
    assert {name: row["quota"][G5] for name, row in table.items()} == counts
    assert sum(row["quota"][G5] for row in table.values()) <= built.capacity[G5].permanent


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, 12))), st.fixed_dictionaries({"ada": limits()}))
def test_a_team_borrows_at_most_its_limit_and_what_others_have(counts, sharing):
    row = team_table(plan(counts, sharing))["ada"]
    limit = Fraction(counts["ada"] * sharing["ada"]["borrowLimit"], 100)
    assert Fraction(row["borrowable"][G5]).limit_denominator(100) <= limit
    assert row["borrowable"][G5] <= counts["bob"] + counts["eve"]


@settings(max_examples=30, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, 12))))
def test_a_team_that_only_lends_borrows_nothing(counts):
    table = team_table(plan(counts, {name: {"strategy": "Lend"} for name in NAMES}))
    assert [row["borrowable"][G5] for row in table.values()] == [0, 0, 0]


@settings(max_examples=30, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, 12))), limits())
def test_the_table_says_what_the_quota_command_says(counts, sharing):
    built = plan(counts, {"bob": sharing})
    table = team_table(built)
    for quota in quotas_of(built):
        for share in quota.teams:
            row = table[share.team]
            assert row["quota"][quota.instance_type] == float(Fraction(share.reserved))
            assert row["elastic"] == {}
            assert row["borrowable"][quota.instance_type] == float(Fraction(share.borrowable))


def test_whole_numbers_are_written_without_a_fraction():
    row = team_table(plan({"ada": 2, "bob": 2}, {"ada": {"strategy": "LendAndBorrow", "borrowLimit": 50}}))["ada"]
    assert (row["quota"][G5], type(row["quota"][G5])) == (2, int)


def test_a_team_is_told_its_namespace_and_queue():
    row = team_table(plan({"ada": 1}))["ada"]
    assert (row["namespace"], row["queue"]) == ("hyperpod-ns-ada", "hyperpod-ns-ada-localqueue")


PLACE = {"endpoint": "https://x", "workspace_arn": "arn", "grafana_name": None, "grafana_arn": None}
SCHEMA = ADDONS["amazon-sagemaker-hyperpod-observability"].schema
CATEGORIES = {
    name: each for name, each in SCHEMA["properties"]["metricsProvider"]["properties"].items() if name != "logging"
}


def test_what_teams_wait_for_is_measured_unless_the_file_says_otherwise():
    values = hyperpod_values(MetricsProvider(), **PLACE)
    assert values == {
        "ampWorkspace": {"prometheusEndpoint": "https://x", "arn": "arn"},
        "metricsProvider": {"taskGovernanceMetrics": {"level": "ADVANCED"}},
    }
    chosen = MetricsProvider.model_validate(
        {"taskGovernanceMetrics": {"level": "DISABLED"}, "scalingMetrics": {"level": "ADVANCED", "scrapeInterval": 60}}
    )
    assert hyperpod_values(chosen, **PLACE)["metricsProvider"] == {
        "taskGovernanceMetrics": {"level": "DISABLED"},
        "scalingMetrics": {"level": "ADVANCED", "scrapeInterval": 60},
    }


def test_what_the_kit_sets_by_itself_fits_the_add_on():
    jsonschema.validate(hyperpod_values(MetricsProvider(), **PLACE), SCHEMA)


@pytest.mark.parametrize("level", ["BASIC", "ADVANCED", "DISABLED"])
@pytest.mark.parametrize("category", sorted(CATEGORIES))
def test_the_file_takes_the_levels_that_the_add_on_takes(category, level):
    taken = level in CATEGORIES[category]["properties"]["level"]["enum"]
    said = {"prometheus": True, "metricsProvider": {category: {"level": level}}}
    found = rules(organization(environment={"observability": said}))
    assert ("CFG002" in found) == (not taken)
    assert "CFG001" not in found
