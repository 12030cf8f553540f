"""Random changes through the plugin, with faults and kills: in the end, the live quotas equal the declared ones."""

import os
import random
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpkit_local.aws.testing import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.harness import Process, Watch, World, in_process, quota

CAPACITY = 12
TEAMS = ("ada", "bob", "cyd", "dee")
FAULTS = {
    "throttle": ("0.3",),
    "conflict": ("0.3@*ComputeQuota",),
    "failed-create": ("0.3@quota",),
    "failed-update": ("0.3@quota",),
    "failed-delete": ("0.3@quota",),
    "slow-update": ("0.1@quota",),
    "slow-create": ("0.1@quota",),
}
TRIES = 40
# These identify what a killed plugin created.
TAGS = [{"key": "hpkit:environment", "value": "dev"}]


@st.composite
def programs(draw):
    """Generate what each run declares: whole instances by team, never more than exist."""
    runs = []
    for _ in range(draw(st.integers(2, 4))):
        left, run = CAPACITY, {}
        for team in draw(st.lists(st.sampled_from(TEAMS), unique=True, min_size=1)):
            run[team] = draw(st.integers(0, left))
            left -= run[team]
        runs.append(run)
    return runs


def converge(engine, arn, run, *, interrupt=lambda: None):
    """Repeat `up`, as users do, until nothing fails; deletions are last, as in the engine."""
    for _ in range(TRIES):
        interrupt()
        wanted = {team: quota(arn, team, run[team], tags=TAGS) for team in run}
        calls = [lambda team=team, one=one: engine.up("ComputeQuota", team, one) for team, one in wanted.items()]
        errors = [result for result in engine.together(calls) if isinstance(result, Exception)]
        if not errors:
            gone = [lambda team=team: engine.delete("ComputeQuota", team) for team in engine.state if team in TEAMS]
            gone = [
                call
                for team, call in zip([t for t in engine.state if t in TEAMS], gone, strict=True)
                if team not in run
            ]
            errors = [result for result in engine.together(gone) if isinstance(result, Exception)]
        if not errors:
            return
        if all("doesn't fit" in str(error) for error in errors):
            # The message advises this: remove what is no longer declared, then grow.
            engine.together(
                [
                    lambda team=team: engine.delete("ComputeQuota", team)
                    for team in set(TEAMS) & set(engine.state) - set(run)
                ]
            )
    raise AssertionError(errors)


@pytest.fixture(scope="module")
def world():
    with running_endpoint(latency_factor=0.0, seed=7) as endpoint:
        yield World(Cloud(endpoint))


@pytest.fixture(scope="module")
def arn(world):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        with in_process(**world.settings) as engine:
            return world.governed(engine, world.group(count=CAPACITY))


NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"
SHORT = settings(
    max_examples=6 if NIGHTLY else 3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def clean(world, engine, arn):
    world.endpoint.set_faults(dict.fromkeys(FAULTS))
    for team in [team for team in engine.state if team in TEAMS]:
        engine.delete("ComputeQuota", team)
    assert world.live_quotas(arn) == {}


@SHORT
@given(runs=programs(), names=st.sets(st.sampled_from(sorted(FAULTS)), max_size=3))
def test_live_is_what_was_declared_whatever_fails_on_the_way(world, arn, runs, names):
    with in_process(**{**world.settings, "capacityWaitSeconds": "1"}) as engine:
        world.endpoint.set_faults({name: FAULTS[name][0] for name in names})
        with Watch(world.endpoint) as watch:
            for run in runs:
                converge(engine, arn, run)
                world.endpoint.set_faults(dict.fromkeys(names))
                assert world.live_quotas(arn) == {f"q-{team}": count for team, count in run.items()}
                world.endpoint.set_faults({name: FAULTS[name][0] for name in names})
        clean(world, engine, arn)
    assert watch.most <= CAPACITY


@settings(SHORT, max_examples=3 if NIGHTLY else 1)
@given(runs=programs(), seed=st.integers(0, 1000))
def test_a_plugin_that_is_killed_anywhere_leaves_nothing_twice(world, arn, runs, seed):
    dice = random.Random(seed)  # noqa: S311 - repeatable kills, no secret
    world.endpoint.set_faults({"slow-create": "0.3@quota", "slow-update": "0.3@quota", "throttle": "0.2"})
    process = Process(**{**world.settings, "capacityWaitSeconds": "1"})
    try:
        for run in runs:
            timers = [threading.Timer(dice.uniform(0.0, 0.8), process.kill) for _ in range(2)]
            waiting = list(timers)

            def interrupt(waiting=waiting):
                process.start()
                if waiting:
                    waiting.pop().start()

            converge(process.engine, arn, run, interrupt=interrupt)
            for timer in timers:
                if timer not in waiting:
                    timer.join()  # A kill that was too late for this run must not affect the next one.
            process.start()
            world.endpoint.set_faults({"throttle": None})
            assert world.live_quotas(arn) == {f"q-{team}": count for team, count in run.items()}
            world.endpoint.set_faults({"throttle": "0.2"})
        clean(world, process.engine, arn)
    finally:
        process.stop()
