"""What `hpkit job why` and `hpkit cluster status` say of jobs, compared with a real API server and a real Kueue.

Each case creates objects as users do, and names the state and the words of the answer.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from kubernetes.client import ApiClient

from hpkit.cluster.jobs.forecast import predict_all, tasks_of
from hpkit.cluster.jobs.server import Server
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.read import objects_of
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.status import status_of
from hpkit.cluster.live.why import explain, find_task
from hpkit.errors import SelectionError
from hpkit.kueue.organization import fair_sharing_of
from hpkit.project import load_stack
from hpkit_local.kubernetes.api import RejectedError, configuration_of
from tests.program.cloud import Live
from tests.running import eventually

pytestmark = [pytest.mark.platform, pytest.mark.timeout(900)]

PLAN = load_stack("handson-dev").plans["dev"]
FAIR = fair_sharing_of(PLAN)
FOLDERS = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "Pod": "/api/v1/namespaces/{}/pods",
}


def template(team, gpus=4, **spec):
    container = {"name": "main", "image": "train", "resources": {"requests": {"cpu": "1"}, "limits": {}}}
    if gpus:
        container["resources"]["limits"]["nvidia.com/gpu"] = gpus
    labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}
    metadata = {"labels": labels, "annotations": {"hpkit.local/run": "9h"}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def made(kind, team, name, spec, version="batch/v1", **metadata):
    """Return an object of a team's queue."""
    labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue", **metadata.pop("labels", {})}
    whole = {"name": name, "namespace": f"hyperpod-ns-{team}", "labels": labels, **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": whole, "spec": spec}


def job(team, name, pods=1, gpus=4, **spec):
    pod = template(team, gpus, **{"restartPolicy": "Never", **spec})
    return made("Job", team, name, {"parallelism": pods, "completions": pods, "template": pod})


def deployment(team, name, pods, gpus=4, **spec):
    pod = template(team, gpus, **spec)
    pod["metadata"]["labels"]["app"] = name
    selector = {"matchLabels": {"app": name}}
    return made("Deployment", team, name, {"replicas": pods, "selector": selector, "template": pod}, "apps/v1")


def without_queue(document):
    """Return a job whose pods lack the label that its policy requires."""
    del document["spec"]["template"]["metadata"]["labels"]
    return document


def stateful(team, name):
    pod = template(team, 0)
    pod["metadata"]["labels"]["app"] = name
    spec = {"replicas": 1, "serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": pod}
    return made("StatefulSet", team, name, spec, "apps/v1")


def cron_job(team, name):
    queue = {"labels": {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}}
    once = {"metadata": queue, "spec": {"template": template(team, 0, restartPolicy="Never")}}
    return made("CronJob", team, name, {"schedule": "* * * * *", "jobTemplate": once})


def group(team, name):
    """Return two plain pods that Kueue admits together."""
    metadata = {
        "labels": {"kueue.x-k8s.io/pod-group-name": name},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2", "hpkit.local/run": "9h"},
    }
    spec = template(team, 4, restartPolicy="Never")["spec"]
    return [made("Pod", team, f"{name}-{number}", spec, "v1", **yaml.safe_load(str(metadata))) for number in (0, 1)]


def lone(team, name):
    """Return a plain pod that takes its time to end."""
    annotations = {"hpkit.local/run": "9h", "hpkit.local/ignore-sigterm": "true"}
    spec = template(team, 4, restartPolicy="Never", terminationGracePeriodSeconds=10)["spec"]
    return made("Pod", team, name, spec, "v1", annotations=annotations)


def slow(team, name, pods):
    """Return a job whose pods take their time to end."""
    document = job(team, name, pods, terminationGracePeriodSeconds=20)
    document["spec"]["template"]["metadata"]["annotations"]["hpkit.local/ignore-sigterm"] = "true"
    return document


def partly(document, least):
    """Return a job that may start with fewer pods."""
    document["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": str(least)}
    return document


def configuration(instance):
    """Return how to reach an instance's API server as its administrator."""
    path = Path(instance.kubeconfig)
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return configuration_of(document, folder=path.parent, certificates=path.parent / "pki")


class World:
    """A live platform, and the objects that a case has made."""

    def __init__(self, instance, plan=PLAN):
        self.plan, self.fair = plan, fair_sharing_of(plan)
        self.live, self.client, self.paths = Live(instance), ApiClient(configuration(instance)), []

    def create(self, *documents):
        for document in documents:
            folder = FOLDERS[document["kind"]].format(document["metadata"]["namespace"])
            self.live.api.create(folder, document)
            self.paths.append(f"{folder}/{document['metadata']['name']}")

    def jobs(self):
        return Jobs(Observed(time=datetime.now(tz=UTC), **objects_of(Kubernetes(self.client), [])))

    def why(self, name):
        jobs = self.jobs()
        return explain(jobs, find_task(jobs, name, None), fair_sharing=self.fair)

    def pods(self, team, labels=""):
        return self.live.api.items(FOLDERS["Pod"].format(f"hyperpod-ns-{team}"), labels=labels)

    def pod_status(self, team, status):
        """Write into the status of the team's only pod, as the kubelet does."""
        eventually(lambda: [each for each in self.pods(team) if each["spec"].get("nodeName")], "a pod runs")
        (pod,) = self.pods(team)
        path = f"{FOLDERS['Pod'].format(f'hyperpod-ns-{team}')}/{pod['metadata']['name']}/status"
        self.live.api.merge(path, {"status": status})

    def runs(self, name):
        """Return whether all pods run."""
        return self.reason(name).startswith(("all ", "its pod runs"))

    def reason(self, name):
        """Return the reason of a job's state, none while it has no Workload yet."""
        try:
            return self.why(name).job.reason
        except SelectionError:
            return ""

    def state(self, name):
        try:
            return self.why(name).job.state
        except SelectionError:
            return None

    def clean(self, *teams):
        for path in reversed(self.paths):
            try:
                self.live.api.delete(path)
            except RejectedError:
                continue
        for team in teams:
            for kind in ("workloads", "pods"):
                version = "/api/v1" if kind == "pods" else "/apis/kueue.x-k8s.io/v1beta2"
                folder = f"{version}/namespaces/hyperpod-ns-{team}/{kind}"
                eventually(lambda folder=folder: self._gone(folder), f"{folder} is empty")

    def _gone(self, folder):
        left = self.live.api.items(folder)
        for each in left:
            if "deletionTimestamp" not in each["metadata"]:
                self.live.api.delete(f"{folder}/{each['metadata']['name']}")
        return not left


def predicted(world, document):
    seen = world.jobs().observed
    return list(predict_all(seen, tasks_of([document], PLAN, seen), fair_sharing=FAIR))


@pytest.fixture(scope="module")
def cloud(clouds):
    made = World(clouds.handson())
    with made.client:
        yield made


@pytest.fixture
def world(cloud):
    cloud.paths = []
    yield cloud
    cloud.clean("john", "smith")


@dataclass
class Case:
    """Objects, then steps, then the answer to `hpkit job why NAME`: state, running pods and words."""

    name: str
    documents: list
    state: str
    words: str
    running: int = 0
    steps: list = field(default_factory=list)


def crowd(world):
    """Let john's job take back what smith borrowed."""
    eventually(lambda: world.runs("lent"), "smith borrows")
    world.create(job("john", "own", 3))


def add_lone(world):
    eventually(lambda: world.runs("base"), "smith's own quota is used")
    time.sleep(1)  # Kueue stops the newest first, by times in whole seconds.
    world.create(lone("smith", "lent"))


def crowd_twice(world):
    crowd(world)
    eventually(lambda: world.state("lent") == "evicted", "john takes it back")
    world.live.api.delete(f"{FOLDERS['Job'].format('hyperpod-ns-john')}/own")
    eventually(lambda: world.runs("lent"), "smith borrows again")
    eventually(lambda: not world.pods("john"), "john's pods are gone")
    world.create(job("john", "again", 3))


def evict_group(world):
    crowd(world)
    eventually(lambda: world.state("own") not in ("pending", None), "john's job is admitted")


def readmit_group(world):
    evict_group(world)
    world.live.api.delete(f"{FOLDERS['Job'].format('hyperpod-ns-john')}/own")


def roll_out(world):
    eventually(lambda: world.runs("web"), "the first pods run")
    path = f"{FOLDERS['Deployment'].format('hyperpod-ns-smith')}/web"
    world.live.api.merge(path, {"spec": {"template": {"metadata": {"annotations": {"changed": "yes"}}}}})


def add_small(world):
    eventually(lambda: world.runs("part"), "each node is partly used")
    world.create(job("john", "small"))


def image_missing(world):
    state = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "train"'}}
    container = {"name": "main", "image": "train", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    conditions = [{"type": "Ready", "status": "False"}]
    world.pod_status("john", {"phase": "Pending", "containerStatuses": [container], "conditions": conditions})


def disk_full(world):
    message = "The node was low on resource: ephemeral-storage."
    world.pod_status("john", {"phase": "Failed", "reason": "Evicted", "message": message})


LENT = job("smith", "lent", 2)
ZONE = {"nodeSelector": {"topology.kubernetes.io/zone": "us-west-2b"}}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "fsx-claim"}}]}
GATES = [{"name": "example.com/wait"}]
NO_FLAVOR = {"nodeSelector": {"node.kubernetes.io/instance-type": "ml.m5.4xlarge"}}
CASES = [
    Case("train", [job("john", "train", **NO_FLAVOR)], "pending", "it can never run: its node selector, affinity or"),
    Case("train", [job("john", "train", 2)], "running", "all 2 pods run", 2),
    Case("train", [job("john", "train", **ZONE)], "blocked", "1 pod has no node: 0/5 nodes are available: 5 node(s)"),
    Case("train", [job("john", "train", 1, 8)], "blocked", "It can never run: one of its pods requests 8 nvidia.com"),
    Case("train", [job("john", "train", **CLAIM)], "blocked", 'persistentvolumeclaim "fsx-claim" not found'),
    Case("train", [without_queue(job("john", "train"))], "blocked", "Job train: Error creating: pods"),
    Case("train", [job("john", "train")], "blocked", "ImagePullBackOff: Back-off pulling image", 0, [image_missing]),
    Case("train", [job("john", "train")], "running", "ended: The node was low on resource: ephemeral", 1, [disk_full]),
    Case("train", [job("john", "train", schedulerName="volcano")], "blocked", "the scheduler volcano hasn't placed"),
    Case("train", [job("john", "train", schedulingGates=GATES)], "blocked", "the scheduling gate example.com/wait"),
    Case("small", [job("john", "part", 4, 3)], "blocked", "4 Insufficient nvidia.com/gpu", 0, [add_small]),
    Case("lent", [LENT], "evicted", "was preempted, because the team that lent the quota", 0, [crowd]),
    Case("lent", [LENT], "evicted", "was preempted 2 times, most recently because the", 0, [crowd_twice]),
    Case("lent", group("smith", "lent"), "ending", "only wait for the finalizer kueue.x-k8s.io/", 0, [evict_group]),
    Case("lent", group("smith", "lent"), "blocked", "kubectl delete workload lent", 0, [readmit_group]),
    Case("lent", [job("smith", "base")], "ending", "Nothing creates a pod again", 0, [add_lone, crowd]),
    Case("part", [partly(job("john", "part", 5), 2)], "running", "pods run. Kueue admitted it with 4 of 5 pods", 4),
    Case("web", [deployment("smith", "web", 2)], "running", "its pod runs", 1),
    Case("db", [stateful("john", "db")], "running", "its pod runs", 1),
    Case("nightly", [cron_job("john", "nightly")], "running", "its pod runs", 1),
]  # fmt: skip


