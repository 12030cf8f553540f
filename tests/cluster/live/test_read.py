"""API responses, parsed into the model, and reading with limited permissions: denied data is unknown, not empty."""

from decimal import Decimal
from types import SimpleNamespace

import pytest
from kubernetes.client import ApiException

from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.parse import group_of, node_of, pod_of, queue_of, task_of
from hpkit.cluster.live.read import objects_of
from hpkit.cluster.live.status import status_of
from tests.cluster.live.builders import GPU, KIND, NOW, node, queue

TEAMS = ("hyperpod-ns-john", "hyperpod-ns-smith")
LOCAL_QUEUE = {
    "metadata": {"name": "hyperpod-ns-john-localqueue", "namespace": "hyperpod-ns-john"},
    "spec": {"clusterQueue": "hyperpod-ns-john-clusterqueue"},
}


def api(allowed, *, count=None):
    """Return an API server where a caller can only list paths that contain one of some words."""
    asked, queries = [], {}

    def pages(path, query=()):
        asked.append(path)
        queries[path] = query
        if not any(word in path for word in allowed):
            raise ApiException(status=403, reason="Forbidden")
        yield from [LOCAL_QUEUE] if path.endswith("localqueues") else []

    return SimpleNamespace(
        pages=pages,
        count=lambda path: count if not [*pages(path)] else None,
        version_of=lambda group: f"/apis/{group}/v1",
        asked=asked,
        queries=queries,
    )


@pytest.mark.parametrize(
    ("count", "query"), [(0, (("resourceVersion", "0"),)), (5000, (("resourceVersion", "0"),)), (5001, ()), (None, ())]
)
def test_workloads_are_read_at_once_from_the_server_s_cache_unless_they_are_many(count, query):
    server = api(("/",), count=count)
    objects_of(server, [])
    assert server.queries["/apis/kueue.x-k8s.io/v1/workloads"] == query


def test_a_teams_member_reads_the_namespace_of_the_team():
    unknown = []
    objects = objects_of(
        api(("namespaces/hyperpod-ns-john/", "nodes", "cluster", "classes", "flavors")), unknown, namespaces=TEAMS
    )
    assert (objects["namespaces"], objects["unread"]) == (("hyperpod-ns-john",), {"nodepools"})
    assert unknown == [], "members always read only their own namespaces"
    seen = Observed(time=NOW, **objects)
    assert seen.sees("hyperpod-ns-john")
    assert not seen.sees("hyperpod-ns-smith")


def test_what_is_refused_everywhere_is_unread():
    unknown = []
    found = objects_of(api(("nodes",)), unknown, namespaces=TEAMS)
    assert found["unread"] >= {"pods", "workloads", "localqueues", "clusterqueues", "resourceflavors"}
    assert "nodes" not in found["unread"]
    assert "/apis/kueue.x-k8s.io/v1/workloads of the Kubernetes API: 403 Forbidden" in unknown


def test_who_may_list_everything_asks_for_no_namespace():
    server = api(("/",))
    found = objects_of(server, [], namespaces=TEAMS)
    assert (found["namespaces"], found["unread"]) == (None, {"nodepools"})
    assert not [path for path in server.asked if "namespaces" in path]


def test_use_and_tasks_that_were_not_read_are_no_zero():
    seen = Observed(
        time=NOW, nodes=(node("n1", "a", "b", "c"),), queues=(queue("john", 4), queue("smith", 4)),
        namespaces=("hyperpod-ns-john",),
    )  # fmt: skip
    shown = {team.team: (team.runs_words, team.waits_words) for team in status_of(seen).teams}
    assert shown == {"john": ("0", "0"), "smith": ("?", "?")}


def test_a_configuration_that_may_not_be_read_is_unknown():
    def find(path):
        raise ApiException(status=403, reason="Forbidden")

    server, unknown = api(("/",)), []
    server.find = find
    found = objects_of(server, unknown, settings=True)
    assert (found["kueue_configuration"], found["unread"]) == ("", frozenset({"configmaps"}))
    (line,) = unknown
    assert line.endswith("configmaps/kueue-manager-config of the Kubernetes API: 403 Forbidden")


def test_a_queue_of_the_older_version_of_the_api_names_its_cohort_otherwise():
    old = queue_of({"metadata": {"name": "other"}, "spec": {"cohort": "pool"}})
    assert (old.cohort, old.team, old.active) == ("pool", None, False)


def test_quota_and_use_are_read_in_whole_units():
    read = queue("john", 12, used=8, borrowed=4, limit=6).quotas[KIND, GPU]
    assert (read.nominal, read.used, read.borrowed, read.borrowing_limit) == (12, 8, 4, 6)
    assert read.lendable == 12
    assert queue("john", 12, lending=0).quotas[KIND, GPU].lendable == 0


def test_a_task_that_was_stopped_by_hand_is_not_pending():
    document = {
        "metadata": {"name": "w", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-22T11:00:00Z"},
        "spec": {"active": False, "podSets": []},
    }
    stopped = task_of(document, {})
    assert (stopped.waits, stopped.owner_kind, stopped.owner_name, stopped.queue) == (False, "Workload", "w", "")


def test_requests_of_a_task_that_kueue_has_not_counted_are_those_of_its_template():
    container = {"resources": {"limits": {GPU: "4"}, "requests": {"cpu": "500m"}}}
    first = {"resources": {"requests": {"cpu": "2"}}}
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container, container], "initContainers": [first, sidecar]}
    document = {
        "metadata": {"name": "w", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-22T11:00:00Z"},
        "spec": {"podSets": [{"name": "main", "count": 3, "template": {"spec": spec}}]},
    }
    assert task_of(document, {}).requests == {GPU: 24, "cpu": 6}


def test_a_pod_that_no_queue_admitted_belongs_to_no_task():
    found = pod_of({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"name": "c"}]}})
    assert (found.task, found.node, found.requests) == (None, None, {})


def test_layers_end_where_the_first_label_lacks():
    labels = {"topology.k8s.aws/network-node-layer-1": "a", "topology.k8s.aws/network-node-layer-3": "c"}
    assert node_of({"metadata": {"name": "n", "labels": labels}}).layers == ("a",)
    assert node("n", "a", "b", "c").layers == ("a", "b", "c")
    assert node("n").allocatable["cpu"] == Decimal("44.61")


def test_a_group_with_requirements_has_several_types():
    group = {"InstanceGroupName": "gpu", "InstanceRequirements": {"DesiredInstanceTypes": ["ml.p5.48xlarge", KIND]}}
    assert group_of(group).instance_types == ("ml.p5.48xlarge", KIND)
