"""The SDK's debug messages, for each of which a run would wait: sent when they are asked for."""

import os
import subprocess
import sys

import pytest

from tests.program.cloud import ROOT

# Without an engine the program ends where it asks for its stack, which is after it has chosen.
PROGRAM = """
import runpy, sys, pulumi
sys.path.insert(0, "infra")
kept = pulumi.log.debug
try:
    runpy.run_path("infra/__main__.py", run_name="__main__")
except pulumi.RunError as error:
    print(error, file=sys.stderr)
print(pulumi.log.debug is kept)
"""


@pytest.mark.parametrize(("asked", "sent"), [({}, "False"), ({"HPKIT_DEBUG": "1"}, "True")])
def test_debug_messages_are_sent_when_they_are_asked_for(asked, sent):
    environment = {name: value for name, value in os.environ.items() if name != "HPKIT_DEBUG"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env={**environment, **asked}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [sent], done.stderr
