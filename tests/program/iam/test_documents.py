"""IAM documents: valid, least privilege, and sufficient for the service's calls."""

import bisect
import json
from dataclasses import replace

import pytest

from hpkit.config.models.storage import TeamBucket
from hpkit.program.iam import documents as iam
from hpkit.program.iam.live import AwsAccount
from tests.builders import organization, rules, team
from tests.program.iam.authorization import problems

ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
EKS = "arn:aws:eks:us-west-2:123456789012:cluster/handson-dev"
KEY = "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"
QUEUE = "arn:aws:sqs:us-west-2:123456789012:requests"
WORKSPACE = "arn:aws:aps:us-west-2:123456789012:workspace/ws-1"
RIGHTS = {
    "nodes": iam.instance_role_policy(
        ACCOUNT,
        eks_arn=EKS,
        bucket_arn="arn:aws:s3:::sagemaker-scripts",
        vpc_id="vpc-0a1b2c3d4e5f60718",
        subnet_ids=["subnet-0a1b2c3d4e5f60718"],
        security_group_ids=["sg-0a1b2c3d4e5f60718"],
    ),
    "nodes with images of their own": iam.instance_role_policy(
        ACCOUNT,
        eks_arn=EKS,
        bucket_arn=None,
        vpc_id="vpc-0a1b2c3d4e5f60718",
        subnet_ids=["subnet-0a1b2c3d4e5f60718"],
        security_group_ids=["sg-0a1b2c3d4e5f60718"],
        pulled=["handson-dev/*"],
    ),
    "karpenter": iam.iam_document("karpenter-role", ACCOUNT),
    "metrics": iam.iam_document("metrics", ACCOUNT, workspace=WORKSPACE),
    "grafana": iam.iam_document("grafana", ACCOUNT, eks="handson-dev", workspace=WORKSPACE, listed="*", topic=None),
    "grafana without Prometheus": iam.iam_document(
        "grafana", ACCOUNT, eks="handson-dev", workspace=None, listed=None, topic=None
    ),
    "keda": iam.iam_document("keda", workspace=WORKSPACE, metrics="*", queues=[QUEUE]),
    "scientist": iam.scientist_policy(ACCOUNT, eks="handson-dev", tags={"hpkit:environment": "dev"}),
    "scientist with repositories": iam.scientist_policy(
        ACCOUNT, eks="handson-dev", tags={}, repositories=["handson-dev/john/train"]
    ),
    "volumes": iam.iam_document(
        "volumes", nodes="arn:aws:sagemaker:us-west-2:123456789012:cluster/0a1b2c3d4e5f", cluster=EKS
    ),
    "inference": iam.iam_document("inference", ACCOUNT, certificates="acme-certificates"),
    "models": iam.iam_document(
        "models", model_buckets=["arn:aws:s3:::acme-models"], model_objects=["arn:aws:s3:::acme-models/*"]
    ),
    "team buckets": iam.team_buckets_policy(
        ACCOUNT,
        [
            TeamBucket(
                bucket="acme-data", prefix="john/", kmsKeyArn=f"arn:aws:kms:us-west-2:123456789012:key/{'1' * 36}"
            ),
            TeamBucket(bucket="acme-models", readOnly=True),
        ],
    ),
    "space": iam.iam_document("space", ACCOUNT),
    "router": iam.iam_document(
        "router", key="arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"
    ),
    "load balancers": iam.iam_document("load-balancers", ACCOUNT),
    "secrets key": iam.iam_document("secrets-key", key=KEY),
    "lustre": iam.iam_document(
        "lustre", file_system="arn:aws:fsx:us-west-2:123456789012:file-system/fs-0a1b2c3d4e5f60718"
    ),
}
# SageMaker HyperPod developer guide, IAM for HyperPod on EKS: the execution role's permissions in addition to the
# managed policy.
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


