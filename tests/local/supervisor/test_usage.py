"""Memory of processes: shared memory is counted once."""

import os
import subprocess
import sys

import psutil
import pytest

from hpkit_local.processes.process import identify
from hpkit_local.supervisor.usage import Usage, usage_of

_SIZE = 64 << 20
_PARENT = f"""
import mmap, os, sys
shared = mmap.mmap(-1, {_SIZE})
for page in range(0, {_SIZE}, mmap.PAGESIZE):
    shared[page] = 1
for _ in range(3):
    if os.fork() == 0:
        for page in range(0, {_SIZE}, mmap.PAGESIZE):
            shared[page]
        break
os.write(1, b".")
sys.stdin.read()
"""


@pytest.fixture
def family():
    """Start a process and three children that share the same 64 MiB."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout.read(4) == b"...."  # Each of the four processes has accessed all of it.
        yield identify(parent.pid)
        parent.stdin.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells how pages are shared")
def test_memory_that_a_family_shares_counts_once(family):
    assert _SIZE <= usage_of(family).memory < 2 * _SIZE


def test_children_count_only_where_they_are_asked_for(family):
    alone, together = usage_of(family, family=False), usage_of(family)
    assert 0 < alone.memory < together.memory
    assert together.cpu_seconds >= alone.cpu_seconds > 0


def test_memory_is_what_is_resident_where_the_system_does_not_show_pages(monkeypatch):
    def denied(process):
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", denied)
    resident = psutil.Process().memory_info().rss
    assert usage_of(identify(os.getpid()), family=False).memory == pytest.approx(resident, rel=0.1)


def test_a_process_that_is_gone_takes_nothing(family):
    gone = psutil.Process(family.pid)
    gone.kill()
    gone.wait()
    assert usage_of(family) == Usage()
