"""Tasks as Jobs, and what a rehearsal rejects."""

import pytest

from hpkit.errors import ToolError
from hpkit.kueue.model import UNCONSTRAINED
from hpkit_local.rehearsal.jobs import assignments, controlled, job_of, status_of_ended
from hpkit_local.rehearsal.session import reject_other_queues, reject_remote
from hpkit_whatif.admission import PodSet, PodSetAssignment, TopologyRequest, Workload

GIB = 1024**3


def workload(**more):
    pods = PodSet(
        "main", 2, {"cpu": 1500, "memory": GIB, "nvidia.com/gpu": 4},
        **{"flavors": frozenset({"ml.g5.12xlarge"}), **more},
    )  # fmt: skip
    return Workload("Any name/at all", "hyperpod-ns-john-clusterqueue", (pods,), priority=80)


def test_a_task_is_a_job_of_its_team_that_waits_for_kueue():
    job = job_of(workload(), 7, priority_class="training-priority")
    assert (job["metadata"]["namespace"], job["metadata"]["name"]) == ("hyperpod-ns-john", "rehearsed-7")
    assert job["metadata"]["annotations"] == {"hpkit.local/task": "Any name/at all"}
    labels = job["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "hyperpod-ns-john-localqueue"
    assert labels["kueue.x-k8s.io/priority-class"] == "training-priority"
    assert (job["spec"]["suspend"], job["spec"]["parallelism"], job["spec"]["completions"]) == (True, 2, 2)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"}
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "1500m", "memory": str(GIB)},
        "limits": {"nvidia.com/gpu": "4"},
    }


@pytest.mark.parametrize(("mode", "value"), [("required", "layer"), ("preferred", "layer"), ("unconstrained", "true")])
def test_how_close_its_pods_must_be_stands_on_them(mode, value):
    for flavor, of_type in (("ml.g5.12xlarge", {}), ("ml.p5.48xlarge", {UNCONSTRAINED: "true"})):
        asked = TopologyRequest(mode, None if mode == "unconstrained" else value)
        for request_, annotations in ((asked, {f"kueue.x-k8s.io/podset-{mode}-topology": value}), (None, of_type)):
            job = job_of(workload(topology=request_, flavors=frozenset({flavor})), 1, priority_class=None)
            assert job["spec"]["template"]["metadata"]["annotations"] == annotations


def test_a_job_runs_while_kueue_lets_it_and_no_longer():
    job = job_of(workload(), 1, priority_class=None)
    assert controlled(job) is None
    job["spec"]["suspend"] = False
    job["status"] = controlled(job)
    assert (job["status"]["active"], job["status"]["ready"]) == (2, 2)
    assert controlled(job) is None
    job["spec"]["suspend"] = True
    assert controlled(job) == {"active": 0, "ready": 0, "startTime": None}
    job["spec"]["suspend"] = False
    job["status"] = status_of_ended(job)
    assert (job["status"]["succeeded"], job["status"]["active"]) == (2, 0)
    assert controlled(job) is None


def test_what_was_admitted_is_read_with_its_nodes():
    assigned = {"name": "main", "count": 2, "flavors": {"cpu": "ml.g5.12xlarge"}}
    topology = {"levels": ["layer", "host"], "domains": [{"values": ["nn-1", "node-1"], "count": 2}]}
    with_nodes = {**assigned, "topologyAssignment": topology}
    for each, domains in ((assigned, ()), (with_nodes, (("node-1", 2),))):
        found = assignments({"status": {"admission": {"podSetAssignments": [each]}}})
        assert found == (PodSetAssignment("main", 2, {"cpu": "ml.g5.12xlarge"}, {}, domains),)


def test_a_cluster_elsewhere_is_left_alone():
    reject_remote("https://127.0.0.1:6443")
    with pytest.raises(ToolError, match=r"api\.example\.com isn't on this machine.*To fix"):
        reject_remote("https://api.example.com")


def test_an_instance_with_another_stack_is_left_alone():
    objects = [
        {"kind": kind, "metadata": {"name": name}} for kind, name in (("Namespace", "ns"), ("ClusterQueue", "a"))
    ]
    reject_other_queues({"a", "more"}, objects, "other")
    with pytest.raises(ToolError, match="other has queues, but not a: its queues belong to another stack"):
        reject_other_queues({"b"}, objects, "other")
