"""Operators of the file: their charts, and what becomes of their kinds in teams' namespaces."""

import pytest

from hpkit.catalog import operator_charts
from tests.builders import organization, team
from tests.program.cloud import Program
from tests.program.recorder import recorded_from
from tests.running import chart_mirror, eventually
from tests.security.kinds import KINDS
from tests.security.members import impersonating, member

BOTH = ["kuberay-operator", "lws"]
NAMESPACE = "hyperpod-ns-john"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"


def described(operators):
    return organization(
        teams=[team("john", workloads=["training", "inference"])],
        allocations={"john": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
        environment={"operators": operators, "protect": False},
    )


def test_operators_are_installed_from_their_pinned_charts_when_nodes_run():
    program = recorded_from(described(BOTH))
    for chart in operator_charts():
        release = program.one("helm.sh/v3:Release", chart.name)
        assert release.inputs["chart"].endswith(f".hpkit/charts/{chart.file}")
        assert (release.inputs["namespace"], release.inputs["version"]) == (chart.namespace, chart.version)
        assert program.waits(release, program.one("hyperpod:index:Readiness", "nodes"))
    assert release.inputs["values"]["image"]["manager"]["tag"] == "v0.10.0"


def stateful_set(leader_workers):
    """Return the leaders' StatefulSet as LeaderWorkerSet 0.10.0 creates it (leaderworkerset_controller.go)."""
    own = {"leaderworkerset.sigs.k8s.io/name": leader_workers["metadata"]["name"]}
    template = leader_workers["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["metadata"]["labels"] |= own
    name = leader_workers["metadata"]["name"]
    spec = {"replicas": 1, "serviceName": name, "selector": {"matchLabels": own}, "template": template}
    metadata = {"name": name, "labels": leader_workers["metadata"]["labels"] | own}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_operators_come_and_kueue_counts_their_kinds_and_they_go(instance, repository, live):
    repository.write("acme", described(BOTH))
    program = Program(instance, "acme-dev", root=repository.folder)
    program.environment["HPKIT_MIRROR"] = str(chart_mirror())
    program.up()
    assert program.preview() == {}
    john = member(instance, "john")
    for kind in ("RayCluster", "RayService"):
        document = KINDS[kind](kind.lower())
        john.create(f"/apis/ray.io/v1/namespaces/{NAMESPACE}/{kind.lower()}s", document)
    sets = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{NAMESPACE}/leaderworkersets"
    john.create(sets, KINDS["LeaderWorkerSet"]("served"))
    # Nothing runs LeaderWorkerSet's controller, so the test creates what it would.
    operator = impersonating(instance, "system:serviceaccount:lws-system:lws-controller-manager", "system:masters")
    operator.create(SETS, stateful_set(live.api.read(f"{sets}/served")))
    workloads = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"

    def counted():
        return sorted(each["metadata"]["name"].rpartition("-")[0] for each in live.api.items(workloads))

    # Nothing runs KubeRay, which would create the cluster of the service.
    kinds = ["leaderworkerset-served-0", "raycluster-raycluster"]
    eventually(lambda: counted() == kinds, counted, seconds=180)
    data = described([])
    data["environments"]["dev"]["allowDelete"] = {"addons": BOTH}
    repository.write("acme", data)
    program.up()
    assert program.preview() == {}
    program.destroy()
    program.remove()
