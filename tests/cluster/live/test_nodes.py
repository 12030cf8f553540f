"""The nodes of a platform: their state in SageMaker and Kubernetes, and what runs on them."""

from dataclasses import replace

import pytest

from hpkit.cluster.live.model import ClusterNode
from hpkit.cluster.live.nodes import nodes_of
from hpkit.cluster.live.status import status_of
from hpkit.cluster.live.tables import nodes_table
from tests.cluster.live.builders import KIND, node, observed, pod, task
from tests.cluster.live.test_status import platform


def instance(number, status="Running", **more):
    return ClusterNode(f"i-{number}", "gpu", KIND, status, **more)


def seen(*instances, **parts):
    return observed(platform=platform(nodes=instances), **parts)


@pytest.mark.parametrize(
    ("status", "kubernetes", "words"),
    [
        ("Running", {}, "Running"),
        ("Running", {"ready": "False"}, "Running, not ready"),
        ("SystemUpdating", {"unschedulable": True}, "SystemUpdating, cordoned"),
        ("Pending", None, "Pending, not registered"),
    ],
)
def test_the_state_of_a_node_is_that_in_sagemaker_and_what_differs_in_kubernetes(status, kubernetes, words):
    nodes = () if kubernetes is None else (node("hyperpod-i-1", **kubernetes),)
    (found,) = nodes_of(seen(instance(1, status), nodes=nodes))
    assert (found.name, found.state_words, found.is_available) == ("hyperpod-i-1", words, words == "Running")


def test_use_is_what_pods_request_and_names_their_tasks():
    there = seen(
        instance(1),
        nodes=(node("hyperpod-i-1"),),
        pods=(pod("john", "train", "hyperpod-i-1"), pod("john", "other", "hyperpod-i-1", gpus=0)),
        tasks=(task("john", "train", 2, runs=True),),
    )
    (found,) = nodes_of(there)
    assert (found.use_words, found.tasks) == ("4 of 4 gpu", {"john/train": 1, "john/job-other": 1})
    (partly,) = nodes_of(replace(there, namespaces=("hyperpod-ns-john",)))
    assert (partly.used, partly.use_words) == (None, "? of 4 gpu")


def test_what_could_not_be_read_is_unknown():
    (unregistered,) = nodes_of(seen(instance(1), unread=frozenset({"nodes"})))
    assert (unregistered.state_words, unregistered.ready) == ("Running, ?", None)
    (alone,) = nodes_of(observed(nodes=(node("n1"),)))
    assert (alone.name, alone.group, alone.state_words) == ("n1", "gpu", "ready")


def test_of_many_nodes_only_those_that_take_no_pods_are_listed():
    instances = [instance(number, release="1.0.2", release_status="UpdateAvailable") for number in range(30)]
    nodes = [node(f"hyperpod-i-{number}", ready=str(number != 7)) for number in range(30)]
    rows, available = nodes_table(status_of(seen(*instances, nodes=nodes)))
    assert (rows[1:], available) == (
        [("hyperpod-i-7", "gpu", "Running, not ready, AMI UpdateAvailable", "0 of 4 gpu", "")],
        29,
    )
    few, none = nodes_table(status_of(seen(*instances[:3], nodes=nodes[:3])))
    assert ([row[0] for row in few[1:]], none) == (["hyperpod-i-0", "hyperpod-i-1", "hyperpod-i-2"], 0)
