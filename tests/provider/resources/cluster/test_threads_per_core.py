"""A program that begins to say two threads per core changes no group that was made without a word of it."""

import pytest

from tests.provider.harness import FailedError


def there(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: group.get("ThreadsPerCore") for group in groups}


def test_saying_two_is_no_change_of_a_group_that_exists(world, engine):
    plain, said = world.group("gpu", 1), world.group("gpu", 1, threadsPerCore=2)
    engine.up("Cluster", "c", world.cluster(plain))
    assert list(engine.diff("Cluster", "c", world.cluster(said)).detailedDiff) == []


def test_it_is_not_sent_with_another_change_and_a_refresh_stays_clean(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1)))
    more = world.cluster(world.group("gpu", 2, threadsPerCore=2))
    engine.up("Cluster", "c", more)
    assert there(world) == {"gpu": None}, "the service refuses a first word as it refuses another"
    engine.refresh("Cluster", "c")
    assert list(engine.diff("Cluster", "c", more).detailedDiff) == []


def test_a_new_group_is_made_with_it(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1)))
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1), world.group("more", 1, threadsPerCore=2)))
    assert there(world) == {"gpu": None, "more": 2}


@pytest.mark.parametrize(("before", "after"), [({}, 1), ({"threadsPerCore": 2}, 1), ({"threadsPerCore": 1}, 2)])
def test_another_number_is_refused_at_preview(world, engine, before, after):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1, **before)))
    with pytest.raises(FailedError, match=rf"threadsPerCore: .* can't become {after}"):
        engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=after)))
