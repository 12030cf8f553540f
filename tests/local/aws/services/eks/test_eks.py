"""EKS: clusters, add-ons, access entries, pod identity associations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    pass

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
INFERENCE = "amazon-sagemaker-hyperpod-inference"
VIEW = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
PERSON = "arn:aws:iam::123456789012:role/team/person"


def _addon(cloud: Any, name: str) -> dict[str, Any]:
    return dict(cloud.eks.describe_addon(clusterName="kube", addonName=name)["addon"])


def test_a_cluster_goes_through_its_statuses(slow_cloud: Any, refused: Callable[..., str]) -> None:
    eks = slow_cloud.eks
    network = {"subnetIds": slow_cloud.subnets}
    role = slow_cloud.eks_role
    made = eks.create_cluster(name="new", version="1.35", roleArn=role, resourcesVpcConfig=network)["cluster"]
    assert made["status"] == "CREATING"
    text = refused("InvalidRequestException", eks.create_addon, clusterName="new", addonName="vpc-cni")
    assert text == "Cluster 'new' is not in ACTIVE status"
    slow_cloud.advance(720)
    assert eks.describe_cluster(name="new")["cluster"]["status"] == "ACTIVE"
    update = eks.update_cluster_version(name="new", version="1.36")["update"]
    assert eks.describe_cluster(name="new")["cluster"]["status"] == "UPDATING"
    refused("ResourceInUseException", eks.delete_cluster, name="new")
    slow_cloud.advance(120)
    assert eks.describe_update(name="new", updateId=update["id"])["update"]["status"] == "Successful"
    assert eks.describe_cluster(name="new")["cluster"]["version"] == "1.36"
    eks.delete_cluster(name="new")
    assert eks.describe_cluster(name="new")["cluster"]["status"] == "DELETING"
    slow_cloud.advance(180)
    text = refused("ResourceNotFoundException", eks.describe_cluster, name="new")
    assert text == "No cluster found for name: new."


def test_an_add_on_goes_through_its_statuses(slow_cloud: Any, refused: Callable[..., str]) -> None:
    eks = slow_cloud.eks
    eks.create_addon(clusterName="kube", addonName="vpc-cni", addonVersion="v1.19.2-eksbuild.1", tags={"a": "b"})
    assert _addon(slow_cloud, "vpc-cni")["status"] == "CREATING"
    text = refused("ResourceInUseException", eks.update_addon, clusterName="kube", addonName="vpc-cni")
    assert text == "Addon vpc-cni cannot be updated as it is currently in CREATING state"
    refused("ResourceInUseException", eks.create_addon, clusterName="kube", addonName="vpc-cni")
    slow_cloud.advance(60)
    assert (_addon(slow_cloud, "vpc-cni")["status"], _addon(slow_cloud, "vpc-cni")["tags"]) == ("ACTIVE", {"a": "b"})
    update = eks.update_addon(clusterName="kube", addonName="vpc-cni", addonVersion="v1.20.4-eksbuild.1")["update"]
    assert _addon(slow_cloud, "vpc-cni")["status"] == "UPDATING"
    slow_cloud.advance(45)
    assert _addon(slow_cloud, "vpc-cni")["addonVersion"] == "v1.20.4-eksbuild.1"
    found = eks.describe_update(name="kube", updateId=update["id"], addonName="vpc-cni")["update"]
    assert found["status"] == "Successful"
    refused("ResourceNotFoundException", eks.describe_update, name="kube", updateId=update["id"])
    eks.delete_addon(clusterName="kube", addonName="vpc-cni")
    assert _addon(slow_cloud, "vpc-cni")["status"] == "DELETING"
    slow_cloud.advance(30)
    text = refused("ResourceNotFoundException", _addon, cloud=slow_cloud, name="vpc-cni")
    assert text == "No addon: vpc-cni found in cluster: kube"


def test_coredns_is_degraded_until_a_node_is_there(cloud: Any) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName="coredns")
    degraded = _addon(cloud, "coredns")
    assert degraded["status"] == "DEGRADED"
    assert degraded["health"]["issues"][0]["code"] == "InsufficientNumberOfReplicas"
    cloud.make_cluster()
    assert _addon(cloud, "coredns")["status"] == "ACTIVE"


def test_task_governance_needs_a_node(cloud: Any) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
    assert _addon(cloud, GOVERNANCE)["status"] == "CREATE_FAILED"


def test_inline_pod_identity_belongs_to_the_add_on(cloud: Any, refused: Callable[..., str]) -> None:
    eks, role = cloud.eks, cloud.role("pods", "pods.eks.amazonaws.com")
    eks.create_addon(
        clusterName="kube",
        addonName="aws-ebs-csi-driver",
        podIdentityAssociations=[{"serviceAccount": "ebs", "roleArn": role}],
    )
    (entry,) = eks.list_pod_identity_associations(clusterName="kube")["associations"]
    assert entry["ownerArn"] == _addon(cloud, "aws-ebs-csi-driver")["addonArn"]
    target = {"clusterName": "kube", "associationId": entry["associationId"]}
    assert "is managed by" in refused("InvalidRequestException", eks.delete_pod_identity_association, **target)
    eks.delete_addon(clusterName="kube", addonName="aws-ebs-csi-driver")
    assert eks.list_pod_identity_associations(clusterName="kube")["associations"] == []


@pytest.mark.parametrize(
    ("addon", "namespace", "account"),
    [
        ("aws-ebs-csi-driver", "kube-system", "ebs-csi-controller-sa"),
        (
            "amazon-sagemaker-hyperpod-observability",
            "hyperpod-observability",
            "hyperpod-observability-operator-otel-collector",
        ),
    ],
)
def test_an_add_on_that_calls_aws_at_its_start_is_degraded_without_a_role(
    cloud: Any, addon: str, namespace: str, account: str
) -> None:
    cloud.make_cluster()
    cloud.eks.create_addon(clusterName="kube", addonName="eks-pod-identity-agent")
    cloud.eks.create_addon(clusterName="kube", addonName=addon)
    found = _addon(cloud, addon)
    assert (found["status"], found["health"]["issues"][0]["code"]) == ("DEGRADED", "InsufficientNumberOfReplicas")
    role = cloud.role("pods", "pods.eks.amazonaws.com")
    cloud.eks.create_pod_identity_association(
        clusterName="kube", namespace=namespace, serviceAccount=account, roleArn=role
    )
    assert _addon(cloud, addon)["status"] == "DEGRADED", "pods get credentials when they are created"
    cloud.eks.update_addon(clusterName="kube", addonName=addon)
    assert _addon(cloud, addon)["status"] == "ACTIVE"


def _inference(cloud: Any, **values: str) -> dict[str, Any]:
    """Install the inference operator and its requirements, and return it."""
    cloud.make_cluster()
    for name in ("cert-manager", "metrics-server", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver"):
        cloud.eks.create_addon(clusterName="kube", addonName=name)
    cloud.eks.create_addon(clusterName="kube", addonName=INFERENCE, configurationValues=json.dumps(values))
    return _addon(cloud, INFERENCE)


def _pods_role(cloud: Any, name: str, subject: str) -> str:
    """Create a role for pods with the OIDC provider of the EKS cluster."""
    issuer = cloud.eks.describe_cluster(name="kube")["cluster"]["identity"]["oidc"]["issuer"].removeprefix("https://")
    statement = {
        "Effect": "Allow",
        "Principal": {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{issuer}"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {f"{issuer}:sub": f"system:serviceaccount:{subject}"}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return str(cloud.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"])


@pytest.mark.parametrize(
    ("provider", "subject", "status"),
    [
        (True, "hyperpod-inference-system:hyperpod-inference-controller-manager", "ACTIVE"),
        (False, "hyperpod-inference-system:hyperpod-inference-controller-manager", "DEGRADED"),
        (True, "kube-system:hyperpod-inference-controller-manager", "DEGRADED"),
    ],
)
def test_the_inference_operator_is_degraded_without_a_role_that_its_pods_can_take(
    cloud: Any, *, provider: bool, subject: str, status: str
) -> None:
    if provider:
        issuer = cloud.eks.describe_cluster(name="kube")["cluster"]["identity"]["oidc"]["issuer"]
        cloud.iam.create_open_id_connect_provider(Url=issuer, ClientIDList=["sts.amazonaws.com"])
    role = _pods_role(cloud, "SageMakerHyperPodInference-acme", subject)
    assert _inference(cloud, executionRoleArn=role, tlsCertificateS3Bucket="tls")["status"] == status


def test_access_entries_and_their_policies(cloud: Any, refused: Callable[..., str]) -> None:
    eks, person = cloud.eks, {"clusterName": "kube", "principalArn": PERSON}
    made = eks.create_access_entry(**person, kubernetesGroups=["team"])["accessEntry"]
    assert (made["type"], made["kubernetesGroups"]) == ("STANDARD", ["team"])
    assert made["username"] == "arn:aws:sts::123456789012:assumed-role/person/{{SessionName}}"
    refused("ResourceInUseException", eks.create_access_entry, **person)
    scope = {"type": "namespace", "namespaces": ["hyperpod-ns-nlp"]}
    eks.associate_access_policy(**person, policyArn=VIEW, accessScope=scope)
    (found,) = eks.list_associated_access_policies(**person)["associatedAccessPolicies"]
    assert (found["policyArn"], found["accessScope"]) == (VIEW, scope)
    assert eks.list_access_entries(clusterName="kube", associatedPolicyArn=VIEW)["accessEntries"] == [PERSON]
    eks.disassociate_access_policy(**person, policyArn=VIEW)
    refused("ResourceNotFoundException", eks.disassociate_access_policy, **person, policyArn=VIEW)
    eks.delete_access_entry(**person)
    text = refused("ResourceNotFoundException", eks.describe_access_entry, **person)
    assert text == f"The specified principalArn could not be found: {PERSON}"
