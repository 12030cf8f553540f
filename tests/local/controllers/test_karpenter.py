"""The nodes that the fake Karpenter adds and removes, without a cluster."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from hpkit_local.controllers.karpenter.scheduling import (
    Claimed,
    Offering,
    amounts_of,
    launches,
    surplus,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)
LABELS = {"node.kubernetes.io/instance-type": "ml.g5.12xlarge", "topology.kubernetes.io/zone": "us-west-2a"}


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
