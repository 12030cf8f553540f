"""Quotas that the service rejects for lack of capacity, and the amounts that decide which request comes first."""

import pytest

from hpkit_provider.resources.governance import Measure, decreased, increased, minimum, reserved_amounts
from tests.provider.harness import TYPE, PartlyFailedError, Watch, check_sums, in_process, quota
from tests.running import eventually

OTHER = "ml.c5.2xlarge"
KARPENTER = {"autoScaling": {"mode": "Enable", "autoScalerType": "Karpenter"}}


def amounts(*resources):
    return reserved_amounts({"ComputeQuotaResources": list(resources)})


def resource(instance_type=TYPE, **measures):
    return {"InstanceType": instance_type, **measures}


def measured(arn, team, *resources):
    """Return a quota with any measures, as the program declares it."""
    inputs = quota(arn, team, 0)
    inputs["computeQuotaConfig"] = {**inputs["computeQuotaConfig"], "computeQuotaResources": list(resources)}
    return inputs


@pytest.fixture
def karpenter(world, engine):
    """Create a cluster whose counts Karpenter manages, so that no number limits quotas."""
    more = {"clusterRole": world.roles["karpenter"], **KARPENTER}
    groups = [world.group("system", 1, instanceType=OTHER), world.group("burst", 0)]
    return world.governed(engine, *groups, autoscaledInstanceGroups=["burst"], **more)


