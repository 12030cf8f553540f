"""The life of handson-dev with storage, inference, spaces, repositories and member roles: a user's program, split."""

import json
import re

import pytest

from hpkit.project import load_stack
from hpkit_local.supervisor.pulumi_stack import Stack
from tests.builders import RANKED, split
from tests.cli.invoke import hpkit
from tests.cluster.jobs.builders import new_job
from tests.program.asked import Asked
from tests.program.cloud import Live, Program
from tests.program.life import assert_unchanged, differences
from tests.program.test_platform import program_with
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

JOBS = "/apis/batch/v1/namespaces/kube-system/jobs"
VOLUMES = "/api/v1/persistentvolumes"
# What the other lifecycle tests don't check.
OWN = (VOLUMES, "/apis/storage.k8s.io/v1/storageclasses", JOBS)
OPERATOR = "amazon-sagemaker-hyperpod-inference"
NEEDED = ("aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver", "cert-manager", "metrics-server")
SPACES = ("amazon-sagemaker-spaces", "aws-ebs-csi-driver")
BUCKET = "hyperpod-tls-handson-dev-123456789012-us-west-2"
LUSTRE = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}


def everything(live):
    names = {
        folder: [entry["metadata"]["name"] for entry in live.api.items(folder, metadata_only=True)] for folder in OWN
    }
    return {**live.everything(), **names}


def resources(program):
    return json.loads(program.read("stack", "export"))["deployment"]["resources"]


def job(name, count, root):
    """Return john's job that resumes from the claim, as `hpkit job new` writes it, with a number of GPUs."""
    (plan,) = load_stack("handson-dev", root=root).plans.values()
    job = new_job(plan, "john", "/fsx/train", name=name)
    requested = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for amounts in requested.values():
        amounts["nvidia.com/gpu"] = count
    return job


def assert_inference(live):
    found = live.client("eks").describe_addon(clusterName="handson-dev", addonName=OPERATOR)["addon"]
    assert found["status"] == "ACTIVE"
    values = json.loads(found["configurationValues"])
    assert values["tlsCertificateS3Bucket"] == BUCKET
    (issuer,) = live.client("iam").list_open_id_connect_providers()["OpenIDConnectProviderList"]
    assert ":oidc-provider/" in issuer["Arn"]
    s3 = live.client("s3")
    assert s3.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    policy = json.loads(s3.get_bucket_policy(Bucket=BUCKET)["Policy"])["Statement"]
    only = next(each["Condition"]["ArnNotLike"] for each in policy if each["Sid"] == "OnlyOperatorWrite")
    assert only == {"aws:PrincipalArn": [values["executionRoleArn"]]}
    s3.put_object(Bucket=BUCKET, Key="endpoint.pem", Body=b"certificate")


