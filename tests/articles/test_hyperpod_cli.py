"""The HyperPod CLI as members of a team run it: the real client, in a separate environment, against the platform."""

import json
import os
import re
import shutil
import subprocess

import pytest

from hpkit.cache import cache_root
from hpkit_local.kubernetes.api import RejectedError
from tests.program.cloud import Live, Program
from tests.running import HANGS, eventually
from tests.security.members import member

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

# The example with the add-ons that version 3 needs.
STACK, CLUSTER, TYPE = "topology-prod", "topology", "ml.p5.48xlarge"
MEMBER, NAMESPACE, OTHERS = "pretraining-scientists", "hyperpod-ns-pretraining", "hyperpod-ns-evaluation"
JOBS = f"/apis/sagemaker.amazonaws.com/v1/namespaces/{NAMESPACE}/hyperpodpytorchjobs"
CLIENT, VERSION = "sagemaker-hyperpod", "3.12.0"
IN_TEAM = ("--namespace", NAMESPACE)
TRUST = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}
)
QUEUED = ("--queue-name", f"{NAMESPACE}-localqueue")
ON = ("--instance-type", TYPE)


@pytest.fixture(scope="module")
def aws(instance, clouds):
    """Clients of the local AWS endpoint, with the example deployed, and an administrator."""
    data = clouds.repository.read("topology")
    data["environments"]["prod"]["eks"]["administrators"] = ["arn:aws:iam::123456789012:role/Admin"]
    clouds.repository.write("topology", data)
    Program(instance, STACK, root=clouds.repository.folder).up()
    return Live(instance).client


@pytest.fixture(scope="module")
def bin_folder():
    """Return the folder with the client, which is installed once into an environment of its own."""
    place = cache_root() / "hyperpod-cli" / VERSION
    if not (place / "bin" / "hyp").exists():
        uv = shutil.which("uv")
        if uv is None:
            pytest.skip("uv isn't installed")
        for command in (
            ("venv", "--clear", str(place)),
            ("pip", "install", "--python", str(place), f"{CLIENT}=={VERSION}"),
        ):
            done = subprocess.run([uv, *command], capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                pytest.skip(f"the HyperPod CLI can't be installed: {done.stderr[-300:]}")
    return place / "bin"


@pytest.fixture(scope="module")
def hyp(aws, instance, bin_folder, tmp_path_factory):
    """Return a function that runs `hyp` as a role, with the cluster's context set, and returns its output."""
    folder, environments, made = tmp_path_factory.mktemp("hyp"), {}, {}

    def run(role, *arguments):
        if role not in environments:
            arn = made.setdefault(role, aws("iam").create_role(RoleName=role, AssumeRolePolicyDocument=TRUST))["Role"][
                "Arn"
            ]
            keys = aws("sts").assume_role(RoleArn=arn, RoleSessionName="tester")["Credentials"]
            home = folder / role
            home.mkdir()
            environments[role] = {
                **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBE"))},
                "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
                "AWS_SESSION_TOKEN": keys["SessionToken"],
                "AWS_REGION": "us-west-2",
                "AWS_DEFAULT_REGION": "us-west-2",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{instance.ports()['aws']}",
                "HOME": str(home),
                "KUBECONFIG": str(home / ".kube" / "config"),
                "PATH": f"{bin_folder}:{os.environ['PATH']}",
            }
            run(role, "set-cluster-context", "--cluster-name", CLUSTER, *(() if role == "Admin" else IN_TEAM))
        command = [str(bin_folder / "hyp"), *arguments]
        # It sends usage data to its vendor, and reports on stderr that it couldn't.
        done = subprocess.run(
            command, env=environments[role], capture_output=True, text=True, timeout=HANGS, check=False
        )
        return done.stdout + "".join(re.findall(r"^Error: .*$", done.stderr, re.MULTILINE))

    yield run
    for role in made:
        aws("iam").delete_role(RoleName=role)


@pytest.fixture
def job(hyp, api):
    """Create a job as a member with options of `hyp create`, and return a function that runs other commands on it."""
    on_each = []

    def make(name, *options):
        of = ("--job-name", name, "--namespace", NAMESPACE)
        created = hyp(MEMBER, "create", "hyp-pytorch-job", *of, "--image", "x:1", *options)
        assert api.find(f"{JOBS}/{name}"), created

        def on_it(verb, *more):
            verb, _, last = verb.partition(" -- ")
            command = ("--", *last.split()) if last else ()
            return hyp(MEMBER, verb, "hyp-pytorch-job", *of, *more, *command)

        on_each.append(on_it)
        return on_it

    yield make
    for on_it in on_each:
        on_it("delete")
    eventually(lambda: not api.items(JOBS), "no job is left")


def pods_of(api, name):
    return api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labels=f"HPJob={name}")


