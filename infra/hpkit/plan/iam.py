"""IAM documents of the platform's roles and of the lifecycle bucket, as plain data.

Every document names resources where the API takes them; `*` stands only with actions that take none, and with
resources that live in accounts of the service.

Sources: SageMaker HyperPod developer guide, "IAM for HyperPod", "Autoscaling on EKS: IAM role"; Service
Authorization Reference (which actions take a resource); Amazon EKS user guide, EKS Pod Identity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Place",
    "bucket_policy",
    "grafana_policy",
    "instance_role_policy",
    "karpenter_role_policy",
    "key_policy",
    "lustre_policy",
    "managed_policy",
    "metrics_policy",
    "pod_trust",
    "service_trust",
]

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the platform lives: partition (`aws`), region and 12-digit account."""

    partition: str
    region: str
    account: str

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account in this region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def managed_policy(place: Place, name: str) -> str:
    """Return the ARN of a policy that AWS manages."""
    return f"arn:{place.partition}:iam::aws:policy/{name}"


def service_trust(place: Place, service: str, *, from_account: bool = True) -> Document:
    """Let a service assume the role, for resources of this account only (the confused-deputy condition)."""
    statement: Document = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }
    if from_account:
        statement["Condition"] = {"StringEquals": {"aws:SourceAccount": place.account}}
    return _document(statement)


def pod_trust(place: Place, cluster_arn: str) -> Document:
    """Let EKS Pod Identity assume the role, for pods of this cluster only."""
    return _document(
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {"aws:SourceAccount": place.account},
                "ArnEquals": {"aws:SourceArn": cluster_arn},
            },
        }
    )


def instance_role_policy(
    place: Place, *, eks_arn: str, bucket_arn: str | None, subnet_ids: Sequence[str], security_group_ids: Sequence[str]
) -> Document:
    """Return what an instance group's execution role needs on EKS, beside the policy that AWS manages for it.

    bucket_arn: where lifecycle scripts lie, None without any.
    """
    interfaces = place.arn("ec2", "network-interface/*")
    subnets = [place.arn("ec2", f"subnet/{subnet}") for subnet in subnet_ids]
    groups = [place.arn("ec2", f"security-group/{group}") for group in security_group_ids]
    # The instances belong to accounts of the service.
    instances = f"arn:{place.partition}:ec2:{place.region}:*:instance/*"
    return _document(
        _allow(
            "Describe",
            [
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeInstances",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeTags",
                "ec2:DescribeVpcs",
                "ecr:GetAuthorizationToken",
            ],
            ["*"],
        ),
        _allow("CreateInterfaces", ["ec2:CreateNetworkInterface"], [interfaces, *subnets, *groups]),
        _allow(
            "Interfaces",
            [
                "ec2:AssignPrivateIpAddresses",
                "ec2:CreateNetworkInterfacePermission",
                "ec2:DeleteNetworkInterface",
                "ec2:DeleteNetworkInterfacePermission",
                "ec2:UnassignPrivateIpAddresses",
            ],
            [interfaces],
        ),
        _allow(
            "AttachInterfaces",
            ["ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"],
            [interfaces, instances, *groups],
        ),
        _allow("TagInterfaces", ["ec2:CreateTags"], [interfaces]),
        _allow(
            "Images",
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            # HyperPod's own images come from registries of AWS accounts.
            [f"arn:{place.partition}:ecr:*:*:repository/*"],
        ),
        _allow("PodIdentity", ["eks-auth:AssumeRoleForPodIdentity"], [eks_arn]),
        *_scripts(bucket_arn),
    )


def karpenter_role_policy(place: Place) -> Document:
    """Return what managed Karpenter needs: add and delete nodes, and grants on the keys of their volumes."""
    return _document(
        {
            **_allow(
                "Nodes",
                ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
                [place.arn("sagemaker", "cluster/*")],
            ),
            "Condition": {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}},
        },
        {
            **_allow("VolumeKeys", ["kms:DescribeKey"], [place.arn("kms", "key/*")]),
            "Condition": {"StringLike": {"kms:ViaService": "sagemaker.*.amazonaws.com"}},
        },
        {
            # The conditions on grants are unknown to DescribeKey, which they would therefore refuse.
            **_allow("VolumeGrants", ["kms:CreateGrant"], [place.arn("kms", "key/*")]),
            "Condition": {
                "StringLike": {"kms:ViaService": "sagemaker.*.amazonaws.com"},
                "Bool": {"kms:GrantIsForAWSResource": "true"},
                "ForAllValues:StringEquals": {
                    "kms:GrantOperations": [
                        "CreateGrant",
                        "Decrypt",
                        "DescribeKey",
                        "GenerateDataKeyWithoutPlaintext",
                        "ReEncryptFrom",
                        "ReEncryptTo",
                        "RetireGrant",
                    ]
                },
            },
        },
    )


def metrics_policy(place: Place, workspace_arn: str) -> Document:
    """Return what the observability add-on's collector needs: write to the workspace, log the cluster's events."""
    logs = place.arn("logs", "log-group:/aws/sagemaker/Clusters/*")
    return _document(
        _allow("Write", ["aps:RemoteWrite"], [workspace_arn]),
        _allow(
            "Logs",
            ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            [logs, f"{logs}:log-stream:*"],
        ),
    )


def grafana_policy(workspace_arn: str) -> Document:
    """Return what Managed Grafana needs to query one workspace."""
    return _document(
        _allow("List", ["aps:ListWorkspaces"], ["*"]),
        _allow(
            "Query",
            ["aps:DescribeWorkspace", "aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics"],
            [workspace_arn],
        ),
    )


def lustre_policy(file_system_arn: str) -> Document:
    """Return what the FSx CSI driver needs to mount one file system that is there already."""
    return _document(
        _allow("Look", ["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "fsx:DescribeFileSystems"], ["*"]),
        _allow("Tags", ["fsx:ListTagsForResource"], [file_system_arn]),
    )


def key_policy(place: Place, log_group: str) -> Document:
    """Return the policy of the platform's key: the account governs it by IAM, CloudWatch Logs uses it for one group."""
    return _document(
        {
            "Sid": "Account",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:{place.partition}:iam::{place.account}:root"},
            "Action": "kms:*",
            "Resource": "*",
        },
        {
            "Sid": "Logs",
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{place.region}.amazonaws.com"},
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
            "Resource": "*",
            "Condition": {
                "ArnEquals": {"kms:EncryptionContext:aws:logs:arn": place.arn("logs", f"log-group:{log_group}")}
            },
        },
    )


def bucket_policy(bucket_arn: str) -> Document:
    """Refuse every request to the bucket that does not come over TLS."""
    return _document(
        {
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [bucket_arn, f"{bucket_arn}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )


def _scripts(bucket_arn: str | None) -> list[Document]:
    if bucket_arn is None:
        return []
    return [
        _allow("LifecycleScripts", ["s3:GetObject"], [f"{bucket_arn}/*"]),
        _allow("LifecycleBucket", ["s3:ListBucket"], [bucket_arn]),
    ]


def _allow(sid: str, actions: list[str], resources: list[str]) -> Document:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}


def _document(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}
