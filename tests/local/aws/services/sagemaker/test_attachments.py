"""Volumes, network interfaces and health checks of nodes."""

import pytest


@pytest.fixture
def node(cloud):
    cloud.make_cluster()
    return cloud.nodes()[0]["InstanceId"]


def volume(cloud, node_id, zone=None):
    details = cloud.sm.describe_cluster_node(ClusterName="train", NodeId=node_id)["NodeDetails"]
    zone = zone or details["Placement"]["AvailabilityZone"]
    return cloud.ec2.create_volume(AvailabilityZone=zone, Size=10)["VolumeId"]


def test_a_volume_is_attached_once_and_detached(cloud, node, refused):
    arn, disk = cloud.describe()["ClusterArn"], volume(cloud, node)
    wanted = {"ClusterArn": arn, "NodeId": node, "VolumeId": disk}
    made = cloud.sm.attach_cluster_node_volume(**wanted)
    assert (made["Status"], made["DeviceName"]) == ("attached", "/dev/sdf")
    assert "is attached to the node" in refused("ValidationException", cloud.sm.attach_cluster_node_volume, **wanted)
    assert cloud.sm.detach_cluster_node_volume(**wanted)["Status"] == "detached"
    assert "is not attached" in refused("ValidationException", cloud.sm.detach_cluster_node_volume, **wanted)


def test_a_volume_must_exist_in_the_zone_of_its_node(cloud, node, refused):
    arn = cloud.describe()["ClusterArn"]
    for disk, says in (
        (volume(cloud, node, "us-west-2c"), "is in us-west-2c"),
        ("vol-0123456789abcdef0", "does not exist"),
    ):
        wanted = {"ClusterArn": arn, "NodeId": node, "VolumeId": disk}
        assert says in refused("ValidationException", cloud.sm.attach_cluster_node_volume, **wanted)


def test_a_node_must_exist(cloud, node, refused):
    wanted = {
        "ClusterArn": cloud.describe()["ClusterArn"],
        "NodeId": "i-0123456789abcdef0",
        "VolumeId": volume(cloud, node),
    }
    assert "not found" in refused("ResourceNotFound", cloud.sm.attach_cluster_node_volume, **wanted)


def test_a_network_interface_is_attached_once(cloud, node, refused):
    interface = cloud.ec2.create_network_interface(SubnetId=cloud.subnets[0])["NetworkInterface"]["NetworkInterfaceId"]
    wanted = {"ClusterName": "train", "NodeId": node, "NetworkInterfaceId": interface}
    assert cloud.sm.attach_cluster_node_network_interface(**wanted)["AttachmentId"].startswith("eni-attach-")
    said = refused("ValidationException", cloud.sm.attach_cluster_node_network_interface, **wanted)
    assert "is attached to the node" in said


def test_health_checks_on_request_hold_updates_up_until_they_are_done(slow_cloud, refused):
    slow_cloud.make_cluster()
    checks = [{"InstanceGroupName": "gpu", "DeepHealthChecks": ["InstanceStress"]}]
    slow_cloud.sm.start_cluster_health_check(ClusterName="train", DeepHealthCheckConfigurations=checks)
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"DeepHealthCheckInProgress"}
    said = refused("ValidationException", slow_cloud.sm.update_cluster, ClusterName="train", NodeRecovery="None")
    assert "deep health checks run" in said
    slow_cloud.advance(5400)
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Running"}


def test_health_checks_are_refused_for_a_group_that_does_not_exist(cloud, node, refused):
    checks = [{"InstanceGroupName": "nobody", "DeepHealthChecks": ["InstanceStress"]}]
    call = cloud.sm.start_cluster_health_check
    assert "does not exist" in refused(
        "ValidationException", call, ClusterName="train", DeepHealthCheckConfigurations=checks
    )
