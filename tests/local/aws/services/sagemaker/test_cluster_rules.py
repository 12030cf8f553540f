"""CreateCluster: a valid request, and one mutation per test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Mutation = Callable[[Any], dict[str, Any]]


def _group(**more: Any) -> Mutation:
    return lambda cloud: {"InstanceGroups": [cloud.group(**more)]}


def _kubernetes(**config: Any) -> Mutation:
    return _group(KubernetesConfig=config)


RULES: dict[str, tuple[Mutation, str]] = {
    "no group": (lambda _: {"InstanceGroups": None}, "A cluster needs at least one instance group"),
    "same name twice": (
        lambda cloud: {"InstanceGroups": [cloud.group(), cloud.group()]},
        "Instance group names must be unique: 'gpu' is given 2 times",
    ),
    "no type": (_group(InstanceType=None), "Instance group 'gpu' must have exactly one of InstanceType and"),
    "both type styles": (
        _group(InstanceRequirements={"InstanceTypes": ["ml.g5.xlarge"]}),
        "Instance group 'gpu' must have exactly one of InstanceType and InstanceRequirements",
    ),
    "duplicate types": (
        _group(InstanceType=None, InstanceRequirements={"InstanceTypes": ["ml.g5.xlarge", "ml.g5.xlarge"]}),
        "InstanceRequirements.InstanceTypes has duplicates",
    ),
    "flexible without continuous": (
        lambda cloud: {
            "NodeProvisioningMode": None,
            "InstanceGroups": [
                cloud.group(InstanceType=None, InstanceRequirements={"InstanceTypes": ["ml.g5.xlarge"]})
            ],
        },
        "InstanceRequirements needs NodeProvisioningMode Continuous",
    ),
    "spot without continuous": (
        lambda cloud: {
            "NodeProvisioningMode": None,
            "InstanceGroups": [cloud.group(CapacityRequirements={"Spot": {}})],
        },
        "Spot capacity needs NodeProvisioningMode Continuous",
    ),
    "spot and on demand": (
        _group(CapacityRequirements={"Spot": {}, "OnDemand": {}}),
        "CapacityRequirements is either Spot or OnDemand",
    ),
    "slurm group": (_group(SlurmConfig={"NodeType": "Compute"}), "SlurmConfig is not for clusters orchestrated"),
    "minimum above count": (
        _group(MinInstanceCount=3),
        "Instance group 'gpu': MinInstanceCount 3 is greater than InstanceCount 2",
    ),
    "minimum without continuous": (
        lambda cloud: {"NodeProvisioningMode": None, "InstanceGroups": [cloud.group(MinInstanceCount=1)]},
        "MinInstanceCount needs NodeProvisioningMode Continuous",
    ),
    "root volume with size": (
        _group(InstanceStorageConfigs=[{"EbsVolumeConfig": {"RootVolume": True, "VolumeSizeInGB": 10}}]),
        "a root volume takes VolumeKmsKeyId and no VolumeSizeInGB",
    ),
    "volume without size": (
        _group(InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeKmsKeyId": "k"}}]),
        "VolumeSizeInGB is required",
    ),
    "two root volumes": (
        _group(InstanceStorageConfigs=[{"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": "k"}}] * 2),
        "takes one root volume and one secondary volume",
    ),
    "two scripts": (
        _group(LifeCycleConfig={"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "a", "OnInitComplete": "b"}),
        "LifeCycleConfig takes OnCreate or OnInitComplete, not both",
    ),
    "script without source": (_group(LifeCycleConfig={"OnCreate": "a"}), "LifeCycleConfig needs SourceS3Uri"),
    "reserved label": (
        _kubernetes(Labels={"node.kubernetes.io/x": "y"}),
        "the key 'node.kubernetes.io/x' uses a reserved prefix",
    ),
    "reserved taint": (
        _kubernetes(Taints=[{"Key": "karpenter.sh/x", "Effect": "NoSchedule"}]),
        "the key 'karpenter.sh/x' uses a reserved prefix",
    ),
    "taints with health checks": (
        _group(
            OnStartDeepHealthChecks=["InstanceStress"],
            KubernetesConfig={"Taints": [{"Key": "team", "Effect": "NoSchedule"}]},
        ),
        "custom taints cannot be used with deep health checks",
    ),
    "drain policy without drain": (
        _group(AutoPatchConfig={"PatchingStrategy": "WhenIdle", "DrainPolicy": {"OnDrainTimeout": "Skip"}}),
        "DrainPolicy needs PatchingStrategy DrainFirst, not WhenIdle",
    ),
    "drain without batch": (
        _group(AutoPatchConfig={"PatchingStrategy": "DrainFirst"}),
        "PatchingStrategy DrainFirst needs a MaximumBatchSize",
    ),
    "unknown role": (
        _group(ExecutionRole="arn:aws:iam::123456789012:role/nobody"),
        "Unable to assume the execution role arn:aws:iam::123456789012:role/nobody",
    ),
    "role of another service": (
        lambda cloud: {"InstanceGroups": [cloud.group(ExecutionRole=cloud.eks_role)]},
        "its trust policy allows sagemaker.amazonaws.com",
    ),
    "unknown bucket": (
        _group(LifeCycleConfig={"SourceS3Uri": "s3://sagemaker-nowhere/x", "OnCreate": "a"}),
        "The S3 bucket 'sagemaker-nowhere' of s3://sagemaker-nowhere/x does not exist",
    ),
    "unknown subnet": (
        lambda cloud: {"VpcConfig": {"SecurityGroupIds": [cloud.sg], "Subnets": ["subnet-0"]}},
        "The subnet ID 'subnet-0' does not exist",
    ),
    "unknown security group": (
        lambda cloud: {"VpcConfig": {"SecurityGroupIds": ["sg-0"], "Subnets": cloud.subnets}},
        "The security group 'sg-0' does not exist",
    ),
    "unknown subnet of a group": (
        lambda cloud: {
            "InstanceGroups": [cloud.group(OverrideVpcConfig={"SecurityGroupIds": [cloud.sg], "Subnets": ["subnet-1"]})]
        },
        "The subnet ID 'subnet-1' does not exist",
    ),
    "no network": (lambda _: {"VpcConfig": None}, "VpcConfig is required"),
    "no orchestrator": (lambda _: {"Orchestrator": None}, "give Orchestrator.Eks.ClusterArn"),
    "unknown EKS cluster": (
        lambda _: {"Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:123456789012:cluster/none"}}},
        "The EKS cluster arn:aws:eks:us-west-2:123456789012:cluster/none does not exist",
    ),
    "autoscaling without continuous": (
        lambda cloud: {
            "NodeProvisioningMode": None,
            "AutoScaling": {"Mode": "Enable"},
            "ClusterRole": cloud.karpenter_role,
        },
        "AutoScaling needs NodeProvisioningMode Continuous",
    ),
    "autoscaling without role": (
        lambda _: {"AutoScaling": {"Mode": "Enable"}},
        "AutoScaling needs a ClusterRole",
    ),
    "autoscaling without recovery": (
        lambda cloud: {
            "AutoScaling": {"Mode": "Enable"},
            "ClusterRole": cloud.karpenter_role,
            "NodeRecovery": "None",
        },
        "AutoScaling needs NodeRecovery Automatic",
    ),
    "cluster role of another service": (
        lambda cloud: {"ClusterRole": cloud.node_role},
        "its trust policy allows hyperpod.sagemaker.amazonaws.com",
    ),
    "count out of range": (
        _group(count=6759),
        "Value '6759' at 'instanceGroups.1.member.instanceCount' failed to satisfy constraint: Member must have",
    ),
    "name with underscore": (
        lambda _: {"ClusterName": "a_b"},
        "Value 'a_b' at 'clusterName' failed to satisfy constraint: Member must satisfy regular expression pattern",
    ),
    "unknown instance type": (
        _group(InstanceType="ml.inf2.xlarge"),
        "Value 'ml.inf2.xlarge' at 'instanceGroups.1.member.instanceType' failed to satisfy constraint: Member",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_create_cluster_refuses(cloud: Any, refused: Callable[..., str], rule: str) -> None:
    mutate, message = RULES[rule]
    request = cloud.request(**mutate(cloud))
    for group in request.get("InstanceGroups", []):
        for name in [name for name, value in group.items() if value is None]:
            del group[name]
    assert message in refused("ValidationException", cloud.sm.create_cluster, **request)
    assert cloud.sm.list_clusters()["ClusterSummaries"] == [], "a refused request must leave nothing behind"


KEY = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize(
    ("action", "resource", "status"),
    [
        ("kms:Decrypt", KEY, "InService"),
        ("kms:*", "arn:aws:kms:us-west-2:*:key/*", "InService"),
        ("kms:Decrypt", KEY.replace("1111-", "9999-"), "Failed"),
        ("kms:Encrypt", KEY, "Failed"),
        ("s3:GetObject", "*", "Failed"),
    ],
)
def test_a_script_that_the_execution_role_cannot_decrypt_fails_the_creation(
    cloud: Any, action: str, resource: str, status: str, *, managed: bool
) -> None:
    bucket = {"Bucket": "sagemaker-locked", "CreateBucketConfiguration": {"LocationConstraint": "us-west-2"}}
    cloud.s3.create_bucket(**bucket)
    default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}}
    cloud.s3.put_bucket_encryption(Bucket="sagemaker-locked", ServerSideEncryptionConfiguration={"Rules": [default]})
    cloud.s3.put_object(Bucket="sagemaker-locked", Key="on_create.sh")
    statement = {"Effect": "Allow", "Action": [action], "Resource": [resource]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    if managed:
        arn = cloud.iam.create_policy(PolicyName="own", PolicyDocument=policy)["Policy"]["Arn"]
        cloud.iam.attach_role_policy(RoleName="node", PolicyArn=arn)
    else:
        cloud.iam.put_role_policy(RoleName="node", PolicyName="own", PolicyDocument=policy)
    config = {"SourceS3Uri": "s3://sagemaker-locked", "OnCreate": "on_create.sh"}
    cloud.make_cluster(InstanceGroups=[cloud.group(LifeCycleConfig=config)])
    cluster = cloud.describe()
    assert cluster["ClusterStatus"] == status
    assert status == "InService" or f"kms:Decrypt on resource: {KEY}" in cluster["FailureMessage"]


def test_a_missing_lifecycle_script_fails_the_creation(cloud: Any) -> None:
    config = {"SourceS3Uri": "s3://sagemaker-scripts/v2", "OnCreate": "on_create.sh"}
    cloud.sm.create_cluster(**cloud.request(InstanceGroups=[cloud.group(LifeCycleConfig=config)]))
    cluster = cloud.describe()
    assert cluster["ClusterStatus"] == "Failed"
    assert "lifecycle script on_create.sh not found under s3://sagemaker-scripts/v2" in cluster["FailureMessage"]
