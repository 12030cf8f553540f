"""`python -m hpkit_local.supervisor FOLDER`: keeps one local cloud running until SIGTERM."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hpkit.errors import HpkitError
from hpkit.signals import Signals
from hpkit_local.processes import Identity, Service, end, identify, spawn
from hpkit_local.supervisor.local_cloud import LocalCloud, ServiceState, State

__all__ = ["main"]

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_STEADY_SECONDS = 30.0
_START_SECONDS = 60.0
_END_SECONDS = 8.0
# How a Go program trades memory for time: if the user sets these, they take precedence over a service's own.
_TUNING = ("GOGC", "GOMEMLIMIT")
_POLL_SECONDS = 0.1
_STEADY_POLL_SECONDS = 0.5


@dataclass
class _Supervised:
    service: Service
    process: subprocess.Popen[bytes] | None = None
    identity: Identity | None = None
    healthy: bool = False
    restarts: int = 0
    pause: float = _FIRST_PAUSE_SECONDS
    since: float = 0.0
    not_before: float = 0.0
    problem: str = ""

    def state(self) -> ServiceState:
        state = "healthy" if self.healthy else "starting" if self.process else "waiting"
        who = self.identity or Identity(0, "")
        return ServiceState(state, restarts=self.restarts, pid=who.pid, started=who.started, problem=self.problem)


class Supervisor:
    """Keeps the services of one local cloud running; `poll` checks all of them once and never sleeps."""

    def __init__(self, cloud: LocalCloud, services: Sequence[Service]) -> None:
        self._cloud = cloud
        self._supervised = {service.name: _Supervised(service) for service in services}
        self._written: State | None = None

    def poll(self) -> None:
        """Check every service once, in order, and write down what changed."""
        for child in self._supervised.values():
            if child.process is None:
                self._start(child)
            elif child.process.poll() is not None:
                self._died(child, f"ended with {child.process.returncode}")
            elif not child.healthy:
                self._probe(child)
            elif time.monotonic() - child.since > _STEADY_SECONDS:
                child.pause = _FIRST_PAUSE_SECONDS
        self._write()

    @property
    def steady(self) -> bool:
        """Return whether all services are healthy, as far as known."""
        return all(child.healthy for child in self._supervised.values())

    def end(self) -> None:
        """End every service, those that need others first, and forget them."""
        left = self._supervised
        while left:
            needed = {name for child in left.values() for name in child.service.needs}
            leaves = [child for name, child in left.items() if name not in needed]
            end([child.identity for child in leaves if child.identity is not None], seconds=_END_SECONDS)
            for child in leaves:
                if child.process is not None:
                    child.process.wait()
            left = {name: child for name, child in left.items() if name in needed}
        self._cloud.forget_state()

    def _start(self, child: _Supervised) -> None:
        service = child.service
        if time.monotonic() < child.not_before or not all(self._supervised[name].healthy for name in service.needs):
            return
        try:
            service.prepare()
        except OSError as error:
            self._later(child, str(error))
            return
        tuned = {name: os.environ[name] for name in _TUNING if name in os.environ}
        environment = {**os.environ, **service.environment, **tuned}
        log = self._cloud.log(service.name)
        child.process = spawn(service.command, log=log, environment=environment, folder=service.folder, bound=True)
        child.identity = identify(child.process.pid)
        child.since = time.monotonic()
        # Immediately, so that a killed supervisor leaves a record of this child.
        self._write()

    def _probe(self, child: _Supervised) -> None:
        try:
            child.healthy = child.service.healthy()
        except OSError as error:
            child.problem = str(error)
        if child.healthy:
            child.problem = ""
            child.since = time.monotonic()
        elif time.monotonic() - child.since > _START_SECONDS and child.identity and child.process:
            end([child.identity], seconds=_END_SECONDS)
            child.process.wait()
            self._died(child, f"not healthy after {_START_SECONDS:.0f} s: {child.problem}")

    def _died(self, child: _Supervised, problem: str) -> None:
        child.process = child.identity = None
        child.healthy = False
        child.restarts += 1
        self._later(child, problem)

    def _later(self, child: _Supervised, problem: str) -> None:
        child.problem = problem
        child.not_before = time.monotonic() + child.pause
        child.pause = min(2 * child.pause, _LONGEST_PAUSE_SECONDS)

    def _write(self) -> None:
        me = identify(os.getpid())
        if me is None:
            return
        state = State(me, {name: child.state() for name, child in self._supervised.items()})
        if state != self._written:
            self._cloud.write_state(state)
            self._written = state


def main(folder: str) -> int:
    """Hold the local cloud's lock, so that only one supervisor runs; start, watch, and end with SIGTERM or SIGINT."""
    cloud = LocalCloud(Path(folder))
    signals = Signals(signal.SIGTERM, signal.SIGINT)
    with (cloud.folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another supervisor already runs this local cloud", file=sys.stderr)
            return 1
        try:
            # The starting command waits only for the ports.
            ports = cloud.claim_ports()
            Supervisor(cloud, ()).poll()
            services = import_module("hpkit_local.supervisor.services")
            supervisor = Supervisor(cloud, services.services_of(cloud))
        except HpkitError as error:
            print(error, file=sys.stderr)
            return 1
        try:
            while not signals.wait(_STEADY_POLL_SECONDS if supervisor.steady else _POLL_SECONDS):
                supervisor.poll()
        finally:
            supervisor.end()
            ports.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
