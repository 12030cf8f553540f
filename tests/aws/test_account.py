"""Creates, checks, changes and deletes a small platform without GPUs in an AWS account: docs/guides/trial.md.

Runs only by hand, because it costs money. The tests depend on each other, so run them with -x. The platform is deleted
at the end, whatever happens; if the run was killed, start it again.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError

from hpkit.clients.network import find_address
from hpkit.clients.processes import run_attended

ACCOUNT, REGION = os.environ.get("HPKIT_AWS_ACCOUNT"), os.environ.get("HPKIT_AWS_REGION")

pytestmark = [
    pytest.mark.skipif(not (ACCOUNT and REGION), reason="HPKIT_AWS_ACCOUNT and HPKIT_AWS_REGION name no account"),
    pytest.mark.timeout(0),
]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
NAME = "hpkit-trial"
STACK = f"{NAME}-run"
# The smallest types that hold the add-ons and the pods of the dependencies chart.
SYSTEM, WORK = "ml.m5.2xlarge", "ml.m5.xlarge"
# For a local cloud that admits every caller: an address for documentation (RFC 5737).
ANY_ADDRESS = "203.0.113.7"
TAGGED = [{"Name": "tag:hpkit:organization", "Values": [NAME]}]


def organization(zone, address, *, alpha, beta):
    """Return the organization file; alpha and beta: how many instances of WORK each team has."""
    sharing = {"strategy": "LendAndBorrow", "borrowLimit": 100}
    teams = [{"name": team, "fairShareWeight": 50, "sharing": sharing} for team in ("alpha", "beta")]
    groups = [("system", SYSTEM, 1), ("work", WORK, 3)]
    return {
        "organization": NAME,
        "clusterPolicy": {"taskPrioritization": "Rank", "priorityClasses": [{"name": "training", "weight": 80}]},
        "teams": teams,
        "environments": {
            "run": {
                "region": REGION,
                "account": ACCOUNT,
                "protect": False,
                "network": {
                    "vpcCidr": "10.192.0.0/16",
                    "zones": [{"availabilityZone": zone, "nodeCidr": "10.1.0.0/16"}],
                    "natGateways": "Single",
                },
                "eks": {"version": "1.35", "endpoint": {"public": True, "publicCidrs": [f"{address}/32"]}},
                "cluster": {
                    "name": NAME,
                    "instanceGroups": [
                        {"name": name, "instanceType": type_, "instanceCount": count, "availabilityZone": zone}
                        for name, type_, count in groups
                    ],
                },
                "governance": {
                    "allocations": {
                        "alpha": [{"instanceType": WORK, "count": alpha}],
                        "beta": [{"instanceType": WORK, "count": beta}],
                    }
                },
            }
        },
    }


class Trial:
    """A project in a folder, its state, and the account."""

    def __init__(self, folder):
        self.folder = folder
        self.session = boto3.Session(region_name=REGION)
        caller = self.client("sts").get_caller_identity()["Account"]
        assert caller == ACCOUNT, f"these are credentials of account {caller}, and HPKIT_AWS_ACCOUNT is {ACCOUNT}"
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "",
            # Tests otherwise hide the user's plugins and charts.
            "PULUMI_HOME": os.environ["HPKIT_TESTS_PULUMI_HOME"] or str(Path.home() / ".pulumi"),
            "HPKIT_MIRROR": os.environ.get("HPKIT_TESTS_MIRROR", ""),
        }
        self.zone = self._zone()
        address = find_address(os.environ.get("AWS_ENDPOINT_URL", "")) or ANY_ADDRESS
        assert isinstance(address, str), f"this machine's public address can't be determined: {address}"
        self.address = address
        self._write_project()

    def client(self, service):
        return self.session.client(service)

    def _zone(self):
        """Return the first zone that offers both instance types."""
        types = [each.removeprefix("ml.") for each in (SYSTEM, WORK)]
        offerings = self.client("ec2").describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": types}]
        )["InstanceTypeOfferings"]
        zones = [each["Location"] for each in offerings]
        return min(zone for zone in zones if zones.count(zone) == len(types))

    def _write_project(self):
        for name in ("state", "stacks", "infra"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "Pulumi.yaml", self.folder)
        shutil.copy(ROOT / "infra" / "__main__.py", self.folder / "infra")
        if not (self.folder / ".venv").is_symlink():
            (self.folder / ".venv").symlink_to(sys.prefix)

    def write(self, **quotas):
        data = organization(self.zone, self.address, **quotas)
        (self.folder / "stacks" / f"{NAME}.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")

    def run(self, *command):
        """Run a command with this terminal; after Ctrl-C, it ends by itself, so that no resource is lost."""
        print(f"\n$ {' '.join(command)}", flush=True)
        return run_attended(command, folder=self.folder, environment=self.environment)

    def resources(self):
        """Return the resources in the state; none if there is no stack."""
        export = ["pulumi", "stack", "export", "--stack", STACK]
        exported = subprocess.run(export, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        return (json.loads(exported.stdout)["deployment"].get("resources") or []) if exported.returncode == 0 else []

    def quotas(self):
        """Return how many instances each team's quota has."""
        sagemaker = self.client("sagemaker")
        cluster = sagemaker.describe_cluster(ClusterName=NAME)["ClusterArn"]
        quotas = sagemaker.list_compute_quotas(ClusterArn=cluster)["ComputeQuotaSummaries"]
        return {
            quota["ComputeQuotaTarget"]["TeamName"]: quota["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"]
            for quota in quotas
        }


