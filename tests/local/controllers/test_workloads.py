"""User workloads under real governance: the pods of Jobs, Deployments and DaemonSets are placed, run, end and fail."""

import os
import signal
from functools import partial
from itertools import chain

import pytest

from hpkit.cluster.jobs.kinds import templates, units
from hpkit.kueue.configuration import configured
from hpkit.plan.derive import derive
from hpkit_local.kubernetes.api import crds_in
from hpkit_local.kubernetes.kueue_run import CONFIG_KEY, CONFIG_MAP, digest, running
from tests import builders
from tests.cluster.jobs.builders import new_job
from tests.program.recorder import recorded_from
from tests.running import eventually, get_tools

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LAYERS = [f"topology.k8s.aws/network-node-layer-{number}" for number in (1, 2, 3)]
DAY = "24h"


@pytest.fixture(scope="module")
def platform(built, api):
    """Create eleven governed instances with four GPUs and eight with eight; team a has six of the first, b has five."""
    groups = [
        built.group("gpu", 11, OverrideVpcConfig=subnet(built, 0)),
        built.group("near", 8, InstanceType="ml.p5.48xlarge", OverrideVpcConfig=subnet(built, 1)),
    ]
    built.make_cluster(InstanceGroups=groups, ClusterRole=built.karpenter_role)
    eventually(lambda: len(api.items("/api/v1/nodes")) == 19, "all nodes are registered")
    cluster = built.describe()["ClusterArn"]
    assert built.govern()["status"] == "ACTIVE"
    classes = [{"Name": "training", "Weight": 80}, {"Name": "experiment", "Weight": 40}]
    policy = built.policy(cluster, SchedulerConfig={"PriorityClasses": classes, "FairShare": "Enabled"})
    assert built.policy_settled(policy)["Status"] == "Created"
    for team, rows in (("a", [("ml.g5.12xlarge", 6)]), ("b", [("ml.g5.12xlarge", 5)]), ("c", [("ml.p5.48xlarge", 8)])):
        resources = [{"InstanceType": kind, "Count": count} for kind, count in rows]
        sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": 100}
        quota = built.quota(
            cluster,
            team,
            ComputeQuotaConfig={"ComputeQuotaResources": resources, "ResourceSharingConfig": sharing},
            ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 1},
        )
        assert built.quota_settled(quota)["Status"] == "Created"
    return cluster


def subnet(built, number):
    return {"SecurityGroupIds": [built.sg], "Subnets": [built.subnets[number]]}


