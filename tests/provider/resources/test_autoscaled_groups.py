"""AutoscaledGroup: an autoscaled group is deleted after its NodeClass, and only if the program no longer has it."""

import pytest

from tests.provider.harness import FailedError, PartlyFailedError, in_process
from tests.running import eventually

NAMES = ("burst-a", "burst-b")


def sent(world):
    return world.endpoint.stats()["calls"].get("sagemaker.UpdateCluster", 0)


def live(world):
    return sorted(g["InstanceGroupName"] for g in world.sm.describe_cluster(ClusterName="train")["InstanceGroups"])


def scaled(world, *autoscaled, static=("system",)):
    """Create a cluster with Karpenter, static groups, and groups that Karpenter fills."""
    groups = [*(world.group(name, 1) for name in static), *(world.group(name, 0) for name in autoscaled)]
    more = {"clusterRole": world.roles["karpenter"], "autoScaling": {"mode": "Enable"}}
    return world.cluster(*groups, **more, **({"autoscaledInstanceGroups": list(autoscaled)} if autoscaled else {}))


@pytest.fixture
def burst(world, engine):
    """Deploy both groups, each with its own resource."""
    up(engine, scaled(world, *NAMES))
    return engine


def up(engine, cluster):
    """Run a program as the engine does: first the cluster, then new groups; the test makes deletions."""
    arn = engine.up("Cluster", "c", cluster)["id"]
    for name in cluster.get("autoscaledInstanceGroups", []):
        engine.up("AutoscaledGroup", name, {"clusterArn": arn, "instanceGroupName": name})


def test_the_cluster_leaves_a_group_to_its_autoscaled_group_which_deletes_it(world, burst):
    with burst.warnings() as warnings:
        up(burst, scaled(world, "burst-a"))
    assert live(world) == ["burst-a", "burst-b", "system"], "a NodeClass names burst-b at this point of the run"
    assert warnings == []
    burst.delete("AutoscaledGroup", "burst-b")
    assert live(world) == ["burst-a", "system"]
    with burst.warnings() as warnings:
        assert burst.refresh("Cluster", "c")["inputs"] == scaled(world, "burst-a")
        assert list(burst.diff("Cluster", "c", scaled(world, "burst-a")).detailedDiff) == []
    assert warnings == []


def test_nodes_of_a_group_that_leaves_are_not_waited_for(world, burst):
    world.endpoint.set_faults({"capacity": "1@burst-b"})
    world.sm.batch_add_cluster_nodes(
        ClusterName="train", NodesToAdd=[{"InstanceGroupName": "burst-b", "IncrementTargetCountBy": 2}]
    )
    with pytest.raises(FailedError, match=r"DELETE the instance group with all instances: burst-b \(2 × "):
        up(burst, scaled(world, "burst-a"))
    # Waiting for nodes that never appear would fail the operation.
    up(burst, {**scaled(world, "burst-a"), "allowDeleteInstanceGroups": ["burst-b"]})


def test_several_that_go_at_once_do_not_stand_in_each_others_way(world, burst):
    world.endpoint.set_faults({"slow-update": 0.5})
    up(burst, scaled(world))
    before = sent(world)
    found = burst.together([lambda name=name: burst.delete("AutoscaledGroup", name) for name in NAMES])
    assert not [each for each in found if isinstance(each, Exception)]
    assert live(world) == ["system"]
    assert sent(world) - before <= len(NAMES), "nobody ran into a conflict"


def test_a_group_made_static_stays_with_its_nodes(world, burst):
    new = scaled(world, "burst-a", static=("system", "burst-b"))
    up(burst, new)
    before = sent(world)
    burst.delete("AutoscaledGroup", "burst-b")
    assert live(world) == ["burst-a", "burst-b", "system"]
    assert sent(world) == before
    assert burst.refresh("Cluster", "c")["inputs"] == new


def test_a_group_made_static_stays_though_the_run_that_changed_the_cluster_died(world, burst):
    new = scaled(world, "burst-a", static=("system", "burst-b"))
    up(burst, new)
    with in_process(**world.settings) as later:
        later.state = burst.state
        assert not later.diff("Cluster", "c", new).detailedDiff, "nothing to do but the deletion that is left over"
        later.delete("AutoscaledGroup", "burst-b")
    assert live(world) == ["burst-a", "burst-b", "system"]


def test_a_group_that_left_is_deleted_though_the_run_that_changed_the_cluster_died(world, burst):
    new = scaled(world, "burst-a")
    up(burst, new)
    with in_process(**world.settings) as later:
        later.state = burst.state
        later.diff("Cluster", "c", new)
        later.delete("AutoscaledGroup", "burst-b")
    assert live(world) == ["burst-a", "system"]


def test_a_cluster_update_that_failed_half_way_still_leaves_the_group_alone(world, burst):
    new = scaled(world, "burst-a")
    new["instanceGroups"][0]["kubernetesConfig"] = {"labels": {"pool": "system"}}
    world.endpoint.set_faults({"failed-update": "1@cluster"})
    with pytest.raises(PartlyFailedError):
        up(burst, new)
    world.endpoint.set_faults({"failed-update": None})
    up(burst, new)
    assert live(world) == ["burst-a", "burst-b", "system"], "its NodeClass was never asked to let go"
    burst.delete("AutoscaledGroup", "burst-b")
    assert live(world) == ["burst-a", "system"]


def test_a_run_without_the_cluster_deletes_no_group(world, burst):
    with in_process(**world.settings) as later:
        later.state = burst.state
        with pytest.raises(FailedError, match=r"'burst-b' is kept(.|\n)*without --target"):
            later.delete("AutoscaledGroup", "burst-b")
    assert live(world) == ["burst-a", "burst-b", "system"]


def test_what_is_gone_already_needs_no_deletion(world, burst):
    up(burst, scaled(world))
    world.sm.update_cluster(ClusterName="train", InstanceGroupsToDelete=["burst-a"])
    burst.delete("AutoscaledGroup", "burst-a")
    burst.delete("Cluster", "c")
    burst.delete("AutoscaledGroup", "burst-b")


def test_a_group_that_is_not_there_is_not_taken_for_one(world, burst):
    arn = burst.state["c"]["id"]
    with pytest.raises(FailedError, match=r"No instance group 'burst-c'(.|\n)*burst-a, burst-b, system"):
        burst.up("AutoscaledGroup", "x", {"clusterArn": arn, "instanceGroupName": "burst-c"})
    with pytest.raises(FailedError, match="isn't the ID of an instance group"):
        burst.read("AutoscaledGroup", "x", arn)


def test_a_group_deleted_by_hand_is_found_missing_and_one_that_is_there_can_be_imported(world, burst):
    state = burst.state["burst-a"]
    assert burst.read("AutoscaledGroup", "i", state["id"])[1] == state["inputs"]
    assert burst.refresh("AutoscaledGroup", "burst-a") is not None
    world.sm.update_cluster(ClusterName="train", InstanceGroupsToDelete=["burst-a"])
    eventually(lambda: burst.refresh("AutoscaledGroup", "burst-a") is None, "the group is gone")
    assert "burst-a" not in burst.state


@pytest.mark.parametrize("name", ["clusterArn", "instanceGroupName"])
def test_another_name_or_cluster_is_another_group(burst, name):
    inputs = burst.state["burst-a"]["inputs"]
    assert list(burst.diff("AutoscaledGroup", "burst-a", {**inputs, name: f"{inputs[name]}x"}).replaces) == [name]
