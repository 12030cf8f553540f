"""Requests that EKS rejects and that no other test makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hpkit_local.aws.controllers import ControllerError, Controllers
from hpkit_local.aws.testing import running_endpoint

Refused = Callable[..., str]
OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"


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
    # Created while the version is offered; then the clock advances by years.
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


@pytest.mark.parametrize("category", ["taskGovernanceMetrics", "scalingMetrics", "networkMetrics"])
def test_a_category_that_is_off_has_nothing_between_off_and_advanced(
    cloud: Any, refused: Callable[..., str], category: str
) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName="eks-pod-identity-agent")
    addon = {"clusterName": "kube", "addonName": OBSERVABILITY}
    message = refused(
        "InvalidParameterException",
        cloud.eks.create_addon,
        **addon,
        configurationValues=json.dumps({"metricsProvider": {category: {"level": "BASIC"}}}),
    )
    assert f"[$.metricsProvider.{category}.level: 'BASIC' is not one of ['DISABLED', 'ADVANCED']]" in message
    for level in ("DISABLED", "ADVANCED"):
        values = {"metricsProvider": {category: {"level": level}}}
        cloud.eks.create_addon(**addon, configurationValues=json.dumps(values))
        cloud.eks.delete_addon(**addon)


KEY_ACTIONS = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ListGrants"]


def _encrypted(cloud: Any, *, key_policy: list[dict[str, Any]]) -> str:
    """Create a cluster that encrypts secrets with a key of the account, and return the key's ARN."""
    text = json.dumps({"Version": "2012-10-17", "Statement": key_policy})
    arn = str(cloud.endpoint.client("kms").create_key(Policy=text)["KeyMetadata"]["Arn"])
    cloud.make_eks("old", version="1.35", encryptionConfig=[{"provider": {"keyArn": arn}, "resources": ["secrets"]}])
    return arn


def _key_statement(principal: str, actions: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": actions, "Resource": "*"}


BY_ACCOUNT = [_key_statement("arn:aws:iam::123456789012:root", "kms:*")]


@pytest.mark.parametrize("missing", KEY_ACTIONS)
def test_a_cluster_whose_role_may_not_use_the_key_of_its_secrets_is_not_upgraded(
    cloud: Any, refused: Refused, missing: str
) -> None:
    key = _encrypted(cloud, key_policy=BY_ACCOUNT)
    asked = {"name": "old", "version": "1.36"}

    def allow(actions: list[str], resource: str) -> None:
        statement = {"Effect": "Allow", "Action": actions, "Resource": resource}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        cloud.iam.put_role_policy(RoleName="eks", PolicyName="key", PolicyDocument=policy)

    allow([each for each in KEY_ACTIONS if each != missing], key)
    text = refused("InvalidRequestException", cloud.eks.update_cluster_version, **asked)
    assert text == (
        f"Role with arn: {cloud.eks_role}, could not be assumed because it does not exist or the trusted entity is "
        "not correct"
    )
    allow(KEY_ACTIONS, f"{key}0")
    refused("InvalidRequestException", cloud.eks.update_cluster_version, **asked)
    allow(KEY_ACTIONS, key)
    cloud.eks.update_cluster_version(**asked)


def test_a_keys_own_policy_lets_a_role_use_it_or_keeps_its_policies_from_counting(cloud: Any, refused: Refused) -> None:
    key = _encrypted(cloud, key_policy=[_key_statement("arn:aws:iam::123456789012:role/other", "kms:*")])
    statement = {"Effect": "Allow", "Action": "kms:*", "Resource": key}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    cloud.iam.put_role_policy(RoleName="eks", PolicyName="key", PolicyDocument=policy)
    refused("InvalidRequestException", cloud.eks.update_cluster_version, name="old", version="1.36")
    own = json.dumps({"Version": "2012-10-17", "Statement": [_key_statement(cloud.eks_role, KEY_ACTIONS)]})
    cloud.endpoint.client("kms").put_key_policy(KeyId=key, PolicyName="default", Policy=own)
    cloud.iam.delete_role_policy(RoleName="eks", PolicyName="key")
    cloud.eks.update_cluster_version(name="old", version="1.36")
