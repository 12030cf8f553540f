"""Operators of the file: their charts, and the queue of what they create in teams' namespaces."""

import datetime
import itertools

import pytest

from hpkit.catalog import operator_charts
from tests.builders import organization, team
from tests.program.cloud import Live, Program
from tests.program.recorder import recorded_from
from tests.running import AT_ONCE, chart_mirror, eventually, running
from tests.security.kinds import KINDS
from tests.security.members import impersonating, member

BOTH = ["kuberay-operator", "lws"]
POLICY = "MutatingAdmissionPolicy"
NAMESPACE = "hyperpod-ns-john"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"


def described(version="1.36", *, inference=False, operators=BOTH):
    until = (datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(30)).isoformat()
    waiver = {"rule": "EKS002", "path": "environments.dev.eks.version", "reason": "Tests", "until": until}
    waivers = [waiver] if version == "1.36" else []
    data = organization(
        teams=[team("john", workloads=["training", "inference"])],
        allocations={"john": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
        environment={"operators": operators, "waivers": waivers, "protect": False},
    )
    dev = data["environments"]["dev"]
    dev["eks"]["version"] = version
    if inference:
        dev["inference"] = {}
    return data


def test_operators_are_installed_from_their_pinned_charts_when_nodes_run():
    program = recorded_from(described())
    for chart in operator_charts():
        release = program.one("helm.sh/v3:Release", chart.name)
        assert release.inputs["chart"].endswith(f".hpkit/charts/{chart.file}")
        assert (release.inputs["namespace"], release.inputs["version"]) == (chart.namespace, chart.version)
        assert program.waits(release, program.one("hyperpod:index:Readiness", "nodes"))
    assert release.inputs["values"]["image"]["manager"]["tag"] == "v0.9.0"


@pytest.mark.parametrize(
    ("more", "adds"),
    [
        ({}, True),
        ({"operators": [], "inference": True}, True),
        ({"operators": ["kuberay-operator"]}, False),
        ({"version": "1.35", "operators": [], "inference": True}, False),
    ],
)
def test_a_queue_is_added_where_operators_leave_it_out_and_kubernetes_can(more, adds):
    assert len([each for each in recorded_from(described(**more)).all("") if POLICY in each.type]) == 2 * adds


def stateful_set(name):
    """Return a StatefulSet as LeaderWorkerSet 0.9.0 creates it: the queue is only in its template."""
    own = {"leaderworkerset.sigs.k8s.io/name": name}
    labels = {**own, "kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"}
    annotation = {"kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset"}
    pod = {"containers": [{"name": "main", "image": "i"}]}
    spec = {
        "replicas": 0,
        "serviceName": name,
        "selector": {"matchLabels": own},
        "template": {"metadata": {"labels": labels, "annotations": annotation}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "labels": own}, "spec": spec}


@pytest.mark.cluster
@pytest.mark.nightly
def test_what_lws_creates_has_the_queue_of_its_team(tmp_path):
    recording = recorded_from(described())
    with running("operators", tmp_path, *AT_ONCE, kubernetes="1.36") as instance:
        api = Live(instance).api
        api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for each in (each for each in recording.all("") if POLICY in each.type):
            kind = each.inputs["kind"]
            plural = "mutatingadmissionpolicies" if kind == POLICY else "mutatingadmissionpolicybindings"
            document = {key: each.inputs[key] for key in ("apiVersion", "kind", "metadata", "spec")}
            api.create(f"/apis/{document['apiVersion']}/{plural}", document)
        operator = impersonating(instance, "system:serviceaccount:lws-system:lws-controller-manager", "system:masters")
        found = {}

        def queued(name, client):
            client.create(SETS, stateful_set(name))
            found[name] = api.read(f"{SETS}/{name}")["metadata"]["labels"].get("kueue.x-k8s.io/queue-name")
            return found[name] == f"{NAMESPACE}-localqueue"

        numbers = itertools.count()
        eventually(lambda: queued(f"set-{next(numbers)}", operator), lambda: found)
        assert not queued("other", api)


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_kuberay_comes_and_kueue_counts_its_kinds_and_it_goes(instance, repository, live):
    operators = ["kuberay-operator"]
    repository.write("acme", described("1.35", operators=operators))
    program = Program(instance, "acme-dev", root=repository.folder)
    program.environment["HPKIT_MIRROR"] = str(chart_mirror())
    program.up()
    assert program.preview() == {}
    john = member(instance, "john")
    for kind in ("RayCluster", "RayService"):
        document = KINDS[kind](kind.lower())
        john.create(f"/apis/ray.io/v1/namespaces/{NAMESPACE}/{kind.lower()}s", document)
    workloads = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
    eventually(
        lambda: ["raycluster" in each["metadata"]["name"] for each in live.api.items(workloads)] == [True],
        "Kueue counts the cluster; nothing runs KubeRay, which would create the service's",
        seconds=180,
    )
    data = described("1.35", operators=[])
    data["environments"]["dev"]["allowDelete"] = {"addons": operators}
    repository.write("acme", data)
    program.up()
    assert program.preview() == {}
    program.destroy()
    program.remove()
