"""Reading with limited permissions: at least the team's namespace is read, and denied data is unknown, not empty."""

from types import SimpleNamespace

import pytest
from kubernetes.client import ApiException

from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.read import objects_of
from hpkit.cluster.live.status import status_of
from tests.cluster.live.builders import NOW, node, queue

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
        api(("namespaces/hyperpod-ns-john/", "nodes", "cluster", "classes", "flavors")),
        unknown,
        namespaces=TEAMS,
    )
    assert (objects["namespaces"], objects["unread"]) == (("hyperpod-ns-john",), frozenset())
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
    assert (found["namespaces"], found["unread"]) == (None, frozenset())
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
