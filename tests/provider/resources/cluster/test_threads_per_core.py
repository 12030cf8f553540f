"""Threads per core can't change, and the service documents no default: an omitted value is unknown until it's read."""

import pytest

from tests.provider.harness import FailedError


def there(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: group.get("ThreadsPerCore") for group in groups}


@pytest.mark.parametrize("number", [1, 2])
def test_a_first_statement_is_no_change_of_a_group_that_the_service_reports_none_of(world, engine, number):
    plain, stated = world.group("gpu", 1), world.group("gpu", 1, threadsPerCore=number)
    engine.up("Cluster", "c", world.cluster(plain))
    with engine.warnings() as warnings:
        assert list(engine.diff("Cluster", "c", world.cluster(stated)).detailedDiff) == []
    (warning,) = warnings
    assert warning == (
        f"HyperPod doesn't report threadsPerCore of instance group gpu, so it isn't known whether it's {number}. It "
        "can't change, and isn't sent."
    )


def test_what_the_service_reports_counts_where_the_program_stated_nothing(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=1)))
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1)))
    assert there(world) == {"gpu": 1}
    with pytest.raises(FailedError, match="threadsPerCore: 1 can't become 2"):
        engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=2)))
    assert list(engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=1))).detailedDiff) == []


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_another_number_is_refused_at_preview(world, engine, before, after):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=before)))
    with pytest.raises(FailedError, match=rf"threadsPerCore: .* can't become {after}"):
        engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=after)))
