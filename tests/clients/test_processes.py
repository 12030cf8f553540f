"""A command that hpkit runs outlives an interruption of hpkit, and ends in its own way."""

import os
import subprocess
import sys
import time

# Reports its start, and its own end after an interruption.
COMMAND = "trap 'sleep 1; echo state written; exit 5' INT; echo started; for _ in $(seq 300); do sleep 0.1; done"
PARENT = f"""
import os, sys
from pathlib import Path
from hpkit.clients.processes import run_attended
code = run_attended(["bash", "-c", {COMMAND!r}], folder=Path(), environment=dict(os.environ))
print("exit code", code, flush=True)
"""


def test_an_interruption_is_passed_on_and_the_end_is_waited_for():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert parent.stdout.readline() == "started\n"
    time.sleep(0.2)
    parent.terminate()
    assert parent.communicate(timeout=300)[0] == "state written\nexit code 5\n"
