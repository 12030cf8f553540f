"""The supervisor's loop: start what may start, watch it, start it again when it dies."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from local.supervisor.instance import Instance, Record, State
from local.supervisor.part import Part
from local.supervisor.process import Identity, end, identify, spawn

__all__ = ["Keeper"]

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_STEADY_SECONDS = 30.0
_START_SECONDS = 60.0
_END_SECONDS = 8.0


@dataclass
class _Kept:
    part: Part
    process: subprocess.Popen[bytes] | None = None
    identity: Identity | None = None
    healthy: bool = False
    restarts: int = 0
    pause: float = _FIRST_PAUSE_SECONDS
    since: float = 0.0
    not_before: float = 0.0
    problem: str = ""

    def record(self) -> Record:
        state = "healthy" if self.healthy else "starting" if self.process else "waiting"
        who = self.identity or Identity(0, "")
        return Record(state, restarts=self.restarts, pid=who.pid, started=who.started, problem=self.problem)


class Keeper:
    """Keeps the parts of one instance running; `turn` is one look at all of them and never sleeps."""

    def __init__(self, instance: Instance, parts: Sequence[Part]) -> None:
        self._instance = instance
        self._kept = {part.name: _Kept(part) for part in parts}
        self._written: State | None = None

    def turn(self) -> None:
        """Look at every part once, in order, and write down what changed."""
        for kept in self._kept.values():
            if kept.process is None:
                self._start(kept)
            elif kept.process.poll() is not None:
                self._died(kept, f"ended with {kept.process.returncode}")
            elif not kept.healthy:
                self._probe(kept)
            elif time.monotonic() - kept.since > _STEADY_SECONDS:
                kept.pause = _FIRST_PAUSE_SECONDS
        self._write()

    def end(self) -> None:
        """End every part, those that need others first, and forget them."""
        for kept in reversed(self._kept.values()):
            if kept.process is not None and kept.identity is not None:
                end([kept.identity], seconds=_END_SECONDS)
                kept.process.wait()
        self._instance.forget_state()

    def _start(self, kept: _Kept) -> None:
        part = kept.part
        if time.monotonic() < kept.not_before or not all(self._kept[name].healthy for name in part.needs):
            return
        try:
            part.prepare()
        except OSError as error:
            self._later(kept, str(error))
            return
        environment = {**os.environ, **part.environment}
        log = self._instance.log(part.name)
        kept.process = spawn(part.command, log=log, environment=environment, folder=part.folder, bound=True)
        kept.identity = identify(kept.process.pid)
        kept.since = time.monotonic()
        # At once, so that a supervisor that is killed now leaves a record of this child.
        self._write()

    def _probe(self, kept: _Kept) -> None:
        try:
            kept.healthy = kept.part.healthy()
        except OSError as error:
            kept.problem = str(error)
        if kept.healthy:
            kept.problem = ""
            kept.since = time.monotonic()
        elif time.monotonic() - kept.since > _START_SECONDS and kept.identity and kept.process:
            end([kept.identity], seconds=_END_SECONDS)
            kept.process.wait()
            self._died(kept, f"not healthy after {_START_SECONDS:.0f} s: {kept.problem}")

    def _died(self, kept: _Kept, problem: str) -> None:
        kept.process = kept.identity = None
        kept.healthy = False
        kept.restarts += 1
        self._later(kept, problem)

    def _later(self, kept: _Kept, problem: str) -> None:
        kept.problem = problem
        kept.not_before = time.monotonic() + kept.pause
        kept.pause = min(2 * kept.pause, _LONGEST_PAUSE_SECONDS)

    def _write(self) -> None:
        me = identify(os.getpid())
        if me is None:
            return
        state = State(me, {name: kept.record() for name, kept in self._kept.items()})
        if state != self._written:
            self._instance.write_state(state)
            self._written = state