def test_storage_inference_and_spaces_in_a_users_program_come_change_and_leave_nothing(instance, repository):
    live, program = Live(instance), Program(instance, "handson-dev", root=repository.folder)
    place = {"LocationConstraint": "us-west-2"}
    live.client("s3").create_bucket(Bucket="acme-data", CreateBucketConfiguration=place)
    before = everything(live)
    (repository.folder / "infra" / "__main__.py").write_text(program_with())

    def write(**more):
        data = repository.read("handson")
        data["environments"]["dev"].update(more)
        if "spaces" in more:
            data["clusterPolicy"] |= RANKED
            john = next(team for team in data["teams"] if team["name"] == "john")
            john |= {"workloads": ["training", "inference", "spaces"], "spacePriorityClass": "training"}
        repository.write("handson", data)

    link = {"path": "/teams/john/data", "bucket": "acme-data", "prefix": "john/"}
    storage = {"lustre": {**LUSTRE, "dataRepositories": [link]}, "localDisk": {"instanceTypes": ["ml.g5.12xlarge"]}}
    storage["teamBuckets"] = {"john": [{"bucket": "acme-data", "prefix": "john/"}]}
    # The bucket of certificates is protected like that of the scripts.
    added = {"inference": {"modelBuckets": ["acme-models"]}, "spaces": {"remoteAccess": True}}
    write(storage=storage, **added, allowReplace=["bucket"])
    program.up()
    assert program.outputs() == {"cluster": live.cluster()["ClusterArn"]}
    (vpc,) = (each for each in resources(program) if each["urn"].endswith("::vpc"))
    assert "::ours::" in vpc["provider"], "the program's own provider"
    assert_inference(live)
    addon = live.client("eks").describe_addon(clusterName="handson-dev", addonName=SPACES[0])["addon"]
    assert addon["status"] == "ACTIVE"

    def pod_roles():
        eks = live.client("eks")
        listed = eks.list_pod_identity_associations(clusterName="handson-dev", namespace="hyperpod-ns-john")
        return [each["serviceAccount"] for each in listed["associations"]]

    def links():
        found = live.client("fsx").describe_data_repository_associations()["Associations"]
        return [(each["FileSystemPath"], each["DataRepositoryPath"], *each["S3"]) for each in found]

    assert pod_roles() == ["default"]
    assert links() == [("/teams/john/data", "s3://acme-data/john/", "AutoImportPolicy")]

    def bound():
        return {
            (volume["metadata"]["name"].partition("-hyperpod")[0], volume["spec"]["claimRef"]["namespace"])
            for volume in live.api.items(VOLUMES)
            if volume["status"]["phase"] == "Bound"
        }

    claimed = {(kind, f"hyperpod-ns-{team}") for kind in ("fsx", "local") for team in ("john", "smith")}
    assert bound() == {("fsx-root", "kube-system"), *claimed}
    # Kubernetes rejects changes to a volume's nodes, so it's replaced together with its claim.
    storage["localDisk"]["instanceTypes"].append("ml.m5.4xlarge")
    del storage["teamBuckets"]
    link["autoExport"] = ["NEW", "CHANGED"]
    write(storage=storage, allowReplace=["bucket"], allowDelete={"addons": [OPERATOR, *NEEDED, *SPACES]})
    program.up()
    assert bound() == {("fsx-root", "kube-system"), *claimed}
    assert pod_roles() == []
    assert [sorted(each[2:]) for each in links()] == [["AutoExportPolicy", "AutoImportPolicy"]]
    assert BUCKET not in {each["Name"] for each in live.client("s3").list_buckets()["Buckets"]}
    disks = [volume["spec"] for volume in live.api.items(VOLUMES) if "hostPath" in volume["spec"]]
    assert ["ml.m5.4xlarge" in str(disk["nodeAffinity"]) for disk in disks] == [True, True]
    for team in ("john", "smith"):
        name = f"{JOBS}/fsx-directory-{team}"
        eventually(lambda name=name: live.api.read(name)["status"].get("succeeded") == 1, f"{name} is complete")
    write(storage=storage)
    program.up()
    # The Jobs have ended by now, which isn't a change either.
    assert_unchanged(program.up("--json").stdout)
    assert_unchanged(program.run("refresh", "--yes", "--skip-preview", "--json").stdout)

    # A completed pod keeps its claim, and a job that waits for quota would start the next one.
    jobs = "/apis/batch/v1/namespaces/hyperpod-ns-john/jobs"
    for name, count in (("completed", 1), ("waiting", 100)):
        live.api.create(jobs, job(name, count, repository.folder))
    eventually(lambda: live.api.read(f"{jobs}/completed")["status"].get("succeeded") == 1, "the job is complete")
    said = []
    assert Stack(instance, "handson-dev", root=repository.folder, say=said.append).run("destroy") == 0
    assert said == [
        "Job hyperpod-ns-john/completed uses the claim fsx-claim: it is deleted first",
        "Job hyperpod-ns-john/waiting hasn't ended, and Kueue keeps its Workload: it is deleted first",
    ]
    assert program.resources() == []
    eventually(lambda: differences(before, everything(live)) == {}, lambda: differences(before, everything(live)))


STATE_ONLY = re.compile(
    r"ChangeGuard|Readiness|pulumi:providers|hpkit:index|pulumi:pulumi|^(Governance|Scheduling|Registry|TeamVolumes):"
)
WRITES = re.compile(r":(Create|Update|Delete|Put|Attach|Detach|Modify|Authorize|Revoke|Associate|Run)")


def changes(program):
    found = program.preview().items()
    return {name: op for name, op in found if op != "discard" and not STATE_ONLY.search(name)}


def test_governance_becomes_a_separate_stack_that_changes_nothing_but_quotas(instance, repository, clouds):
    assert clouds.empty() is instance
    live, platform = Live(instance), Program(instance, "handson-dev", root=repository.folder)
    before, data = live.everything(), repository.read("handson")
    data["teams"][0] |= {"registry": ["train"], "memberRole": {"permissionSets": ["Scientists"]}}
    data["environments"]["dev"]["storage"] = {"lustre": LUSTRE}
    repository.write("handson", data)
    platform.up()
    there = live.everything()
    data = split(data)
    (system,) = (each["id"] for each in resources(platform) if each["type"].endswith(":LustreFileSystem"))
    data["environments"]["governance"]["storage"]["lustre"]["existing"] = system
    # Its nodes can pull what they could pull before.
    data["environments"]["dev"]["registry"] = {"pullFrom": ["handson-dev/*"]}
    repository.write("handson", data)
    governance = Program(instance, "handson-governance", root=repository.folder)
    split_off = ("aws", "adopt", "run", "--stack", "handson-governance", "--from-stack", "handson-dev")
    moved = hpkit(*split_off, cwd=repository.folder, **platform.environment)
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert set(changes(governance).values()) == {"update"}, changes(governance)
    assert changes(platform) == {}
    governance.up()
    platform.up()
    assert changes(governance) == changes(platform) == {}
    assert live.everything().keys() == there.keys()

    data["teams"][0]["fairShareWeight"] = 70
    repository.write("handson", data)
    asked = Asked(instance)
    asked.during(governance.up)
    assert live.quotas()["john"]["ComputeQuotaTarget"]["FairShareWeight"] == 70
    assert {each for each in asked.operations if WRITES.search(each)} == {"sagemaker:UpdateComputeQuota"}

    governance.destroy()
    assert live.cluster()["ClusterStatus"] == "InService"
    platform.destroy()
    assert live.everything() == before
