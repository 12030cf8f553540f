"""Operations on nodes, from the command line to the requests to SageMaker and the API server."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hpkit.cli import nodes
from hpkit.cluster.live.model import ClusterNode, Group, Platform
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT
from tests.cluster.live.builders import KIND, node, observed, pod, task
from tests.documents import document
from tests.examples import copy_project

IDS = ("i-1", "i-2", "i-3", "i-4")


class Server:
    """An API server with a task's pod on each node; it records cordons, uncordons and evictions."""

    def __init__(self):
        self.closed, self.evicted = {f"hyperpod-{each}": False for each in IDS}, []

    def get(self, path):
        return {"spec": {"unschedulable": self.closed[path.rpartition("/")[2]]}}

    def merge(self, path, document):
        self.closed[path.rpartition("/")[2]] = bool(document["spec"]["unschedulable"])

    def pages(self, _, query):
        name = query[0][1].partition(",")[0].removeprefix("spec.nodeName=")
        if name in self.evicted:
            return []
        owner = {"kind": "Job", "controller": True}
        return [{"metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]}}]

    def create(self, path, _):
        self.evicted.append(path.split("/")[-2])


class Service:
    """SageMaker; it records requests, and which nodes were cordoned at that time."""

    def __init__(self, server):
        self.server, self.requests = server, []

    def client(self, _):
        return self

    def update_cluster_software(self, **request):
        self.requests.append((request, sum(self.server.closed.values())))

    def batch_reboot_cluster_nodes(self, **request):
        self.requests.append((request, sum(self.server.closed.values())))
        return {"Successful": request["NodeIds"][1:], "Failed": [{"NodeId": IDS[0], "Code": "Busy", "Message": "no"}]}


@pytest.fixture
def there(monkeypatch):
    """Return a platform of four nodes, each with a pod of a task, and the SageMaker and API server that serve it."""
    instances = tuple(ClusterNode(each, "gpu", KIND, "Running") for each in IDS)
    groups = (Group("gpu", (KIND,), 4, 4, ""),)
    seen = observed(
        platform=Platform("handson", "InService", "", groups, instances, None, (), (), continuous=True),
        nodes=[node(f"hyperpod-{each}") for each in IDS],
        pods=[pod("john", "train", f"hyperpod-{each}") for each in IDS],
        tasks=[task("john", "train", 4, runs=True)],
    )
    server = Server()
    service = Service(server)

    @contextmanager
    def api(*_, **__):
        yield server

    answer = SimpleNamespace(server=server, service=service, seen=seen)
    monkeypatch.setattr(nodes, "observe", lambda *_, **__: answer.seen)
    monkeypatch.setattr(nodes, "kubernetes_api", api)
    monkeypatch.setattr("hpkit.cli.aws_session.aws_session", lambda *_: service)
    found = SimpleNamespace(eks={}, hyperpod={"ClusterStatus": "InService"})
    monkeypatch.setattr("hpkit.cluster.live.read.find", lambda *_: found)
    return answer


def run(*words, cwd=ROOT):
    answer = hpkit("node", *words, "--stack", "handson-dev", cwd=cwd)
    return answer.returncode, " ".join((answer.stdout + answer.stderr).split())


def test_an_update_in_batches_closes_and_evicts_nothing_before_the_service_begins(there):
    code, said = run("update", "--group", "gpu", "--batch", "1", "--yes")
    assert code == 0, said
    size = {"Type": "INSTANCE_COUNT", "Value": 1}
    ((request, closed),) = there.service.requests
    assert request["DeploymentConfig"] == {"RollingUpdatePolicy": {"MaximumBatchSize": size}}
    assert (closed, there.server.evicted) == (0, [])


def test_an_update_of_all_at_once_drains_all_and_opens_them_again(there):
    code, said = run("update", "--group", "gpu", "--yes")
    assert code == 0, said
    assert [closed for _, closed in there.service.requests] == [4]
    assert len(there.server.evicted) == 4
    assert not any(there.server.closed.values())


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (("--batch", "1"), "updates 1 node at a time"),
        (("--batch", "2"), "updates 2 nodes at a time"),
        (("--batch", "25%"), "updates 25% of the nodes at a time"),
    ],
)
def test_a_dry_run_says_what_becomes_of_what_runs_there(there, words, size):
    code, said = run("update", *words, "--dry-run")
    assert (code, size in said, "without draining them" in said) == (0, True, True)
    assert "Pods are stopped when their node's turn comes" in said
    assert there.service.requests == []
    assert "without draining them" not in run("update", "--dry-run")[1]


