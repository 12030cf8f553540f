"""Arithmetic of quotas and nodes, without a cluster: also one thread per core."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.catalog import instance_types, kubelet_reserved, quantity_of
from hpkit_local.controllers.karpenter.scheduling import Claimed, Offering, amounts_of, launches, surplus
from hpkit_local.controllers.nodes import capacity_of
from hpkit_local.controllers.policy import amounts

KNOWN = [each.name for each in instance_types() if None not in (each.vcpu, each.memory_gib, each.accelerators)]
NOW = datetime(2026, 11, 1, tzinfo=UTC)
LABELS = {"node.kubernetes.io/instance-type": "ml.g5.12xlarge", "topology.kubernetes.io/zone": "us-west-2a"}


@pytest.mark.parametrize(
    "instance_type", [each for each in instance_types() if each.accelerators], ids=lambda each: each.name
)
def test_all_accelerators_of_an_instance_are_worth_the_instance(instance_type):
    # The service fills in vCPU and memory.
    row = {
        "InstanceType": instance_type.name,
        "Accelerators": instance_type.accelerators,
        "VCpu": instance_type.vcpu,
        "MemoryInGiB": instance_type.memory_gib,
    }
    assert amounts([row]) == amounts([{"InstanceType": instance_type.name, "Count": 1}])


@pytest.mark.parametrize(
    ("resource", "amount", "text"), [("cpu", 48000, "48"), ("cpu", 1500, "1500m"), ("memory", 2**30, "1073741824")]
)
def test_amounts_are_written_as_the_api_server_writes_them(resource, amount, text):
    assert quantity_of(resource, amount) == text


def test_the_kubelet_keeps_less_than_an_instance_has():
    for instance_type in (each for each in instance_types() if each.name in KNOWN):
        cpu, memory = kubelet_reserved(instance_type.vcpu, instance_type.memory_gib)
        assert 0 < cpu < instance_type.vcpu
        assert 0 < memory < instance_type.memory_gib
    # 0.1 + 0.30 + 0.15 + 2 × 0.10 + 4 × 0.06; 0.5 + 4 × 0.30 + 4 × 0.25 + 8 × 0.20
    assert kubelet_reserved(8, 16) == (pytest.approx(0.99), pytest.approx(4.3))


@pytest.mark.parametrize(
    ("instance_type", "threads", "cpu"),
    [
        ("ml.m5.4xlarge", None, "16"),
        ("ml.m5.4xlarge", 2, "16"),
        ("ml.m5.4xlarge", 1, "8"),
        ("ml.m7g.4xlarge", 1, "16"),
        ("ml.m7g.4xlarge", None, "16"),
    ],
)
def test_one_thread_halves_the_cpus_of_types_that_have_two(instance_type, threads, cpu):
    capacity, _ = capacity_of({"InstanceType": instance_type, "ThreadsPerCore": threads})
    assert capacity["cpu"] == cpu


def pod(name="p", *, gpus=1, cpu="1", **spec):
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": str(gpus)}}}
    return {"metadata": {"name": name, "namespace": "n"}, "spec": {"containers": [container], **spec}}


def offering(pool="pool", *, gpus=4, weight=0, labels=None, taints=()):
    amounts = amounts_of({"cpu": "48", "memory": "192Gi", "nvidia.com/gpu": str(gpus), "pods": "110"})
    return Offering(
        pool=pool,
        cluster="train",
        group=f"{pool}-{gpus}",
        instance_type="ml.g5.12xlarge",
        zone="us-west-2a",
        labels={**LABELS, **(labels or {})},
        taints=taints,
        allocatable=amounts,
        capacity=amounts,
        weight=weight,
    )


def plan(pods, offerings, *, rooms=(), used=None, limits=None):
    return launches(pods, rooms=rooms, offerings=offerings, used=used or {}, limits=limits or {})


def gpus(number):
    return {"nvidia.com/gpu": Decimal(number)}


@given(
    pods=st.lists(st.integers(min_value=1, max_value=6), max_size=20),
    types=st.lists(st.sampled_from([1, 4, 8]), min_size=1, max_size=3, unique=True),
    limit=st.integers(min_value=0, max_value=40),
    has=st.integers(min_value=0, max_value=10),
)
def test_no_plan_goes_beyond_a_limit_or_gives_a_node_more_than_it_holds(pods, types, limit, has):
    wanted = [pod(str(number), gpus=count) for number, count in enumerate(pods)]
    made = plan(wanted, [offering(gpus=each) for each in types], used={"pool": gpus(has)}, limits={"pool": gpus(limit)})
    capacity = sum(launch.offering.capacity["nvidia.com/gpu"] for launch in made)
    assert not made or capacity + has <= limit
    placed = [name for launch in made for name in launch.pods]
    assert len(placed) == len(set(placed))
    for launch in made:
        inside = sum(pods[int(name.removeprefix("n/"))] for name in launch.pods)
        assert 0 < inside <= launch.offering.allocatable["nvidia.com/gpu"]


def pool(**disruption):
    return {"spec": {"disruption": disruption}}


def idle(count, *, minutes=10, **more):
    return [Claimed(f"n{number}", True, NOW - timedelta(minutes=minutes), **more) for number in range(count)]


def test_only_nodes_empty_for_long_enough_are_taken_away():
    young = [Claimed("young", True, NOW - timedelta(minutes=4)), Claimed("busy", False, NOW - timedelta(hours=9))]
    nodes = [*idle(1), *young]
    assert surplus(pool(consolidateAfter="5m", budgets=[{"nodes": "100%"}]), nodes, now=NOW, factor=1) == ["n0"]
    assert surplus(pool(consolidateAfter="5m", budgets=[{"nodes": "100%"}]), nodes, now=NOW, factor=0.5) == [
        "n0",
        "young",
    ]
    assert surplus(pool(consolidateAfter="Never"), nodes, now=NOW, factor=1) == []