@pytest.fixture(scope="module")
def trial():
    """Return the trial, and delete its platform at the end."""
    trial = Trial(ROOT / ".hpkit" / "trial")
    yield trial
    if trial.resources():
        trial.run("hpkit", "aws", "recover", "--stack", STACK, "--yes")
        assert trial.run("hpkit", "aws", "destroy", "--stack", STACK, "--yes") == 0, (
            "resources remain, and cost money. Start this file again"
        )


def test_up_creates_a_platform_without_later_changes(trial):
    trial.write(alpha=2, beta=1)
    assert trial.run("pulumi", "stack", "select", "--create", STACK) == 0
    if trial.resources():
        assert trial.run("hpkit", "aws", "recover", "--stack", STACK, "--yes") == 0, "an earlier run was killed"
    else:
        assert trial.run("hpkit", "aws", "preflight", "--stack", STACK) == 0
    assert trial.run("pulumi", "up", "--stack", STACK, "--yes", "--skip-preview") == 0
    assert trial.run("pulumi", "preview", "--stack", STACK, "--refresh", "--expect-no-changes") == 0


def test_pods_of_each_group_and_a_job_of_each_team_run(trial):
    assert trial.run("hpkit", "cluster", "check", "--stack", STACK) == 0


def test_quota_moves_from_a_team_to_another_in_one_update(trial):
    assert trial.quotas() == {"alpha": 2, "beta": 1}
    trial.write(alpha=1, beta=2)
    assert trial.run("pulumi", "up", "--stack", STACK, "--yes", "--skip-preview") == 0
    assert trial.quotas() == {"alpha": 1, "beta": 2}
    assert trial.run("pulumi", "preview", "--stack", STACK, "--refresh", "--expect-no-changes") == 0


def test_destroy_deletes_every_resource(trial):
    assert trial.run("hpkit", "aws", "destroy", "--stack", STACK, "--yes") == 0
    assert trial.resources() == []


def test_nothing_that_costs_money_is_left(trial):
    delete_logs(trial.client("logs"))
    assert [*leftovers_of_ec2(trial.client("ec2")), *other_leftovers(trial)] == []


def delete_logs(logs):
    """Delete the log groups that HyperPod creates, and those that EKS creates again after the cluster is deleted."""
    for prefix in (f"/aws/sagemaker/Clusters/{NAME}/", f"/aws/eks/{STACK}/"):
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix):
            for group in page["logGroups"]:
                logs.delete_log_group(logGroupName=group["logGroupName"])


def leftovers_of_ec2(ec2):
    """Return the IDs of what exists; EC2 also describes resources that were deleted an hour ago."""
    gateways = ec2.describe_nat_gateways(Filters=TAGGED)["NatGateways"]
    yield from (each["NatGatewayId"] for each in gateways if each["State"] != "deleted")
    endpoints = ec2.describe_vpc_endpoints(Filters=TAGGED)["VpcEndpoints"]
    yield from (each["VpcEndpointId"] for each in endpoints if each["State"] != "deleted")
    yield from (each["AllocationId"] for each in ec2.describe_addresses(Filters=TAGGED)["Addresses"])
    yield from (each["VolumeId"] for each in ec2.describe_volumes(Filters=TAGGED)["Volumes"])
    # Free, but everything in it isn't.
    yield from (each["VpcId"] for each in ec2.describe_vpcs(Filters=TAGGED)["Vpcs"])


def other_leftovers(trial):
    yield from (each for each in trial.client("eks").list_clusters()["clusters"] if each.startswith(NAME))
    clusters = trial.client("sagemaker").list_clusters(NameContains=NAME)["ClusterSummaries"]
    yield from (each["ClusterArn"] for each in clusters)
    buckets = trial.client("s3").list_buckets()["Buckets"]
    yield from (each["Name"] for each in buckets if NAME in each["Name"])
    yield from keys_of(trial.client("kms"))


def keys_of(kms):
    """Return the stack's KMS keys that aren't scheduled for deletion."""
    for page in kms.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            with suppress(ClientError):
                tags = kms.list_resource_tags(KeyId=key["KeyId"])["Tags"]
                is_deleted = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] == "PendingDeletion"
                if {"TagKey": "hpkit:organization", "TagValue": NAME} in tags and not is_deleted:
                    yield key["KeyArn"]
