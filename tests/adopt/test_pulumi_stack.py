"""The Pulumi commands that an adoption runs."""

import json
import os
import socket
import subprocess

import pytest

from hpkit.adopt import pulumi_stack
from hpkit.adopt.pulumi_stack import PulumiStack
from hpkit.errors import ToolError

STATE = {"version": 3, "deployment": {"resources": []}}


@pytest.fixture
def commands(monkeypatch):
    """Return the executed commands, in a backend that has the stack acme-dev."""
    ran = []

    def run(command, **_):
        ran.append(" ".join(command[1:3]))
        printed = [{"name": "organization/hpkit/acme-dev"}] if command[1:3] == ["stack", "ls"] else STATE
        return subprocess.CompletedProcess(command, 0, json.dumps(printed), "")

    monkeypatch.setattr(pulumi_stack.subprocess, "run", run)
    return ran


def test_an_export_asks_pulumi_for_nothing_else(commands, tmp_path):
    assert PulumiStack("acme-dev", root=tmp_path, environment={}).export() == STATE
    assert commands == ["stack export"]


def test_a_stack_is_created_only_where_there_is_none(commands, tmp_path):
    PulumiStack("acme-dev", root=tmp_path, environment={}).create()
    assert commands == ["stack ls"]
    PulumiStack("acme-prod", root=tmp_path, environment={}).create()
    assert commands == ["stack ls", "stack ls", "stack init"]


def locked_by(host, pid):
    return (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        f"lock file with `pulumi cancel`.\n  file:///state: created by ada@{host} (pid {pid}) at 2026-11-27T18:00:00Z"
    )


@pytest.fixture
def locks(monkeypatch):
    """Return the messages about locks with which Pulumi rejects writes until it releases them, and the commands."""
    messages, ran = [], []

    def run(command, **_):
        ran.append(" ".join(command[1:3]))
        if command[1] == "cancel":
            messages.clear()
        failed = command[1:3] == ["stack", "import"] and bool(messages)
        return subprocess.CompletedProcess(command, int(failed), json.dumps(STATE), "".join(messages))

    monkeypatch.setattr(pulumi_stack.subprocess, "run", run)
    return messages, ran


def test_a_state_is_replaced_unless_another_run_changed_or_locked_it(locks, tmp_path):
    messages, ran = locks
    stack = PulumiStack("acme-dev", root=tmp_path, environment={})
    with pytest.raises(ToolError, match="another run has changed the state of acme-dev"):
        stack.replace_state({"deployment": {"resources": [{"urn": "urn::vpc"}]}}, STATE)
    assert ran == ["stack export"]
    ended = subprocess.Popen(["true"])
    ended.wait()
    for host, pid, is_replaced in (
        (socket.gethostname(), ended.pid, True),
        (socket.gethostname(), os.getpid(), False),
        ("elsewhere", ended.pid, False),
    ):
        ran.clear()
        messages[:] = [locked_by(host, pid)]
        if is_replaced:
            stack.replace_state(STATE, STATE)
            assert ran == ["stack export", "stack import", "cancel --yes", "stack import"]
        else:
            with pytest.raises(ToolError, match="If no other run is active: `pulumi cancel --yes --stack acme-dev`"):
                stack.replace_state(STATE, STATE)
            assert ran == ["stack export", "stack import"]
