"""One command at a time on an instance, with real processes: messages about the holder, and locks of dead holders."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from hpkit.errors import ToolError
from hpkit_local.supervisor.local_cloud import LocalCloud, exclusive, holder_of

HOLD = """
import sys
from pathlib import Path
from hpkit_local.supervisor.local_cloud import LocalCloud
from hpkit_local.supervisor.local_cloud import exclusive
with exclusive(LocalCloud.named("one", root=Path(sys.argv[1])), "hpkit local up --stack acme-dev", say=print):
    print("has it", flush=True)
    sys.stdin.readline()
"""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def instance(tmp_path):
    return LocalCloud.named("one", root=tmp_path)


@contextmanager
def holder(root):
    """Return a process that holds the lock until it reads a line."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, root], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == "has it\n"
            yield process
        finally:
            process.kill()


def test_who_does_not_wait_is_told_command_process_and_time(instance, tmp_path):
    with holder(tmp_path) as other:
        with pytest.raises(ToolError) as refused, exclusive(instance, "hpkit local stop", wait=False):
            pass
        since = json.loads(instance.folder.with_name("one.lock").read_text())["since"]
        assert f"`hpkit local up --stack acme-dev` (process {other.pid}, since {since})" in str(refused.value)


def test_a_killed_holder_has_the_lock_no_more(instance, tmp_path):
    with holder(tmp_path) as other:
        other.kill()
        other.wait()
        assert holder_of(instance).pid == other.pid, "its name is still there"
        with exclusive(instance, "hpkit local stop", wait=False):
            assert holder_of(instance).command == "hpkit local stop"
