"""Recommendations for the examples: goals and their syntax, which can and can't be met, with the real simulator."""

import json
import math
import re
import shutil
import subprocess
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hpkit.catalog.prices import find_price
from hpkit.errors import SelectionError
from hpkit.project import load_stack
from hpkit_whatif.recommend import parse_goal, recommend
from hpkit_whatif.recommend.model import Goal
from hpkit_whatif.recommend.recommend import _Policies
from hpkit_whatif.recommend.search import Evaluation, Lever, cheapest, evaluate_goals, moves, search
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate import simulate
from hpkit_whatif.simulate.report import ClusterReport, Report
from tests.cli.invoke import hpkit
from tests.documents import plain
from tests.examples import copy_project
from tests.whatif.recommend.builders import HANDSON, ROOT, handson, plan_of_handson

SMITH = "max wait of smith < 10m"
KIND = "ml.g5.12xlarge"
GOAL = Goal("fairness > 0.9", "fairness", None, 0.9, upper=False, strict=True)


@pytest.fixture(scope="module")
def recommendation():
    return recommend(
        handson(), open_scenario(HANDSON), [parse_goal(SMITH, ("john", "smith"))], trials=60, seeds=3, workers=1
    )


def test_a_goal_is_met_by_as_few_changes_as_can_be(recommendation):
    assert recommendation.met
    assert {change.path: (change.before, change.after) for change in recommendation.changes} == {
        "governance.allocations.john[ml.g5.12xlarge].count": (3, 2),
        "governance.allocations.smith[ml.g5.12xlarge].count": (1, 2),
    }
    assert [(each.before, each.after, each.met) for each in recommendation.goals] == [((1800.0,), (0.0,), 1)]
    teams = {team.name: team for team in recommendation.teams}
    assert teams["smith"].wait_p95 == (1800, 0)
    assert teams["john"].wait_p95 == (0, 5400), "john pays for it"
    assert (recommendation.confidence.drawn, recommendation.confidence.met, recommendation.confidence.draws) == (
        False,
        1,
        1,
    )


def recommended(folder, tasks, goal=SMITH, *, trials=60):
    """Return the recommendation for a scenario with these tasks, which are lines of YAML."""
    file = folder / "tasks.yaml"
    file.write_text("tasks:\n" + "".join(f"- {{{task}}}\n" for task in tasks))
    goals = [parse_goal(goal, ("john", "smith"))]
    return recommend(handson(), open_scenario(file), goals, trials=trials, seeds=1, workers=1)


def test_fewer_instances_are_found_where_they_do(tmp_path):
    recommendation = recommended(tmp_path, ["name: small, team: smith, count: 1, run: 1h"])
    assert (recommendation.met, recommendation.changes, recommendation.capacity.met) == (True, (), True)
    assert recommendation.capacity.instances == (("ml.g5.12xlarge", 4, 2),), "a team keeps the last that it has"
    price = find_price("ml.g5.12xlarge", "us-east-1")
    assert (recommendation.capacity.monthly, recommendation.capacity.priced_in) == (-2 * price.monthly, ("us-east-1",))
    assert recommendation.capacity.compared
    assert {team.name: team.quota for team in recommendation.capacity.teams} == {"john": (3, 1), "smith": (1, 1)}


def test_a_task_that_can_never_run_fails_every_goal_about_waits(tmp_path):
    recommendation = recommended(tmp_path, ["name: big, team: smith, count: 3, run: 1h"], trials=1)
    assert (recommendation.met, recommendation.goals[0].before) == (False, (math.inf,))
    assert plain(recommendation)["goals"][0]["before"] == [None], "JSON has no number for it"
    recommendation = recommended(tmp_path, ["name: big, team: smith, count: 3, run: 1h"])
    assert (recommendation.met, recommendation.goals[0].after) == (True, (0.0,))
    assert [team.never for team in recommendation.teams if team.name == "smith"] == [(1, 0)]


