"""A program can be recorded in a process without an event loop."""

import subprocess
import sys

import pytest

from tests.program.recorder import STACKS

PROGRAM = """
import asyncio, sys
from pathlib import Path
from hpkit.plan.derive import derive
from hpkit.project import load
from hpkit.program.recording import record

asyncio.run(asyncio.sleep(0))
print(len(record(derive(load(Path(sys.argv[1])).parsed.organization, "dev")).resources))
"""


@pytest.mark.slow
def test_a_program_is_recorded_where_asyncio_left_no_event_loop():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(STACKS / "handson.yaml")], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 50
