"""A run of Pulumi that continues while something is killed, and the conditions that must hold afterward."""

import contextlib
import json
import os
import re
import signal
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import psutil

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.running import eventually

__all__ = ["MARK", "Run", "marked", "run_of"]

MARK = "HPKIT_TEST_MARK"
# Retries continue for a minute or two if the killed part stays away.
SECONDS = 900
WAIT = 120


@dataclass
class Run:
    """A running Pulumi, in its own session."""

    process: Popen
    log: Path
    instance: Instance
    before: dict[str, int]

    @property
    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def going_on(self):
        return self.process.poll() is None

    def reaches(self, operation):
        """Wait until the run calls an operation; the run must be active then."""
        known = self.before.get(operation, 0)
        eventually(
            lambda: calls(self.instance).get(operation, 0) > known or not self.going_on,
            lambda: f"{operation}: {self.said}",
            WAIT,
        )
        assert self.going_on, f"it ended before {operation}: {self.said}"

    def loses(self, part):
        """Kill a part with kill -9, and wait until all parts are healthy again and the part is a new process."""
        before = self.instance.state().parts[part]
        os.kill(before.pid, signal.SIGKILL)
        eventually(lambda: self.instance.state().parts[part].restarts > before.restarts, "the death is seen", WAIT)
        eventually(lambda: self.instance.state().ready, self.instance.state, WAIT)
        assert self.instance.state().parts[part].pid != before.pid
        if part == "aws":
            # The count starts when the part starts.
            self.before = {}

    def loses_its_supervisor(self):
        """Kill the supervisor with kill -9, which also ends its parts, and start the cloud again."""
        before = self.instance.state()
        os.kill(before.supervisor.pid, signal.SIGKILL)
        eventually(lambda: not [each for each in before.processes() if each.alive()], "its parts die with it")
        assert self.going_on, self.said
        after = control.start(self.instance, say=print)
        assert after.supervisor != before.supervisor

    def ends(self):
        """Wait for the end; return whether the run succeeded. A failed run must state clearly what happened."""
        code = self.process.wait(SECONDS)
        output = self.said
        assert not re.search(r"Traceback|panic:|goroutine \d|exit status|RPC|rpc error", output), output
        if code == 0:
            return True
        # Each error is under the name of its resource, as `type (name):`, in a sentence with the required action.
        errors = re.findall(r"^ +error: (?!update failed$)(.+(?:\n {4,}.+)*)", output, re.MULTILINE)
        assert errors, output
        assert all("What to do: " in each for each in errors), output
        return False


@contextmanager
def run_of(program, instance, folder):
    """Start an `up` that ends with the block."""
    before, log = calls(instance), folder / "up.log"
    with log.open("wb") as out:
        process = program.start("up", "--yes", "--skip-preview", log=out)
    try:
        yield Run(process, log, instance, before)
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def calls(instance):
    """Return the number of calls per operation since the endpoint was started."""
    url = f"http://127.0.0.1:{instance.ports()['aws']}/_hpkit/stats"
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)["calls"]


def marked(mark):
    """Return the command lines of all processes with the mark, which every child process inherits."""
    problems = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                problems.append(process.cmdline())
    return problems
