"""The Pulumi commands that an adoption runs."""

import json
import subprocess

import pytest

from hpkit.adopt import pulumi_stack
from hpkit.adopt.pulumi_stack import PulumiStack

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