def job(api, team, name, pods, *, gpus=4, run=DAY, exit_code="0", topology=None, priority="training", pod=None, **spec):
    """Create a job with a number of pods, each with all GPUs of an instance; pod: additional fields of the pod spec."""
    annotations = {"hpkit.local/run": run, "hpkit.local/exit-code": exit_code, **(topology or {})}
    container = {
        "name": "main",
        "image": "train",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": str(gpus)}},
    }
    labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}
    labels["kueue.x-k8s.io/priority-class"] = f"{priority}-priority"
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})},
    }
    spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": template, "backoffLimit": 0, **spec}
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}
    api.create(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs", document)


def pods_of(api, team, name, *, phase="Running"):
    found = api.items(f"/api/v1/namespaces/hyperpod-ns-{team}/pods", labels=f"batch.kubernetes.io/job-name={name}")
    return [pod for pod in found if pod.get("status", {}).get("phase") == phase]


def runs(api, team, name, pods):
    return lambda: len(pods_of(api, team, name)) == pods


def condition(api, team, name, kind):
    status = api.read(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs/{name}").get("status", {})
    return next((each for each in status.get("conditions") or [] if each["type"] == kind), {})


def remove(api, team, *names):
    for name in names:
        api.delete(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs/{name}")
    eventually(lambda: not any(pods_of(api, team, name) for name in names), "their pods go")


@pytest.fixture(autouse=True)
def tidy(api):
    """Delete all jobs, so that the next test starts without any."""
    yield
    for team in ("a", "b", "c"):
        jobs = api.items(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs", metadata_only=True)
        remove(api, team, *(each["metadata"]["name"] for each in jobs))


def gpus_of(api, team):
    """Return how many GPUs a team's queue has admitted, and how many of them are borrowed."""
    status = api.read(f"{KUEUE}/clusterqueues/hyperpod-ns-{team}-clusterqueue").get("status", {})
    resources = [each for flavor in status.get("flavorsUsage") or [] for each in flavor["resources"]]
    return next(((each["total"], each["borrowed"]) for each in resources if each["name"] == "nvidia.com/gpu"), None)


def workload(api, team, name):
    found = api.items(f"{KUEUE}/namespaces/hyperpod-ns-{team}/workloads")
    return next((each for each in found if each["metadata"]["ownerReferences"][0]["name"] == name), {})


def reasons(api, team, name):
    conditions = workload(api, team, name).get("status", {}).get("conditions", [])
    return {each["type"]: f"{each['status']} {each.get('reason', '')} {each['message']}" for each in conditions}


def network_nodes(api, pods, layer):
    """Return the network nodes of a layer that contain the pods, read from the pods' nodes."""
    nodes = [api.read(f"/api/v1/nodes/{pod['spec']['nodeName']}") for pod in pods]
    return {node["metadata"]["labels"][LAYERS[layer - 1]] for node in nodes}


def test_a_job_of_each_team_starts_borrows_is_preempted_and_finishes(platform, api):
    job(api, "a", "a-two", 2)
    job(api, "b", "b-four", 4)
    eventually(runs(api, "a", "a-two", 2), "a runs on two of its six")
    eventually(runs(api, "b", "b-four", 4), "b runs on four of its five")
    job(api, "b", "b-more", 4)
    eventually(runs(api, "b", "b-more", 4), "b has three idle instances of a")
    eventually(lambda: gpus_of(api, "b") == ("32", "12"), "its queue shows three instances of four GPUs as borrowed")
    job(api, "a", "a-four", 4, run="5s")
    eventually(lambda: not pods_of(api, "b", "b-more") or not pods_of(api, "b", "b-four"), "a borrower of b goes")
    preempted = [name for name in ("b-four", "b-more") if "Preempted" in reasons(api, "b", name).get("Evicted", "")]
    assert len(preempted) == 1
    eventually(lambda: condition(api, "a", "a-four", "Complete").get("status") == "True", "a has run what it asked for")
    remove(api, "a", "a-two")
    eventually(runs(api, "b", preempted[0], 4), "the borrower starts anew when a is done")


def test_the_more_important_job_of_a_team_takes_the_place_of_another(platform, api):
    job(api, "a", "try", 6, priority="experiment")
    job(api, "b", "keep", 5)
    eventually(runs(api, "a", "try", 6), "an experiment runs on all of a's instances")
    eventually(runs(api, "b", "keep", 5), "b uses its own, so that there is nothing to borrow")
    job(api, "a", "train", 6)
    eventually(runs(api, "a", "train", 6), "the training takes its place")
    assert "Preempted" in reasons(api, "a", "try")["Evicted"]


def test_a_job_that_must_stay_under_one_switch_does(platform, api):
    required = {"kueue.x-k8s.io/podset-required-topology": LAYERS[2]}
    job(api, "c", "close", 4, gpus=8, topology=required)
    eventually(runs(api, "c", "close", 4), "four of eight instances are under one network node of layer 3")
    assert len(network_nodes(api, pods_of(api, "c", "close"), 3)) == 1
    remove(api, "c", "close")
    job(api, "c", "too-wide", 5, gpus=8, topology=required)
    eventually(lambda: "topology" in reasons(api, "c", "too-wide").get("QuotaReserved", ""), "five cannot be")
    assert pods_of(api, "c", "too-wide") == []


@pytest.fixture
def claim(platform, api):
    """Create team b's volume and claim, as the program registers them; yield its plan."""
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}
    program = recorded_from(organization_of("b", storage={"lustre": lustre}))
    made = []
    for kind, name, folder in (
        ("storage.k8s.io/v1:StorageClass", "fsx-sc", "/apis/storage.k8s.io/v1/storageclasses"),
        ("core/v1:PersistentVolume", "b", "/api/v1/persistentvolumes"),
        ("core/v1:PersistentVolumeClaim", "b", "/api/v1/namespaces/hyperpod-ns-b/persistentvolumeclaims"),
    ):
        document = program.one(f"kubernetes:{kind}", name).inputs
        api.create(folder, document)
        made.append(f"{folder}/{document['metadata']['name']}")
    eventually(lambda: api.read(made[-1]).get("status", {}).get("phase") == "Bound", "the claim is bound")
    yield program.plan
    assert api.read(made[-1])["status"]["phase"] == "Bound"
    for path in reversed(made):
        api.delete(path)


def organization_of(team, **environment):
    rows = [{"instanceType": "ml.g5.12xlarge", "count": 2}]
    return builders.organization(
        teams=[builders.team(team)], environment={"governance": {"allocations": {team: rows}}, **environment}
    )


def written(kind, plan, path, **more):
    """Return a job of the plan's team, as `hpkit job new --checkpoint` writes it."""
    (team,) = plan.teams
    return new_job(plan, team.name, path, kind=kind, **more)


RESERVED = {"key": "example.com/reserved", "effect": "NoSchedule"}


@pytest.fixture
def four_nodes(platform, api):
    """Uncordon two nodes, and two more for pods that tolerate a taint; yield a function that removes the taint.

    The quota stays that of eleven nodes.
    """
    nodes = api.items("/api/v1/nodes", labels="node.kubernetes.io/instance-type=ml.g5.12xlarge", metadata_only=True)
    names = [each["metadata"]["name"] for each in nodes]

    def become(which, *, closed=False, taints=None):
        for name in which:
            api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": closed, "taints": taints}})

    become(names[4:], closed=True)
    become(names[2:4], taints=[RESERVED])
    yield lambda: become(names[2:4])
    become(names)


@pytest.fixture
def configure(platform, api):
    """Restart Kueue with the configuration that hpkit writes for a file's governance; restore it afterward."""
    shipped = api.read(CONFIG_MAP)["data"][CONFIG_KEY]

    def write(text):
        api.merge(CONFIG_MAP, {"data": {CONFIG_KEY: text}})
        eventually(lambda: running(api) == digest(text), "Kueue runs with it")

    def by_file(**governance):
        data = builders.organization()
        data["environments"]["dev"]["governance"] |= governance
        write(configured(api.read(CONFIG_MAP)["data"][CONFIG_KEY], derive(builders.typed(data), "dev")))

    yield by_file
    write(shipped)


@pytest.mark.nightly
def test_two_jobs_that_hold_each_others_nodes_finish_only_with_gang_scheduling(four_nodes, configure, api):
    gangs = (("a", "first"), ("b", "second"))

    def placed(team, name):
        pods = api.items(f"/api/v1/namespaces/hyperpod-ns-{team}/pods", labels=f"batch.kubernetes.io/job-name={name}")
        return len([pod for pod in pods if pod["spec"].get("nodeName")]), len(pods)

    def finished():
        """Return whether both are done: each ends when its last pod has joined, like distributed training."""
        for team, name in gangs:
            pods = pods_of(api, team, name)
            for pod in pods if len(pods) == 3 else ():
                path = f"/api/v1/namespaces/hyperpod-ns-{team}/pods/{pod['metadata']['name']}/status"
                api.merge(path, {"status": {"phase": "Succeeded"}})
        return all(condition(api, team, name, "Complete").get("status") == "True" for team, name in gangs)

    # Kueue then considers only quota, as with Karpenter.
    configure(topologyAwareScheduling="Disabled")
    for team, name in gangs:
        tolerations = [RESERVED | {"operator": "Exists"}] if name == "second" else []
        job(api, team, name, 3, pod={"tolerations": tolerations})
        eventually(lambda team=team, name=name: placed(team, name) == (2, 3), f"the {name} job lacks a node")
    four_nodes()
    assert not finished()
    for team, name in gangs:
        said = reasons(api, team, name)
        assert said["Admitted"].startswith("True"), "each keeps what it holds, and waits for the other"
        assert "PodsReady" not in said

    strategy = {"backoffBaseSeconds": 1, "backoffMaxSeconds": 4}
    gang = {"enable": True, "timeout": "5s", "blockAdmission": True, "requeuingStrategy": strategy}
    configure(topologyAwareScheduling="Disabled", gangScheduling=gang)
    eventually(finished, "one gives way to the other, and both finish")


@pytest.fixture(scope="module")
def frameworks(platform, instance, api):
    """Install the published CRDs of JobSet and KubeRay, and restart Kueue so that it detects them."""
    found = get_tools("jobset-crds", "kuberay-crds")
    for crd in chain.from_iterable(crds_in(each.path) for each in found):
        api.create(CRDS, crd)
    restart_kueue(instance)


def restart_kueue(instance):
    # Kueue retries missing CRDs less and less often; at its start it finds them.
    before = instance.state().parts["kueue"]
    os.kill(before.pid, signal.SIGTERM)
    eventually(lambda: instance.state().parts["kueue"].restarts > before.restarts, "its end is seen")
    eventually(lambda: instance.state().ready, "it runs again")


def ray_cluster():
    head = {"containers": [{"name": "head", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    workers = {"groupName": "w", "replicas": 2, "minReplicas": 2, "maxReplicas": 2, "rayStartParams": {}}
    none = {"groupName": "none", "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "train", "labels": {"kueue.x-k8s.io/queue-name": "hyperpod-ns-a-localqueue"}},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": head}},
            "workerGroupSpecs": [{**workers, "template": {"spec": trains()}}, {**none, "template": {"spec": trains()}}],
        },
    }


def trains():
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "4"}}
    return {"containers": [{"name": "main", "image": "x", "resources": resources}]}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["jobset", "raycluster", "rayjob"])
