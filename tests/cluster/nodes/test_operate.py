"""Nodes are followed until the service is done, with a fake clock."""

import pytest

from hpkit.cluster.nodes.operate import follow, hand_over
from hpkit.errors import ToolError

GPU = "gpu"


class Clock:
    """A clock that only advances while the code sleeps."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def run(verb, looks, ids, wanted=None, timeout=600):
    messages, answers = [], iter(looks)
    last = {}

    def look():
        last.update(now=next(answers, last.get("now")))
        return {name: (status, GPU) for name, status in last["now"].items()}

    follow(look, verb, ids, wanted or {}, clock=Clock(), timeout=timeout, say=messages.append)
    return messages


def test_a_reboot_is_over_when_the_node_was_away_and_runs():
    looks = [{"i-1": "Running"}, {"i-1": "Pending"}, {"i-1": "Pending"}, {"i-1": "Running"}]
    assert run("reboot", looks, ["i-1"]) == ["i-1 is Pending", "i-1 is Running"]


def test_a_reboot_between_two_looks_is_over_after_a_while():
    assert run("reboot", [{"i-1": "Running"}], ["i-1"]) == []


def test_a_reboot_that_fails_says_what_to_do():
    with pytest.raises(ToolError, match=r"i-1 failed\. Run `hpkit node replace i-1`"):
        run("reboot", [{"i-1": "Pending"}, {"i-1": "Failure"}], ["i-1"])


def test_a_replacement_is_over_when_as_many_run_without_the_old_one():
    looks = [
        {"i-1": "ShuttingDown", "i-2": "Running"},
        {"i-2": "Running", "i-3": "Pending"},
        {"i-2": "Running", "i-3": "Running"},
    ]
    said = run("replace", looks, ["i-1"], {GPU: 2})
    assert said == ["i-1 is ShuttingDown", "i-1 is gone", "i-3 is Pending", "i-3 is Running"]


def test_what_does_not_end_is_left_to_the_service():
    with pytest.raises(ToolError, match="not finished after 60 seconds; the service"):
        run("delete", [{"i-1": "ShuttingDown"}], ["i-1"], timeout=60)


class Client:
    def __init__(self):
        self.asked = []

    def batch_reboot_cluster_nodes(self, **request):
        self.asked.append(request["NodeIds"])
        refused = {"NodeId": request["NodeIds"][0], "ErrorCode": "InstanceIdInUse", "Message": "busy"}
        return {"Successful": request["NodeIds"][1:], "Failed": [refused]}


class Session:
    def __init__(self, client):
        self.client = lambda _: client


def test_many_nodes_go_in_as_many_requests_as_the_limit_takes_and_refusals_are_kept():
    client, ids = Client(), [f"i-{number:017x}" for number in range(60)]
    failures = hand_over(Session(client), "acme", "reboot", ids)
    assert [len(each) for each in client.asked] == [25, 25, 10]
    assert dict(failures.refused) == {ids[start]: "InstanceIdInUse: busy" for start in (0, 25, 50)}
    assert len(failures.taken) == 57
