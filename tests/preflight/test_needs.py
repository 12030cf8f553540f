"""A stack's resource counts, from a recording of its program."""

import pytest

from hpkit.plan.derive import derive
from hpkit.preflight.needs import (
    FlexibleNeed,
    InstanceNeed,
    instance_needs,
    interface_endpoints,
    interface_need,
    total_need,
    volume_need,
    zones_of_gateways,
)
from hpkit.program.recording import record
from tests.builders import group, organization, typed


def recording_of(*groups, **environment):
    data = organization(groups=list(groups), environment=environment)
    return record(derive(typed(data), "dev"))


def burst(name, count=0, **more):
    return group(name, "ml.g5.8xlarge", count, **more)


def pool(name="serving", **limits):
    return {"name": name, "nodeClass": "burst", "limits": limits}


def autoscaling(*pools, groups=("a", "b")):
    return {"nodeClasses": [{"name": "burst", "instanceGroups": list(groups)}], "nodePools": list(pools)}


def test_groups_of_one_type_add_up_and_spot_stands_apart():
    recording = recording_of(
        group("a", "ml.g5.12xlarge", 3),
        group("b", "ml.g5.12xlarge", 2),
        group("c", "ml.g5.12xlarge", 4, capacityType="Spot"),
    )
    needs, flexible = instance_needs(recording)
    assert needs == (
        InstanceNeed("ml.g5.12xlarge", spot=False, permanent=5, maximum=5),
        InstanceNeed("ml.g5.12xlarge", spot=True, permanent=4, maximum=4),
    )
    assert flexible == ()
    assert total_need(recording) == (9, 9)
    assert total_need(recording, spot_only=True) == (4, 4)


def test_karpenter_adds_what_the_limits_of_its_pool_allow_over_all_its_groups_together():
    recording = recording_of(
        burst("base", 2), burst("a"), burst("b"), autoscaling=autoscaling(pool(**{"nvidia.com/gpu": "16"}))
    )
    assert instance_needs(recording)[0] == (InstanceNeed("ml.g5.8xlarge", spot=False, permanent=2, maximum=18),)
    assert total_need(recording) == (2, 18)


def test_a_pool_without_limits_has_no_maximum():
    recording = recording_of(burst("base", 2), burst("a"), burst("b"), autoscaling=autoscaling(pool()))
    assert instance_needs(recording)[0][0].maximum is None
    assert total_need(recording) == (2, None)


def test_a_spot_and_an_on_demand_group_of_one_pool_may_each_take_all_of_it():
    recording = recording_of(
        group("system", "ml.m5.4xlarge", 1),
        burst("a"),
        burst("b", capacityType="Spot"),
        autoscaling=autoscaling(pool(nodes="6")),
    )
    by_kind = {(each.instance_type, each.spot): each.maximum for each in instance_needs(recording)[0]}
    assert by_kind["ml.g5.8xlarge", False] == 6
    assert by_kind["ml.g5.8xlarge", True] == 6
    assert total_need(recording) == (1, 7), "together they still add six"
    assert total_need(recording, spot_only=True) == (0, 6)


def test_a_flexible_group_asks_its_types_together():
    flexible = group("any", "", 4, instanceTypes=["ml.g5.12xlarge", "ml.g5.24xlarge"])
    del flexible["instanceType"]
    needs, together = instance_needs(recording_of(group("system", "ml.m5.4xlarge", 1), flexible))
    assert [each.instance_type for each in needs] == ["ml.m5.4xlarge"]
    assert together == (FlexibleNeed("any", ("ml.g5.12xlarge", "ml.g5.24xlarge"), spot=False, count=4),)


def test_the_largest_volume_counts():
    assert volume_need(recording_of(group("a", "ml.m5.4xlarge", 1))) is None
    recording = recording_of(
        group("a", "ml.m5.4xlarge", 1, instanceStorageConfigs=[{"ebsVolumeConfig": {"volumeSizeInGB": 500}}]),
        group("b", "ml.m5.4xlarge", 1, instanceStorageConfigs=[{"ebsVolumeConfig": {"volumeSizeInGB": 200}}]),
    )
    assert volume_need(recording) == 500


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 4 + 1 + 4),  # Nodes, NAT gateway, control plane.
        ({"eks": {"version": "1.35", "existing": {"name": "kube"}}}, 4 + 1),
    ],
)
def test_interfaces_are_those_of_nodes_gateway_and_control_plane(environment, expected):
    need = interface_need(recording_of(group("gpu", "ml.g5.12xlarge", 4), **environment))
    assert need.total == expected
    assert need.complete


def test_each_efa_interface_of_a_node_counts():
    assert interface_need(recording_of(group("gpu", "ml.p5.48xlarge", 2))).total == 2 * 32 + 1 + 4


ZONES = [
    {"availabilityZone": "us-west-2a", "nodeCidr": "10.1.0.0/16"},
    {"availabilityZone": "us-west-2b", "nodeCidr": "10.2.0.0/16"},
]


def test_zones_by_id_are_those_of_subnets_gateways_and_endpoints():
    zones = [{"availabilityZone": f"usw2-az{n}", "nodeCidr": f"10.{n}.0.0/16"} for n in (1, 2)]
    network = {"vpcCidr": "10.192.0.0/16", "zones": zones, "natGateways": "PerZone", "endpoints": ["s3", "sts"]}
    groups = [group("gpu", "ml.g5.12xlarge", 4, availabilityZone="usw2-az2")]
    recording = recording_of(*groups, network=network)
    subnets = recording.named("ec2/subnet:Subnet")
    placed = {name: each.inputs for name, each in subnets.items() if "az" in name}
    assert {name: each["availabilityZoneId"] for name, each in placed.items()} == {
        f"{kind}-usw2-az{n}": f"usw2-az{n}" for kind in ("nat", "nodes") for n in (1, 2)
    }
    assert not any("availabilityZone" in each for each in placed.values())
    assert zones_of_gateways(recording) == {"usw2-az1": 1, "usw2-az2": 1}
    assert interface_endpoints(recording) == (("com.amazonaws.us-west-2.sts", ("usw2-az1", "usw2-az2")),)


def test_a_gateway_endpoint_takes_no_interface_and_others_take_one_per_zone():
    network = {"vpcCidr": "10.192.0.0/16", "zones": ZONES, "endpoints": ["s3", "sts", "logs"]}
    need = interface_need(recording_of(group("gpu", "ml.g5.12xlarge", 1), network=network))
    assert (need.nodes, need.network, need.control_planes) == (1, 1 + 2 * 2, 4)