def test_the_pods_of_a_team_reach_only_its_prefix_and_only_buckets_of_the_account():
    statements = RIGHTS["team buckets"]["Statement"]
    on_s3 = [each for each in statements if each["Action"][0].startswith("s3:")]
    assert {each["Condition"]["StringEquals"]["aws:ResourceAccount"] for each in on_s3} == {ACCOUNT.id}
    assert [(each["Action"][-1], each["Resource"]) for each in on_s3] == [
        ("s3:GetObject", ["arn:aws:s3:::acme-data/john/*", "arn:aws:s3:::acme-models/*"]),
        ("s3:PutObject", ["arn:aws:s3:::acme-data/john/*"]),
        ("s3:ListBucket", ["arn:aws:s3:::acme-models"]),
        ("s3:ListBucket", ["arn:aws:s3:::acme-data"]),
    ]
    assert on_s3[3]["Condition"]["StringLike"] == {"s3:prefix": ["john/", "john/*"]}


@pytest.mark.parametrize("more", [{"prefix": "p/"}, {"prefix": f"{'p' * 99}/"}, {"readOnly": True}, {}])
@pytest.mark.parametrize("with_key", [True, False])
def test_a_policy_of_buckets_that_the_rule_accepts_fits_in_a_role(more, with_key):
    def described(count):
        key = {"kmsKeyArn": f"arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/{'1' * 36}"} if with_key else {}
        stated = [{"bucket": f"b{'u' * 60}{index:02}", **more, **key} for index in range(count)]
        data = organization(
            teams=[team("vision")],
            allocations={"vision": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
            environment={"storage": {"teamBuckets": {"vision": stated}}},
        )
        return "STO010" not in rules(data), [TeamBucket(**each) for each in stated]

    most = bisect.bisect_left(range(98), True, key=lambda count: not described(count + 1)[0])
    partition = replace(ACCOUNT, partition="aws-us-gov", region="us-gov-west-1")
    policy = json.dumps(iam.team_buckets_policy(partition, described(most)[1]), separators=(",", ":"))
    assert len(policy) <= 10_240
    assert 8 < most < 98


def actions(document):
    return {action for statement in document["Statement"] for action in statement["Action"]}


@pytest.mark.parametrize("name", RIGHTS)
def test_the_reference_knows_all_that_a_document_says(name):
    assert list(problems(RIGHTS[name])) == []


@pytest.mark.parametrize("name", RIGHTS)
def test_no_document_has_a_wildcard_among_its_actions(name):
    assert not any("*" in action for action in actions(RIGHTS[name]))


def test_the_execution_role_may_all_that_the_service_does_with_it():
    assert actions(RIGHTS["nodes"]) >= NODES_NEED


def test_the_execution_role_decrypts_with_the_key_of_its_scripts_alone():
    bucket, key = "arn:aws:s3:::sagemaker-scripts", "arn:aws:kms:us-west-2:123456789012:key/" + "1" * 36
    more = {"eks_arn": EKS, "vpc_id": "vpc-1", "subnet_ids": [], "security_group_ids": []}

    def decrypting(**given):
        rights = iam.instance_role_policy(ACCOUNT, **more, **given)
        return [each["Resource"] for each in rights["Statement"] if "kms:Decrypt" in each["Action"]]

    assert decrypting(bucket_arn=bucket, key_arn=key) == [[key]]
    assert decrypting(bucket_arn=bucket, key_arn=None) == []
    assert decrypting(bucket_arn=None, key_arn=key) == [], "nobody runs a script"


def test_the_execution_role_reads_alarms_only_where_updates_are_rolled_back_by_them():
    more = {"eks_arn": EKS, "bucket_arn": None, "vpc_id": "vpc-1", "subnet_ids": [], "security_group_ids": []}
    watching = iam.instance_role_policy(ACCOUNT, **more, watches_alarms=True)
    assert [each["Resource"] for each in watching["Statement"] if each["Action"] == ["cloudwatch:DescribeAlarms"]] == [
        ["*"]
    ], "composite alarms are told to no narrower right"
    assert "cloudwatch:DescribeAlarms" not in actions(RIGHTS["nodes"])


def test_grafana_reads_both_of_its_data_sources_and_no_logs_of_others():
    assert actions(RIGHTS["grafana"]) >= {
        *("cloudwatch:GetMetricData", "cloudwatch:ListMetrics", "logs:StartQuery", "logs:GetQueryResults"),
        *("aps:QueryMetrics", "aps:GetLabels", "aps:GetSeries", "aps:GetMetricMetadata", "aps:ListRules"),
    }
    logs = [each["Resource"] for each in RIGHTS["grafana"]["Statement"] if "logs:StartQuery" in each["Action"]]
    assert logs
    assert all(":log-group:/aws/" in arn for resources in logs for arn in resources)
    assert not any(action.startswith("aps:") for action in actions(RIGHTS["grafana without Prometheus"]))


def test_the_collector_may_all_that_the_guide_checks_its_role_for():
    """SageMaker developer guide, troubleshooting of the observability add-on, "Verify Pod Identity association"."""
    logs = (
        "CreateLogGroup CreateLogStream DescribeLogGroups DescribeLogStreams PutLogEvents GetLogEvents FilterLogEvents "
        "GetLogRecord StartQuery StopQuery GetQueryResults"
    )
    assert actions(RIGHTS["metrics"]) == {"aps:RemoteWrite", *(f"logs:{each}" for each in logs.split())}


def test_volumes_are_attached_by_sagemaker_to_nodes_of_one_cluster():
    assert actions(RIGHTS["volumes"]) == {
        *("sagemaker:AttachClusterNodeVolume", "sagemaker:DetachClusterNodeVolume", "eks:DescribeCluster")
    }
    assert not any("*" in arn for each in RIGHTS["volumes"]["Statement"] for arn in each["Resource"])


def test_the_topic_of_alerts_is_open_to_one_workspace_alone():
    topic = "arn:aws:sns:us-west-2:123456789012:acme-dev-alerts"
    (statement,) = iam.topic_policy(ACCOUNT, topic_arn=topic, workspace_arn=WORKSPACE, events=False)["Statement"]
    assert statement["Principal"] == {"Service": "aps.amazonaws.com"}
    assert statement["Condition"] == {
        "ArnEquals": {"aws:SourceArn": WORKSPACE},
        "StringEquals": {"aws:SourceAccount": "123456789012"},
    }


def test_karpenter_may_add_and_delete_nodes_and_no_more():
    assert {action for action in actions(RIGHTS["karpenter"]) if action.startswith("sagemaker:")} == {
        "sagemaker:BatchAddClusterNodes",
        "sagemaker:BatchDeleteClusterNodes",
    }


def test_services_are_trusted_for_this_account_alone():
    trust = iam.iam_document("service-trust-from-account", ACCOUNT, service="eks.amazonaws.com")["Statement"][0]
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    pods = iam.iam_document("pod-trust", ACCOUNT, cluster=EKS)["Statement"][0]
    assert pods["Condition"]["ArnEquals"] == {"aws:SourceArn": EKS}


def test_the_bucket_refuses_what_is_not_tls():
    more = {"whose": "Deployers", "writers": (), "keepers": (), "sealed_bucket": ()}
    statement = iam.iam_document("bucket", bucket="arn:aws:s3:::sagemaker-scripts", **more)["Statement"][0]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_a_source_of_keda_that_the_file_leaves_out_is_left_out():
    (statement,) = iam.iam_document("keda", workspace=None, metrics=None, queues=[QUEUE])["Statement"]
    assert (statement["Action"], statement["Resource"]) == (["sqs:GetQueueAttributes"], [QUEUE])
    assert actions(iam.iam_document("keda", workspace=WORKSPACE, metrics=None, queues=())) == {
        "aps:GetLabels",
        "aps:GetMetricMetadata",
        "aps:GetSeries",
        "aps:QueryMetrics",
    }


def test_a_scientist_finds_the_cluster_of_the_stack_and_has_no_shell_on_a_node():
    policy = iam.scientist_policy(ACCOUNT, eks="handson-dev", tags={"hpkit:environment": "dev"})
    assert actions(policy) == {"sagemaker:DescribeCluster", "eks:DescribeCluster", "sagemaker:ListClusters"}
    cluster, kubernetes, _ = policy["Statement"]
    assert cluster["Condition"] == {"StringEquals": {"aws:ResourceTag/hpkit:environment": "dev"}}
    assert kubernetes["Resource"] == [EKS]
