"""IAM documents: linted, least privilege, and enough for what the service does with them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpkit.iam import documents as iam
from hpkit.iam.account import AwsAccount

ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
EKS = "arn:aws:eks:us-west-2:123456789012:cluster/handson-dev"
WORKSPACE = "arn:aws:aps:us-west-2:123456789012:workspace/ws-1"
RIGHTS = {
    "nodes": iam.instance_role_policy(
        ACCOUNT,
        eks_arn=EKS,
        bucket_arn="arn:aws:s3:::sagemaker-scripts",
        subnet_ids=["subnet-0a1b2c3d4e5f60718"],
        security_group_ids=["sg-0a1b2c3d4e5f60718"],
    ),
    "karpenter": iam.karpenter_role_policy(ACCOUNT),
    "metrics": iam.metrics_policy(ACCOUNT, WORKSPACE),
    "grafana": iam.grafana_policy(WORKSPACE),
    "lustre": iam.lustre_policy("arn:aws:fsx:us-west-2:123456789012:file-system/fs-0a1b2c3d4e5f60718"),
}
# Service Authorization Reference: these actions take no resource.
NEWER_THAN_THE_LINTER = {"sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"}
TAKE_NO_RESOURCE = {
    "fsx:DescribeFileSystems",
    "aps:ListWorkspaces",
    "ecr:GetAuthorizationToken",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
}
# SageMaker HyperPod developer guide, IAM for HyperPod on EKS: what the execution role needs beside the managed policy.
NODES_NEED = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeSubnets",
    "ec2:DescribeSecurityGroups",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
    "ec2:CreateTags",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "eks-auth:AssumeRoleForPodIdentity",
}


def actions(document):
    return {action for statement in document["Statement"] for action in statement["Action"]}


def lint(document):
    """Return what the linter says; its list of actions is older than the newest of HyperPod and Pod Identity."""
    linter = Path(sys.executable).with_name("parliament")
    done = subprocess.run(
        [linter, "--json", "--string", json.dumps(document)],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert "usage:" not in done.stderr, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [each for each in found if each["location"].get("string") not in NEWER_THAN_THE_LINTER]


@pytest.mark.parametrize("name", RIGHTS)
def test_the_linter_finds_nothing(name):
    assert lint(RIGHTS[name]) == []


def test_the_linter_would_find_an_action_that_does_not_exist():
    statement = {"Effect": "Allow", "Action": ["ec2:NoSuch"], "Resource": ["*"]}
    assert [each["issue"] for each in lint({"Version": "2012-10-17", "Statement": [statement]})] == ["UNKNOWN_ACTION"]


@pytest.mark.parametrize("name", RIGHTS)
def test_a_wildcard_resource_stands_only_with_actions_that_take_none(name):
    for statement in RIGHTS[name]["Statement"]:
        assert not any("*" in action for action in statement["Action"])
        if statement["Resource"] == ["*"]:
            assert set(statement["Action"]) <= TAKE_NO_RESOURCE


def test_the_execution_role_may_all_that_the_service_does_with_it():
    assert actions(RIGHTS["nodes"]) >= NODES_NEED


def test_karpenter_may_add_and_delete_nodes_and_no_more():
    assert {action for action in actions(RIGHTS["karpenter"]) if action.startswith("sagemaker:")} == {
        "sagemaker:BatchAddClusterNodes",
        "sagemaker:BatchDeleteClusterNodes",
    }


def test_services_are_trusted_for_this_account_alone():
    trust = iam.service_trust(ACCOUNT, "sagemaker.amazonaws.com")["Statement"][0]
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    pods = iam.pod_trust(ACCOUNT, EKS)["Statement"][0]
    assert pods["Condition"]["ArnEquals"] == {"aws:SourceArn": EKS}


def test_the_bucket_refuses_what_is_not_tls():
    statement = iam.bucket_policy("arn:aws:s3:::sagemaker-scripts")["Statement"][0]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