STRANDED = (
    "name: j0, team: john, count: 1, run: 5h",
    "name: j2, team: john, count: 1, run: 5h",
    "name: s1, team: smith, count: 2, run: 4h, submit: 2h",
    "name: j3, team: john, count: 1, run: 1h, submit: 3h",
    "name: j4, team: john, count: 4, run: 1h, submit: 7h",
)


def test_no_policy_is_recommended_under_which_another_teams_task_can_never_run(tmp_path):
    source = tmp_path / "tasks.yaml"
    recommendation = recommended(tmp_path, STRANDED)
    assert recommendation.met
    assert {team.name: team.never for team in recommendation.teams} == {"john": (0, 0), "smith": (0, 0)}
    policies = _Policies(handson(), open_scenario(source), [parse_goal(SMITH, ("smith",))], workers=1, on=None)
    place = ("environments", "dev", "governance", "allocations")
    cut = {(*place, "john", 0, "count"): 2, (*place, "smith", 0, "count"): 2}
    (outcome,) = policies.outcomes([cut], [None])
    assert (outcome.miss, outcome.strands, outcome.good) == (0.0, True, False), "j4 asks for four, and john has three"


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("10%", True),
        # CAP001: more than exists. CAP008 only warns about less than an instance, with which a team can do nothing.
        ("90%", False),
        ("5%", False),
    ],
)
def test_what_breaks_a_rule_or_takes_a_teams_last_instance_is_not_tried(value, allowed):
    path = ("environments", "prod", "governance", "allocations", "speech", 0, "share")
    source = open_scenario(ROOT / "stacks" / "scenarios" / "enterprise.yaml")
    policies = _Policies(load_stack("enterprise-prod"), source, [], workers=1, on=None)
    (outcome,) = policies.outcomes([{path: value}], [None])
    assert (outcome is not None) is allowed


@pytest.fixture
def project(tmp_path):
    copy_project(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def run(project, *arguments):
    return hpkit(
        "whatif", "recommend", "stacks/scenarios/handson.yaml", "--stack", "handson-dev", "--workers", 1, "--trials",
        60, *arguments, cwd=project,
    )  # fmt: skip


def test_the_patch_applies_and_write_does_the_same(project):
    patched = run(project, "--goal", SMITH, "--format", "patch")
    assert patched.returncode == 0
    subprocess.run(["git", "apply"], cwd=project, input=patched.stdout.encode(), check=True)
    file = project / "stacks" / "handson.yaml"
    after = file.read_bytes()
    shutil.copy(ROOT / "stacks" / "handson.yaml", file)
    assert run(project, "--goal", SMITH, "--write").stderr.endswith("wrote stacks/handson.yaml\n")
    assert file.read_bytes() == after != (ROOT / "stacks" / "handson.yaml").read_bytes()
    again = run(project, "--goal", SMITH)
    assert "The file already meets the goals" in again.stdout


def test_a_patch_with_capacity_changes_the_group_too(project):
    (project / "small.yaml").write_text("tasks: [{name: a, team: smith, count: 1, run: 1h}]\n")
    arguments = ("--goal", SMITH, "--workers", 1, "--trials", 2, "--format")
    result = hpkit(
        "whatif", "recommend", "small.yaml", "--stack", "handson-dev", *arguments, "patch", "--capacity", cwd=project
    )
    assert "+        - {name: gpu, instanceType: ml.g5.12xlarge, instanceCount: 2, availabilityZone" in result.stdout
    shown = hpkit("whatif", "recommend", "small.yaml", "--stack", "handson-dev", *arguments, "text", cwd=project).stdout
    said = " ".join(shown.split())
    assert re.search(
        r"Cheapest that meets the goals: .*, about \$[0-9,]+ per month less, on demand at the prices", said
    )
    assert re.search(r"Teams with these instances\n\n.*never.*\n.*\n john +3 → 1 ", shown), shown


def test_what_cannot_be_met_is_said_with_the_nearest_and_nothing_is_written(project):
    before = (project / "stacks" / "handson.yaml").read_bytes()
    goals = ("--trials", 8, "--goal", "utilization > 99%", "--goal", "max wait of all < 1s")
    result = run(project, *goals, "--write", "--format", "json")
    said = json.loads(result.stdout)
    assert (result.returncode, said["met"]) == (1, False)
    assert "wasn't changed: the goals aren't met" in result.stderr
    assert (project / "stacks" / "handson.yaml").read_bytes() == before
    shown = " ".join(run(project, *goals).stdout.split())
    assert "this is the nearest. The scenario has no random draws, so one run is enough." in shown


def test_random_scenarios_are_judged_by_draws_that_were_not_searched_on(project):
    (project / "random.yaml").write_text(
        "generators:\n- {name: r, team: smith, perHour: 2, last: 6h, sizes: [{count: 1}],\n"
        "   run: {kind: exponential, mean: 1h}}\n"
    )
    arguments = ("whatif", "recommend", "random.yaml", "--stack", "handson-dev", "--trials", 4, "--format", "json")
    goal = ("--goal", "p95 wait of smith < 20m")
    first, second = (hpkit(*arguments, *goal, "--workers", 1, cwd=project).stdout for _ in range(2))
    assert first == second, "the same seed, the same answer"
    confidence = json.loads(first)["confidence"]
    assert (confidence["drawn"], confidence["draws"], confidence["otherDraws"]) == (True, 3, 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goal", "p95 wait of smit < 1m"), "did you mean smith"),
        (("--goal", SMITH, "--on", "ray://x:1"), "use dask://HOST:PORT"),
        ((), "Missing option '--goal'"),
    ],
)
def test_misuse_is_said_in_a_sentence(project, arguments, said):
    result = run(project, *arguments)
    assert (result.returncode, said in result.stderr) == (2, True), result.stderr


