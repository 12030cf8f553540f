"""A local cloud for measurements of the program: started with a latency, deleted afterward; and the events of a run."""

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
from hpkit_local.supervisor.local_cloud import LocalCloud
from tests.program.cloud import Program

__all__ = ["NAT_SECONDS", "Told", "cloud", "noise", "registered_by", "started", "told_by"]

# The endpoint creates a NAT gateway at once. On AWS, it's pending for a minute or two.
NAT_SECONDS = 120.0


@dataclass(frozen=True)
class Told:
    """A resource operation from the engine's events: seconds since the run began."""

    urn: str
    began: float
    done: float


@contextlib.contextmanager
def cloud(factor: float):
    """Yield a new instance whose operations take `factor` times as long as on AWS."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # for `timeout`
    with tempfile.TemporaryDirectory(prefix="hpkit-bench-") as folder:
        instance = LocalCloud.named("bench", root=Path(folder))
        nat = ["--fault", f"latency={NAT_SECONDS * factor}@CreateNatGateway"] if factor else []
        instance.write_aws_arguments(["--latency-factor", str(factor), *nat])
        try:
            control.start(instance, say=lambda _: None)
            yield instance
        finally:
            control.reset(instance)


@contextlib.contextmanager
def started(program: Program, verb: str, *options: str, log):
    """Yield a running Pulumi; an interrupted bench leaves no process."""
    child = program.start(verb, *options, log=log)
    try:
        yield child
    finally:
        if child.poll() is None:
            # Language host and plugins have their own process groups.
            whole = [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]
            for process in whole:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            child.wait()


def told_by(program: Program, verb: str, *options: str) -> tuple[list[Told], float]:
    """Run Pulumi and return its operations in the order of their ends, and the seconds of the whole process."""
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
    """Return what a preview registers, without the stack itself: URN, type, name, inputs, provider."""
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
    """Report what else the machine does, because values from a busy machine are less reliable."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def _events(program: Program, verb: str, *options: str) -> tuple[list[tuple[float, dict]], float]:
    """Run Pulumi and return its events with the seconds since its start, and the seconds of the whole process.

    The engine's own times are whole seconds: it writes its events into a pipe, and they are timed as they arrive.
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
            with contextlib.suppress(OSError):  # It still listens if the engine never started to write.
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            listener.join()
        if code:
            raise SystemExit(f"pulumi {verb} failed:\n{log.read_text(encoding='utf-8')}")
    return [(moment - began, json.loads(line)) for moment, line in events], seconds


def _listen(pipe: Path, said: list[tuple[float, str]]) -> None:
    with pipe.open(encoding="utf-8") as stream:
        said.extend((time.monotonic(), line) for line in stream)
