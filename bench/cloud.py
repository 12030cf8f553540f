"""A local cloud for measuring the program on: started with a latency, gone afterwards; and what a run told."""

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.program.cloud import Program

__all__ = ["NAT_SECONDS", "Told", "cloud", "noise", "registered_by", "started", "told_by"]

# The endpoint makes a NAT gateway at once. On AWS it is pending for a minute or two.
NAT_SECONDS = 120.0


@dataclass(frozen=True)
class Told:
    """One resource operation as the engine told it: seconds since the run began."""

    urn: str
    began: float
    done: float


@contextlib.contextmanager
def cloud(factor: float):
    """Give a fresh instance whose operations take `factor` times what they take on AWS."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # `timeout` ends a bench so: what it started has to go
    with tempfile.TemporaryDirectory(prefix="hpkit-bench-") as folder:
        instance = Instance.named("bench", root=Path(folder))
        nat = ["--fault", f"latency={NAT_SECONDS * factor}@CreateNatGateway"] if factor else []
        instance.write_aws_arguments(["--latency-factor", str(factor), *nat])
        try:
            control.start(instance, say=lambda _: None)
            yield instance
        finally:
            control.reset(instance)


@contextlib.contextmanager
def started(program: Program, verb: str, *options: str, log):
    """Give Pulumi running; a bench that is ended itself leaves nothing behind."""
    child = program.start(verb, *options, log=log)
    try:
        yield child
    finally:
        if child.poll() is None:
            # Language host and plugins have process groups of their own.
            whole = [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]
            for process in whole:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            child.wait()


def told_by(program: Program, verb: str, *options: str) -> tuple[list[Told], float]:
    """Run Pulumi and return its operations by their ends, and the seconds of the whole process."""
    events, seconds = _events(program, verb, *options)
    began: dict[str, float] = {}
    done: dict[str, float] = {}
    for moment, event in events:
        if "resourcePreEvent" in event:
            began.setdefault(event["resourcePreEvent"]["metadata"]["urn"], moment)
        elif "resOutputsEvent" in event:
            done[event["resOutputsEvent"]["metadata"]["urn"]] = moment
    told = (Told(urn, began[urn], done[urn]) for urn in done if urn in began)
    return sorted(told, key=lambda each: each.done), seconds


def registered_by(program: Program) -> list[dict]:
    """Return what a preview registers, the stack itself left out: urn, type, name, inputs, provider."""
    registered = {}
    for _, event in _events(program, "preview")[0]:
        about = event.get("resourcePreEvent", {}).get("metadata", {})
        new = about.get("new") or {}
        if new and about["type"] != "pulumi:pulumi:Stack":
            urn = about["urn"]
            registered[urn] = {
                "urn": urn,
                "type": about["type"],
                "name": urn.rpartition("::")[2],
                "custom": new.get("custom", False),
                "inputs": new.get("inputs", {}),
                "provider": new.get("provider", "").rpartition("::")[0],
            }
    return list(registered.values())


def noise() -> str:
    """Say what else the machine does: figures of a busy machine are worth less."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def _events(program: Program, verb: str, *options: str) -> tuple[list[tuple[float, dict]], float]:
    """Run Pulumi and return its events with the seconds since its start, and the seconds of the whole process.

    The engine's own times are whole seconds: it writes its events into a pipe, and they are timed as they come.
    """
    program.environment["PULUMI_DEBUG_COMMANDS"] = "true"
    with tempfile.TemporaryDirectory() as folder:
        pipe, log = Path(folder) / "events", Path(folder) / "log"
        os.mkfifo(pipe)
        events: list[tuple[float, str]] = []
        listener = threading.Thread(target=_listen, args=(pipe, events))
        listener.start()
        began = time.monotonic()
        try:
            with (
                log.open("w", encoding="utf-8") as stream,
                started(program, verb, *options, "--event-log", str(pipe), log=stream) as child,
            ):
                code = child.wait()
            seconds = time.monotonic() - began
        finally:
            with contextlib.suppress(OSError):  # it listens still if the engine never came to write
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            listener.join()
        if code:
            raise SystemExit(f"pulumi {verb} failed:\n{log.read_text(encoding='utf-8')}")
    return [(moment - began, json.loads(line)) for moment, line in events], seconds


def _listen(pipe: Path, said: list[tuple[float, str]]) -> None:
    with pipe.open(encoding="utf-8") as stream:
        said.extend((time.monotonic(), line) for line in stream)
