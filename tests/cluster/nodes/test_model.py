"""Selecting nodes, the tasks on them, and what prevents an operation."""

import botocore.session
import pytest

from hpkit.cluster.live.model import ClusterNode, Group, Platform
from hpkit.cluster.nodes.model import LIMITS, choose, counts_after, nodes_of, objections
from hpkit.cluster.nodes.operate import OPERATIONS
from hpkit.errors import SelectionError
from hpkit.plan.derive import derive
from tests.builders import group, organization, typed
from tests.cluster.live.builders import node, observed, pod, task

IDS = ("i-0aaaaaaaaaaaaaaa1", "i-0aaaaaaaaaaaaaaa2")


def plan(**more):
    return derive(typed(organization(groups=[group("gpu", "ml.g5.12xlarge", 2, **more)])), "dev")


def live(*statuses, status="InService", continuous=True, **parts):
    instances = tuple(ClusterNode(one, "gpu", "ml.g5.12xlarge", each) for one, each in zip(IDS, statuses, strict=True))
    groups = (Group("gpu", ("ml.g5.12xlarge",), 2, 2, "InService"),)
    platform = Platform("acme", status, "", groups, instances, None, (), (), continuous=continuous)
    return observed(platform=platform, **parts)


def against(seen, verb, made=None):
    return list(objections(seen, made or plan(), verb, nodes_of(seen)))


def test_a_node_is_its_instance_its_kubelet_and_what_runs_there():
    names = [f"hyperpod-{each}" for each in IDS]
    pods = (pod("john", "train", names[0]), pod("john", "train", names[0]), pod("smith", "eval", names[1]))
    seen = live("Running", "Running", nodes=(node(names[0]),), pods=pods, tasks=(task("john", "train", 2, runs=True),))
    first, second = nodes_of(seen)
    assert (first.ready, dict(first.tasks), first.teams) == (True, {"john/train": 2}, ("john",))
    assert (second.ready, second.node, second.teams) == (False, None, ("smith",))


def test_nodes_are_named_by_id_or_name_and_a_wrong_name_by_the_nearest():
    nodes = nodes_of(live("Running", "Running"))
    assert [each.id for each in choose(nodes, [f"hyperpod-{IDS[1]}", IDS[0], IDS[1]])] == [IDS[1], IDS[0]]
    with pytest.raises(SelectionError, match=f"no node i-0aaaaaaaaaaaaaaa3; did you mean {IDS[0][:-1]}"):
        choose(nodes, ["i-0aaaaaaaaaaaaaaa3"])


def test_what_the_service_would_refuse_is_said_before():
    assert against(live("Running", "Failure"), "replace") == []
    assert "is ShuttingDown. Wait" in against(live("Running", "ShuttingDown"), "reboot")[0]
    assert "the cluster is Updating" in against(live("Running", "Running", status="Updating"), "replace")[0]
    assert "no continuous provisioning" in against(live("Running", "Running", continuous=False), "delete")[0]
    assert against(live("Running", "Running", continuous=False), "replace") == []


def test_a_count_below_the_minimum_is_refused():
    seen = live("Running", "Running")
    (said,) = against(seen, "delete", plan(minInstanceCount=1))
    assert said.startswith("gpu would have 0 instances, but its minInstanceCount is 1. Lower")
    assert counts_after(seen, nodes_of(seen)) == {"gpu": 0}


@pytest.mark.parametrize("verb", LIMITS)
def test_a_request_takes_no_more_ids_than_the_service(verb):
    service = botocore.session.get_session().get_service_model("sagemaker")
    operation = service.operation_model(OPERATIONS[verb])
    limit = operation.input_shape.members["NodeIds"].metadata["max"]
    # For BatchDeleteClusterNodes, the model allows 3,000 nodes, but the reference states 99.
    assert LIMITS[verb] == (99 if verb == "delete" else limit) <= limit
