"""A job on a running platform: found by name, its ranks in order, its logs, and its end."""

import itertools
import json
import threading

import pytest
from kubernetes.client import ApiException
from urllib3.exceptions import ProtocolError

from hpkit.cluster.jobs import running
from hpkit.cluster.jobs.kinds import KINDS, WORKLOADS
from hpkit.cluster.jobs.logs import follow, logs
from hpkit.errors import SelectionError, ToolError
from hpkit.kueue.jobs import JOB_RESOURCES

JOHN, SMITH = "hyperpod-ns-john", "hyperpod-ns-smith"


class FakeApi:
    """Objects by path, pods with their labels, and logs by pod; namespaces in `closed` are refused."""

    def __init__(self, *jobs, pods=(), logs=None, events=(), workloads=(), closed=(SMITH,)):
        self.objects = {path_of(each): each for each in jobs}
        self.pods, self.events, self.workloads = list(pods), list(events), list(workloads)
        self.written, self.closed, self.deleted, self.queries = logs or {}, closed, [], []

    def find(self, path):
        if any(f"/namespaces/{each}/" in path for each in self.closed):
            raise ApiException(status=403, reason="Forbidden")
        return self.objects.get(path)

    def version_of(self, group):
        return f"/apis/{group}/v1beta2"

    def pages(self, path, query=()):
        if path.endswith("/events"):
            return iter(self.events)
        if path.endswith("/workloads"):
            return iter(self.workloads)
        wanted = dict(pair.split("=") for pair in dict(query)["labelSelector"].split(","))
        return iter([each for each in self.pods if wanted.items() <= each["metadata"]["labels"].items()])

    def lines(self, path, query):
        self.queries.append(dict(query))
        yield from self.written[path.split("/")[-2]]

    def delete(self, path, options):
        self.deleted.append((path, options))
        if self.objects[path]["metadata"]["uid"] != options["preconditions"]["uid"]:
            raise ApiException(status=409, reason="Conflict")
        del self.objects[path]


def path_of(document):
    version, plural = JOB_RESOURCES[document["kind"]]
    return f"/apis/{version}/namespaces/{document['metadata']['namespace']}/{plural}/{document['metadata']['name']}"


