"""A zone is added to a network: existing groups keep their subnets, and new groups use all of them."""

import pytest

from hpkit_provider.engine.values import UNKNOWN
from tests.provider.harness import FailedError, PartlyFailedError

REMARK = "Instance group gpu keeps its subnets: the API can't add subnets. Only new groups use new zones."


def sent(world):
    return world.endpoint.stats()["calls"].get("sagemaker.UpdateCluster", 0)


def placed(world, subnets, name="gpu", **more):
    override = {"subnets": list(subnets), "securityGroupIds": [world.sg]}
    return world.group(name, 1, overrideVpcConfig=override, **more)


def live_subnets(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: group["OverrideVpcConfig"]["Subnets"] for group in groups}


@pytest.fixture
def made(world, engine):
    """Create a cluster whose group has the first of two subnets."""
    engine.up("Cluster", "c", world.cluster(placed(world, world.subnets[:1])))
    return engine


def same(engine, inputs):
    """Return the engine's result without a difference: the new inputs with the old outputs."""
    diff = engine.diff("Cluster", "c", inputs)
    assert list(diff.detailedDiff) == []
    engine.state["c"] = {**engine.state["c"], "inputs": inputs}


def test_added_subnets_are_no_difference_and_said_once(world, made):
    wider = world.cluster(placed(world, world.subnets))
    with made.warnings() as warnings:
        same(made, wider)
        assert warnings == [REMARK]
        same(made, wider)
        assert warnings == [REMARK], "nothing new"
    assert sent(world) == 0


def test_a_refresh_after_it_is_clean(world, made):
    wider = world.cluster(placed(world, world.subnets))
    same(made, wider)
    before = made.state["c"]["outputs"]
    after = made.refresh("Cluster", "c")
    assert (after["inputs"], after["outputs"]) == (wider, before)
    with made.warnings() as said:
        same(made, wider)
    assert said == []


def test_added_subnets_are_not_sent_with_another_change_and_new_groups_have_all(world, made):
    labels = {"labels": {"pool": "gpu"}}
    wider = world.cluster(placed(world, world.subnets, kubernetesConfig=labels), placed(world, world.subnets, "next"))
    made.up("Cluster", "c", wider)
    assert live_subnets(world) == {"gpu": world.subnets[:1], "next": world.subnets}
    assert sent(world) == 1
    after = made.refresh("Cluster", "c")
    assert after["inputs"] == wider
    same(made, wider)


def test_an_update_that_failed_half_way_remembers_the_subnets_that_live(world, made):
    labels = {"labels": {"pool": "gpu"}}
    world.endpoint.set_faults({"failed-update": "1@cluster"})
    with pytest.raises(PartlyFailedError):
        made.up("Cluster", "c", world.cluster(placed(world, world.subnets, kubernetesConfig=labels)))
    world.endpoint.set_faults({"failed-update": None})
    narrow = world.cluster(placed(world, world.subnets[:1], kubernetesConfig=labels))
    made.up("Cluster", "c", narrow)
    assert made.refresh("Cluster", "c")["inputs"] == narrow


def test_other_subnets_or_security_groups_are_refused_as_ever(world, engine):
    engine.up("Cluster", "c", world.cluster(placed(world, world.subnets)))
    with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
        engine.diff("Cluster", "c", world.cluster(placed(world, world.subnets[:1])))
    with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
        engine.diff("Cluster", "c", world.cluster(placed(world, [world.subnets[0], "subnet-x", "subnet-y"])))
    group = placed(world, [*world.subnets, "subnet-x"])
    group["overrideVpcConfig"]["securityGroupIds"] = ["sg-other"]
    with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
        engine.diff("Cluster", "c", world.cluster(group))


def test_at_preview_a_subnet_that_is_yet_to_be_made_counts_as_added(world, made):
    wider = world.cluster(placed(world, [world.subnets[0], UNKNOWN]))
    with made.warnings() as said:
        assert list(made.diff("Cluster", "c", wider).detailedDiff) == []
    assert said == [REMARK]