def test_an_instance_group_that_is_not_there_is_no_empty_list(there):
    code, said = run("list", "--group", "gpus")
    assert (code, "the cluster has no instance group gpus; did you mean gpu?" in said) == (2, True)
    assert IDS[0] in run("list", "--group", "gpu")[1]


def test_a_count_that_an_anchor_shares_is_in_the_way_of_writing_it_alone(there, tmp_path):
    copy_project(tmp_path)
    file = tmp_path / "stacks" / "handson.yaml"
    text = file.read_text(encoding="utf-8").replace("instanceCount: 4", "instanceCount: &count 4", 1)
    file.write_text(f"{text}x-count: *count\n", encoding="utf-8")
    assert "CAP001" in run("delete", IDS[0], "--dry-run", cwd=tmp_path)[1], "the counts that follow are looked at"
    words = ("delete", IDS[0], "--force", "--dry-run")
    code, output = run(*words, cwd=tmp_path)
    assert (code, "instanceCount of gpu must become 3" in output) == (0, True), output
    code, output = run(*words, "--write", cwd=tmp_path)
    assert (code, "an anchor or a merge also uses its value elsewhere" in output) == (1, True), output


def test_nodes_are_deleted_in_the_stack_that_sets_their_counts(there, tmp_path):
    copy_project(tmp_path)
    file = tmp_path / "stacks" / "handson.yaml"
    text = file.read_text(encoding="utf-8")
    quotas = """  quotas:
    region: us-west-2
    eks: {version: "1.35", existing: {name: theirs}}
    cluster:
      name: handson
      existing: true
      instanceGroups: [{name: gpu, instanceType: ml.g5.12xlarge, instanceCount: 4}]
    governance: {sharedPool: {}}
"""
    words = ("node", "delete", IDS[0], "--force", "--write", "--yes", "--stack", "handson-quotas")
    file.write_text(text.replace("environments:\n", f"environments:\n{quotas}"))
    result = hpkit(*words, "--dry-run", cwd=tmp_path)
    said = " ".join(result.stderr.split())
    assert (result.returncode, "Run `hpkit node delete --stack handson-dev`" in said) == (1, True), said


def test_nodes_that_nobody_waits_for_stay_closed_until_the_service_has_acted(there):
    answer = hpkit("node", "reboot", *IDS, "--yes", "--no-wait", "--stack", "handson-dev", "--format", "json", cwd=ROOT)
    assert answer.returncode == 1, "one was refused"
    done = {item["target"]: item["done"] for item in document(answer.stdout)["items"]}
    assert done == {each: each != IDS[0] for each in IDS}
    assert there.server.closed == {"hyperpod-i-1": False, **{f"hyperpod-{each}": True for each in IDS[1:]}}
    assert "kubectl uncordon hyperpod-i-2 hyperpod-i-3 hyperpod-i-4" in answer.stderr


def test_pods_that_were_not_read_are_not_reported_as_none(there):
    there.seen = replace(there.seen, nodes=(), pods=(), tasks=(), unread=frozenset({"nodes", "pods"}))
    code, output = run("reboot", "i-1", "--dry-run")
    assert code == 0, output
    assert "Running, ?: ? (not all pods could be read)" in output
    _, output = run("list")
    assert output.count("?") == 2 * len(IDS)
    _, output = run("list", "--format", "json")
    assert output.count('"pods": null, ') == output.count('"ready": null, ') == len(IDS)


def test_pods_of_one_team_alone_are_not_all(there):
    there.seen = replace(there.seen, namespaces=("hyperpod-ns-john",))
    _, said = run("list", "--group", "gpu")
    assert said.count("john/train, ?") == len(IDS)


@pytest.mark.parametrize("words", [("reboot", "i-2"), ("replace", "i-2"), ("update", "--group", "gpu")])
def test_nodes_whose_pods_could_not_be_read_are_not_drained(there, words):
    there.seen = replace(there.seen, nodes=(), pods=(), unread=frozenset({"nodes", "pods"}))
    code, said = run(*words, "--yes")
    assert code == 1
    assert "nothing was done: nodes and their pods couldn't be read" in said
    assert there.service.requests == []


def test_nodes_that_could_not_be_read_are_no_empty_topology(there, monkeypatch):
    there.seen = replace(there.seen, nodes=(), unread=frozenset({"nodes"}))
    monkeypatch.setattr("hpkit.cli.topology.observe", lambda *_, **__: there.seen)
    answer = hpkit("cluster", "topology", "--stack", "handson-dev", cwd=ROOT)
    assert answer.returncode == 1
    assert "the nodes couldn't be read" in answer.stderr
