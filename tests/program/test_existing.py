"""An existing VPC or EKS cluster is used, and none of its parts is created."""

import json

import pytest

from tests.builders import organization
from tests.program.recorder import recorded_from

NETWORK = {
    "existing": {
        "vpcId": "vpc-0a1b2c3d4e5f60718",
        "subnets": {"us-west-2a": "subnet-0a1b2c3d4e5f60718", "us-west-2b": "subnet-0a1b2c3d4e5f60719"},
        "securityGroupIds": ["sg-0a1b2c3d4e5f60718"],
    }
}
EKS = {"version": "1.35", "existing": {"name": "found"}}
KEY = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


def test_an_existing_network_is_used_as_it_is():
    program = recorded_from(organization(environment={"network": NETWORK}))
    assert not [each.type for each in program.resources.values() if ":ec2/" in each.type]
    eks = program.one("eks/cluster:Cluster").inputs["vpcConfig"]
    assert eks["subnetIds"] == ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]
    cluster = program.one("hyperpod:index:Cluster").inputs
    assert cluster["instanceGroups"][0]["overrideVpcConfig"] == {
        "subnets": ["subnet-0a1b2c3d4e5f60718"],
        "securityGroupIds": ["sg-0a1b2c3d4e5f60718"],
    }


def test_the_control_plane_stands_in_the_subnets_that_are_named_for_it():
    named = ["subnet-0a1b2c3d4e5f60720", "subnet-0a1b2c3d4e5f60721"]
    existing = {**NETWORK["existing"], "controlPlaneSubnets": named}
    program = recorded_from(organization(environment={"network": {"existing": existing}}))
    assert program.one("eks/cluster:Cluster").inputs["vpcConfig"]["subnetIds"] == named
    cluster = program.one("hyperpod:index:Cluster").inputs
    assert cluster["vpcConfig"]["subnets"] == named
    assert cluster["instanceGroups"][0]["overrideVpcConfig"]["subnets"] == ["subnet-0a1b2c3d4e5f60718"]


def test_an_existing_eks_cluster_is_used_with_its_own_addons():
    program = recorded_from(organization(environment={"network": NETWORK, "eks": EKS}))
    assert program.all("eks/cluster:Cluster") == []
    assert program.all("kms/key:Key") == []
    assert set(program.named("eks/addon:Addon")) == {"amazon-sagemaker-hyperpod-taskgovernance"}
    assert program.one("hyperpod:index:Cluster").inputs["orchestrator"]["eks"]["clusterArn"].endswith("cluster/found")
    assert "found" in program.outputs["kubeconfigCommand"]


def test_what_is_not_in_the_file_is_not_made():
    plain = organization()
    plain["environments"]["dev"].pop("governance")
    plain["environments"]["dev"]["cluster"]["dependencies"] = {"installed": True}
    resource_types = {each.type for each in recorded_from(plain).resources.values()}
    absent = (
        "ComputeQuota",
        "ClusterSchedulerConfig",
        "fsx/",
        "amp/",
        "grafana/",
        "NodePool",
        "helm.sh",
        "RoleBinding",
    )
    assert [kind for kind in resource_types if any(word in kind for word in absent)] == []


def test_storage_and_observability_come_with_their_sections():
    program = recorded_from(
        organization(
            environment={
                "storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}},
                "observability": {"cloudwatch": True, "prometheus": True, "grafana": True},
            }
        )
    )
    addons = program.named("eks/addon:Addon")
    assert {"aws-fsx-csi-driver", "amazon-sagemaker-hyperpod-observability", "amazon-cloudwatch-observability"} <= set(
        addons
    )
    assert "kueue_container_insights" in addons["amazon-cloudwatch-observability"].inputs["configurationValues"]
    identities = program.named("eks/podIdentityAssociation:PodIdentityAssociation")
    assert {"aws-fsx-csi-driver", "amazon-sagemaker-hyperpod-observability"} <= set(identities)
    assert program.waits(addons["aws-fsx-csi-driver"], identities["aws-fsx-csi-driver"])
    assert len(program.all("amp/ruleGroupNamespace:RuleGroupNamespace")) == 1


def test_an_addon_waits_for_those_it_needs_and_gets_what_the_file_says_over_the_kits_own():
    program = recorded_from(
        organization(
            environment={
                "observability": {"cloudwatch": True},
                "addons": {
                    "amazon-sagemaker-hyperpod-training-operator": {},
                    "cert-manager": "v1.18.2-eksbuild.2",
                    "coredns": {"configurationValues": {"replicaCount": 3, "tolerations": [{"key": "system"}]}},
                    "amazon-cloudwatch-observability": {"configurationValues": {"containerLogs": {"enabled": False}}},
                },
            }
        )
    )
    addons = program.named("eks/addon:Addon")
    assert program.waits(addons["amazon-sagemaker-hyperpod-training-operator"], addons["cert-manager"])
    assert addons["cert-manager"].inputs["addonVersion"] == "v1.18.2-eksbuild.2"
    values = {name: json.loads(each.inputs.get("configurationValues") or "{}") for name, each in addons.items()}
    assert values["coredns"] == {"replicaCount": 3, "tolerations": [{"key": "system"}]}
    assert set(values["amazon-cloudwatch-observability"]) == {"agent", "containerLogs"}
    assert values["vpc-cni"] == {}