def test_kueue_starts_the_kinds_of_other_frameworks_when_there_is_quota_and_suspends_them_when_it_is_reclaimed(
    frameworks, api, kind
):
    plan = derive(builders.typed(organization_of("a", operators=["kuberay-operator"])), "dev")
    document = ray_cluster() if kind == "raycluster" else written(kind, plan, "s3://bucket/train", count=2)
    path = f"/apis/{document['apiVersion']}/namespaces/hyperpod-ns-a/{kind}s"
    job(api, "a", "all", 6)
    job(api, "b", "all", 5)
    eventually(runs(api, "a", "all", 6), "a uses all that it has")
    eventually(runs(api, "b", "all", 5), "and so does b")
    api.create(path, document)

    def suspended():
        # A RayJob that isn't suspended has no such field, because false values are omitted.
        return bool(api.read(f"{path}/train")["spec"].get("suspend"))

    counts = lambda: [each["count"] for each in workload(api, "a", "train").get("spec", {}).get("podSets", ())]  # noqa: E731
    expected = [pods.count for unit in units(document) for pods in templates(unit)]
    # Until then, it can be that of the previous kind.
    eventually(lambda: counts() == expected, counts)
    assert suspended()
    remove(api, "b", "all")
    eventually(lambda: not suspended(), lambda: reasons(api, "a", "train"))
    job(api, "b", "all", 5)
    eventually(lambda: suspended() and runs(api, "b", "all", 5)(), lambda: reasons(api, "a", "train"))
    remove(api, "b", "all")
    eventually(lambda: not suspended(), lambda: reasons(api, "a", "train"))
    api.delete(f"{path}/train")


