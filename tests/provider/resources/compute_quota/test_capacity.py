"""Quotas of a cluster shrink before others grow: whole instances, fractions, and with Karpenter."""

import time

import pytest

from hpkit_local.aws.testing import running_endpoint
from hpkit_provider.resources.compute_quota.amounts import Measure, decreased, increased, minimum, reserved_amounts
from hpkit_provider.resources.compute_quota.pending_decreases import PendingDecrease, PendingDecreases
from hpkit_provider.resources.compute_quota.snapshot import QuotaSnapshot, preview_warning
from tests.local.aws.conftest import Cloud
from tests.provider.harness import TYPE, FailedError, PartlyFailedError, Watch, World, in_process, quota

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


def accelerators(arn, team, number):
    return measured(arn, team, {"instanceType": TYPE, "accelerators": number})


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Don't wait: when the first change starts here, the engine has already announced all of them."""
    monkeypatch.setattr("hpkit_provider.resources.compute_quota.ledger._DECLARING_SECONDS", 0.5)


@pytest.fixture
def karpenter(world, engine):
    """Create a cluster whose counts Karpenter manages, so that no number limits quotas."""
    more = {"clusterRole": world.roles["karpenter"], **KARPENTER}
    groups = [world.group("system", 1, instanceType=OTHER), world.group("burst", 0)]
    return world.governed(engine, *groups, autoscaledInstanceGroups=["burst"], **more)


def announced(engine, changes):
    """Diff all before any is changed, as the engine does when it has fewer workers than changes; then change."""
    for team, inputs in changes.items():
        engine.diff("ComputeQuota", team, inputs)


def run(engine, changes, *, threads):
    announced(engine, changes)
    calls = [
        lambda team=team, inputs=inputs: engine.put("ComputeQuota", team, inputs) for team, inputs in changes.items()
    ]
    results = engine.together(calls, threads=threads)
    assert not [result for result in results if isinstance(result, Exception)], results


@pytest.mark.parametrize("threads", [1, 4])
def test_fractions_shrink_before_others_grow(world, engine, threads):
    arn = world.governed(engine)
    for team, number in (("a", 1), ("b", 12), ("c", 3)):
        engine.up("ComputeQuota", team, accelerators(arn, team, number))
    world.endpoint.set_faults({"slow-update": 0.3})
    with Watch(world.endpoint, "Accelerators") as watch:
        changes = {"a": 9, "c": 4, "b": 3}
        run(engine, {team: accelerators(arn, team, number) for team, number in changes.items()}, threads=threads)
    assert watch.most <= 16
    assert world.live_quotas(arn, "Accelerators") == {"q-a": 9, "q-b": 3, "q-c": 4}


@pytest.mark.parametrize("threads", [1, 4])
def test_with_karpenter_whole_instances_shrink_before_others_grow(world, engine, karpenter, threads):
    for team, count in (("a", 1), ("b", 9)):
        engine.up("ComputeQuota", team, quota(karpenter, team, count))
    world.endpoint.set_faults({"slow-update": 0.3})
    with Watch(world.endpoint) as watch:
        changes = {"a": quota(karpenter, "a", 8), "b": quota(karpenter, "b", 2)}
        run(engine, changes, threads=threads)
    assert watch.most <= 10
    assert world.live_quotas(karpenter) == {"q-a": 8, "q-b": 2}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scaled", [False, True])
