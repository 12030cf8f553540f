"""Manifests of `hpkit job new` run as written: each kind, with and without checkpoints, with one pod and with several.

Kueue, the admission policies, the controllers, and the training operator are real. JobSet and Ray have no controller
here, so of these the API server is only asked about the objects and their pods.
"""

import itertools

import pytest
import yaml

from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.jobs.checkpoints import Checkpoints
from hpkit.cluster.jobs.kinds import KINDS
from hpkit.cluster.jobs.new import service_of, team_of
from hpkit.cluster.jobs.server import Server
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.kueue.configuration import JOB_RESOURCES
from tests.cluster.jobs.builders import new_job, text_of
from tests.program.cloud import ROOT
from tests.program.recorder import recorded_from
from tests.running import eventually, making
from tests.security.kinds import CRDS, any_fields
from tests.security.members import CORE, NAMESPACE, member
from tests.security.test_shared_files import ADMISSION, FOLDERS, until_in_force, whole

pytestmark = [pytest.mark.platform, pytest.mark.timeout(900)]

# By kind: the label of its pods.
LABELS = {"job": "job-name", "pytorchjob": "training.kubeflow.org/job-name", "deployment": "app"}
PATHS = {"nothing": None, "the file system": "/fsx/train", "a bucket": "s3://bucket/train"}


@pytest.fixture(scope="module")
def john(instance):
    return member(instance, "john")


@pytest.fixture(scope="module")
def plan(api, john, operator):
    """Return the plan of a stack with a file system whose claims and policies are on the platform."""
    del operator
    data = yaml.safe_load((ROOT / "stacks" / "handson.yaml").read_text(encoding="utf-8"))
    for team, first in zip(data["teams"], (20000, 30000), strict=True):
        team["userIds"] = {"first": first}
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}
    data["environments"]["dev"]["storage"] = {"lustre": lustre}
    recording = recorded_from(data)
    with making(api) as make:
        for resource_type, folder in FOLDERS.items():
            for entry in recording.all(resource_type):
                document = whole(entry.inputs)
                make(folder.format(**document["metadata"]), document)
        for word in ADMISSION:
            for entry in recording.all(f"admissionregistration.k8s.io/v1:{word}"):
                if entry.inputs["metadata"]["name"].startswith("hpkit-files-"):
                    folder = "policies" if word.endswith("Policy") else "policybindings"
                    make(f"/apis/admissionregistration.k8s.io/v1/validatingadmission{folder}", whole(entry.inputs))
        for crd in any_fields():
            if crd["spec"]["group"] in ("ray.io", "jobset.x-k8s.io"):
                make(CRDS, crd)
        until_in_force(john)
        yield recording.plan


# What `job new` rejects: Deployments don't resume, and the operator loses a field that the file system requires.
REFUSED = (("deployment", "the file system"), ("deployment", "a bucket"), ("pytorchjob", "the file system"))
BY_DAY = (("pytorchjob", "nothing", 2), ("job", "the file system", 2))


@pytest.mark.parametrize(
    ("kind", "checkpoint", "count"),
    [
        pytest.param(*case, marks=[] if case in BY_DAY else [pytest.mark.nightly])
        for case in itertools.product(KINDS, PATHS, (1, 2))
        if case[:2] not in REFUSED
    ],
)
def test_each_job_runs_as_written(kind, checkpoint, count, plan, api, john):
    document = new_job(plan, "john", PATHS[checkpoint], kind=kind, count=count)
    server = Server(Kubernetes(john._client))
    service = service_of(document)
    assert (service is not None) == (kind == "job" and count > 1)
    found = list(check(read_manifests("f", text_of(*filter(None, (document, service)))), plan, (), server))
    assert [each.message for each in found] == []
    if kind not in LABELS:
        return
    version, plural = JOB_RESOURCES[document["kind"]]
    folder, selector = f"/apis/{version}/namespaces/{NAMESPACE}/{plural}", f"{LABELS[kind]}=train"

    def phases():
        return [pod.get("status", {}).get("phase") for pod in api.items(f"{CORE}/pods", labels=selector)]

    def story():
        """Return why the pods don't run."""
        events = [each["message"] for each in api.items(f"{CORE}/events") if each["type"] == "Warning"]
        return phases(), api.read(f"{folder}/train").get("status"), events

    def names():
        slices = api.items(f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")
        return sorted(each.get("hostname") for part in slices for each in part.get("endpoints") or ())

    john.create(folder, document)
    if service is not None:
        john.create(f"{CORE}/services", service)
    try:
        eventually(lambda: phases() == ["Running"] * count, story, seconds=150)
        eventually(lambda: service is None or names() == ["train-0", "train-1"], names, seconds=60)
    finally:
        if service is not None:
            john.delete(f"{CORE}/services/train")
        john.delete(f"{folder}/train")
        eventually(lambda: not phases(), phases)


def test_the_operator_starts_no_pod_of_a_pytorch_job_on_the_file_system(plan, api, john):
    """As `job new` and `job check` say: its types (k8s.io/api 0.27) don't have the field that the policy requires."""
    document = new_job(plan, "john", kind="pytorchjob", count=2)
    checkpoints = Checkpoints.at("/fsx/train", plan, team_of(plan, "john"))
    for role in document["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"] = checkpoints.pod(role["template"]["spec"])
    found = list(check(read_manifests("f", text_of(document)), plan))
    assert {each.check for each in found} == {"operator"}
    folder = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"
    john.create(folder, document)
    events = lambda: [each["message"] for each in api.items(f"{CORE}/events") if each["type"] == "Warning"]  # noqa: E731
    try:
        eventually(lambda: any("supplementalGroupsPolicy must be Strict" in each for each in events()), events, 150)
        assert api.items(f"{CORE}/pods", labels="training.kubeflow.org/job-name=train") == []
    finally:
        john.delete(f"{folder}/train")
