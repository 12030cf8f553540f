"""Folders for the teams, on a file system and on local disks: one `up` creates them, and one `destroy` deletes them."""

import pytest

from hpkit.cluster.jobs.checkpoints import Checkpoints
from hpkit.cluster.jobs.new import manifest, team_of
from hpkit.project import load_stack
from hpkit_local.supervisor.pulumi_stack import Stack
from tests.program.cloud import Live, Program
from tests.program.life import assert_unchanged, differences
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

JOBS = "/apis/batch/v1/namespaces/kube-system/jobs"
# What the other lifecycle tests don't check.
OWN = ("/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses", JOBS)


def everything(live):
    names = {
        folder: [entry["metadata"]["name"] for entry in live.api.items(folder, metadata_only=True)] for folder in OWN
    }
    return {**live.everything(), **names}


def job(name, count, root):
    """Return john's job that resumes from the claim, as `hpkit job new` writes it, with a number of GPUs."""
    (plan,) = load_stack("handson-dev", root=root).plans.values()
    john = team_of(plan, "john")
    checkpoints = Checkpoints.at("/fsx/train", plan, john)
    job = manifest(plan, john, kind="job", name=name, instance_type="ml.g5.12xlarge", count=1, priority=None,
                     topology=None, image="train", checkpoints=checkpoints)  # fmt: skip
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for amounts in resources.values():
        amounts["nvidia.com/gpu"] = count
    return job


def test_one_up_makes_volumes_claims_and_folders_and_one_destroy_leaves_nothing(instance, repository):
    live, program = Live(instance), Program(instance, "handson-dev", root=repository.folder)
    before = everything(live)
    data = repository.read("handson")
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}
    storage = {"lustre": lustre, "localDisk": {"instanceTypes": ["ml.g5.12xlarge"]}}
    data["environments"]["dev"]["storage"] = storage
    repository.write("handson", data)
    program.up()

    def bound():
        return {
            (volume["metadata"]["name"].partition("-hyperpod")[0], volume["spec"]["claimRef"]["namespace"])
            for volume in live.api.items(OWN[0])
            if volume["status"]["phase"] == "Bound"
        }

    claimed = {(kind, f"hyperpod-ns-{team}") for kind in ("fsx", "local") for team in ("john", "smith")}
    assert bound() == {("fsx-root", "kube-system"), *claimed}
    # Kubernetes rejects changes to a volume's nodes, so it's replaced together with its claim.
    storage["localDisk"]["instanceTypes"].append("ml.m5.4xlarge")
    repository.write("handson", data)
    program.up()
    assert bound() == {("fsx-root", "kube-system"), *claimed}
    disks = [volume["spec"] for volume in live.api.items(OWN[0]) if "hostPath" in volume["spec"]]
    assert ["ml.m5.4xlarge" in str(disk["nodeAffinity"]) for disk in disks] == [True, True]
    for team in ("john", "smith"):
        name = f"{JOBS}/fsx-directory-{team}"
        eventually(lambda name=name: live.api.read(name)["status"].get("succeeded") == 1, f"{name} is complete")
    # The Jobs have ended by now, which isn't a change either.
    assert program.preview() == {}
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