def test_two_quotas_that_swap_types_at_full_capacity_both_get_on(world, engine, threads, scaled):
    groups = [world.group("gpu", 4), world.group("cpu", 4, instanceType=OTHER)]
    more = {"clusterRole": world.roles["karpenter"], **KARPENTER} if scaled else {}
    arn = world.governed(engine, *groups, **more)

    def both(team, gpu, cpu):
        return measured(arn, team, {"instanceType": TYPE, "count": gpu}, {"instanceType": OTHER, "count": cpu})

    for team, counts in (("a", (4, 0)), ("b", (0, 4))):
        engine.up("ComputeQuota", team, both(team, *counts))
    world.endpoint.set_faults({"slow-update": 0.2})
    with Watch(world.endpoint) as watch:
        run(engine, {"a": both("a", 0, 4), "b": both("b", 4, 0)}, threads=threads)
    assert watch.most <= 8
    assert world.live_amounts(arn)["q-a"][OTHER, "Count"] == world.live_amounts(arn)["q-b"][TYPE, "Count"] == 4


def test_whole_instances_wait_for_fractions_of_their_type(world, engine):
    arn = world.governed(engine)
    engine.up("ComputeQuota", "a", quota(arn, "a", 2))
    engine.up("ComputeQuota", "b", accelerators(arn, "b", 8))
    world.endpoint.set_faults({"slow-update": 0.3})
    sm, seen = world.sm, []
    announced(engine, {"a": quota(arn, "a", 3), "b": accelerators(arn, "b", 4)})
    original = engine.servicer.clients.api.raw

    def raw(task, operation, **params):
        if operation == "update_compute_quota":
            (entry,) = sm.list_compute_quotas(NameContains="q-b")["ComputeQuotaSummaries"]
            (live,) = entry["ComputeQuotaConfig"]["ComputeQuotaResources"]
            seen.append((live["Accelerators"], entry["Status"]))
        return original(task, operation, **params)

    engine.servicer.clients.api.raw = raw
    engine.put("ComputeQuota", "a", quota(arn, "a", 3))
    assert seen[0][0] == 8, "b gives first, although only a has had its turn"
    assert seen[1] == (4, "Updated"), "a grows when b has arrived"
    engine.put("ComputeQuota", "b", accelerators(arn, "b", 4))
    assert world.live_quotas(arn) == {"q-a": 3, "q-b": 0}