HYPERPOD_JOBS = "/apis/sagemaker.amazonaws.com/v1/namespaces/hyperpod-ns-{}/hyperpodpytorchjobs"


@pytest.fixture(scope="module")
def training_operator(platform, built):
    """Install the add-on of HyperPod's training operator, which provides HyperPodPyTorchJob."""
    for addon in ("eks-pod-identity-agent", "cert-manager", "amazon-sagemaker-hyperpod-training-operator"):
        built.eks.create_addon(clusterName="kube", addonName=addon)
        active = partial(built.eks.describe_addon, clusterName="kube", addonName=addon)
        eventually(lambda active=active: active()["addon"]["status"] == "ACTIVE", f"{addon} is active")


@pytest.fixture
def hyperpod_job(training_operator, api):
    """Create HyperPodPyTorchJobs, and delete them after the test."""
    made = []

    def make(team, name, pods, *, kind="ml.g5.12xlarge", gpus=4, annotations=None, **more):
        labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}
        labels["kueue.x-k8s.io/priority-class"] = "training-priority"
        pod = {"nodeSelector": {"node.kubernetes.io/instance-type": kind}, "containers": trains()["containers"]}
        pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = str(gpus)
        metadata = {"labels": labels, "annotations": {"hpkit.local/run": DAY, **(annotations or {})}}
        replica = {"name": "pod", "replicas": pods, "template": {"metadata": metadata, "spec": pod}}
        document = {
            "apiVersion": "sagemaker.amazonaws.com/v1",
            "kind": "HyperPodPyTorchJob",
            "metadata": {"name": name, "labels": labels},
            "spec": {"replicaSpecs": [replica], **more},
        }
        api.create(HYPERPOD_JOBS.format(team), document)
        made.append(f"{HYPERPOD_JOBS.format(team)}/{name}")

    yield make
    for path in made:
        api.delete(path)
    eventually(lambda: not api.items("/api/v1/pods", labels="HPJob"), "their pods go")


def hyperpod_pods(api, team, name):
    return api.items(f"/api/v1/namespaces/hyperpod-ns-{team}/pods", labels=f"HPJob={name}")


def state(api, team, name):
    """Return a HyperPodPyTorchJob's state as the HyperPod CLI shows it: the last condition that is true."""
    conditions = api.read(f"{HYPERPOD_JOBS.format(team)}/{name}").get("status", {}).get("conditions", [])
    return next((each["type"] for each in reversed(conditions) if each["status"] == "True"), None)


def test_a_hyperpod_job_on_borrowed_instances_gives_them_back_and_runs_again(hyperpod_job, api):
    hyperpod_job("a", "large", 8)
    eventually(lambda: state(api, "a", "large") == "Running", lambda: reasons(api, "a", "large"))
    assert gpus_of(api, "a") == ("32", "8")
    hyperpod_job("b", "claim", 5, annotations={"hpkit.local/run": "3s"})
    eventually(lambda: state(api, "a", "large") == "Suspended", "it is preempted")
    eventually(lambda: state(api, "b", "claim") == "Completed", lambda: reasons(api, "b", "claim"))
    eventually(lambda: state(api, "a", "large") == "Running", lambda: reasons(api, "a", "large"))
    assert len(hyperpod_pods(api, "a", "large")) == 8