def test_a_closed_network_has_endpoints_and_no_way_to_the_internet():
    network = {
        "vpcCidr": "10.192.0.0/16",
        "zones": [{"availabilityZone": "us-west-2a", "nodeCidr": "10.1.0.0/16"}],
        "natGateways": "None",
        "closed": True,
    }
    program = recorded_from(organization(environment={"network": network}))
    services = {
        each.inputs["serviceName"].partition("us-west-2.")[2] for each in program.all("ec2/vpcEndpoint:VpcEndpoint")
    }
    assert {
        "eks",
        "eks-auth",
        "sagemaker.api",
        "ecr.api",
        "ecr.dkr",
        "sts",
        "logs",
        "s3",
        "kms",
        "aps-workspaces",
    } <= services
    assert program.all("ec2/internetGateway:InternetGateway") == []
    assert program.all("ec2/natGateway:NatGateway") == []


@pytest.mark.parametrize("grafana", [True, False])
def test_a_closed_network_reaches_the_grafana_workspace_that_its_add_on_gets(grafana):
    network = {
        "vpcCidr": "10.192.0.0/16",
        "zones": [{"availabilityZone": "us-west-2a", "nodeCidr": "10.1.0.0/16"}],
        "closed": True,
    }
    observability = {"prometheus": True, "grafana": grafana}
    program = recorded_from(organization(environment={"network": network, "observability": observability}))
    endpoints = [each.inputs["serviceName"] for each in program.all("ec2/vpcEndpoint:VpcEndpoint")]
    assert ("com.amazonaws.us-west-2.grafana-workspace" in endpoints) is grafana
    values = json.loads(
        program.named("eks/addon:Addon")["amazon-sagemaker-hyperpod-observability"].inputs["configurationValues"]
    )
    assert ("amgWorkspace" in values) is grafana


@pytest.mark.parametrize("asked", ["STANDARD", "EXTENDED"])
def test_the_upgrade_policy_is_what_the_file_asks_for(asked):
    program = recorded_from(organization(environment={"eks": {"version": "1.35", "supportType": asked}}))
    assert program.one("aws:eks/cluster:Cluster").inputs["upgradePolicy"] == {"supportType": asked}


def test_a_group_of_every_kind_says_what_the_api_takes():
    groups = [
        {
            "name": "gpu",
            "instanceType": "ml.g5.12xlarge",
            "instanceCount": 2,
            "availabilityZone": "us-west-2a",
            "instanceStorageConfigs": [{"ebsVolumeConfig": {"volumeSizeInGB": 500}}],
            "threadsPerCore": 1,
            "minInstanceCount": 1,
            "labels": {"team": "a"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            "lifecycleScript": "s3://sagemaker-mine/folder/run.sh",
            "autoPatch": {
                "patchingStrategy": "DrainFirst",
                "deploymentConfig": {"maximumBatchSize": {"type": "INSTANCE_COUNT", "value": 1}},
            },
        },
        {
            "name": "late",
            "instanceType": "ml.p5.48xlarge",
            "instanceCount": 1,
            "availabilityZone": "us-west-2a",
            "instanceStorageConfigs": [{"ebsVolumeConfig": {"rootVolume": True, "volumeKmsKeyId": KEY}}],
            "imageReleaseVersion": "1.2.3",
            "networkInterface": {"interfaceType": "efa-only"},
        },
        {
            "name": "any",
            "instanceTypes": ["ml.m5.4xlarge", "ml.c5.4xlarge"],
            "instanceCount": 1,
            "capacityType": "Spot",
        },
    ]
    program = recorded_from(organization(groups=groups))
    registered = {
        each["instanceGroupName"]: each for each in program.one("hyperpod:index:Cluster").inputs["instanceGroups"]
    }
    assert registered["gpu"]["instanceStorageConfigs"] == [{"ebsVolumeConfig": {"volumeSizeInGB": 500}}]
    assert registered["gpu"]["lifeCycleConfig"] == {"sourceS3Uri": "s3://sagemaker-mine/folder", "onCreate": "run.sh"}
    assert registered["gpu"]["kubernetesConfig"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    assert registered["gpu"]["autoPatchConfig"]["deploymentConfig"] == {
        "rollingUpdatePolicy": {"maximumBatchSize": {"type": "INSTANCE_COUNT", "value": 1}}
    }
    assert [name for name, each in registered.items() if "threadsPerCore" in each] == ["gpu"]
    assert registered["gpu"]["threadsPerCore"] == 1
    assert registered["any"]["instanceRequirements"] == {"instanceTypes": ["ml.m5.4xlarge", "ml.c5.4xlarge"]}
    assert registered["any"]["capacityRequirements"] == {"spot": {}}
    assert registered["any"]["overrideVpcConfig"]["subnets"] == ["nodes-us-west-2a-id", "nodes-us-west-2b-id"]
    assert registered["late"]["instanceStorageConfigs"] == groups[1]["instanceStorageConfigs"]
    assert (registered["late"]["imageReleaseVersion"], registered["late"]["networkInterface"]) == (
        "1.2.3",
        {"interfaceType": "efa-only"},
    )
    rights = json.loads(program.named("aws:iam/rolePolicy:RolePolicy")["nodes"].inputs["policy"])
    grants = [each for each in rights["Statement"] if "kms:CreateGrant" in each["Action"]]
    assert [each["Resource"] for each in grants] == [[f"arn:aws:kms:us-west-2:123456789012:key/{KEY}"]]