# Tests without a cluster show these by day: the test itself writes the status, or it waits long.
BY_NIGHT = ("ImagePullBackOff: Back-off", "ended: The node was low", "was preempted 2 times", "persistentvolumeclaim")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            marks=[pytest.mark.nightly] if case.name == "nightly" or case.words.startswith(BY_NIGHT) else [],
            id=f"{case.name}-{case.state}-{case.words[:20]}",
        )
        for case in CASES
    ],
)
def test_the_answer_is_what_the_cluster_does(world, case):
    world.create(*case.documents)
    for step in case.steps:
        step(world)
    found = []

    def answers():
        try:
            found.append(world.why(case.name).job)
        except SelectionError:
            return False
        return (found[-1].state, found[-1].running) == (case.state, case.running) and case.words in found[-1].reason

    eventually(answers, lambda: found[-1:], 120)
    listed = [each for team in status_of(world.jobs().observed).teams for each in (*team.running, *team.waiting)]
    assert case.state in {each.state for each in listed}


def test_a_job_for_which_no_node_has_room_is_not_said_to_start(world):
    world.create(job("john", "part", 4, 3))
    eventually(lambda: world.runs("part"), "each node is partly used")
    (forecast,) = predicted(world, job("john", "small"))
    parts = "no node has 4 nvidia.com/gpu free for a pod; part of john holds 12 nvidia.com/gpu on 4 nodes"
    admitted = "Kueue admits it, and it holds quota while its pods wait"
    assert (forecast.fate, forecast.reason) == ("waits", f"quota is free, but {parts}. {admitted}")
    world.create(job("john", "small"))
    eventually(lambda: world.state("small") == "blocked", "no node has room")
    assert world.why("small").outlook == parts


