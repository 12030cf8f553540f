"""The search, with computed instead of simulated values: its results depend on nothing else."""

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from hpkit_whatif.recommend.model import Goal
from hpkit_whatif.recommend.search import Evaluation, Lever, cheapest, evaluate_goals, moves, search
from hpkit_whatif.simulate.report import ClusterReport, Report

KIND = "ml.g5.12xlarge"
GOAL = Goal("fairness > 0.9", "fairness", None, 0.9, upper=False, strict=True)


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
    assert result.tried + result.refused == len(asked) == len(set(asked)), "no state is simulated twice"
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
