"""Killed tests leave no local cloud."""

import subprocess
import sys
from pathlib import Path

import pytest

from hpkit_local.supervisor.instance import Instance
from tests.running import eventually

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[1]

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.leftovers import ended_with_this_process

ended_with_this_process(Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_instance_of_a_killed_process_is_ended_and_deleted(tmp_path):
    instance = Instance.named("left", root=tmp_path)
    instance.folder.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", KILLED, str(instance.folder)], cwd=ROOT, check=False)
    eventually(lambda: not instance.folder.exists(), "its folder goes")
