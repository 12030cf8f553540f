"""A stack without violations, for tests that break one thing; and policies that run without an engine."""

import copy
import dataclasses
import datetime
import json
from typing import Any

from hpkit_policies.model import Policy, Resource, Undecided, Violation, unknown_as_undecided

TODAY = datetime.date(2026, 11, 21)
ACCOUNT = "123456789012"
TAGS = {"hpkit:organization": "acme", "hpkit:environment": "dev"}
LISTED_TAGS = [{"key": key, "value": value} for key, value in TAGS.items()]
CLUSTER_ARN = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:cluster/abcdefghijkl"
PROVIDER = {"region": "us-east-1", "allowedAccountIds": [ACCOUNT]}
ABSENT = object()


def urn(kind: str, name: str) -> str:
    return f"urn:pulumi:dev::hpkit::{kind}::{name}"


def resource(kind: str, label: str, /, *, protect: bool = False, needs: dict[str, str] | None = None, **props: Any):
    return Resource(
        kind,
        label,
        urn(kind, label),
        props,
        protect=protect,
        provider=PROVIDER,
        property_dependencies={key: (source,) for key, source in (needs or {}).items()},
    )


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(actions: str | list[str], resources: str | list[str], **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources, **more}


def trust(service: str = "sagemaker.amazonaws.com", **more: Any) -> dict[str, Any]:
    condition = {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    return {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
        "Condition": condition,
        **more,
    }


def group(name: str, instance_type: str, count: int, **more: Any) -> dict[str, Any]:
    return {"instanceGroupName": name, "instanceType": instance_type, "instanceCount": count, **more}


def quota(team: str, count: int, *, elastic: bool = False, **row: Any) -> Resource:
    rows = [{"instanceType": "ml.g5.12xlarge", **({"count": count} if count else {}), **row}]
    return resource(
        "hyperpod:index:ComputeQuota",
        team,
        needs={"clusterArn": urn("hyperpod:index:Cluster", "train")},
        name=team,
        clusterArn=CLUSTER_ARN,
        computeQuotaConfig={"computeQuotaResources": rows},
        computeQuotaTarget={"teamName": team},
        elasticInstanceTypes=[rows[0]["instanceType"]] if elastic else [],
        tags=LISTED_TAGS,
    )


def happy() -> dict[str, Resource]:
    """Return the parts of a stack, each under a short name."""
    return {part: copy.deepcopy(each) for part, each in {**_platform(), **_inside()}.items()}


def _platform() -> dict[str, Resource]:
    bucket = urn("aws:s3/bucket:Bucket", "lifecycle")
    return {
        "vpc": resource("aws:ec2/vpc:Vpc", "network", protect=True, cidrBlock="10.192.0.0/16", tags=TAGS),
        "guard": resource("hyperpod:index:ChangeGuard", "keep-base", subject="acme-dev", identity={"vpc": "vpc-1"}),
        "security_group": resource("aws:ec2/securityGroup:SecurityGroup", "nodes", tags=TAGS),
        "ingress": resource(
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            "nodes",
            ipProtocol="tcp",
            fromPort=443,
            toPort=443,
            cidrIpv4="10.0.0.0/8",
        ),
        "rule": resource(
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            "legacy",
            type="ingress",
            protocol="tcp",
            fromPort=22,
            toPort=22,
            cidrBlocks=["10.0.0.0/8"],
        ),
        "eks": resource(
            "aws:eks/cluster:Cluster",
            "cluster",
            protect=True,
            name="acme",
            accessConfig={"authenticationMode": "API"},
            vpcConfig={"endpointPublicAccess": True, "publicAccessCidrs": ["203.0.113.0/24"]},
            enabledClusterLogTypes=["api", "audit", "authenticator", "controllerManager", "scheduler"],
            encryptionConfig={"resources": ["secrets"], "provider": {"keyArn": "arn:aws:kms:…"}},
            tags=TAGS,
        ),
        "addon": resource("aws:eks/addon:Addon", "cni", addonName="vpc-cni", addonVersion="v1.20.0", tags=TAGS),
        "role": resource("aws:iam/role:Role", "nodes", assumeRolePolicy=document(trust()), tags=TAGS),
        "role_policy": resource(
            "aws:iam/rolePolicy:RolePolicy",
            "nodes",
            policy=document(
                allow(["ec2:DescribeInstances"], "*"), allow("s3:GetObject", "arn:aws:s3:::acme-lifecycle/*")
            ),
        ),
        "bucket": resource(
            "aws:s3/bucket:Bucket", "lifecycle", bucket="acme-lifecycle", id="acme-lifecycle", tags=TAGS
        ),
        "block": resource(
            "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
            "lifecycle",
            needs={"bucket": bucket},
            bucket="acme-lifecycle",
            blockPublicAcls=True,
            blockPublicPolicy=True,
            ignorePublicAcls=True,
            restrictPublicBuckets=True,
        ),
        "encryption": resource(
            "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
            "lifecycle",
            needs={"bucket": bucket},
            bucket="acme-lifecycle",
            rules=[{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
        ),
        "versioning": resource(
            "aws:s3/bucketVersioning:BucketVersioning",
            "lifecycle",
            needs={"bucket": bucket},
            bucket="acme-lifecycle",
            versioningConfiguration={"status": "Enabled"},
        ),
        "bucket_policy": resource(
            "aws:s3/bucketPolicy:BucketPolicy",
            "lifecycle",
            needs={"bucket": bucket},
            bucket="acme-lifecycle",
            policy=document(TLS_ONLY),
        ),
        "cluster": resource(
            "hyperpod:index:Cluster",
            "train",
            protect=True,
            clusterName="train",
            clusterArn=CLUSTER_ARN,
            nodeProvisioningMode="Continuous",
            nodeRecovery="Automatic",
            instanceGroups=[group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)],
            tags=LISTED_TAGS,
        ),
    }


TLS_ONLY = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": ["arn:aws:s3:::acme-lifecycle", "arn:aws:s3:::acme-lifecycle/*"],
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def _inside() -> dict[str, Resource]:
    principal = f"arn:aws:iam::{ACCOUNT}:role/john-scientists"
    subjects = [{"kind": "Group", "name": "hyperpod:team:john"}]
    return {
        "john": quota("john", 3),
        "smith": quota("smith", 1),
        "serving": quota("serving", 16, elastic=True, instanceType="ml.g5.8xlarge"),
        "node_class": resource(
            "kubernetes:karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass",
            "burst",
            metadata={"name": "burst"},
            spec={"instanceGroups": ["burst"]},
        ),
        "node_pool": resource(
            "kubernetes:karpenter.sh/v1:NodePool",
            "inference",
            metadata={"name": "inference"},
            spec={
                "template": {"spec": {"nodeClassRef": {"name": "burst"}, "requirements": []}},
                "limits": {"nvidia.com/gpu": "16"},
            },
        ),
        "release": resource(
            "kubernetes:helm.sh/v3:Release",
            "keda",
            chart="../.hpkit/charts/keda-2.17.2-af53d162055c.tgz",
            version="2.17.2",
        ),
        "entry": resource(
            "aws:eks/accessEntry:AccessEntry",
            "john",
            principalArn=principal,
            kubernetesGroups=["hyperpod:team:john"],
            tags=TAGS,
        ),
        "association": resource(
            "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
            "john",
            principalArn=principal,
            policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonSagemakerHyperpodTrainingPolicy",
            accessScope={"type": "namespace", "namespaces": ["hyperpod-ns-john"]},
        ),
        "cluster_role": resource(
            "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
            "reader",
            metadata={"name": "reader"},
            rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}],
        ),
        "cluster_binding": resource(
            "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
            "reader",
            roleRef={"kind": "ClusterRole", "name": "reader"},
            subjects=subjects,
        ),
        "team_role": resource(
            "kubernetes:rbac.authorization.k8s.io/v1:Role",
            "john",
            metadata={"name": "scientist", "namespace": "hyperpod-ns-john"},
            rules=[{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create"]}],
        ),
        "binding": resource(
            "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding",
            "john",
            metadata={"namespace": "hyperpod-ns-john"},
            roleRef={"kind": "Role", "name": "scientist"},
            subjects=subjects,
        ),
    }


def changed(resource: Resource, path: str, value: Any) -> Resource:
    """Return a resource with one input changed, or removed for ABSENT; `protect` and `@type` are accepted too."""
    if path in ("protect", "@type"):
        return dataclasses.replace(resource, **{path.removeprefix("@"): value})
    props: Any = copy.deepcopy(dict(resource.props))
    inner: Any = props
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in parents:
        inner = inner[step]
    if value is ABSENT:
        del inner[last]
    else:
        inner[last] = value
    return dataclasses.replace(resource, props=props)


def results_of(policy: Policy, stack: dict[str, Resource], **settings: Any) -> list[Violation | Undecided]:
    """Return a policy's results for a stack, with the pack's defaults."""
    configuration = {**policy.defaults, **settings}
    runs = (
        [policy.validate_stack(list(stack.values()), configuration)]
        if policy.validate_stack
        else [policy.validate(each, configuration) for each in stack.values() if policy.applies_to(each.type)]
    )
    return [item for run in runs for item in unknown_as_undecided(run)]


def messages(policy: Policy, stack: dict[str, Resource], **settings: Any) -> list[str]:
    return [item.message for item in results_of(policy, stack, **settings) if isinstance(item, Violation)]
