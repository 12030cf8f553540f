"""Every operation that hpkit implements, called once with boto3: requests are parsed, and responses match the model."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hpkit_local.aws import api
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.validation import violations

VIEW = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"


def _hyperpod(cloud: Any) -> None:
    sm, arn = cloud.sm, cloud.govern()
    nodes = [node["InstanceId"] for node in cloud.nodes()]
    for entry in ({"InstanceGroupName": "gpu", "IncrementTargetCountBy": 1},):
        sm.batch_add_cluster_nodes(ClusterName=arn, NodesToAdd=[entry])
    sm.batch_reboot_cluster_nodes(ClusterName=arn, NodeIds=nodes[:1])
    sm.batch_replace_cluster_nodes(ClusterName=arn, NodeIds=nodes[:1])
    sm.batch_delete_cluster_nodes(ClusterName=arn, NodeIds=nodes[1:])
    sm.describe_cluster_node(ClusterName=arn, NodeId=cloud.nodes()[0]["InstanceId"])
    sm.list_cluster_events(ClusterName=arn)
    sm.update_cluster(ClusterName=arn, InstanceGroups=[cloud.group("more", 0)])
    sm.update_cluster_software(ClusterName=arn)
    sm.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])
    sm.list_tags(ResourceArn=arn)
    sm.delete_tags(ResourceArn=arn, TagKeys=["a"])
    quota, policy = cloud.quota(arn), cloud.policy(arn)
    sm.describe_compute_quota(ComputeQuotaId=quota)
    sm.update_compute_quota(ComputeQuotaId=quota, TargetVersion=1)
    assert len(sm.list_compute_quotas(ClusterArn=arn)["ComputeQuotaSummaries"]) == 1
    sm.describe_cluster_scheduler_config(ClusterSchedulerConfigId=policy)
    sm.update_cluster_scheduler_config(ClusterSchedulerConfigId=policy, TargetVersion=1)
    assert len(sm.list_cluster_scheduler_configs(ClusterArn=arn)["ClusterSchedulerConfigSummaries"]) == 1
    sm.delete_compute_quota(ComputeQuotaId=quota)
    sm.delete_cluster_scheduler_config(ClusterSchedulerConfigId=policy)
    sm.list_clusters()
    sm.describe_cluster(ClusterName=arn)
    sm.delete_cluster(ClusterName=arn)


def _training_plans(cloud: Any) -> None:
    sm = cloud.sm
    (offer, _) = sm.search_training_plan_offerings(InstanceType="ml.p5.48xlarge", InstanceCount=2)[
        "TrainingPlanOfferings"
    ]
    sm.create_training_plan(TrainingPlanName="december", TrainingPlanOfferingId=offer["TrainingPlanOfferingId"])
    sm.describe_training_plan(TrainingPlanName="december")


def _eks(cloud: Any) -> None:
    eks, kube = cloud.eks, {"clusterName": "kube"}
    role = cloud.role("pods", "pods.eks.amazonaws.com")
    cloud.make_eks("second")
    eks.describe_addon_versions()
    addon = {**kube, "addonName": "vpc-cni"}
    eks.describe_addon_configuration(addonName="vpc-cni", addonVersion="v1.20.4-eksbuild.1")
    eks.create_addon(**addon)
    eks.describe_addon(**addon)
    update = eks.update_addon(**addon, configurationValues="{}")["update"]["id"]
    eks.describe_update(name="kube", updateId=update, addonName="vpc-cni")
    eks.list_addons(**kube)
    eks.delete_addon(**addon)
    person = {**kube, "principalArn": "arn:aws:iam::123456789012:role/person"}
    eks.create_access_entry(**person, kubernetesGroups=["team"])
    eks.update_access_entry(**person, kubernetesGroups=["others"])
    eks.describe_access_entry(**person)
    eks.list_access_entries(**kube)
    eks.associate_access_policy(**person, policyArn=VIEW, accessScope={"type": "cluster"})
    eks.list_associated_access_policies(**person)
    eks.disassociate_access_policy(**person, policyArn=VIEW)
    eks.delete_access_entry(**person)
    made = eks.create_pod_identity_association(**kube, namespace="n", serviceAccount="s", roleArn=role)
    association = {**kube, "associationId": made["association"]["associationId"]}
    eks.describe_pod_identity_association(**association)
    eks.update_pod_identity_association(**association, roleArn=role)
    eks.list_pod_identity_associations(**kube)
    eks.delete_pod_identity_association(**association)
    eks.tag_resource(resourceArn=cloud.eks_arn, tags={"a": "b"})
    assert eks.list_tags_for_resource(resourceArn=cloud.eks_arn)["tags"] == {"a": "b"}
    eks.untag_resource(resourceArn=cloud.eks_arn, tagKeys=["a"])
    eks.update_cluster_config(name="kube", resourcesVpcConfig={"endpointPrivateAccess": True})
    eks.describe_cluster(name="kube")
    (newest, *_) = eks.describe_cluster_versions()["clusterVersions"]
    eks.update_cluster_version(name="kube", version=newest["clusterVersion"])
    eks.list_clusters()
    eks.delete_cluster(name="kube")


def _grafana(cloud: Any) -> None:
    grafana, user = cloud.endpoint.client("grafana"), {"id": "u", "type": "SSO_USER"}
    workspace = grafana.create_workspace(
        accountAccessType="CURRENT_ACCOUNT",
        permissionType="SERVICE_MANAGED",
        authenticationProviders=["AWS_SSO", "SAML"],
        workspaceName="g",
    )["workspace"]["id"]
    cloud.advance(180)
    which = {"workspaceId": workspace}
    assert grafana.describe_workspace(**which)["workspace"]["status"] == "ACTIVE"
    grafana.update_workspace(**which, workspaceDescription="d", removeVpcConfiguration=True)
    cloud.advance(30)
    arn = f"arn:aws:grafana:us-west-2:123456789012:/workspaces/{workspace}"
    grafana.tag_resource(resourceArn=arn, tags={"a": "b"})
    assert grafana.list_tags_for_resource(resourceArn=arn)["tags"] == {"a": "b"}
    grafana.untag_resource(resourceArn=arn, tagKeys=["a"])
    add = [{"action": "ADD", "role": "ADMIN", "users": [user]}]
    revoke = [{"action": "REVOKE", "role": "ADMIN", "users": [user]}]
    assert grafana.update_permissions(**which, updateInstructionBatch=add)["errors"] == []
    assert grafana.list_permissions(**which)["permissions"] == [{"user": user, "role": "ADMIN"}]
    grafana.update_permissions(**which, updateInstructionBatch=revoke)
    assert len(grafana.update_permissions(**which, updateInstructionBatch=revoke)["errors"]) == 1
    assert json.loads(grafana.describe_workspace_configuration(**which)["configuration"])["plugins"]
    grafana.update_workspace_configuration(**which, configuration='{"unifiedAlerting": {"enabled": true}}')
    cloud.advance(30)
    assert [each["id"] for each in grafana.list_workspaces()["workspaces"]] == [workspace]
    grafana.delete_workspace(**which)
    cloud.advance(60)
    assert grafana.list_workspaces()["workspaces"] == []


def _shared_with_moto(cloud: Any) -> None:
    """Return hpkit's own operations in services whose other operations moto implements."""
    amp, fsx = cloud.endpoint.client("amp"), cloud.endpoint.client("fsx")
    workspace = amp.create_workspace(alias="a")["workspaceId"]
    one, two = (
        f"alertmanager_config: 'route: {{receiver: {name}}}\n\n  receivers: [{{name: {name}}}]'".encode()
        for name in ("one", "two")
    )
    amp.create_alert_manager_definition(workspaceId=workspace, data=one)
    amp.put_alert_manager_definition(workspaceId=workspace, data=two)
    found = amp.describe_alert_manager_definition(workspaceId=workspace)["alertManagerDefinition"]
    assert found["data"] == two
    amp.delete_alert_manager_definition(workspaceId=workspace)
    system = fsx.create_file_system(FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=cloud.subnets[:1])
    identifier = system["FileSystem"]["FileSystemId"]
    fsx.update_file_system(FileSystemId=identifier, LustreConfiguration={"DataCompressionType": "LZ4"})
    (described,) = fsx.describe_file_systems(FileSystemIds=[identifier])["FileSystems"]
    assert described["LustreConfiguration"]["DataCompressionType"] == "LZ4"
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
    place = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": cloud.subnets[:1]}
    linked = fsx.create_file_system(**place, LustreConfiguration=lustre)["FileSystem"]["FileSystemId"]
    link = {"FileSystemId": linked, "FileSystemPath": "/data", "DataRepositoryPath": "s3://acme-data/"}
    cloud.endpoint.client("s3").create_bucket(
        Bucket="acme-data", CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
    )
    made = fsx.create_data_repository_association(**link)["Association"]["AssociationId"]
    fsx.update_data_repository_association(AssociationId=made, S3={"AutoImportPolicy": {"Events": ["NEW"]}})
    (shown,) = fsx.describe_data_repository_associations(AssociationIds=[made])["Associations"]
    assert shown["S3"] == {"AutoImportPolicy": {"Events": ["NEW"]}}
    fsx.delete_data_repository_association(AssociationId=made)
    assert fsx.describe_data_repository_associations()["Associations"] == []


