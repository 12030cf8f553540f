"""Arithmetic of quotas and nodes, without a cluster: also one thread per core."""

import pytest

from hpkit.catalog import instance_types, kubelet_reserved, quantity_of
from hpkit_local.controllers.nodes import capacity_of
from hpkit_local.controllers.policy import amounts

KNOWN = [each.name for each in instance_types() if None not in (each.vcpu, each.memory_gib, each.accelerators)]


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
