"""Refusals that no other test of the endpoint meets on its way."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest

from hpkit_local.aws.controllers import ControllerError, Controllers
from hpkit_local.aws.services.sagemaker.attachments import _DEVICES
from hpkit_local.aws.services.sagemaker.batch import MOST_DELETED
from hpkit_local.aws.services.sagemaker.tags import MOST
from hpkit_local.aws.testing import running_endpoint

Refused = Callable[..., str]
DEFINITION = b"alertmanager_config: '{route: {receiver: a}, receivers: [{name: a}]}'"
NOWHERE = "ws-00000000-0000-0000-0000-000000000000"


def test_alerts_go_to_a_workspace_that_is_there_and_have_one_definition(cloud: Any, refused: Refused) -> None:
    amp = cloud.endpoint.client("amp")
    assert NOWHERE in refused(
        "ResourceNotFoundException", amp.create_alert_manager_definition, workspaceId=NOWHERE, data=DEFINITION
    )
    which = {"workspaceId": amp.create_workspace(alias="a")["workspaceId"]}
    assert "definition not found" in refused(
        "ResourceNotFoundException", amp.describe_alert_manager_definition, **which
    )
    amp.create_alert_manager_definition(**which, data=DEFINITION)
    assert "already exists" in refused(
        "ConflictException", amp.create_alert_manager_definition, **which, data=DEFINITION
    )


def test_an_add_on_version_without_a_configuration_is_refused(cloud: Any, refused: Refused) -> None:
    wanted = {"addonName": "vpc-cni", "addonVersion": "latest"}
    text = refused("InvalidParameterException", cloud.eks.describe_addon_configuration, **wanted)
    assert "latest" in text


def test_an_add_on_that_is_being_made_is_not_deleted(slow_cloud: Any, refused: Refused) -> None:
    addon = {"clusterName": "kube", "addonName": "vpc-cni"}
    slow_cloud.eks.create_addon(**addon)
    assert "is CREATING" in refused("InvalidRequestException", slow_cloud.eks.delete_addon, **addon)


def test_what_controllers_refuse_is_a_limit(cloud: Any, refused: Refused) -> None:
    class OneAtMost(Controllers):
        def eks_cluster_requested(self, name: str, others: Any) -> None:
            raise ControllerError(f"{name} is one too many beside {len(others)}")

    with running_endpoint(controllers=OneAtMost()) as endpoint:
        other = endpoint.client("iam"), endpoint.client("ec2"), endpoint.client("eks")
        statement = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        role = other[0].create_role(RoleName="r", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        text = refused(
            "ResourceLimitExceededException",
            other[2].create_cluster,
            name="kube",
            roleArn=role,
            resourcesVpcConfig={"subnetIds": [each["SubnetId"] for each in other[1].describe_subnets()["Subnets"]]},
        )
    assert text == "kube is one too many beside 0"


def test_an_eks_cluster_is_in_one_vpc(cloud: Any, refused: Refused) -> None:
    vpc = cloud.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    there = cloud.ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-west-2b")["Subnet"]
    wanted = {"name": "other", "roleArn": cloud.eks_role}
    config = {"subnetIds": [cloud.subnets[0], there["SubnetId"]]}
    text = refused("InvalidParameterException", cloud.eks.create_cluster, **wanted, resourcesVpcConfig=config)
    assert text.startswith("Subnets are in several VPCs: ")


def test_updates_are_of_a_cluster_that_is_there(cloud: Any, refused: Refused) -> None:
    assert refused("ResourceNotFoundException", cloud.eks.list_updates, name="nobody").endswith("nobody.")


def test_where_no_version_is_in_standard_support_one_has_to_be_named(cloud_on: Any, refused: Refused) -> None:
    # Made while there is one; then the years pass.
    cloud = cloud_on("2026-11-22")
    cloud.advance(40 * 365 * 86400)
    config = {"subnetIds": cloud.subnets}
    text = refused(
        "InvalidParameterException",
        cloud.eks.create_cluster,
        name="other",
        roleArn=cloud.eks_role,
        resourcesVpcConfig=config,
    )
    assert "no Kubernetes version known here is in standard support" in text


def test_a_file_system_is_there_and_only_grows(cloud: Any, refused: Refused) -> None:
    fsx = cloud.endpoint.client("fsx")
    nobody = {"FileSystemId": "fs-0123456789abcdef0", "StorageCapacity": 2400}
    assert "does not exist" in refused("FileSystemNotFound", fsx.update_file_system, **nobody)
    made = fsx.create_file_system(FileSystemType="LUSTRE", StorageCapacity=2400, SubnetIds=cloud.subnets[:1])
    wanted = {"FileSystemId": made["FileSystem"]["FileSystemId"], "StorageCapacity": 1200}
    assert "1200 is below the present 2400" in refused("BadRequest", fsx.update_file_system, **wanted)


def test_a_grafana_workspace_is_there_and_done_before_it_changes(slow_cloud: Any, refused: Refused) -> None:
    grafana = slow_cloud.endpoint.client("grafana")
    unknown = "arn:aws:grafana:us-west-2:123456789012:/workspaces/g-0123456789"
    refused("ResourceNotFoundException", grafana.tag_resource, resourceArn=unknown, tags={"a": "b"})
    refused("ResourceNotFoundException", grafana.describe_workspace, workspaceId="g-0123456789")
    wanted = {
        "accountAccessType": "CURRENT_ACCOUNT",
        "permissionType": "SERVICE_MANAGED",
        "authenticationProviders": ["AWS_SSO"],
    }
    assert "1.0 is not one of" in refused(
        "ValidationException", grafana.create_workspace, **wanted, grafanaVersion="1.0"
    )
    workspace = grafana.create_workspace(**wanted)["workspace"]["id"]
    text = refused("ConflictException", grafana.update_workspace, workspaceId=workspace, workspaceDescription="d")
    assert "is in status CREATING" in text


def test_a_node_takes_as_many_volumes_as_it_has_names_for(cloud: Any, refused: Refused) -> None:
    arn = cloud.make_cluster()
    node = cloud.nodes()[0]["InstanceId"]
    zone = cloud.sm.describe_cluster_node(ClusterName="train", NodeId=node)["NodeDetails"]["Placement"]
    which = {"ClusterArn": arn, "NodeId": node}

    def disk() -> str:
        return str(cloud.ec2.create_volume(AvailabilityZone=zone["AvailabilityZone"], Size=10)["VolumeId"])

    for _ in _DEVICES:
        cloud.sm.attach_cluster_node_volume(**which, VolumeId=disk())
    text = refused("ValidationException", cloud.sm.attach_cluster_node_volume, **which, VolumeId=disk())
    assert f"has {len(_DEVICES)} volumes, and takes no more" in text


def test_health_checks_wait_for_cluster_and_node(slow_cloud: Any, refused: Refused) -> None:
    sm = slow_cloud.sm
    checks = [{"InstanceGroupName": "gpu", "DeepHealthChecks": ["InstanceStress"]}]
    wanted = {"ClusterName": "train", "DeepHealthCheckConfigurations": checks}
    sm.create_cluster(**slow_cloud.request(NodeProvisioningMode=None))
    assert "need it InService" in refused("ValidationException", sm.start_cluster_health_check, **wanted)
    slow_cloud.advance(1200)
    slow_cloud.describe()
    slow_cloud.advance(240)
    sm.start_cluster_health_check(**wanted)
    assert "it must run in 'gpu'" in refused("ValidationException", sm.start_cluster_health_check, **wanted)


def test_a_request_deletes_so_many_nodes_and_no_more(cloud: Any, refused: Refused) -> None:
    arn = cloud.make_cluster()
    names = [f"i-{number:017x}" for number in range(MOST_DELETED + 1)]
    text = refused("ValidationException", cloud.sm.batch_delete_cluster_nodes, ClusterName=arn, NodeIds=names)
    assert f"up to {MOST_DELETED} nodes, not {MOST_DELETED + 1}" in text


def test_nodes_are_not_replaced_while_their_cluster_changes(slow_cloud: Any, refused: Refused) -> None:
    slow_cloud.make_cluster()
    node = slow_cloud.nodes()[0]["InstanceId"]
    slow_cloud.sm.delete_cluster(ClusterName="train")
    wanted = {"ClusterName": "train", "NodeIds": [node]}
    text = refused("ValidationException", slow_cloud.sm.batch_reboot_cluster_nodes, **wanted)
    assert "nodes can be changed when it is InService" in text


def test_hyperpod_needs_an_eks_cluster_that_is_done(slow_cloud: Any, refused: Refused) -> None:
    config = {"subnetIds": slow_cloud.subnets}
    made = slow_cloud.eks.create_cluster(name="new", roleArn=slow_cloud.eks_role, resourcesVpcConfig=config)
    wanted = slow_cloud.request(Orchestrator={"Eks": {"ClusterArn": made["cluster"]["arn"]}})
    assert "is CREATING; it must be ACTIVE" in refused("ValidationException", slow_cloud.sm.create_cluster, **wanted)


def test_a_resource_of_hyperpod_has_so_many_tags(cloud: Any, refused: Refused) -> None:
    arn = cloud.make_cluster()
    tags = [{"Key": f"k{number}", "Value": "v"} for number in range(MOST)]
    cloud.sm.add_tags(ResourceArn=arn, Tags=tags)
    more = [{"Key": "more", "Value": "v"}]
    text = refused("ResourceLimitExceeded", cloud.sm.add_tags, ResourceArn=arn, Tags=more)
    assert text == f"A resource can have up to {MOST} tags"


def test_an_update_names_a_group_once_and_none_that_goes(slow_cloud: Any, refused: Refused) -> None:
    slow_cloud.make_cluster(InstanceGroups=[slow_cloud.group(), slow_cloud.group("more")])
    update = slow_cloud.sm.update_cluster
    twice = [slow_cloud.group("new"), slow_cloud.group("new")]
    text = refused("ValidationException", update, ClusterName="train", InstanceGroups=twice)
    assert "'new' is given twice" in text
    update(ClusterName="train", InstanceGroupsToDelete=["more"])
    slow_cloud.advance(120)
    text = refused("ValidationException", update, ClusterName="train", InstanceGroups=[slow_cloud.group("more")])
    assert text == "Instance group 'more' is being deleted"


@pytest.mark.parametrize(
    ("service", "operation", "change", "part"),
    [
        ("sagemaker", "list_clusters", {"body": b'{"CreationTimeAfter": "yesterday"}'}, "'yesterday' is not a timest"),
        ("eks", "list_clusters", {"path": "/clusters?maxResults=ten"}, "'ten' is not an integer"),
    ],
)
def test_what_is_no_number_and_no_time_is_refused(
    cloud: Any, service: str, operation: str, change: dict[str, Any], part: str
) -> None:
    cloud.make_cluster()
    target = {"X-Amz-Target": "SageMaker.ListClusters"} if service == "sagemaker" else {}
    scope = f"AWS4-HMAC-SHA256 Credential=local/20260101/us-west-2/{service}/aws4_request"
    connection = HTTPConnection(cloud.endpoint.url.removeprefix("http://"))
    method = "POST" if service == "sagemaker" else "GET"
    connection.request(
        method, change.get("path", "/"), body=change.get("body"), headers={"Authorization": scope, **target}
    )
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    assert (answer.status, said["__type"]) == (400, "SerializationException"), operation
    assert part in said["message"]


def test_a_key_is_of_a_log_group_that_is_there(cloud: Any, refused: Refused) -> None:
    logs, name = cloud.endpoint.client("logs"), "/aws/eks/train/cluster"
    key = cloud.endpoint.client("kms").create_key()["KeyMetadata"]["Arn"]
    refused("ResourceNotFoundException", logs.associate_kms_key, logGroupName=name, kmsKeyId=key)
    logs.create_log_group(logGroupName=name)
    logs.associate_kms_key(logGroupName=name, kmsKeyId=key)
    (group,) = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert group["kmsKeyId"] == key
    logs.disassociate_kms_key(logGroupName=name)
    (group,) = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert "kmsKeyId" not in group
