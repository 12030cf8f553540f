"""EKS: clusters, add-ons, access entries, pod identity associations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

from hpkit_local.aws.controllers import Controllers
from hpkit_local.aws.testing import running_endpoint
from hpkit_local.controllers.dependencies import has_cert_manager
from tests.local.aws.conftest import Cloud

if TYPE_CHECKING:
    from hpkit_local.kubernetes.api import Api

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
INFERENCE = "amazon-sagemaker-hyperpod-inference"
ROLE = "arn:aws:iam::123456789012:role/"
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


def test_a_cluster_remembers_what_it_was_given(cloud: Any) -> None:
    cluster = cloud.eks.describe_cluster(name="kube")["cluster"]
    assert cluster["accessConfig"] == {"authenticationMode": "API"}
    assert cluster["resourcesVpcConfig"]["vpcId"] == cloud.vpc
    group = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    (real,) = cloud.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert real["GroupName"].startswith("eks-cluster-sg-kube-")
    cloud.eks.delete_cluster(name="kube")
    cloud.eks.list_clusters()
    groups = {entry["GroupId"] for entry in cloud.ec2.describe_security_groups()["SecurityGroups"]}
    assert group not in groups, "EKS takes its security group along"


CLUSTERS: dict[str, tuple[Callable[[Any], dict[str, Any]], str, str]] = {
    "name taken": (lambda _: {"name": "kube"}, "ResourceInUseException", "Cluster already exists with name: kube"),
    "one zone": (
        lambda cloud: {"resourcesVpcConfig": {"subnetIds": cloud.subnets[:1]}},
        "InvalidParameterException",
        "Subnets specified must be in at least two different AZs",
    ),
    "unknown subnet": (
        lambda _: {"resourcesVpcConfig": {"subnetIds": ["subnet-0"]}},
        "InvalidParameterException",
        "The subnet ID 'subnet-0' does not exist",
    ),
    "version": (
        lambda _: {"version": "1.12"},
        "InvalidParameterException",
        "unsupported Kubernetes version 1.12; supported: ",
    ),
    "role": (
        lambda cloud: {"roleArn": cloud.node_role},
        "InvalidParameterException",
        "its trust policy allows eks.amazonaws.com",
    ),
    "mode": (
        lambda _: {"accessConfig": {"authenticationMode": "NONE"}},
        "InvalidParameterException",
        "at 'accessConfig.authenticationMode' failed to satisfy constraint: Member must satisfy enum value set",
    ),
}


@pytest.mark.parametrize("rule", CLUSTERS)
def test_create_cluster_refuses(cloud: Any, refused: Callable[..., str], rule: str) -> None:
    mutate, code, message = CLUSTERS[rule]
    request = {
        "name": "new",
        "roleArn": cloud.eks_role,
        "resourcesVpcConfig": {"subnetIds": cloud.subnets},
        **mutate(cloud),
    }
    assert message in refused(code, cloud.eks.create_cluster, **request)


def test_updates_are_checked(cloud_on: Callable[[str], Any], refused: Callable[..., str]) -> None:
    cloud = cloud_on("2026-06-15")
    eks = cloud.eks
    cloud.make_eks("other", version="1.33")
    text = refused("InvalidParameterException", eks.update_cluster_version, name="other", version="1.35")
    assert text == "Unsupported Kubernetes minor version update from 1.33 to 1.35"
    text = refused("InvalidParameterException", eks.update_cluster_version, name="other", version="1.32")
    assert text == "Unsupported Kubernetes minor version update from 1.33 to 1.32"
    mode = {"authenticationMode": "CONFIG_MAP"}
    text = refused("InvalidParameterException", eks.update_cluster_config, name="kube", accessConfig=mode)
    assert text == "Unsupported authentication mode update from API to CONFIG_MAP"
    text = refused("InvalidParameterException", eks.update_cluster_config, name="kube")
    assert text.startswith("Only one type of update can be allowed per request; found 0")


def test_deletion_protection_protects(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_eks("safe", deletionProtection=True)
    text = refused("InvalidRequestException", cloud.eks.delete_cluster, name="safe")
    assert text == "Cannot delete cluster 'safe' because deletion protection is enabled"
    cloud.eks.update_cluster_config(name="safe", deletionProtection=False)
    cloud.eks.delete_cluster(name="safe")


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


def test_an_add_on_waits_for_nodes_as_long_as_eks_does(slow_cloud: Any) -> None:
    slow_cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
    slow_cloud.advance(1000)
    assert _addon(slow_cloud, GOVERNANCE)["status"] == "CREATING"
    slow_cloud.make_cluster()
    assert _addon(slow_cloud, GOVERNANCE)["status"] == "CREATE_FAILED", "20 minutes went by before a node came"


def test_task_governance_cannot_jump_over_its_migration(cloud: Any) -> None:
    cloud.make_cluster()
    cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE, addonVersion="v1.3.2-eksbuild.1")
    update = cloud.eks.update_addon(clusterName="kube", addonName=GOVERNANCE, addonVersion="v1.5.0-eksbuild.1")[
        "update"
    ]
    failed = _addon(cloud, GOVERNANCE)
    assert (failed["status"], failed["addonVersion"]) == ("UPDATE_FAILED", "v1.3.2-eksbuild.1")
    assert "cohorts.kueue.x-k8s.io" in failed["health"]["issues"][0]["message"]
    found = cloud.eks.describe_update(name="kube", updateId=update["id"], addonName=GOVERNANCE)["update"]
    assert (found["status"], "v1alpha1" in found["errors"][0]["errorMessage"]) == ("Failed", True)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ({"addonName": "none"}, "InvalidParameterException", "Addon none specified is not supported"),
        (
            {"addonName": GOVERNANCE, "addonVersion": "v9.9.9-eksbuild.1"},
            "InvalidParameterException",
            f"Addon version specified is not supported: {GOVERNANCE} v9.9.9-eksbuild.1",
        ),
        (
            {"addonName": GOVERNANCE, "configurationValues": '{"x": 1}'},
            "InvalidParameterException",
            "Json schema validation failed with error: [$: Additional properties are not allowed",
        ),
        (
            {"addonName": "vpc-cni", "configurationValues": "{"},
            "InvalidParameterException",
            "ConfigurationValue provided in request is not JSON",
        ),
        (
            {"addonName": "amazon-sagemaker-hyperpod-training-operator"},
            "InvalidRequestException",
            "needs the add-ons cert-manager, eks-pod-identity-agent",
        ),
        (
            {"addonName": "amazon-sagemaker-spaces"},
            "InvalidRequestException",
            "needs the add-ons aws-ebs-csi-driver, cert-manager, eks-pod-identity-agent",
        ),
    ],
)
def test_create_addon_refuses(
    cloud: Any, refused: Callable[..., str], request_: dict[str, Any], code: str, message: str
) -> None:
    assert message in refused(code, cloud.eks.create_addon, clusterName="kube", **request_)


def test_governance_needs_kubernetes_1_30(cloud_on: Callable[[str], Any], refused: Callable[..., str]) -> None:
    cloud = cloud_on("2025-06-30")
    cloud.make_eks("old", version="1.29")
    text = refused("InvalidParameterException", cloud.eks.create_addon, clusterName="old", addonName=GOVERNANCE)
    assert text.endswith("is not supported in Kubernetes version 1.29")
    assert cloud.eks.describe_addon_versions(addonName=GOVERNANCE, kubernetesVersion="1.29")["addons"] == []


def test_versions_and_schemas_can_be_asked_for(cloud: Any) -> None:
    (addon,) = cloud.eks.describe_addon_versions(addonName=GOVERNANCE, kubernetesVersion=cloud.version)["addons"]
    default = [
        entry["addonVersion"] for entry in addon["addonVersions"] if entry["compatibilities"][0]["defaultVersion"]
    ]
    assert default == ["v1.6.0-eksbuild.1"]
    found = cloud.eks.describe_addon_configuration(addonName=GOVERNANCE, addonVersion=default[0])
    assert json.loads(found["configurationSchema"])["additionalProperties"] is False


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


def test_cert_manager_may_come_from_elsewhere_than_its_add_on() -> None:
    class Chart(Controllers):
        def brings_cert_manager(self) -> bool:
            return True

    with running_endpoint(controllers=Chart()) as endpoint:
        cloud = Cloud(endpoint)
        cloud.make_cluster()
        for name in ("eks-pod-identity-agent", "amazon-sagemaker-hyperpod-training-operator"):
            cloud.eks.create_addon(clusterName="kube", addonName=name)
        assert _addon(cloud, "amazon-sagemaker-hyperpod-training-operator")["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("there", "is_found"),
    [("certificates.cert-manager.io", True), ("hpkit.release.v1.hyperpod-dependencies", True), ("other", False)],
)
def test_cert_manager_is_looked_for_in_the_cluster(there: str, is_found: bool) -> None:
    class Server:
        def items(self, folder: str, *, fields: str, metadata_only: bool) -> list[dict[str, Any]]:
            return [{"metadata": {}}] if fields == f"metadata.name={there}" and folder and metadata_only else []

    assert has_cert_manager(cast("Api", Server())) is is_found


def test_a_role_by_the_oidc_provider_is_one_as_well(cloud: Any) -> None:
    cloud.make_cluster()
    role = cloud.role("pods", "pods.eks.amazonaws.com")
    cloud.eks.create_addon(clusterName="kube", addonName="aws-ebs-csi-driver", serviceAccountRoleArn=role)
    assert _addon(cloud, "aws-ebs-csi-driver")["status"] == "ACTIVE"


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
    ("values", "message"),
    [
        ({}, "executionRoleArn must be set"),
        ({"executionRoleArn": f"{ROLE}SageMakerHyperPodInference"}, "tlsCertificateS3Bucket must be set"),
        ({"executionRoleArn": f"{ROLE}pods", "tlsCertificateS3Bucket": "tls"}, "with prefix"),
    ],
)
def test_the_inference_operator_fails_without_role_bucket_and_name(
    cloud: Any, values: dict[str, str], message: str
) -> None:
    found = _inference(cloud, **values)
    assert found["status"] == "CREATE_FAILED"
    assert message in found["health"]["issues"][0]["message"]


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


def test_an_add_on_that_calls_aws_when_asked_to_is_active_without_a_role(cloud: Any) -> None:
    cloud.make_cluster()
    cloud.eks.create_addon(clusterName="kube", addonName="aws-mountpoint-s3-csi-driver")
    assert _addon(cloud, "aws-mountpoint-s3-csi-driver")["status"] == "ACTIVE"


def test_pod_identity_rules(cloud: Any, refused: Callable[..., str]) -> None:
    eks, role = cloud.eks, cloud.role("pods", "pods.eks.amazonaws.com")
    account = {"clusterName": "kube", "namespace": "n", "serviceAccount": "s"}
    made = eks.create_pod_identity_association(**account, roleArn=role)["association"]
    text = refused("ResourceInUseException", eks.create_pod_identity_association, **account, roleArn=role)
    assert text == f"Association already exists: {made['associationId']}"
    wrong = {**account, "serviceAccount": "t", "roleArn": cloud.node_role}
    text = refused("InvalidParameterException", eks.create_pod_identity_association, **wrong)
    assert text.startswith("Unable to assume the pod identity role")
    text = refused(
        "ResourceNotFoundException", eks.describe_pod_identity_association, clusterName="kube", associationId="a-none"
    )
    assert text == "Association not found: a-none"


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


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"principalArn": "arn:aws:s3:::bucket"}, "The specified principalArn is invalid"),
        ({"type": "ROBOT"}, "The type ROBOT is not valid; valid types: STANDARD,"),
        ({"type": "HYPERPOD_LINUX", "kubernetesGroups": ["x"]}, "can only be set for STANDARD, not for HYPERPOD_LINUX"),
        (
            {"principalArn": "arn:aws:iam::123456789012:role/aws-service-role/eks.amazonaws.com/Linked"},
            "is a service-linked role",
        ),
        ({"kubernetesGroups": ["system:masters"]}, "The kubernetes group name system:masters is invalid"),
    ],
)
def test_create_access_entry_refuses(
    cloud: Any, refused: Callable[..., str], request_: dict[str, Any], message: str
) -> None:
    request = {"clusterName": "kube", "principalArn": PERSON, **request_}
    assert message in refused("InvalidParameterException", cloud.eks.create_access_entry, **request)


def test_access_policies_are_checked(cloud: Any, refused: Callable[..., str]) -> None:
    eks, person = cloud.eks, {"clusterName": "kube", "principalArn": PERSON}
    eks.create_access_entry(**person)
    associate = eks.associate_access_policy
    wrong = {**person, "policyArn": "arn:aws:iam::aws:policy/X", "accessScope": {"type": "cluster"}}
    assert "format is not valid" in refused("InvalidParameterException", associate, **wrong)
    for scope in ({"type": "namespace"}, {"type": "cluster", "namespaces": ["a"]}):
        refused("InvalidParameterException", associate, **person, policyArn=VIEW, accessScope=scope)
    node = {"clusterName": "kube", "principalArn": cloud.node_role}
    eks.create_access_entry(**node, type="HYPERPOD_LINUX")
    text = refused("InvalidRequestException", associate, **node, policyArn=VIEW, accessScope={"type": "cluster"})
    assert text == "An access entry of type HYPERPOD_LINUX takes no access policy"
    refused("InvalidRequestException", eks.update_access_entry, **node, kubernetesGroups=["x"])


def test_access_entries_need_an_authentication_mode_that_has_them(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_eks("old", accessConfig={"authenticationMode": "CONFIG_MAP"})
    text = refused("InvalidRequestException", cloud.eks.list_access_entries, clusterName="old")
    assert "must be set to one of [API, API_AND_CONFIG_MAP]" in text


def test_tags_of_unknown_resources_are_not_found(cloud: Any, refused: Callable[..., str]) -> None:
    arn = "arn:aws:eks:us-west-2:123456789012:cluster/none"
    assert arn in refused("NotFoundException", cloud.eks.list_tags_for_resource, resourceArn=arn)


def test_a_client_token_makes_creation_idempotent(cloud: Any) -> None:
    request = {"clusterName": "kube", "principalArn": PERSON, "clientRequestToken": "once"}
    first = cloud.eks.create_access_entry(**request)["accessEntry"]
    again = cloud.eks.create_access_entry(**request)["accessEntry"]
    assert first == again
