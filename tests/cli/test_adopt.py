"""`hpkit aws adopt` against a live cluster on the local endpoint."""

import json

import pytest
import yaml

from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT
from tests.documents import document
from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


@pytest.fixture(scope="module")
def live():
    with running_endpoint() as endpoint:
        cloud = Cloud(endpoint)
        labels = {
            "Labels": {"acme.example/pool": "gpu"},
            "Taints": [{"Key": "acme.example/gpu", "Effect": "NoSchedule"}],
        }
        gpu = cloud.group(
            count=4,
            OverrideVpcConfig={"SecurityGroupIds": [cloud.sg], "Subnets": cloud.subnets[:1]},
            KubernetesConfig=labels,
            InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 200}}],
            ThreadsPerCore=2,
        )
        system = cloud.group("system", 1, InstanceType="ml.m5.4xlarge")
        arn = cloud.make_cluster(InstanceGroups=[gpu, system], NodeRecovery="Automatic")
        cloud.eks.create_addon(clusterName="kube", addonName="amazon-sagemaker-hyperpod-taskgovernance")
        sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": 100}
        rows = {
            "nlp": [{"InstanceType": "ml.g5.12xlarge", "Count": 3}],
            "vision": [{"InstanceType": "ml.g5.12xlarge", "Accelerators": 4}],
        }
        for team, wanted in rows.items():
            config = {"ComputeQuotaResources": wanted, "ResourceSharingConfig": sharing}
            cloud.quota(
                arn, team, ComputeQuotaConfig=config, ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 7}
            )
        cloud.policy(arn)
        yield endpoint, arn


def adopt(live, *arguments, cwd=ROOT):
    endpoint, arn = live
    return hpkit("aws", "adopt", "--cluster", arn, *arguments, cwd=cwd, AWS_ENDPOINT_URL=endpoint.url, **KEYS)


def test_the_file_is_valid_and_says_what_is_live(live, project):
    result = adopt(live, "--output", "stacks/train.yaml", "--format", "json", cwd=project)
    assert result.returncode == 0, result.stderr
    actions = {(item["action"], item["done"]) for item in document(result.stdout)["items"]}
    assert actions == {("write", True), ("import", False)}
    checked = hpkit("validate", cwd=project)
    assert checked.returncode == 0, checked.stdout
    data = yaml.safe_load((project / "stacks" / "train.yaml").read_text())
    gpu, system = data["environments"]["prod"]["cluster"]["instanceGroups"]
    assert gpu == {
        "name": "gpu",
        "instanceType": "ml.g5.12xlarge",
        "instanceCount": 4,
        "availabilityZone": "us-west-2a",
        "executionRole": "arn:aws:iam::123456789012:role/node",
        "threadsPerCore": 2,
        "labels": {"acme.example/pool": "gpu"},
        "taints": [{"key": "acme.example/gpu", "effect": "NoSchedule"}],
        "instanceStorageConfigs": [{"ebsVolumeConfig": {"volumeSizeInGB": 200}}],
        "lifecycleScript": "s3://sagemaker-scripts/on_create.sh",
    }
    assert system["instanceCount"] == 1
    assert "availabilityZone" not in system, "it is where the cluster is, in all its subnets"
    assert data["environments"]["prod"]["storage"] == {"existing": {"bucket": "sagemaker-scripts"}}
    assert data["environments"]["prod"]["governance"]["quotaNames"] == {"nlp": "quota-nlp", "vision": "quota-vision"}
    assert data["environments"]["prod"]["governance"]["policyName"] == "policy"
    assert data["environments"]["prod"]["governance"]["allocations"]["nlp"] == [
        {"instanceType": "ml.g5.12xlarge", "count": 3}
    ]
    assert data["teams"][0] == {
        "name": "nlp",
        "fairShareWeight": 7,
        "sharing": {"strategy": "LendAndBorrow", "borrowLimit": 100},
        "preemptTeamTasks": "LowerPriority",
    }
    assert data["clusterPolicy"]["priorityClasses"] == [{"name": "training", "weight": 80}]


