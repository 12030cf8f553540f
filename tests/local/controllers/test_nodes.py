"""A node's capacity, from its instance type and its threads per core."""

import pytest

from hpkit_local.controllers.nodes import capacity_of


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