def test_an_increase_that_is_refused_succeeds_when_another_quota_has_decreased(world, engine, monkeypatch):
    arn = world.governed(engine)
    for team, count in (("a", 1), ("b", 3)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    refusals = check_sums(monkeypatch, {TYPE: 4})

    def decrease():
        eventually(lambda: refusals, "the increase is rejected")
        engine.up("ComputeQuota", "b", quota(arn, "b", 1))

    with Watch(world.endpoint) as watch:
        calls = [lambda: engine.up("ComputeQuota", "a", quota(arn, "a", 3)), decrease]
        assert not [each for each in engine.together(calls, threads=2) if isinstance(each, Exception)]
    assert watch.most <= 4
    assert world.live_quotas(arn) == {"q-a": 3, "q-b": 1}


def test_a_new_quota_takes_what_another_gives(world, engine, monkeypatch):
    arn = world.governed(engine)
    engine.up("ComputeQuota", "b", quota(arn, "b", 4))
    check_sums(monkeypatch, {TYPE: 4})
    calls = [
        lambda: engine.up("ComputeQuota", "a", quota(arn, "a", 3)),
        lambda: engine.up("ComputeQuota", "b", quota(arn, "b", 1)),
    ]
    assert not [each for each in engine.together(calls, threads=2) if isinstance(each, Exception)]
    assert world.live_quotas(arn) == {"q-a": 3, "q-b": 1}


def test_two_quotas_that_swap_types_at_full_capacity_both_succeed(world, engine, monkeypatch):
    arn = world.governed(engine, world.group("gpu", 4), world.group("cpu", 4, instanceType=OTHER))

    def both(team, gpu, cpu):
        return measured(arn, team, {"instanceType": TYPE, "count": gpu}, {"instanceType": OTHER, "count": cpu})

    for team, counts in (("a", (4, 0)), ("b", (0, 4))):
        engine.up("ComputeQuota", team, both(team, *counts))
    check_sums(monkeypatch, {TYPE: 4, OTHER: 4})
    calls = [
        lambda: engine.up("ComputeQuota", "a", both("a", 0, 4)),
        lambda: engine.up("ComputeQuota", "b", both("b", 4, 0)),
    ]
    assert not [each for each in engine.together(calls, threads=2) if isinstance(each, Exception)]
    assert world.live_amounts(arn)["q-a"][OTHER, "Count"] == world.live_amounts(arn)["q-b"][TYPE, "Count"] == 4


def test_the_quota_of_a_removed_team_gives_way_to_one_that_grows(world, engine, monkeypatch):
    arn = world.governed(engine)
    for team, count in (("a", 1), ("b", 2), ("c", 1)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    check_sums(monkeypatch, {TYPE: 4})
    with in_process(**world.settings, leavingTeams="b,gone") as run_:
        run_.state = engine.state
        run_.up("ComputeQuota", "a", quota(arn, "a", 3))
        assert world.live_quotas(arn) == {"q-a": 3, "q-b": 0, "q-c": 1}
        run_.delete("ComputeQuota", "b")
    assert world.live_quotas(arn) == {"q-a": 3, "q-c": 1}


def test_a_removed_team_keeps_its_quota_until_it_is_deleted_if_the_service_refuses_nothing(world, engine):
    arn = world.governed(engine)
    for team, count in (("a", 1), ("b", 2)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    with in_process(**world.settings, leavingTeams="b") as run_:
        run_.state = engine.state
        run_.up("ComputeQuota", "a", quota(arn, "a", 2))
    assert world.live_quotas(arn) == {"q-a": 2, "q-b": 2}


def test_an_increase_that_stays_refused_fails_with_what_to_do(world, engine, monkeypatch):
    arn = world.governed(engine)
    for team, count in (("a", 1), ("b", 3)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    check_sums(monkeypatch, {TYPE: 4})
    with pytest.raises(PartlyFailedError, match=r"rejects the increase.*lower another quota first.*--parallel"):
        engine.up("ComputeQuota", "a", quota(arn, "a", 3))
    assert world.live_quotas(arn) == {"q-a": 1, "q-b": 3}


def test_increases_and_decreases_are_told_from_what_the_service_fills_in():
    live = amounts(resource(Accelerators=2, VCpu=24.0, MemoryInGiB=96.0))
    assert increased(live, amounts(resource(Accelerators=4))) == {Measure(TYPE, "Accelerators")}
    assert decreased(live, amounts(resource(Accelerators=4))) == set()
    assert decreased(live, amounts(resource(Accelerators=2, VCpu=12.0))) == {Measure(TYPE, "VCpu")}
    assert decreased(live, amounts(resource(VCpu=24.0))) == {Measure(TYPE, "Accelerators")}
    assert {measure.name for measure in decreased(live, {})} == {"Accelerators", "VCpu", "MemoryInGiB"}
    mig = amounts(resource(AcceleratorPartition={"Type": "mig-1g.5gb", "Count": 3}))
    other = amounts(resource(AcceleratorPartition={"Type": "mig-2g.10gb", "Count": 1}))
    assert (len(increased(mig, other)), len(decreased(mig, other))) == (1, 1)


@pytest.mark.parametrize(
    ("live", "new", "between"),
    [
        ([resource(Count=4)], [resource(Count=1), resource(OTHER, Count=2)], [resource(Count=1)]),
        ([resource(Count=4), resource(OTHER, Count=1)], [resource(OTHER, Count=3)], [resource(OTHER, Count=1)]),
        ([resource(Count=2)], [resource(Accelerators=4)], [resource(Count=2)]),
        (
            [resource(Accelerators=4, VCpu=48.0, MemoryInGiB=192.0)],
            [resource(Accelerators=2, VCpu=96.0)],
            [resource(Accelerators=2, VCpu=48.0)],
        ),
        (
            [resource(AcceleratorPartition={"Type": "mig-1g.5gb", "Count": 5}, VCpu=9.0)],
            [resource(AcceleratorPartition={"Type": "mig-1g.5gb", "Count": 2})],
            [resource(AcceleratorPartition={"Type": "mig-1g.5gb", "Count": 2})],
        ),
    ],
)
def test_on_the_way_a_quota_gives_what_it_has_to_give_and_takes_nothing(live, new, between):
    assert minimum(live, new) == between
    assert increased(amounts(*live), amounts(*between)) == set()


@pytest.mark.timeout(30)  # Without an end, it would be updated repeatedly.
def test_a_quota_that_relies_on_karpenter_is_current_once_the_service_has_it(world, engine, karpenter):
    """elasticInstanceTypes stays in the state: the service never returns it."""
    engine.up("ComputeQuota", "a", quota(karpenter, "a", 1, elasticInstanceTypes=[TYPE]))
    assert world.endpoint.stats()["calls"].get("sagemaker.UpdateComputeQuota", 0) == 0
