"""Whatever members do, in any order: their pods stay within the team's limits, and Kueue counts them.

Pods that are ending hold their nodes, so they are part of it.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hpkit_local.kubernetes.api import RejectedError
from tests.running import eventually
from tests.security.accounting import GPU, LONGEST, Watch, counted, pause, settled_excess, taken
from tests.security.members import ATTACK, container, delete, job, pod, tried

pytestmark = [pytest.mark.platform, pytest.mark.timeout(7200)]

KUEUE = "kueue.x-k8s.io"
# The initial object, which most actions refer to: a small running job of john.
BEGINNING = {
    "does": "create",
    "team": "john",
    "name": "a",
    "kind": "job",
    "size": {"gpus": 1, "grace": None, "stubborn": False, "requests": True},
    "pods": 2,
    "forged": {},
    "rank": None,
}
TEAMS = ("john", "smith")
FOLDERS = {
    "job": "/apis/batch/v1/namespaces/hyperpod-ns-{}/jobs",
    "pod": "/api/v1/namespaces/hyperpod-ns-{}/pods",
    "deployment": "/apis/apps/v1/namespaces/hyperpod-ns-{}/deployments",
    "workload": "/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-{}/workloads",
}
MARKED = ",".join(f"{key}={value}" for key, value in ATTACK.items())
# Responses to impossible requests: forbidden, not found, existing, conflicting, or invalid.
REFUSED = (400, 403, 404, 405, 409, 422)
BUSY = (429, 500, 503, 504)

graces = st.sampled_from((None, 0, 30, LONGEST, 315_360_000))
sizes = st.fixed_dictionaries(
    {
        "gpus": st.integers(1, 4),
        "grace": graces,
        "stubborn": st.booleans(),
        "requests": st.sampled_from((True, True, False)),
    }
)
# Forged metadata of the work and of its pods; most work has none.
forged = st.sampled_from(
    (
        *({},) * 8,
        {"finalizers": ["orphan"]},
        {"finalizers": ["example.com/hold"]},
        {"labels": {f"{KUEUE}/queue-name": "hyperpod-ns-smith-localqueue"}},
        {"labels": {f"{KUEUE}/queue-name": None}},
        {"labels": {f"{KUEUE}/prebuilt-workload-name": "job-a"}},
        {"annotations": {f"{KUEUE}/role-hash": "cheap"}},
        {"annotations": {f"{KUEUE}/pod-suspending-parent": "deployment"}},
        {"annotations": {f"{KUEUE}/elastic-job": "true"}},
        {"annotations": {f"{KUEUE}/job-min-parallelism": "1"}},
    )
)
ranks = st.sampled_from((None, "training-priority", "experiment-priority"))
edits = st.sampled_from(
    (
        {"metadata": {"labels": {"note": "mine"}}},
        {"metadata": {"labels": {f"{KUEUE}/queue-name": None}}},
        {"metadata": {"labels": {f"{KUEUE}/managed": None}}},
        {"metadata": {"labels": {f"{KUEUE}/priority-class": "training-priority"}}},
        {"metadata": {"labels": {"batch.kubernetes.io/job-name": "other"}}},
        {"metadata": {"annotations": {f"{KUEUE}/role-hash": "cheap"}}},
        {"metadata": {"annotations": {f"{KUEUE}/job-min-parallelism": "1"}}},
        {"metadata": {"finalizers": ["orphan"]}},
        {"metadata": {"finalizers": ["example.com/hold"]}},
        {"metadata": {"finalizers": None}},
        {"metadata": {"ownerReferences": None}},
        {"spec": {"suspend": True}},
        {"spec": {"suspend": False}},
        {"spec": {"activeDeadlineSeconds": 1}},
        {"spec": {"ttlSecondsAfterFinished": 0}},
        {"spec": {"podReplacementPolicy": "Failed"}},
        {"spec": {"completions": 1}},
        {"spec": {"parallelism": 1}},
        {"spec": {"parallelism": 6, "completions": 6}},
        {"spec": {"parallelism": 16}},
        {"spec": {"replicas": 0}},
        {"spec": {"replicas": 4}},
        {"spec": {"priority": 1_000_000}},
        {"spec": {"active": False}},
    )
)
deletions = st.fixed_dictionaries(
    {"many": st.booleans()},
    optional={
        "propagationPolicy": st.sampled_from(("Background", "Foreground", "Orphan")),
        "gracePeriodSeconds": st.sampled_from((0, 30, LONGEST, 315_360_000)),
    },
)
kinds = st.sampled_from(("job", "job", "job", "pod", "deployment"))
who = {"team": st.sampled_from(("john", "john", "smith")), "name": st.sampled_from(("a", "a", "b"))}
actions = st.one_of(
    st.fixed_dictionaries(
        {
            "does": st.just("create"),
            **who,
            "kind": kinds,
            "size": sizes,
            "pods": st.integers(1, 4),
            "forged": forged,
            "rank": ranks,
        }
    ),
    st.fixed_dictionaries({"does": st.just("delete"), **who, "kind": kinds, "options": deletions}),
    st.fixed_dictionaries({"does": st.just("edit"), **who, "kind": st.sampled_from(tuple(FOLDERS)), "change": edits}),
)


def container_of(size):
    """Return a container of a size; `requests`: whether it requests its limits."""
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(size["gpus"])}
    return container(resources={"limits": limits, **({"requests": limits} if size["requests"] else {})})


def pod_of(team, name, size, more):
    """Return a pod of a size; more: labels, annotations and finalizers."""
    spec = {} if size["grace"] is None else {"terminationGracePeriodSeconds": size["grace"]}
    annotations = {"hpkit.local/ignore-sigterm": "true"} if size["stubborn"] else {}
    document = pod(
        name,
        team=team,
        labels=more.get("labels"),
        annotations={**annotations, **more.get("annotations", {})},
        containers=[container_of(size)],
        **spec,
    )
    if "finalizers" in more:
        document["metadata"]["finalizers"] = more["finalizers"]
    return document


def work_of(kind, team, name, size, pods, more):
    """Return work of a kind, with the forged metadata of `more` for itself and for its pods."""
    single = pod_of(team, name, size, more)
    if kind == "pod":
        return single
    template = {"metadata": {k: v for k, v in single["metadata"].items() if k != "name"}, "spec": single["spec"]}
    if kind == "job":
        document = job(name, team=team, pods=pods)
    else:
        template["spec"] = {k: v for k, v in single["spec"].items() if k != "restartPolicy"}
        template["metadata"]["labels"] = {**template["metadata"]["labels"], "app": name}
        spec = {"replicas": pods, "selector": {"matchLabels": {"app": name}}}
        document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    document["metadata"] = {**template["metadata"], "name": name}
    document["spec"]["template"] = template
    return document


class Members:
    """Two teams' members at work; rejected requests don't matter for the property."""

    def __init__(self, api, clients):
        self._api, self._clients = api, clients

    def do(self, action):
        getattr(self, f"_{action['does']}")(**{key: value for key, value in action.items() if key != "does"})
        # Most attacks target running work.
        pause(self._api)

    def _create(self, team, name, kind, size, pods, forged, rank):
        more = dict(forged)
        if rank is not None:
            more["labels"] = {f"{KUEUE}/priority-class": rank, **more.get("labels", {})}
        self._tried(self._clients[team].create, FOLDERS[kind].format(team), work_of(kind, team, name, size, pods, more))

    def _delete(self, team, name, kind, options):
        folder = FOLDERS[kind].format(team)
        given = {key: value for key, value in options.items() if key != "many"}
        self._tried(delete, self._clients[team], folder if options["many"] else f"{folder}/{name}", given)

    def _edit(self, team, name, kind, change):
        """Change the object with a name, or a pod or Workload whose name starts with it."""
        folder = FOLDERS[kind].format(team)
        names = [item["metadata"]["name"] for item in self._api.items(folder, metadata_only=True)]
        wanted = [victim for victim in names if victim == name or name in victim.split("-")]
        for victim in wanted[:2]:
            self._tried(self._clients[team].merge, f"{folder}/{victim}", change)
            if kind == "workload":
                self._tried(delete, self._clients[team], f"{folder}/{victim}", {})

    def _tried(self, call, *arguments):
        try:
            call(*arguments)
        except RejectedError as error:
            if error.status not in (*REFUSED, *BUSY):
                raise

    def leave(self):
        """Delete everything that they created, and its effects."""
        for team in TEAMS:
            # A Workload without an owner isn't garbage-collected.
            for kind in ("deployment", "job", "pod", "workload"):
                folder = FOLDERS[kind].format(team)
                for item in self._api.items(folder, labels="" if kind == "workload" else MARKED, metadata_only=True):
                    path = f"{folder}/{item['metadata']['name']}"
                    if item["metadata"].get("finalizers"):
                        self._tried(self._api.merge, path, {"metadata": {"finalizers": None}})
                    self._api.delete(path)

    def are_gone(self):
        folders = [FOLDERS[kind].format(team) for kind in FOLDERS for team in TEAMS]
        left = any(
            self._api.items(folder, labels="" if "workloads" in folder else MARKED, metadata_only=True)
            for folder in folders
        )
        if left:
            self.leave()
        return not left


@pytest.fixture(scope="module")
def members(api, john, smith):
    return Members(api, {"john": john, "smith": smith})


# By day, the tests below and those of test_lifecycle.py, test_queues.py and test_quota.py test each attack alone.
@pytest.mark.nightly
@settings(
    max_examples=150, phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), print_blob=True
)
@given(st.lists(actions, min_size=5, max_size=10))
def test_pods_stay_within_limits_and_are_counted_whatever_members_do(api, classes, members, sequence):
    try:
        with Watch(api) as watch:
            for action in (BEGINNING, *sequence):
                members.do(action)
            assert settled_excess(api) == {}
            assert {team: watch.uncounted(team) for team in TEAMS} == {team: [] for team in TEAMS}
        assert watch.excess == {}
    finally:
        members.leave()
        eventually(members.are_gone, lambda: {team: taken(api, team) for team in TEAMS})


SMITHS = FOLDERS["job"].format("smith")


def slow(name, pods):
    """Return a Job of smith whose pods ignore SIGTERM, and end as late as is allowed."""
    return work_of("job", "smith", name, {"gpus": 1, "grace": LONGEST, "stubborn": True, "requests": True}, pods, {})


def runs(api, gpus):
    """Wait until pods of smith with this number of GPUs run and are counted."""
    eventually(lambda: taken(api, "smith")[GPU] == counted(api, "smith")[GPU] == gpus, f"{gpus} GPUs run")


@pytest.fixture
def watch(api, members):
    """Watch a test, which must keep its pods within the limits of its team, and delete them afterward."""
    with Watch(api) as watch:
        yield watch
        assert settled_excess(api) == {}
        assert watch.uncounted("smith") == []
    members.leave()
    eventually(members.are_gone, "the pods are gone")
    assert watch.excess == {}


def test_a_member_cannot_get_more_by_deleting_a_job_and_creating_it_again(api, smith, watch):
    for number in range(3):
        tried(smith.create, SMITHS, slow(f"again-{number}", 4))
        eventually(lambda: counted(api, "smith")[GPU] == 4, "Kueue admits it")
        pause(api)
        delete(smith, f"{SMITHS}/again-{number}", {"propagationPolicy": "Background"})
        pause(api)
    assert watch.most["smith"][GPU] == 8, "the third job's pods don't exist until the first job's pods have ended"


def test_a_member_cannot_get_more_by_deleting_the_pods_of_a_running_job(api, smith, watch):
    document = slow("replaced", 4)
    smith.create(SMITHS, {**document, "spec": {**document["spec"], "backoffLimit": 100}})
    runs(api, 4)
    for _ in range(3):
        delete(smith, FOLDERS["pod"].format("smith"), {})
        pause(api, seconds=5)
    assert watch.most["smith"][GPU] <= 8