def job(kind="Job", name="train", namespace=JOHN, status=None, **spec):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def pod(name, labels, *, created=0, state=None, restarts=0, **status):
    metadata = {
        "name": name,
        "namespace": JOHN,
        "uid": f"uid-{name}",
        "labels": labels,
        "creationTimestamp": f"2026-11-22T11:00:{created:02d}Z",
    }
    container = {"name": "main", "state": state or {"running": {}}, "restartCount": restarts}
    return {
        "metadata": metadata,
        "spec": {"nodeName": f"node-of-{name}", "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "containerStatuses": [container], **status},
    }


def ended(code, at="2026-11-22T11:30:00Z", **more):
    return {"terminated": {"exitCode": code, "finishedAt": at, **more}}


TRAINING = "training.kubeflow.org"
INDEX = "batch.kubernetes.io/job-completion-index"
NAME = "batch.kubernetes.io/job-name"


def worker(name, role, index=None):
    index = {} if index is None else {f"{TRAINING}/replica-index": str(index)}
    return pod(name, {f"{TRAINING}/job-name": "train", f"{TRAINING}/job-role": role, **index})


# Kind → what is in its object, its pods in no order, and the names of ranks 0, 1, ….
SHAPES = {
    "Job": (
        job(parallelism=3),
        [pod(f"train-{each}-x", {NAME: "train", INDEX: str(each)}) for each in (2, 0, 1)],
        ["train-0-x", "train-1-x", "train-2-x"],
    ),
    "PyTorchJob": (
        job("PyTorchJob", pytorchReplicaSpecs={"Master": {}, "Worker": {}}),
        [worker("train-worker-1", "worker", 1), worker("train-worker-0", "worker", 0), worker("train-m", "master", 0)],
        ["train-m", "train-worker-0", "train-worker-1"],
    ),
    "MPIJob": (
        job("MPIJob", mpiReplicaSpecs={"Launcher": {}, "Worker": {}}),
        [worker("train-worker-0", "worker", 0), worker("train-launcher-abc", "launcher")],
        ["train-launcher-abc", "train-worker-0"],
    ),
    "JobSet": (
        job("JobSet"),
        [
            pod(
                f"train-w-{index}",
                {
                    "jobset.sigs.k8s.io/jobset-name": "train",
                    "jobset.sigs.k8s.io/job-global-index": str(index // 2),
                    INDEX: str(index % 2),
                },
            )
            for index in (3, 2, 1, 0)
        ],
        ["train-w-0", "train-w-1", "train-w-2", "train-w-3"],
    ),
    "RayJob": (
        job("RayJob", status={"rayClusterName": "train-abc"}),
        [
            pod(f"train-abc-{name}", {"ray.io/cluster": "train-abc", "ray.io/node-type": name[:-2]})
            for name in ("worker-b", "worker-a", "head-c")
        ],
        ["train-abc-head-c", "train-abc-worker-a", "train-abc-worker-b"],
    ),
    "HyperPodPyTorchJob": (
        job("HyperPodPyTorchJob"),
        [pod(f"train-pod-{each}", {"HPJob": "train"}) for each in (10, *range(10))],
        [f"train-pod-{each}" for each in range(11)],
    ),
    "Deployment": (
        job("Deployment", selector={"matchLabels": {"app": "train"}}),
        [pod(f"train-{each}", {"app": "train"}) for each in "ba"],
        ["train-a", "train-b"],
    ),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_the_ranks_of_each_kind_are_in_order(kind):
    document, pods, names = SHAPES[kind]
    api = FakeApi(document, pods=[*pods, pod("other-0", {NAME: "other", "app": "other"})])
    found = running.find_job(api, [JOHN, SMITH], "train")
    assert (found.kind, found.words) == (kind, f"{kind} train of john")
    ranks = running.ranks_of(found, running.pods_of(api, found))
    assert [(each.number, each.name) for each in ranks] == [*enumerate(names)]


def test_each_kind_that_job_new_writes_or_members_may_create_can_be_found():
    assert {kind.lower() for kind in JOB_RESOURCES} >= set(KINDS)
    assert JOB_RESOURCES.keys() == WORKLOADS.keys()


def test_a_rank_is_its_newest_pod_and_keeps_its_number_without_the_ones_before_it():
    labels = {NAME: "train", INDEX: "1"}
    pods = [pod("train-1-new", labels, created=9), pod("train-1-old", labels, created=1)]
    (rank,) = running.ranks_of(running.Job("Job", "", job()), pods)
    assert (rank.number, rank.name) == (1, "train-1-new")


def test_what_isnt_one_job_is_one_sentence():
    api = FakeApi(job(), job("PyTorchJob"))
    with pytest.raises(SelectionError, match="several jobs have the name train: Job train of john, PyTorchJob train"):
        running.find_job(api, [JOHN], "train")
    assert running.find_job(api, [JOHN], "pytorchjob/train").kind == "PyTorchJob"
    with pytest.raises(SelectionError, match="john has no job late; jobs of smith couldn't be read"):
        running.find_job(api, [JOHN, SMITH], "late")
    with pytest.raises(ToolError, match=r"jobs of smith can't be read: 403 Forbidden[.] Use a role"):
        running.find_job(api, [SMITH], "train")
    with pytest.raises(SelectionError, match="cron isn't a kind of job"):
        running.find_job(api, [JOHN], "cron/train")


def test_the_first_rank_that_failed_is_named_first_then_kueue_and_the_events():
    status = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}]}
    pods = [
        pod("train-0-x", {NAME: "train", INDEX: "0"}, state=ended(1, at="2026-11-22T11:31:00Z", reason="Error")),
        pod("train-1-x", {NAME: "train", INDEX: "1"}, state=ended(137, reason="OOMKilled")),
    ]
    event = {
        "reason": "BackOff",
        "message": "again",
        "lastTimestamp": "2026-11-22T11:31:00Z",
        "involvedObject": {"kind": "Pod", "name": "train-1-x", "uid": "uid-train-1-x"},
    }
    other = {**event, "involvedObject": {"kind": "Pod", "name": "other", "uid": "other"}}
    api = FakeApi(job(status=status), pods=pods, events=[event, other])
    running_job = running.find_job(api, [JOHN], "train")
    assert running_job.has_ended
    all_pods = running.pods_of(api, running_job)
    first, second, third, fourth = running.history(api, running_job, running.ranks_of(running_job, all_pods), all_pods)
    assert first == "it failed: BackoffLimitExceeded: m"
    assert second.startswith(
        "rank 1 (train-1-x) on node-of-train-1-x failed: container main exited with 137 (OOMKilled), "
    )
    assert third == "1 more failed after it"
    assert fourth.startswith("Pod train-1-x: BackOff: again, ")