def quota(team, base, most=8):
    return Lever(f"count of {team}", "quota", (team,), KIND, ((team,),), "count", base, most)


LEVERS = (
    quota("a", 4),
    quota("b", 4),
    Lever("weight of a", "weight", ("a",), "", (("w",),), "", 0, 100),
    Lever("limit of a", "borrow limit", ("a",), "", (("l",),), "", 50, 500),
)


def report(fairness, waited=0.0):
    return Report("s", "f", 1.0, ClusterReport(8, 0.5, 0.5, waited, None, (), "", fairness, 0, ()), (), (), 0, 15.0, {})


def evaluator(fairness, *, capacity=8):
    """Return an evaluator that computes values with a function, and rejects states with more quota than capacity."""
    asked = []

    def evaluate(states):
        asked.extend(states)
        return [
            None if state[0] + state[1] > capacity else evaluate_goals([GOAL], (report(fairness(state)),))
            for state in states
        ]

    return evaluate, asked


@settings(deadline=None, max_examples=30)
@given(want=st.integers(1, 7), seed=st.integers(0, 5))
def test_it_finds_the_quota_that_meets_the_goal_by_changing_no_more_than_that(want, seed):
    evaluate, asked = evaluator(lambda state: 1.0 if state[1] == want else 0.8 - abs(state[1] - want) / 20)
    result = search(LEVERS, evaluate, trials=300, seed=seed)
    assert result.outcome.good
    assert result.state[1] == want
    assert result.state[2:] == (0, 50), "what does not matter stays as it is"
    assert result.tried + result.rejected == len(asked) == len(set(asked)), "no state is simulated twice"
    assert (result.state[0] == 4) == (want <= 4), "a gives up only what there is no other way to get"


@settings(deadline=None, max_examples=20)
@given(trials=st.integers(1, 60), seed=st.integers(0, 3))
def test_it_simulates_no_more_than_it_may_and_never_answers_worse_than_the_file(trials, seed):
    evaluate, _ = evaluator(lambda state: 0.5 + state[2] / 1000)
    result = search(LEVERS, evaluate, trials=trials, seed=seed)
    assert result.tried <= trials
    assert result.outcome.miss <= evaluate_goals([GOAL], (report(0.5),)).miss
    again = search(LEVERS, evaluate, trials=trials, seed=seed)
    assert (again.state, again.tried) == (result.state, result.tried)