def test_whole_instances_never_exceed_the_capacity_though_a_decrease_is_declared_late(world, engine):
    arn = world.governed(engine)
    for team, count in (("a", 1), ("b", 3)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    grow, shrink = quota(arn, "a", 3), quota(arn, "b", 1)
    engine.diff("ComputeQuota", "a", grow)

    def late():
        time.sleep(1.0)  # This is twice as long as the wait for others.
        engine.up("ComputeQuota", "b", shrink)

    with Watch(world.endpoint) as watch:
        results = engine.together([lambda: engine.put("ComputeQuota", "a", grow), late], threads=2)
    assert not [result for result in results if isinstance(result, Exception)], results
    assert watch.most <= 4
    assert world.live_quotas(arn) == {"q-a": 3, "q-b": 1}


def test_without_a_known_number_a_decrease_that_is_declared_late_comes_after_the_increase(world, engine, karpenter):
    for team, count in (("a", 1), ("b", 9)):
        engine.up("ComputeQuota", team, quota(karpenter, team, count))
    grow, shrink = quota(karpenter, "a", 8), quota(karpenter, "b", 2)
    engine.diff("ComputeQuota", "a", grow)
    engine.put("ComputeQuota", "a", grow)
    assert world.live_quotas(karpenter) == {"q-a": 8, "q-b": 9}, "nothing said that b is to shrink"
    engine.up("ComputeQuota", "b", shrink)
    assert world.live_quotas(karpenter) == {"q-a": 8, "q-b": 2}


def test_a_quota_that_is_replaced_frees_its_capacity_first(world, engine, karpenter):
    engine.up("ComputeQuota", "a", quota(karpenter, "a", 1))
    engine.up("ComputeQuota", "b", quota(karpenter, "b", 4))
    moved = {**quota(karpenter, "c", 4), "name": "q-b"}
    with Watch(world.endpoint) as watch:
        announced(engine, {"a": quota(karpenter, "a", 5), "b": moved})
        engine.put("ComputeQuota", "a", quota(karpenter, "a", 5))
        assert world.live_quotas(karpenter) == {"q-a": 5, "q-b": 0}
        engine.delete("ComputeQuota", "b")
        engine.up("ComputeQuota", "b", {**moved, **quota(karpenter, "c", 0), "name": "q-b"})
    assert watch.most <= 5


@pytest.mark.parametrize("scaled", [False, True])
def test_the_quota_of_a_team_that_leaves_gives_way_to_one_that_grows(world, engine, request, scaled):
    arn = request.getfixturevalue("karpenter") if scaled else world.governed(engine)
    for team, count in (("a", 1), ("b", 2), ("c", 1)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    with in_process(**world.settings, leavingTeams="b,gone") as run_, Watch(world.endpoint) as watch:
        run_.state = engine.state
        grow = quota(arn, "a", 3)
        run_.diff("ComputeQuota", "c", quota(arn, "c", 1))
        assert run_.preview_warnings("ComputeQuota", "a", grow) == ""
        run_.diff("ComputeQuota", "a", grow)
        run_.put("ComputeQuota", "a", grow)
        assert world.live_quotas(arn) == {"q-a": 3, "q-b": 0, "q-c": 1}
        run_.delete("ComputeQuota", "b")
    assert watch.most <= 4
    assert world.live_quotas(arn) == {"q-a": 3, "q-c": 1}


def test_a_team_that_leaves_keeps_its_quota_until_it_is_deleted_when_nobody_needs_it(world, engine):
    arn = world.governed(engine)
    for team, count in (("a", 1), ("b", 2)):
        engine.up("ComputeQuota", team, quota(arn, team, count))
    with in_process(**world.settings, leavingTeams="b") as run_:
        run_.state = engine.state
        run_.up("ComputeQuota", "a", quota(arn, "a", 2))
    assert world.live_quotas(arn) == {"q-a": 2, "q-b": 2}


def test_a_quota_that_could_not_be_emptied_ends_the_wait_at_once(world, engine, karpenter):
    for team, count in (("a", 1), ("b", 3)):
        engine.up("ComputeQuota", team, quota(karpenter, team, count))
    with in_process(**world.settings, leavingTeams="b") as run_:
        run_.state = engine.state
        world.endpoint.set_faults({"failed-update": "1@quota"})
        with pytest.raises(FailedError, match=r"'q-a' doesn't grow(.|\n)*q-b \(ComputeQuota 'q-b' is UpdateFailed"):
            run_.up("ComputeQuota", "a", quota(karpenter, "a", 3))


def test_nobody_grows_over_a_decrease_that_failed(world, engine, karpenter):
    for team, count in (("a", 1), ("b", 9)):
        engine.up("ComputeQuota", team, quota(karpenter, team, count))
    grow, shrink = quota(karpenter, "a", 8), quota(karpenter, "b", 2)
    announced(engine, {"a": grow, "b": shrink})
    world.endpoint.set_faults({"failed-update": "1@quota"})
    with pytest.raises(PartlyFailedError, match="UpdateFailed"):
        engine.put("ComputeQuota", "b", shrink)
    world.endpoint.set_faults({"failed-update": None})
    with pytest.raises(FailedError, match=r"doesn't grow(.|\n)*q-b(.|\n)*UpdateFailed(.|\n)*pulumi up"):
        engine.put("ComputeQuota", "a", grow)
    run(engine, {"a": grow, "b": shrink}, threads=2)
    assert world.live_quotas(karpenter) == {"q-a": 8, "q-b": 2}


def test_waiting_ends_although_an_announced_decrease_never_comes(world, engine, karpenter):
    for team, count in (("a", 1), ("b", 9)):
        engine.up("ComputeQuota", team, quota(karpenter, team, count))
    engine.servicer.clients.ledger._patience = 0.1
    announced(engine, {"a": quota(karpenter, "a", 8), "b": quota(karpenter, "b", 2)})
    world.endpoint.set_faults({"failed-update": "1@quota"})
    with pytest.raises(FailedError, match="'q-a' doesn't grow"):
        engine.put("ComputeQuota", "a", quota(karpenter, "a", 8))


def test_a_preview_warns_of_capacity_that_may_come_only_after_the_growth(world, engine, karpenter):
    for team, count in (("a", 1), ("b", 9)):
        engine.up("ComputeQuota", team, quota(karpenter, team, count))
    ledger = engine.servicer.clients.ledger
    with in_process(**world.settings) as preview:
        preview.state = engine.state
        grow = quota(karpenter, "a", 8)
        assert "name its team in `leavingTeams`" in preview.preview_warnings("ComputeQuota", "a", grow)
    with in_process(**world.settings) as preview:
        preview.state = engine.state
        preview.diff("ComputeQuota", "b", quota(karpenter, "b", 2))
        assert preview.preview_warnings("ComputeQuota", "a", grow) == "", "b is the program's own and pending before"
    assert ledger is not preview.servicer.clients.ledger


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


def test_a_program_that_reserves_too_much_is_told_so_without_fractions_in_the_way():
    snapshot = QuotaSnapshot(
        {"b": amounts(resource(Count=3))}, {"a": amounts(resource(Count=2)), "b": amounts(resource(Count=3))}, {TYPE: 4}
    )
    said = preview_warning(snapshot, "a", old=amounts(resource(Count=1)), new=amounts(resource(Count=2)))
    assert said.startswith(f"The quota 'a' doesn't fit (1 × {TYPE} too few): the quotas of this program together")
    bigger = {TYPE: 5}
    fits = QuotaSnapshot(snapshot.live, snapshot.declared, bigger)
    assert preview_warning(fits, "a", old=amounts(resource(Count=1)), new=amounts(resource(Count=2))) is None


def test_a_decrease_is_handed_out_once_and_not_when_its_own_step_has_begun():
    pending = PendingDecreases()
    first, second = (PendingDecrease(name, frozenset({TYPE}), f"arn-{name}", lambda task: task) for name in ("a", "b"))
    pending.announce(first)
    pending.announce(second)
    pending.start("a")
    assert pending.claim({OTHER}) is None
    assert pending.claim({TYPE}) is second
    assert pending.claim({TYPE}) is None
    assert pending.of_types({TYPE}) == [first, second]
    pending.deleted("arn-a")
    pending.complete("b")
    assert pending.of_types({TYPE}) == []


def test_fractions_of_a_partition_type_are_ordered_like_any_other():
    with running_endpoint(latency_factor=0.0) as endpoint:
        world = World(Cloud(endpoint))
        with in_process(**world.settings) as engine:
            arn = world.governed(engine, world.group(instanceType="ml.p4d.24xlarge", count=1))

            def mig(team, count):
                partition = {"type": "mig-1g.5gb", "count": count}
                return measured(arn, team, {"instanceType": "ml.p4d.24xlarge", "acceleratorPartition": partition})

            for team, count in (("a", 6), ("b", 50)):
                engine.up("ComputeQuota", team, mig(team, count))
            with Watch(world.endpoint, "AcceleratorPartition mig-1g.5gb") as watch:
                run(engine, {"a": mig("a", 36), "b": mig("b", 20)}, threads=1)
            assert watch.most <= 56


@pytest.mark.timeout(30)  # Without an end, it would be updated repeatedly.
def test_a_quota_that_relies_on_karpenter_is_current_once_the_service_has_it(world, engine, karpenter):
    """elasticInstanceTypes stays in the state: the service never returns it."""
    engine.up("ComputeQuota", "a", quota(karpenter, "a", 1, elasticInstanceTypes=[TYPE]))
    assert world.endpoint.stats()["calls"].get("sagemaker.UpdateComputeQuota", 0) == 0