def test_memory_that_no_node_has_left_is_named_with_its_holder_although_accelerators_are_free(world):
    def with_memory(name, pods, gpus):
        document = job("john", name, pods, gpus)
        document["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "100Gi"
        return document

    world.create(with_memory("cached", 4, 0))
    eventually(lambda: world.runs("cached"), "most memory of each node is used")
    (forecast,) = predicted(world, with_memory("more", 1, 1))
    words = "no node has 100 GiB memory free for a pod; cached of john holds 400 GiB memory on 4 nodes"
    assert (forecast.fate, words in forecast.reason, forecast.remedies) == ("waits", True, ("task cached ends",))
    world.create(with_memory("more", 1, 1))
    eventually(lambda: "4 Insufficient memory" in world.reason("more"), "the scheduler says so")
    assert world.why("more").outlook == words


def test_taints_decide_about_nodes_and_rules_about_other_pods_are_left_open(world):
    nodes = [each["metadata"]["name"] for each in world.live.api.items("/api/v1/nodes")]

    def taint(*taints):
        for name in nodes:
            world.live.api.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": [*taints] or None}})

    def fate(document):
        (forecast,) = predicted(world, document)
        return forecast.fate

    reserved = {"key": "vpc.amazonaws.com/efa", "value": "yes", "effect": "NoSchedule"}
    patient = job("john", "patient", tolerations=[reserved])
    try:
        taint(reserved)
        assert [fate(job("john", "plain")), fate(patient)] == ["waits", "now"]
        world.create(job("john", "plain"), patient)
        eventually(lambda: world.runs("patient"), "it tolerates the taint")
        assert "had untolerated taint(s)" in world.reason("plain")
        assert world.why("plain").outlook.endswith("and only taints that they tolerate")
        # The API server lets pods that request a resource tolerate a taint with its name.
        taint({"key": "nvidia.com/gpu", "value": "yes", "effect": "NoSchedule"})
        assert fate(job("john", "other")) == "now"
        eventually(lambda: world.runs("plain"), "it tolerates the taint")
    finally:
        taint()
    term = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    apart = job("smith", "apart", 5, 0, affinity=rule)
    apart["spec"]["template"]["metadata"]["labels"]["app"] = "apart"
    assert fate(apart) == "unknown"
    world.create(apart)
    eventually(lambda: "4 of 5 pods run: 1 pod has no node" in world.reason("apart"), "there are four nodes")


def test_a_stopped_local_queue_admits_nothing(world):
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-john/localqueues/hyperpod-ns-john-localqueue"
    words = "its LocalQueue hyperpod-ns-john-localqueue is stopped (stopPolicy Hold), and admits nothing"
    world.live.api.merge(path, {"spec": {"stopPolicy": "Hold"}})
    try:
        (forecast,) = predicted(world, job("john", "held"))
        assert (forecast.fate, forecast.reason) == ("waits", words)
        world.create(job("john", "held"))
        eventually(lambda: world.reason("held") == words, "Kueue leaves it inadmissible")
        found = world.why("held")
        assert (found.remedies, found.outlook) == ((), "it can only run once the stopPolicy of its LocalQueue is None")
        (john,) = (each for each in status_of(world.jobs().observed).teams if each.team == "john")
        assert john.problem == "LocalQueue hyperpod-ns-john-localqueue is stopped"
    finally:
        world.live.api.merge(path, {"spec": {"stopPolicy": "None"}})
    eventually(lambda: world.runs("held"), "what the answer promised comes true")


def test_a_rollout_that_waits_for_its_own_old_pods_says_so(world):
    world.create(deployment("smith", "web", 2))
    roll_out(world)
    eventually(lambda: "exceeded quota" in world.why("web").siblings, "no new pod can be created", 120)
    found = world.why("web")
    assert (found.job.kind, found.job.name) == ("Deployment", "web")
    assert found.siblings.startswith("1 other pod of Deployment web holds quota. ReplicaSet web-")
    assert found.siblings.endswith("maxUnavailable: 1}}`, so that it deletes an old pod first")


def test_another_deployment_is_made_smaller_and_its_pods_are_not_said_to_end(world):
    world.create(deployment("john", "serve", 3))
    eventually(lambda: world.runs("serve"), "it runs")
    world.create(job("smith", "mine"))
    eventually(lambda: world.runs("mine"), "it runs")
    world.create(job("john", "more"))
    eventually(lambda: world.state("more") == "pending", "it waits")
    assert "Deployment serve has one replica fewer" in world.why("more").remedies


def test_a_job_starts_once_the_pods_that_it_preempts_have_ended(world):
    world.create(slow("smith", "lent", 2))
    eventually(lambda: world.runs("lent"), "smith borrows")
    (forecast,) = predicted(world, job("john", "own", 3))
    assert forecast.preempts == ("lent of smith",)
    assert forecast.reason.endswith("the pods that it preempts have up to 20 s to end first")
    world.create(job("john", "own", 3))
    eventually(lambda: world.state("lent") == "ending", "it's preempted")
    (smith,) = (each for each in status_of(world.jobs().observed).teams if each.team == "smith")
    assert ([each.state for each in smith.running], smith.waiting) == (["ending"], ())
    eventually(lambda: "lent of smith (ending) holds" in world.why("own").outlook, "its last pod waits")
    eventually(lambda: world.runs("own"), "the pods have ended")


def test_an_object_that_exists_is_replaced_and_a_rollout_deletes_its_pods_as_its_strategy_allows(world):
    serve = deployment("john", "serve", 3)
    world.create(serve, job("smith", "mine"))
    eventually(lambda: world.runs("serve") and world.runs("mine"), "all nodes are used")
    serve["spec"]["template"]["metadata"]["annotations"]["version"] = "2"
    assert [each.fate for each in predicted(world, serve)] == ["waits"] * 3
    serve["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    found = predicted(world, serve)
    assert [each.fate for each in found] == ["now"] * 3
    assert found[0].reason.endswith("; it replaces the existing Deployment")
    assert [each.fate for each in predicted(world, job("smith", "mine"))] == ["now"]
    path = f"{FOLDERS['Deployment'].format('hyperpod-ns-john')}/serve"
    world.live.api.merge(path, {"spec": serve["spec"]})
    eventually(lambda: world.live.api.read(path)["status"].get("updatedReplicas") == 3, "the rollout doesn't wait")


def test_a_job_without_a_task_says_why_kueue_makes_none(world):
    world.create(job("john", "ranked", priorityClassName="missing"))
    server = Server(Kubernetes(world.client))
    found = server.why_no_task("ranked", world.jobs().observed, "john")
    assert found == (
        "Kueue has no task for Job ranked in hyperpod-ns-john: the PriorityClass missing, which its pods have as "
        "priorityClassName, doesn't exist"
    )
    assert world.state("ranked") is None
    assert not server.why_no_task("ranked", world.jobs().observed, "smith")


def test_a_deployment_without_any_pod_says_why(world):
    world.create(deployment("john", "web", 1, 40))
    found = []

    def refused():
        with pytest.raises(SelectionError) as error:
            world.why("web")
        found.append(str(error.value))
        return "ReplicaSet web-" in found[-1] and "exceeded quota" in found[-1]

    eventually(refused, lambda: found[-1:], 60)