def _logs(cloud: Any) -> None:
    logs, key = cloud.endpoint.client("logs"), cloud.endpoint.client("kms").create_key()["KeyMetadata"]["Arn"]
    logs.create_log_group(logGroupName="a")
    logs.associate_kms_key(logGroupName="a", kmsKeyId=key)
    logs.disassociate_kms_key(logGroupName="a")


def _identity_center(cloud: Any) -> None:
    sso = cloud.endpoint.client("sso-admin")
    assert len(sso.list_instances(RegionScope="ALL_REGIONS")["Instances"]) == 1


def test_every_operation_works_with_boto3(cloud: Any) -> None:
    _hyperpod(cloud)
    _training_plans(cloud)
    _eks(cloud)
    _grafana(cloud)
    _shared_with_moto(cloud)
    _identity_center(cloud)
    _logs(cloud)
    stats = cloud.endpoint.stats()
    assert stats["errors"] == {}
    called = {tuple(name.split(".")) for name in stats["calls"]}
    assert set(api.OPERATIONS) - called == set(), "an operation of our own that no contract test calls"


def test_an_answer_outside_the_model_is_a_defect_and_not_sent(
    cloud: Any, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(api.OPERATIONS, ("sagemaker", "ListClusters"), lambda _ctx, _params: {"Clusters": []})
    text = refused("InternalFailure", cloud.sm.list_clusters)
    assert "ListClusters built an answer its model forbids" in text
    assert "Value null at 'clusterSummaries' failed to satisfy constraint: Member must not be null" in text
    assert "at 'clusters' failed to satisfy constraint: Member must be one that the API model has" in text


def test_every_declared_status_is_one_of_the_service(cloud: Any) -> None:
    from hpkit_local.aws.service import MACHINES

    shapes = {
        "cluster": ("sagemaker", "ClusterStatus"),
        "group": ("sagemaker", "InstanceGroupStatus"),
        "node": ("sagemaker", "ClusterInstanceStatus"),
        "autoscaling": ("sagemaker", "ClusterAutoScalingStatus"),
        "quota": ("sagemaker", "SchedulerResourceStatus"),
        "policy": ("sagemaker", "SchedulerResourceStatus"),
        "eks": ("eks", "ClusterStatus"),
        "addon": ("eks", "AddonStatus"),
        "grafana": ("grafana", "WorkspaceStatus"),
    }
    for machine in MACHINES.values():
        service, shape = shapes[machine.kind]
        for status in filter(None, (machine.running, machine.done, machine.failed)):
            assert not list(violations(service_model(service).shape_for(shape), status)), (machine, status)


@pytest.mark.parametrize(
    ("service", "operation", "params"),
    [
        ("sagemaker", "create_endpoint", {"EndpointName": "x", "EndpointConfigName": "y"}),
        ("sagemaker", "list_cluster_extensions", {"ClusterArn": "x"}),
        ("eks", "describe_nodegroup", {"clusterName": "kube", "nodegroupName": "x"}),
        ("ec2", "describe_fpga_images", {}),
        ("sqs", "list_queues", {}),
        ("cloudformation", "list_stacks", {}),
    ],
)
def test_what_is_not_implemented_says_so(
    cloud: Any, refused: Callable[..., str], service: str, operation: str, params: dict[str, Any]
) -> None:
    client = cloud.endpoint.client(service)
    text = refused("UnsupportedOperation", getattr(client, operation), **params)
    name = client.meta.method_to_api_mapping[operation]
    assert text.startswith(f"The local AWS endpoint does not implement {service}:{name}.")