def test_a_goal_that_is_met_changes_nothing():
    evaluate, _ = evaluator(lambda _: 1.0)
    assert search(LEVERS, evaluate, trials=100, seed=0).state == (4, 4, 0, 50)


@given(st.tuples(st.integers(1, 8), st.integers(1, 8), st.sampled_from([0, 7, 100]), st.sampled_from([50, 500])))
def test_every_move_is_another_state_within_bounds(state):
    neighbors = moves(LEVERS, state)
    assert state not in neighbors
    assert len(neighbors) == len(set(neighbors))
    for after in neighbors:
        assert all(0 <= value <= lever.most for value, lever in zip(after, LEVERS, strict=True))
        assert min(after[:2]) > 0, "a team keeps some quota"


def test_instances_go_as_long_as_the_goal_is_met_and_come_until_it_is():
    group = Lever("instanceCount of gpu", "instances", (), KIND, (("g",),), "", 8, 100)
    levers = (*LEVERS, group)

    def evaluate(states):
        return [
            None if state[0] + state[1] > state[4] else evaluate_goals([GOAL], (report(0.5 + state[1] / 10 - 0.001),))
            for state in states
        ]

    def run(state):
        (outcome,) = evaluate([state])
        assert isinstance(outcome, Evaluation)
        return cheapest(levers, state, outcome, evaluate, lambda _: None)

    state, outcome = run((3, 5, 0, 50, 8))
    assert (state, outcome.good) == ((1, 5, 0, 50, 6), True), "a gives what b needs not; b keeps five"
    state, outcome = run((4, 4, 0, 50, 8))
    assert (state, outcome.good) == ((4, 5, 0, 50, 9), True)


GROUPS = (
    Lever("instanceCount of a", "instances", (), "ml.a", (("a",),), "", 3, 100),
    Lever("instanceCount of b", "instances", (), "ml.b", (("b",),), "", 3, 100),
)


def test_instances_that_do_not_help_do_not_come():
    def evaluate(states):
        return [evaluate_goals([GOAL], (report(0.8 - abs(sum(state) - 7) / 10),)) for state in states]

    (outcome,) = evaluate([(3, 3)])
    state, found = cheapest(GROUPS, (3, 3), outcome, evaluate, lambda _: Decimal(1))
    assert (sum(state), found.good, found.miss) == (7, False, evaluate_goals([GOAL], (report(0.8),)).miss)
    state, _ = cheapest(GROUPS, (4, 3), evaluate([(4, 3)])[0], evaluate, lambda _: Decimal(1))
    assert state == (4, 3), "more of them is farther away"


def test_what_has_no_price_is_not_taken_for_free():
    def evaluate(states):
        return [evaluate_goals([GOAL], (report(1.0 if sum(state) > 6 else 0.5),)) for state in states]

    (outcome,) = evaluate([(3, 3)])
    prices = {"ml.a": None, "ml.b": Decimal(1)}
    state, _ = cheapest(GROUPS, (3, 3), outcome, evaluate, prices.get)
    assert state == (3, 4)
    (outcome,) = evaluate([(4, 4)])
    state, found = cheapest(GROUPS, (4, 4), outcome, evaluate, {"ml.a": None, "ml.b": None}.get)
    assert (sum(state), found.good) == (7, True), "without prices fewer are better than more"


TEAMS = ("john", "smith")


@pytest.fixture(scope="module")
def handson_report():
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
def test_a_goal_measures_what_it_says(handson_report, text, value, met):
    goal = parse_goal(text, TEAMS)
    assert goal.value(handson_report) == pytest.approx(value, abs=0.01)
    assert goal.met(goal.value(handson_report)) is met
    assert (goal.miss(goal.value(handson_report)) == 0) is met


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


def test_a_team_may_be_called_all(handson_report):
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
