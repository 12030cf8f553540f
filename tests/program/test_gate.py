"""What the program rejects before it registers anything, without an engine."""

import json
import os
from pathlib import Path

import pulumi
import pytest
import yaml

import hpkit.program.run
from hpkit.errors import ToolError
from hpkit.program.charts.package import Package
from tests.builders import findings, group, organization, split, team
from tests.program.cloud import Repository
from tests.program.recorder import recorded_from

AWS = "https://eks.us-west-2.amazonaws.com"
LOCAL = "http://127.0.0.1:4566"


class Built(Exception):  # noqa: N818 - what ends a run where it would register resources
    pass


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs the program until it would build components; it returns the log."""
    messages = []

    def build(plan, **_):
        raise Built(plan.stack)

    monkeypatch.setattr(hpkit.program.run, "build", build)
    for level in ("info", "warn", "error"):
        monkeypatch.setattr(pulumi.log, level, messages.append)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)

    def start(stack, endpoint=None):
        monkeypatch.setattr(pulumi, "get_stack", lambda: stack)
        if endpoint:
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises((Built, pulumi.RunError)) as caught:
            hpkit.program.run.run()
        return ("builds " if caught.type is Built else "refused: ") + str(caught.value), "\n".join(messages)

    return start


@pytest.fixture
def charts(monkeypatch):
    """Return a function that replaces or removes a chart by its name."""

    def give(*, other="", absent=""):
        def ensure(pin, *_, **__):
            if pin.name == absent:
                raise ToolError("Run `hpkit catalog fetch-chart --to FOLDER`.")
            return Package(Path(pin.file), "0" * 64, is_pinned=pin.name != other)

        monkeypatch.setattr(hpkit.program.run, "ensure_package", ensure)

    return give


def test_an_error_ends_a_run_with_its_place_before_anything_is_registered(run, tmp_path, monkeypatch):
    repository = Repository(tmp_path)
    data = repository.read("handson")
    data["environments"]["dev"]["governance"]["allocations"]["smith"][0]["count"] = 2
    repository.write("handson", data)
    monkeypatch.chdir(tmp_path)
    outcome, output = run("handson-dev", LOCAL)
    assert outcome.startswith("refused: 1 errors in ")
    assert outcome.endswith("nothing was registered")
    assert "stacks/handson.yaml:" in output
    assert "CAP001" in output


def test_a_run_is_refused_for_what_another_file_says_of_its_cluster(run, tmp_path, monkeypatch):
    repository = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    whole = repository.read("handson")
    two = split({**whole, "environments": {"dev": {"account": "123456789012", **whole["environments"]["dev"]}}})
    for name, environment in (("handson", "dev"), ("other", "governance")):
        own = {"environments": {environment: two["environments"][environment]}, "organization": name}
        repository.write(name, {**two, **own})
    assert run("handson-dev", LOCAL)[0].startswith("builds ")
    # Both stacks govern it.
    repository.write("handson", whole)
    outcome, said = run("other-governance", LOCAL)
    assert outcome.startswith("refused: 1 errors in ")
    assert "CLU050" in said


@pytest.mark.parametrize("endpoint", [None, AWS])
def test_ranges_for_documents_end_a_run_on_aws_before_it_begins(run, charts, endpoint):
    charts()
    outcome, _ = run("handson-dev", endpoint)
    assert outcome.startswith("refused: publicCidrs of handson-dev has ")
    assert "203.0.113.0/24, a documentation range (RFC 5737)" in outcome


@pytest.mark.parametrize("pin", ["keda", "hyperpod-helm-chart"])
def test_a_mirror_with_another_chart_ends_a_run_on_aws_before_it_begins(run, charts, pin):
    charts(other=pin)
    outcome, _ = run("autoscale-dev", AWS)
    assert f"{pin}-" in outcome
    assert f"its content hash is {'0' * 64}, and the pin is " in outcome
    assert "Nothing was registered" in outcome
    outcome, said = run("autoscale-dev", LOCAL)
    assert outcome == "builds autoscale-dev"
    assert "on AWS, this run would fail" in said


def test_on_aws_a_run_without_the_dependencies_chart_ends_before_anything_is_registered(run, charts):
    charts(absent="hyperpod-helm-chart")
    outcome, _ = run("autoscale-dev", AWS)
    assert "hpkit catalog fetch-chart --to FOLDER" in outcome
    assert "Nothing was registered" in outcome
    outcome, said = run("autoscale-dev", LOCAL)
    assert outcome == "builds autoscale-dev"
    assert "chart" not in said, "the release is reported once, when it is created"


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
                "patchSchedule": {"nextPatchDate": "2027-01-31T02:00:00Z"},
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
    assert registered["gpu"]["autoPatchConfig"]["patchSchedule"] == {"nextPatchDate": "2027-01-31T02:00:00Z"}
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


ROLE = "arn:aws:iam::123456789012:role/live/{}"
SUBNETS = list(NETWORK["existing"]["subnets"].values())
GROUPS = NETWORK["existing"]["securityGroupIds"]
UNOBSERVED = {"observability": {"cloudwatch": False}}
ON = {
    "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
    "nodePools": [{"name": "burst", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
}


def role(name):
    return ROLE.format(name)


def scripted(name, **more):
    return group(name, "ml.g5.12xlarge", 4, lifecycleScript="s3://live-scripts/v1/run.sh", **more)


def groups_of(program):
    found = program.one("hyperpod:index:Cluster").inputs["instanceGroups"]
    return {each["instanceGroupName"]: each for each in found}


def made(program, *kinds):
    return sorted(each.name for each in program.resources.values() if any(kind in each.type for kind in kinds))


def roles_of(program):
    return {each.name for each in program.all("iam/role:Role")}


def governed(**governance):
    rows = [{"instanceType": "ml.g5.12xlarge", "count": 2}]
    return organization(
        teams=[team("nlp", description="Sprachmodelle – Köln"), team("vision")],
        environment={"governance": {"allocations": {"nlp": rows, "vision": rows}, **governance}},
    )


def test_no_node_role_is_made_where_every_group_has_one():
    program = recorded_from(organization(groups=[group("gpu", "ml.g5.12xlarge", 4, executionRole=role("nodes"))]))
    assert groups_of(program)["gpu"]["executionRole"] == role("nodes")
    assert "nodes" not in made(program, "aws:iam/")
    assert "nodes" in roles_of(recorded_from(organization()))


def test_a_group_without_a_role_gets_the_kits():
    named = group("gpu", "ml.g5.12xlarge", 4, executionRole=role("nodes"))
    program = recorded_from(organization(groups=[named, group("system", "ml.m5.4xlarge", 1)]))
    found = groups_of(program)
    assert found["gpu"]["executionRole"] == role("nodes")
    assert found["system"]["executionRole"].endswith(":nodes")
    assert "nodes" in roles_of(program)


def test_subnets_of_a_group_go_as_they_are():
    override = {"subnets": [SUBNETS[1], "subnet-0a1b2c3d4e5f60799"], "securityGroupIds": ["sg-0a1b2c3d4e5f60799"]}
    named = {"name": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4, "overrideVpcConfig": override}
    program = recorded_from(organization(groups=[named], environment={"network": NETWORK}))
    assert groups_of(program)["gpu"]["overrideVpcConfig"] == override
    # AWS authorizes a node's network interface against its subnet and each of its security groups.
    policy = program.one("iam/rolePolicy:RolePolicy", "nodes").inputs["policy"]
    assert all(each in policy for each in (*override["subnets"], *override["securityGroupIds"]))
    assert program.plan.groups[0].zones == ("us-west-2b",)


def test_subnets_that_the_network_does_not_list_may_be_in_any_zone():
    override = {"subnets": ["subnet-0a1b2c3d4e5f60799"], "securityGroupIds": GROUPS}
    named = {"name": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4, "overrideVpcConfig": override}
    program = recorded_from(organization(groups=[named], environment={"network": NETWORK}))
    assert program.plan.groups[0].zones == ("us-west-2a", "us-west-2b")


def test_a_bucket_that_is_there_is_left_alone():
    there = {"storage": {"existing": {"bucket": "live-scripts"}}}
    program = recorded_from(organization(groups=[scripted("gpu")], environment=there))
    assert made(program, "aws:s3/") == []
    assert groups_of(program)["gpu"]["lifeCycleConfig"] == {"sourceS3Uri": "s3://live-scripts/v1", "onCreate": "run.sh"}
    rights = json.loads(program.one("iam/rolePolicy:RolePolicy", "nodes").inputs["policy"])["Statement"]
    assert {"arn:aws:s3:::live-scripts/*"} in [set(each["Resource"]) for each in rights]


def test_the_kits_script_is_put_into_it_for_a_group_that_runs_it():
    there = {"storage": {"existing": {"bucket": "live-scripts"}}}
    program = recorded_from(organization(groups=[scripted("gpu"), scripted("b"), group("c", "ml.m5.4xlarge", 1)],
                                         environment=there))  # fmt: skip
    assert made(program, "aws:s3/") == ["on-create"]
    script = program.one("s3/bucketObjectv2:BucketObjectv2")
    assert script.inputs["bucket"] == "live-scripts"
    folder = script.inputs["key"].rpartition("/")[0]
    assert groups_of(program)["c"]["lifeCycleConfig"]["sourceS3Uri"] == f"s3://live-scripts/{folder}"
    assert program.waits(program.one("hyperpod:index:Cluster"), script)


def test_karpenter_takes_a_role_that_is_there():
    fleet = [group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)]
    named = recorded_from(
        organization(groups=fleet, environment={"autoscaling": {**ON, "clusterRole": role("karpenter")}})
    )
    assert named.one("hyperpod:index:Cluster").inputs["clusterRole"] == role("karpenter")
    assert "karpenter" not in made(named, "aws:iam/")
    assert "karpenter" in roles_of(recorded_from(organization(groups=fleet, environment={"autoscaling": ON})))


@pytest.mark.parametrize(
    ("said", "association", "irsa", "ignored"),
    [
        ({}, "made", None, ()),
        ({"role": role("pods")}, role("pods"), None, ()),
        ({"serviceAccountRoleArn": role("pods")}, None, role("pods"), ()),
        ({"podIdentity": False}, None, None, ("podIdentityAssociations",)),
    ],
)
def test_the_pods_of_an_addon_take_their_role_as_the_file_says(said, association, irsa, ignored):
    program = recorded_from(organization(environment={"addons": {"aws-ebs-csi-driver": said}, **UNOBSERVED}))
    addon = program.one("eks/addon:Addon", "aws-ebs-csi-driver")
    assert addon.inputs.get("serviceAccountRoleArn") == irsa
    assert addon.ignore_changes == ignored
    assert ("aws-ebs-csi-driver" in roles_of(program)) == (association == "made")
    associations = [each.inputs for each in program.all("eks/podIdentityAssociation:PodIdentityAssociation")]
    assert [each["serviceAccount"] for each in associations] == ["ebs-csi-controller-sa"] * (association is not None)
    if association not in (None, "made"):
        assert [each["roleArn"] for each in associations] == [association]


def test_an_addon_that_gets_no_role_from_the_kit_is_associated_with_the_one_that_is_named():
    program = recorded_from(
        organization(environment={"addons": {"aws-fsx-csi-driver": {"role": role("files")}}, **UNOBSERVED})
    )
    found = program.one("eks/podIdentityAssociation:PodIdentityAssociation").inputs
    assert (found["namespace"], found["serviceAccount"]) == ("kube-system", "fsx-csi-controller-sa")
    assert found["roleArn"] == role("files")
    assert "aws-fsx-csi-driver" not in roles_of(program)


def test_tags_that_are_there_stay_where_the_kit_manages_none():
    environment = {"storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}}}
    data = governed()
    data["environments"]["dev"] |= environment
    tagged = recorded_from(data)
    data["environments"]["dev"]["manageTags"] = False
    bare = recorded_from(data)
    assert "defaultTags" not in bare.one("pulumi:providers:aws").inputs
    assert [each.name for each in bare.resources.values() if "tags" in each.inputs] == []
    ignored = {each.urn: each.ignore_changes for each in bare.resources.values() if each.ignore_changes}
    assert {names for urn, names in ignored.items() if "::hyperpod:" in urn or "$hyperpod:" in urn} == {("tags",)}
    # These two ignore other properties as well.
    own = [bare.one(name).urn for name in ("eks/cluster:Cluster", "fsx/lustreFileSystem:LustreFileSystem")]
    assert {names for urn, names in ignored.items() if "$aws:" in urn and urn not in own} == {("tags", "tagsAll")}
    assert all({"tags", "tagsAll"} < set(ignored[urn]) for urn in own)
    carriers = {each.urn for each in tagged.resources.values() if "tags" in each.inputs}
    assert carriers <= ignored.keys()
    assert bare.resources.keys() == tagged.resources.keys()
    assert all(each.provider == tagged.resources[urn].provider for urn, each in bare.resources.items())
    assert all(each.after == tagged.resources[urn].after for urn, each in bare.resources.items())
    assert [each.urn for each in tagged.resources.values() if each.ignore_changes] == own


def test_policy_and_quotas_keep_the_names_that_the_api_has():
    names = {"policyName": "ml-policy", "quotaNames": {"nlp": "Language-2024", "shared": "pool"}, "sharedPool": {}}
    program = recorded_from(governed(**names))
    quotas = program.named("hyperpod:index:ComputeQuota")
    assert {name: each.inputs["name"] for name, each in quotas.items()} == {
        "nlp": "Language-2024",
        "shared": "pool",
        "vision": "vision",
    }
    assert quotas["nlp"].inputs["computeQuotaTarget"]["teamName"] == "nlp"
    assert program.one("hyperpod:index:ClusterSchedulerConfig", "policy").inputs["name"] == "ml-policy"
    plain = recorded_from(governed())
    assert plain.one("hyperpod:index:ClusterSchedulerConfig", "policy").inputs["name"] == "acme-dev"


def test_descriptions_go_with_quota_and_policy():
    data = governed()
    data["clusterPolicy"] = {"description": "How we share"}
    program = recorded_from(data)
    quotas = program.named("hyperpod:index:ComputeQuota")
    assert quotas["nlp"].inputs["description"] == "Sprachmodelle – Köln"
    assert "description" not in quotas["vision"].inputs
    assert program.one("hyperpod:index:ClusterSchedulerConfig").inputs["description"] == "How we share"
    assert "description" not in recorded_from(governed()).one("hyperpod:index:ClusterSchedulerConfig").inputs


@pytest.mark.parametrize(
    ("said", "patched"), [("Unmanaged", False), ("Disabled", True), ("Enabled", True), (None, True)]
)
def test_kueues_configuration_is_touched_unless_it_is_unmanaged(said, patched):
    program = recorded_from(governed(**({"topologyAwareScheduling": said} if said else {})))
    found = made(program, "ConfigMapPatch", "DeploymentPatch", "v1:ConfigMap", "index:Scheduling")
    assert bool(found) is patched


def test_a_preview_of_other_fair_sharing_lists_the_restart_of_kueue():
    def annotations(fair_share):
        data = governed()
        data["clusterPolicy"]["fairShare"] = fair_share
        program = recorded_from(data)
        file = program.one("kubernetes:core/v1:ConfigMapPatch", "kueue-config")
        patch = program.one("kubernetes:apps/v1:DeploymentPatch", "kueue")
        assert file.inputs["metadata"]["annotations"]["hpkit/fair-share"] == fair_share, "the preview lists the file"
        return patch.inputs["spec"]["template"]["metadata"]["annotations"]

    assert annotations("Enabled") != annotations("Disabled")


@pytest.mark.parametrize("topology", ["Unmanaged", "Disabled"])
def test_gang_scheduling_is_registered_as_the_file_has_it(topology):
    gang = {"enable": True, "timeout": "10m", "requeuingStrategy": {"backoffLimitCount": 3}}
    program = recorded_from(governed(topologyAwareScheduling=topology, gangScheduling=gang))
    patch = program.one("kubernetes:core/v1:ConfigMapPatch", "kueue-config")
    config = yaml.safe_load(patch.inputs["data"]["controller_manager_config.yaml"])
    assert config["waitForPodsReady"]["timeout"] == config["waitForPodsReady"]["recoveryTimeout"] == "10m"
    assert config["waitForPodsReady"]["requeuingStrategy"]["backoffLimitCount"] == 3
    assert ("featureGates" in config) is (topology == "Disabled")


def test_an_existing_clusters_network_is_in_the_order_of_the_file():
    order = [SUBNETS[1], "subnet-0a1b2c3d4e5f60799", SUBNETS[0]]
    network = {"existing": {**NETWORK["existing"], "controlPlaneSubnets": order}}
    program = recorded_from(organization(environment={"network": network, "eks": EKS}))
    config = program.one("hyperpod:index:Cluster").inputs["vpcConfig"]
    assert config == {"subnets": order, "securityGroupIds": GROUPS}


def test_administrators_of_an_existing_cluster_are_registered():
    eks = {**EKS, "administrators": [role("admin")]}
    entry = recorded_from(organization(environment={"network": NETWORK, "eks": eks})).one("eks/accessEntry:AccessEntry")
    assert entry.inputs["principalArn"] == role("admin")
    assert entry.inputs["kubernetesGroups"] == []


def test_a_whole_platform_that_is_there_comes_to_no_role_bucket_or_tag():
    fleet = [scripted("gpu", executionRole=role("nodes")), scripted("burst", executionRole=role("nodes"))]
    fleet[1] |= {"instanceType": "ml.g5.8xlarge", "instanceCount": 0}
    environment = {
        "network": NETWORK,
        "eks": EKS,
        "storage": {"existing": {"bucket": "live-scripts"}},
        "autoscaling": {**ON, "clusterRole": role("karpenter")},
        "governance": {"topologyAwareScheduling": "Unmanaged", "policyName": "live"},
        "addons": {"amazon-cloudwatch-observability": {"serviceAccountRoleArn": role("logs")}},
        "manageTags": False,
    }
    data = organization(groups=fleet, environment=environment)
    assert [found.message for found in findings(data) if found.severity == "error"] == []
    program = recorded_from(data)
    assert made(program, "aws:iam/", "aws:s3/", "aws:ec2/", "aws:kms/", "PodIdentity", "Patch") == []
