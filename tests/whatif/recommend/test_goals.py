"""Goals: their syntax, what each measures, and errors."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpkit.errors import SelectionError
from hpkit_whatif.recommend import parse_goal
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate import simulate
from tests.whatif.recommend.builders import HANDSON, plan_of_handson

TEAMS = ("john", "smith")


@pytest.fixture(scope="module")
def report():
    return simulate(plan_of_handson(), open_scenario(HANDSON))


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("p95 wait of smith < 10m", 1800, False),
        ("p50 wait of smith <= 30m", 1800, True),
        ("max wait of smith < 30m", 1800, False),
        ("max wait of all < 1h", 1800, True),
        ("max wait of john < 1s", 0, True),
        ("preemptions of smith < 1", 1, False),
        ("preemptions of all <= 1", 1, True),
        ("preemptions of john < 1", 0, True),
        # smith's two GPUs of eight ran for twenty minutes before they were reclaimed.
        ("lost work of smith < 0.7", 2 / 3, True),
        ("lost  work of all < 0.5 instance-hours", 2 / 3, False),
        ("utilisation > 80%", 0.9, True),
        ("utilization > 95%", 0.9, False),
    ],
)
def test_a_goal_measures_what_it_says(report, text, value, met):
    goal = parse_goal(text, TEAMS)
    assert goal.value(report) == pytest.approx(value, abs=0.01)
    assert goal.met(goal.value(report)) is met
    assert (goal.miss(goal.value(report)) == 0) is met


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "isn't a goal"),
        ("p99 wait of smith < 10m", "use one of: p50|p95|max wait of TEAM"),
        ("p95 wait of smit < 10m", "there is no team smit; did you mean smith"),
        ("p95 wait of smith < 10", "write a number with its unit"),
        ("p95 wait of smith < -10m", "is negative"),
        ("p95 wait of smith > 10m", "this goal would ask for a worse result"),
        ("utilization < 80%", "this goal would ask for a worse result"),
        ("utilization > 80", "must be a percentage"),
        ("utilization > 180%", "the value can't be more than 100%"),
        ("preemptions of smith < 10m", "must be a number"),
        ("lost work of smith < 10m", "must be instance-hours"),
        ("fairness > 2", "the value can't be more than 1"),
        ("fairness > 1", "the value can't be more than 1. To fix: write `>=`"),
        ("fairness > -1", "must be a number such as 0.9"),
        ("utilization > 100%", "the value can't be more than 100%. To fix: write `>=`"),
        ("preemptions of all < 0", "the value can't be less than 0. To fix: write `<=`"),
        ("max wait of smith < 0s", "the value can't be less than 0. To fix: write `<=`"),
    ],
)
def test_what_is_no_goal_is_said_with_what_to_write(text, message):
    with pytest.raises(SelectionError) as raised:
        parse_goal(text, TEAMS)
    assert message in str(raised.value)


def test_a_team_may_be_called_all(report):
    assert parse_goal("p95 wait of all < 1m", ("all", "smith")).team == "all"
    assert parse_goal("p95 wait of all < 1m", TEAMS).team is None


@given(
    sign=st.sampled_from(["<", "<="]),
    limit=st.integers(0, 10_000),
    one=st.floats(0, 20_000),
    other=st.floats(0, 20_000),
)
def test_a_miss_is_nothing_where_the_goal_is_met_and_never_less_for_more(sign, limit, one, other):
    # No wait is shorter than zero: that goal is rejected.
    assume(sign == "<=" or limit > 0)
    goal = parse_goal(f"p95 wait of smith {sign} {limit}s", TEAMS)
    low, high = sorted((one, other))
    assert goal.miss(low) <= goal.miss(high)
    for value in (low, high):
        assert (goal.miss(value) == 0) == goal.met(value)
