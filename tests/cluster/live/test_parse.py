"""API responses, parsed into the model."""

from decimal import Decimal

from hpkit.cluster.live.parse import group_of, node_of, pod_of, queue_of, task_of
from tests.cluster.live.builders import GPU, KIND, node, queue


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
