"""The HyperPod CLI as members of a team run it: the real client, in a separate environment, against the platform."""

import json
import re
from functools import partial

import pytest

from hpkit_local.kubernetes.api import RefusedError
from tests.hyperpod_cli import aws_client, hyperpod_cli
from tests.running import eventually
from tests.security.members import member

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

NAMESPACE = "hyperpod-ns-john"
JOBS = f"/apis/sagemaker.amazonaws.com/v1/namespaces/{NAMESPACE}/hyperpodpytorchjobs"
QUEUED = ("--queue-name", f"{NAMESPACE}-localqueue")
ON = ("--instance-type", "ml.g5.12xlarge")
ADDONS = ("eks-pod-identity-agent", "cert-manager", "amazon-sagemaker-hyperpod-training-operator")


@pytest.fixture(scope="module")
def aws(instance):
    """Clients of the local AWS endpoint, with HyperPod's training operator installed."""
    client = partial(aws_client, instance)
    eks = client("eks")
    there = eks.list_addons(clusterName="handson-dev")["addons"]
    for addon in ADDONS:
        if addon not in there:
            eks.create_addon(clusterName="handson-dev", addonName=addon)
        eventually(
            lambda addon=addon: (
                eks.describe_addon(clusterName="handson-dev", addonName=addon)["addon"]["status"] == "ACTIVE"
            ),
            f"{addon} is active",
        )
    return client


@pytest.fixture(scope="module")
def hyp(aws, instance, tmp_path_factory):
    return hyperpod_cli(instance, tmp_path_factory.mktemp("hyp"), namespace=NAMESPACE)


@pytest.fixture
def job(hyp, api):
    """Create a job as john with options of `hyp create`, and return a function that runs other commands on it."""
    hyp_as_john = []

    def make(name, *options):
        of = ("--job-name", name, "--namespace", NAMESPACE)
        created = hyp("john-scientists", "create", "hyp-pytorch-job", *of, "--image", "x:1", *options)
        assert api.find(f"{JOBS}/{name}"), created

        def on_it(verb, *more):
            verb, _, last = verb.partition(" -- ")
            command = ("--", *last.split()) if last else ()
            return hyp("john-scientists", verb, "hyp-pytorch-job", *of, *more, *command)

        hyp_as_john.append(on_it)
        return on_it

    yield make
    for on_it in hyp_as_john:
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
        lambda: re.search(r"^train .* Running ", hyp_list(hyp, NAMESPACE), re.MULTILINE), lambda: train("describe")
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
def test_a_job_asks_for_whole_instances_and_a_topology(job, api, level):
    job("whole", *QUEUED, *ON, "--node-count", "1", f"--{level}-topology", "topology.k8s.aws/network-node-layer-3")
    template = api.read(f"{JOBS}/whole")["spec"]["replicaSpecs"][0]["template"]
    assert template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 4
    workloads = api.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads")
    (pod_set,) = next(each for each in workloads if each["metadata"]["name"].startswith("hyperpodpytorchjob-whole"))[
        "spec"
    ]["podSets"]
    assert pod_set["topologyRequest"] == {level: "topology.k8s.aws/network-node-layer-3"}


@pytest.fixture
def priorities(aws, api):
    """Add the priority class `training-priority`, which the policy of handson doesn't have."""
    sagemaker = aws("sagemaker")
    (policy,) = sagemaker.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]
    identity = {"ClusterSchedulerConfigId": policy["ClusterSchedulerConfigId"]}

    def change(settings, *, there):
        version = sagemaker.describe_cluster_scheduler_config(**identity)["ClusterSchedulerConfigVersion"]
        sagemaker.update_cluster_scheduler_config(**identity, TargetVersion=version, SchedulerConfig=settings)
        path = "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/training-priority"
        eventually(lambda: bool(api.find(path)) == there, "the policy is applied")

    before = sagemaker.describe_cluster_scheduler_config(**identity)["SchedulerConfig"]
    change({**before, "PriorityClasses": [{"Name": "training", "Weight": 90}]}, there=True)
    yield
    change(before, there=False)


@pytest.mark.usefixtures("priorities")
def test_a_job_with_a_priority_runs_to_its_end(job, api):
    ranked = job("ranked", *QUEUED, *ON, "--node-count", "1", "--priority", "training-priority")
    eventually(lambda: re.search(r"Type: +Completed\n +Status: +True", ranked("describe")), lambda: ranked("describe"))
    workloads = api.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads")
    workload = next(each for each in workloads if each["metadata"]["name"].startswith("hyperpodpytorchjob-ranked"))
    assert workload["spec"]["priorityClassRef"]["name"] == "training-priority"
    assert workload["spec"]["priority"] == 90
    conditions = {each["type"]: each["status"] for each in workload["status"]["conditions"]}
    assert (conditions["Admitted"], conditions["Finished"]) == ("True", "True")


def test_a_job_without_a_queue_is_refused(hyp, api):
    output = hyp(
        *("john-scientists", "create", "hyp-pytorch-job", "--job-name", "unqueued", "--namespace", NAMESPACE),
        *("--image", "x:1", *ON, "--node-count", "1"),
    )
    assert api.find(f"{JOBS}/unqueued") is None, output


def test_another_teams_jobs_stay_hidden(hyp):
    assert "Access denied" in hyp_list(hyp, "hyperpod-ns-smith")


def test_quota_is_listed_to_those_who_can_read_all_pods_and_members_read_it_from_their_queue(hyp, instance):
    quota = ("list-cluster", "--namespace", NAMESPACE)
    (cluster,) = json.loads(hyp("Admin", *quota))
    rows = {each["InstanceType"]: each["Namespaces"] for each in cluster["Instances"]}
    assert rows["ml.g5.12xlarge"][NAMESPACE]["TotalAcceleratorDevices"] == 12
    assert json.loads(hyp("john-scientists", *quota)) == [], "pods of all teams show their environment variables"
    john = member(instance, "john")
    # The client asks for these pods only, but RBAC can't restrict a list to labels.
    labels = "training.kubeflow.org/job-name"
    with pytest.raises(RefusedError, match=r"cannot list resource .*pods.* at the cluster scope"):
        john.items("/api/v1/pods", labels=labels)
    queue = john.read(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{NAMESPACE}-clusterqueue")
    (group,) = queue["spec"]["resourceGroups"]
    flavors = {
        each["name"]: {row["name"]: row["nominalQuota"] for row in each["resources"]} for each in group["flavors"]
    }
    assert flavors["ml.g5.12xlarge"]["nvidia.com/gpu"] == "12"


def hyp_list(hyp, namespace):
    return hyp("john-scientists", "list", "hyp-pytorch-job", "--namespace", namespace)