def test_logs_are_those_of_all_ranks_that_have_started_since_a_time():
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    pods = [
        pod("train-0-x", {NAME: "train", INDEX: "0"}),
        pod("train-1-x", {NAME: "train", INDEX: "1"}, state=waiting),
        pod("train-2-x", {NAME: "train", INDEX: "2"}, state=ended(0)),
    ]
    texts = {"train-0-x": ["2026-11-22T11:00:00.1Z a | b", "2026-11-22T11:00:00.2Z "], "train-2-x": ["2026Z c"]}
    api = FakeApi(job(), pods=pods, logs=texts)
    ranks = running.ranks_of(running.find_job(api, [JOHN], "train"), pods)
    assert [*logs(api, ranks, 60)] == [(0, "a | b"), (0, ""), (2, "c")]
    assert ranks[1].waits == "ImagePullBackOff: no such image"
    assert api.queries[0] == {"container": "main", "timestamps": "true", "sinceSeconds": "60"}


def test_following_adds_pods_that_start_later_and_ends_with_the_job():
    first = pod("train-0-x", {NAME: "train", INDEX: "0"})
    api = FakeApi(job(), pods=[first], logs={"train-0-x": ["1Z a"], "train-1-x": ["2Z b"]})
    running_job = running.find_job(api, [JOHN], "train")
    steps = itertools.count()

    def advance(ranks):
        step = next(steps)
        if step == 1:
            api.pods.append(pod("train-1-x", {NAME: "train", INDEX: "1"}))
        if step == 2:
            api.pods = [pod(each["metadata"]["name"], each["metadata"]["labels"], state=ended(0)) for each in api.pods]
            api.objects[running_job.path] = job(status={"conditions": [{"type": "Complete", "status": "True"}]})

    lines = [*follow(api, running_job, None, waiting=advance, pause=0.05)]
    assert lines == [(0, "a"), (1, "b")]
    assert all(each["follow"] == "true" for each in api.queries)
    assert threading.active_count() < 20


def test_following_after_a_broken_connection_loses_no_line_of_the_same_time_and_repeats_none(monkeypatch):
    monkeypatch.setattr("hpkit.cluster.jobs.logs._PAUSE_SECONDS", 0.0)
    api = FakeApi(
        job(status={"conditions": [{"type": "Complete", "status": "True"}]}),
        pods=[pod("train-0-x", {NAME: "train", INDEX: "0"}, state=ended(0))],
    )
    at = "2026-11-22T11:00:00"
    # Kubelets return a whole second again; each run of a list is one connection, and the lines of it that arrive.
    connections = iter(
        [
            [f"{at}.100000000Z a", f"{at}.200000000Z b", f"{at}.200000000Z b"],
            [f"{at}.100000000Z a", f"{at}.200000000Z b", f"{at}.200000000Z b", f"{at}.200000000Z b", f"{at}.2Z c"],
            [f"{at}.2Z c", "2026-11-22T11:00:01.000000000Z d"],
        ]
    )

    def lines(_path, query):
        api.queries.append(dict(query))
        yield from next(connections)
        if len(api.queries) < 3:
            raise ProtocolError("broken")

    api.lines = lines
    found = running.find_job(api, [JOHN], "train")
    texts = [text for _, text in follow(api, found, None, waiting=lambda _: None, pause=0.05)]
    assert texts == ["a", "b", "b", "b", "c", "d"]
    assert [query.get("sinceTime") for query in api.queries] == [None, f"{at}Z", f"{at}Z"]


def test_a_refused_log_is_an_error_also_when_following():
    api = FakeApi(job(), pods=[pod("train-0-x", {NAME: "train", INDEX: "0"})])

    def refuse(_path, _query):
        raise ApiException(status=403, reason="Forbidden")

    api.lines = refuse
    found = running.find_job(api, [JOHN], "train")
    with pytest.raises(ApiException):
        [*follow(api, found, None, waiting=lambda _: None, pause=0.05)]


def test_stopping_deletes_the_job_that_was_found_and_nothing_else():
    api = FakeApi(job(), job(name="other"))
    running_job = running.find_job(api, [JOHN], "train")
    pods = [pod("train-0-x", {NAME: "train"})]
    api.objects[running_job.path] = {
        **running_job.document,
        "metadata": {**running_job.document["metadata"], "uid": "another"},
    }
    with pytest.raises(ToolError, match="was replaced by a new one, which wasn't deleted"):
        running.stop(api, running_job, pods)
    api.objects[running_job.path] = running_job.document
    assert running.stop(api, running_job, pods) == "deleted Job train of john; its pods end within 30s"
    assert [path for path, _ in api.deleted] == [running_job.path] * 2
    assert json.loads(json.dumps(api.deleted[-1][1]))["propagationPolicy"] == "Background"
    assert [each["metadata"]["name"] for each in api.objects.values()] == ["other"]