def run_long(api, name, pods):
    """Keep a job's pods running; `hyp create` has no option for that."""
    eventually(lambda: len(pods_of(api, name)) == pods, f"{name} has its pods")
    for pod in pods_of(api, name):
        api.merge(
            f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}",
            {"metadata": {"annotations": {"hpkit.local/run": "24h"}}},
        )


def test_a_member_creates_follows_and_deletes_a_job(hyp, job, api):
    train = job("train", *QUEUED, *ON, "--replica-count", "2", "--accelerators", "4")
    run_long(api, "train", 2)
    eventually(
        lambda: re.search(r"^train .*Running ", hyp_list(hyp, NAMESPACE), re.MULTILINE), lambda: train("describe")
    )
    assert re.search(r"Type: +Running\n +Status: +True", train("describe"))
    assert re.findall(r"^(train-pod-\d) ", train("list-pods"), re.MULTILINE) == ["train-pod-0", "train-pod-1"]
    assert "No container runs on the local cloud" in train("get-logs", "--pod-name", "train-pod-1")
    # The member's permissions allow the request to the node. No kubelet answers there, and the client hides the
    # response.
    assert train("exec -- hostname", "--pod", "train-pod-0") == "Command executed successfully (no output)\n"
    train("delete")
    eventually(lambda: not pods_of(api, "train"), "its pods go")


@pytest.mark.parametrize("level", ["preferred", "required"])
def test_a_job_asks_for_whole_instances_and_a_topology_and_is_admitted(job, api, level):
    layer = "topology.k8s.aws/network-node-layer-3"
    job("whole", *QUEUED, *ON, "--node-count", "2", f"--{level}-topology", layer)
    template = api.read(f"{JOBS}/whole")["spec"]["replicaSpecs"][0]["template"]
    assert template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 8

    def workload():
        workloads = api.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads")
        return next(each for each in workloads if each["metadata"]["name"].startswith("hyperpodpytorchjob-whole"))

    (pod_set,) = workload()["spec"]["podSets"]
    assert pod_set["topologyRequest"] == {level: layer}
    eventually(lambda: "admission" in workload().get("status", {}), lambda: workload().get("status"))
    (assigned,) = workload()["status"]["admission"]["podSetAssignments"]
    assert assigned["topologyAssignment"]
    eventually(lambda: len(pods_of(api, "whole")) == 2, "its pods are created")


def test_the_namespace_of_the_context_counts_for_create_and_not_for_list(hyp, api):
    created = hyp(MEMBER, "create", "hyp-pytorch-job", "--job-name", "short", "--image", "x:1", *QUEUED, *ON)
    try:
        assert api.find(f"{JOBS}/short"), created
        assert "Access denied" in (listed := hyp(MEMBER, "list", "hyp-pytorch-job"))
        assert "in namespace 'default'" in listed
    finally:
        hyp(MEMBER, "delete", "hyp-pytorch-job", "--job-name", "short", *IN_TEAM)


def test_a_job_without_a_queue_is_refused(hyp, api):
    output = hyp(
        *(MEMBER, "create", "hyp-pytorch-job", "--job-name", "unqueued", "--namespace", NAMESPACE),
        *("--image", "x:1", *ON, "--node-count", "1"),
    )
    assert api.find(f"{JOBS}/unqueued") is None, output


def test_another_teams_jobs_stay_hidden(hyp):
    assert "Access denied" in hyp_list(hyp, OTHERS)


def test_quota_is_listed_to_those_who_can_read_all_pods_and_members_read_it_from_their_queue(hyp, instance):
    quota = ("list-cluster", "--namespace", NAMESPACE)
    (cluster,) = json.loads(hyp("Admin", *quota))
    rows = {each["InstanceType"]: each["Namespaces"] for each in cluster["Instances"]}
    assert rows[TYPE][NAMESPACE]["TotalAcceleratorDevices"] == 48
    assert json.loads(hyp(MEMBER, *quota)) == [], "pods of all teams show their environment variables"
    scientist = member(instance, "pretraining")
    # The client asks for these pods only, but RBAC can't restrict a list to labels.
    labels = "training.kubeflow.org/job-name"
    with pytest.raises(RejectedError, match=r"cannot list resource .*pods.* at the cluster scope"):
        scientist.items("/api/v1/pods", labels=labels)
    queue = scientist.read(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{NAMESPACE}-clusterqueue")
    (group,) = queue["spec"]["resourceGroups"]
    flavors = {
        each["name"]: {row["name"]: row["nominalQuota"] for row in each["resources"]} for each in group["flavors"]
    }
    assert flavors[TYPE]["nvidia.com/gpu"] == "48"


def hyp_list(hyp, namespace):
    return hyp(MEMBER, "list", "hyp-pytorch-job", "--namespace", namespace)