def test_the_import_file_holds_every_live_thing_by_the_name_that_the_program_registers(live, tmp_path):
    (tmp_path / "stacks").mkdir()
    result = adopt(live, "--organization", "acme", "--environment", "dev", "--output", "stacks/acme.yaml", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith("next: hpkit aws adopt run --stack acme-dev\n")
    settings = yaml.safe_load((tmp_path / "stacks" / "Pulumi.acme-dev.yaml").read_text())
    assert settings == {"config": {"hpkit:organization": "acme", "hpkit:environment": "dev"}}
    document = json.loads((tmp_path / "stacks" / "acme-dev.import.json").read_text())
    _, arn = live
    imported = {(each["type"], each["logicalName"]): each for each in document["resources"]}
    assert imported["hyperpod:index:Cluster", "cluster"]["id"] == arn
    assert {name for kind, name in imported if kind == "hyperpod:index:ComputeQuota"} == {"nlp", "vision"}
    assert ("hyperpod:index:ClusterSchedulerConfig", "policy") in imported
    governance = ("aws:eks/addon:Addon", "amazon-sagemaker-hyperpod-taskgovernance")
    assert imported[governance]["id"] == "kube:amazon-sagemaker-hyperpod-taskgovernance"
    for each in document["resources"]:
        assert each["provider"] in document["nameTable"]
        assert each.get("parent", each["provider"]) in document["nameTable"]


def test_a_cluster_is_found_by_its_name_in_a_region(live):
    endpoint, arn = live
    result = adopt((endpoint, "train"), "--region", "us-west-2")
    assert result.returncode == 0, result.stderr
    assert f"# Adopted from {arn}." in result.stdout
    assert result.stderr.endswith("no file was written; to write it, add --output stacks/train.yaml\n")
    assert "hpkit aws adopt run" not in result.stderr


def test_a_file_that_is_there_is_not_replaced_unasked(live, tmp_path):
    (tmp_path / "mine.yaml").write_text("precious: true\n")
    result = adopt(live, "--output", "mine.yaml", cwd=tmp_path)
    assert result.returncode == 2
    assert "--force" in result.stderr
    assert (tmp_path / "mine.yaml").read_text() == "precious: true\n"
    forced = adopt(live, "--output", "mine.yaml", "--force", cwd=tmp_path)
    assert forced.returncode == 0
    assert "next: move it to stacks/train.yaml, and the files next to it to stacks/\n" in forced.stderr


def test_what_is_no_cluster_is_said_without_a_traceback(live):
    result = hpkit("aws", "adopt", "--cluster", "no such name", cwd=ROOT)
    assert result.returncode == 2
    assert "isn't the name or ARN of a HyperPod cluster" in result.stderr
    assert hpkit("aws", "adopt", cwd=ROOT).returncode == 2
    result = hpkit("aws", "adopt", "--cluster", "c", "--region", "us-west-2", "--format", "json", cwd=ROOT)
    assert "--format json requires --output" in document(result.stderr)["message"]
    endpoint, arn = live
    gone = arn[:-4] + "zzzz"
    result = adopt((endpoint, gone))
    assert result.returncode == 1
    assert "sagemaker:DescribeCluster: ResourceNotFound" in result.stderr
    assert "Check the name, the region, and the account of these credentials" in result.stderr


def test_a_service_that_cannot_be_reached_is_said_without_a_traceback(live):
    _, arn = live
    unreachable = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    result = hpkit("aws", "adopt", "--cluster", arn, cwd=ROOT, **KEYS, **unreachable)
    assert result.returncode == 1
    assert "sagemaker:DescribeCluster: EndpointConnectionError" in result.stderr
    assert "Run it again when the service can be reached" in result.stderr
