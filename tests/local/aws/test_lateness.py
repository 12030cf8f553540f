"""Accepted changes take effect late, as on AWS, and calls that depend on them fail until then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from hpkit_local.aws.lateness import LATENESS, LEAST_FACTOR, LEAST_SECONDS
from hpkit_local.aws.services.eks.view import caller_of
from hpkit_local.aws.view import BackendView
from tests.local.aws.conftest import Cloud, new_cloud

Refused = Callable[..., str]
EBS = "aws-ebs-csi-driver"
POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def late(name: str) -> float:
    return LATENESS[name].seconds


@pytest.fixture
def late_cloud(served: Any) -> Cloud:
    """Return a cloud with AWS's delays, on a clock that starts at moto's time."""
    return new_cloud(served, latency_factor=1.0, start=time.time())


def pod_role(cloud: Cloud) -> str:
    role = cloud.role("pods", "pods.eks.amazonaws.com")
    cloud.advance(late("role") + 1)
    return role


def test_an_access_entry_and_its_policy_let_nobody_in_at_first(late_cloud: Cloud) -> None:
    view = BackendView(late_cloud.endpoint._endpoint.backend)
    who = {"clusterName": "kube", "principalArn": caller_of(view, "testing", cluster="kube").principal}
    late_cloud.advance(late("access-entry"))
    late_cloud.eks.delete_access_entry(**who)
    late_cloud.eks.create_access_entry(**who)
    assert caller_of(view, "testing", cluster="kube").entry is None
    late_cloud.advance(late("access-entry"))
    assert caller_of(view, "testing", cluster="kube").entry is not None
    late_cloud.eks.associate_access_policy(**who, policyArn=POLICY, accessScope={"type": "cluster"})

    def policies() -> list[Any]:
        return [each["policies"] for each in late_cloud.endpoint.snapshot().entries]

    assert policies() == [[]]
    late_cloud.advance(late("access-entry"))
    assert [each["policyArn"] for (each,) in policies()] == [POLICY]


def test_the_creator_of_a_cluster_is_let_in_as_late(late_cloud: Cloud) -> None:
    view = BackendView(late_cloud.endpoint._endpoint.backend)
    late_cloud.eks.describe_cluster(name="kube")
    assert caller_of(view, "testing", cluster="kube").entry is None
    late_cloud.advance(late("access-entry"))
    assert caller_of(view, "testing", cluster="kube").entry is not None


@pytest.mark.parametrize(("pause", "status"), [(0.0, "DEGRADED"), (late("pod-identity"), "ACTIVE")])
def test_pods_that_come_before_their_association_is_effective_have_no_credentials(
    late_cloud: Cloud, pause: float, status: str
) -> None:
    late_cloud.make_cluster()
    late_cloud.join()
    late_cloud.eks.create_pod_identity_association(
        clusterName="kube",
        namespace="kube-system",
        serviceAccount="ebs-csi-controller-sa",
        roleArn=pod_role(late_cloud),
    )
    late_cloud.advance(pause)
    late_cloud.eks.create_addon(clusterName="kube", addonName=EBS)
    late_cloud.advance(60)
    assert late_cloud.eks.describe_addon(clusterName="kube", addonName=EBS)["addon"]["status"] == status


def test_a_new_role_can_be_assumed_by_nobody(late_cloud: Cloud, refused: Refused) -> None:
    wanted = {"clusterName": "kube", "namespace": "a", "serviceAccount": "b"}
    wanted["roleArn"] = late_cloud.role("new", "pods.eks.amazonaws.com")
    refused("InvalidParameterException", late_cloud.eks.create_pod_identity_association, **wanted)
    late_cloud.advance(late("role") + 1)
    late_cloud.eks.create_pod_identity_association(**wanted)


def test_eks_may_use_neither_a_new_key_nor_a_new_right_on_it(late_cloud: Cloud, refused: Refused) -> None:
    key = late_cloud.endpoint.client("kms").create_key()["KeyMetadata"]["Arn"]
    role = late_cloud.role("encrypting", "eks.amazonaws.com")
    late_cloud.advance(late("role") + 1)
    statement = {"Effect": "Allow", "Action": "kms:*", "Resource": key}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    late_cloud.iam.put_role_policy(RoleName="encrypting", PolicyName="key", PolicyDocument=policy)
    wanted = {
        "name": "other",
        "roleArn": role,
        "resourcesVpcConfig": {"subnetIds": late_cloud.subnets},
        "encryptionConfig": [{"provider": {"keyArn": key}, "resources": ["secrets"]}],
    }
    text = refused("InvalidParameterException", late_cloud.eks.create_cluster, **wanted)
    assert text == f"Access denied to KMS key {key} due to explicit deny policy or revoked grant"
    late_cloud.advance(late("key-rights"))
    late_cloud.eks.create_cluster(**wanted)


def test_a_node_runs_before_it_joins_kubernetes(late_cloud: Cloud) -> None:
    late_cloud.make_cluster()
    assert {each["InstanceStatus"]["Status"] for each in late_cloud.nodes()} == {"Running"}
    ids = {each["InstanceId"] for each in late_cloud.nodes()}
    assert late_cloud.endpoint.snapshot().joining == ids
    late_cloud.join()
    late_cloud.describe()
    assert late_cloud.endpoint.snapshot().joining == set()


def test_a_program_that_does_not_wait_is_refused_although_changes_are_fast(served: Any, refused: Refused) -> None:
    hasty = new_cloud(served, latency_factor=LEAST_FACTOR, start=time.time())
    wanted = {"clusterName": "kube", "namespace": "a", "serviceAccount": "b"}
    wanted["roleArn"] = hasty.role("new", "pods.eks.amazonaws.com")
    refused("InvalidParameterException", hasty.eks.create_pod_identity_association, **wanted)
    hasty.advance(LEAST_SECONDS - 1)
    refused("InvalidParameterException", hasty.eks.create_pod_identity_association, **wanted)
    hasty.advance(2)
    hasty.eks.create_pod_identity_association(**wanted)
