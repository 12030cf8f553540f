"""One run of Pulumi as a child process: interrupted in its own way, and ended if its local cloud stops.

The progress of a Pulumi run, read from the event log that its engine writes while it runs. The log has one JSON
document per line, as `apitype.EngineEvent` of Pulumi's SDK defines them. Pulumi's Automation API reads the same log
(`--event-log`).
"""

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from hpkit.program.teardown import counts_as_resource
from hpkit_local.processes import bound_to_parent

__all__ = ["Ended", "EngineEvents", "ResourceChange", "Work", "run"]

_COLOR = re.compile(r"<\{%[^%]*%\}>")
# How gRPC begins an error of a plugin that the engine passes on.
_RPC = re.compile(r"rpc error: code = \w+ desc = ")
# Errors of the engine that follow from another one.
_FOLLOW_ON_ERRORS = ("Resource monitor has terminated, shutting down", "preview failed", "update failed")
_CHANGES = {
    "create": "created",
    "create-replacement": "replaced",
    "update": "updated",
    "delete": "deleted",
    "import": "imported",
}
_STEP = re.compile(r"""\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[]+)""")
# Pulumi's text for a value that isn't known before the run.
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Longer values are less useful than their path.
_LONGEST_VALUE = 40
_VERBS = {"create": "creating", "create-replacement": "creating", "update": "updating", "import": "importing"}
_WATCH_SECONDS = 0.2
# How long Pulumi can take to write its state after the first and after the second interrupt.
_END_SECONDS = (5.0, 3.0)


@dataclass(frozen=True)
class Work:
    """A resource that the engine is working on, since a time of `time.monotonic`; status: what it waits for, or ""."""

    verb: str
    resource: str
    since: float
    status: str = ""


@dataclass(frozen=True)
class ResourceChange:
    """A resource that the engine changed, or would change: how, its type and name, and the properties that differ."""

    change: str
    type: str
    name: str
    properties: tuple[str, ...] = ()


@dataclass
class EngineEvents:
    """The events of one run so far.

    reads: URNs of what the program only reads, which don't count as resources. is_preview: whether the run changes
    nothing; the preview at the start of another run isn't counted. done: operation → number of resources,
    `unchanged` for the rest; changes: each changed resource. under_way: URN → work, the oldest first; errors and
    warnings: each diagnostic once, errors in full. seconds: how long the engine took, once it has ended. previewing:
    whether that preview is running.
    """

    file: Path
    reads: frozenset[str] = frozenset()
    is_preview: bool = False
    done: Counter[str] = field(default_factory=Counter)
    changes: list[ResourceChange] = field(default_factory=list)
    under_way: dict[str, Work] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: int | None = None
    interrupted: bool = False
    previewing: bool = False
    _position: int = 0
    _seconds_before: int = 0
    _stderr: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read what was added to the log since the last time, up to the last whole line."""
        try:
            with self.file.open("rb") as log:
                # Pulumi starts a new log for each phase: a run with a preview has two.
                if os.fstat(log.fileno()).st_size < self._position:
                    self._position = 0
                log.seek(self._position)
                added = log.read()
        except FileNotFoundError:
            return
        whole = added[: added.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.splitlines():
            # The rest of a line: the log was truncated, and has grown beyond the previous position.
            with suppress(ValueError):
                self._take(json.loads(line))

    def said(self) -> list[str]:
        """Return the errors, after what the program wrote to standard error, such as a traceback."""
        written = "".join(self._stderr).rstrip()
        causes = [error for error in self.errors if error not in _FOLLOW_ON_ERRORS]
        return [*([written] if written else []), *(causes or self.errors)]

    def _take(self, event: dict[str, Any]) -> None:
        if "preludeEvent" in event:
            # The next phase, in which the program runs again.
            self._seconds_before, self.seconds = self._seconds_before + (self.seconds or 0), None
            self._stderr.clear()
        elif started := event.get("resourcePreEvent"):
            if self._counts(started):
                self._start(started["metadata"])
        elif ended := event.get("resOutputsEvent"):
            if self._counts(ended):
                self._end(ended["metadata"])
        elif failed := event.get("resOpFailedEvent"):
            self.under_way.pop(failed["metadata"]["urn"], None)
        elif diagnostic := event.get("diagnosticEvent"):
            self._diagnose(diagnostic)
        elif violation := event.get("policyEvent"):
            mandatory = violation["enforcementLevel"] == "mandatory"
            _add(self.errors if mandatory else self.warnings, f"{violation['policyName']}: {violation['message']}")
        elif summary := event.get("summaryEvent"):
            self.seconds = self._seconds_before + int(summary.get("durationSeconds", 0))

    def _counts(self, event: Mapping[str, Any]) -> bool:
        self.previewing = bool(event.get("planning")) and not self.is_preview
        return not self.previewing

    def _start(self, metadata: dict[str, Any]) -> None:
        operation, urn = metadata["op"], metadata["urn"]
        if operation in _CHANGES and self._is_made(metadata):
            verb = _VERBS.get(operation, "deleting")
            self.under_way[urn] = Work(verb, _named(urn), time.monotonic())

    def _end(self, metadata: dict[str, Any]) -> None:
        self.under_way.pop(metadata["urn"], None)
        change = _CHANGES.get(metadata["op"], "unchanged" if metadata["op"] == "same" else None)
        if change is not None and self._is_made(metadata):
            self.done[change] += 1
            if change != "unchanged":
                resource_type, _, name = _named(metadata["urn"]).partition(" ")
                self.changes.append(ResourceChange(change, resource_type, name, tuple(_differences(metadata))))

    def _is_made(self, metadata: dict[str, Any]) -> bool:
        """Return whether Pulumi creates a resource."""
        return counts_as_resource(str(metadata["type"])) and metadata["urn"] not in self.reads

    def _diagnose(self, diagnostic: dict[str, Any]) -> None:
        message, severity = str(diagnostic.get("message", "")), diagnostic.get("severity")
        urn = str(diagnostic.get("urn") or "")
        text = f"{_named(urn)}: {message.strip()}" if urn and not _is_stack(urn) else message
        if severity == "info#err":
            self._stderr.append(_COLOR.sub("", message))
        elif severity == "error":
            _add(self.errors, text)
        elif severity == "warning":
            _add(self.warnings, text)
        elif severity == "info" and urn in self.under_way:
            status = _COLOR.sub("", message).strip()
            self.under_way[urn] = replace(self.under_way[urn], status=status)


def _add(messages: list[str], text: str) -> None:
    plain = _RPC.sub("", _COLOR.sub("", text)).strip()
    if plain not in messages:
        messages.append(plain)


def _differences(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield each property that differs, by its path, with its values before and after where both are short."""
    before, after = ((metadata.get(side) or {}).get("inputs") or {} for side in ("old", "new"))
    details = metadata.get("detailedDiff") or {}
    for path in sorted(details or metadata.get("diffs") or ()):
        shown = [_short(_value(side, path)) for side in (before, after)]
        told = path in details and None not in shown and shown[0] != shown[1]
        yield f"{path} {' → '.join(map(str, shown))}" if told else path


def _value(inputs: Any, path: str) -> Any:
    """Return the value at one of Pulumi's property paths, such as `a.b[0]["c.d"]`, or None."""
    for quoted, index, key in _STEP.findall(path):
        try:
            inputs = inputs[int(index)] if index else inputs[key or quoted]
        except (LookupError, TypeError):
            return None
    return inputs


def _short(value: Any) -> str | None:
    """Return a value on one line, `none` for an empty one; None if it is too long or has parts."""
    if value is None or isinstance(value, dict | list):
        return None if value else "none"
    if value == _UNKNOWN:
        return "not known yet"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, bool) else str(value)
    return text if text and len(text) <= _LONGEST_VALUE and text.isprintable() else None


def _is_stack(urn: str) -> bool:
    return urn.split("::")[2:3] == ["pulumi:pulumi:Stack"]


def _named(urn: str) -> str:
    """Return a resource's name for people, from its URN: `Vpc vpc`.

    A URN is urn:pulumi:<stack>::<project>::<parent types>$<type>::<name>; a name can contain `::`
    (https://www.pulumi.com/docs/iac/concepts/resources/names/#urns).
    """
    parts = urn.split("::", 3)
    if len(parts) < 4:
        return urn
    return f"{parts[2].rpartition(':')[2]} {parts[3]}"


@dataclass(frozen=True)
class Ended:
    """The result of a run: its exit code, whether a user interrupted it, and why it was ended from here, or ""."""

    code: int
    interrupted: bool
    gone: str


def run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    stop_reason: Callable[[], str],
    log: Path | None = None,
    watch: Callable[[bool], None] = lambda _interrupted: None,
) -> Ended:
    """Run a command that is interrupted only from here; `stop_reason` returns why it can't continue, or "".

    log: the target of its output; None: to this process's output. `watch` is called several times a
    second, with whether the user has interrupted the run. A terminal would interrupt its plugins too, and the resources
    that they are creating would be lost.
    """
    interrupted = False
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: object) -> None:
        del number, frame
        nonlocal interrupted
        interrupted = True
        if process is not None:
            process.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    output = None if log is None else log.open("wb")
    try:
        process = subprocess.Popen(  # noqa: S603 - commands are hpkit's own
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            # A killed command must not continue in the background of the next one.
            preexec_fn=bound_to_parent(signal.SIGINT),  # noqa: PLW1509 - the other thread only waits for a child
        )
        if interrupted:
            process.send_signal(signal.SIGINT)
        return _watched(process, stop_reason, lambda: interrupted, watch)
    finally:
        if output is not None:
            output.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watched(
    process: subprocess.Popen[bytes],
    stop_reason: Callable[[], str],
    interrupted: Callable[[], bool],
    watch: Callable[[bool], None],
) -> Ended:
    while True:
        watch(interrupted())
        try:
            return Ended(process.wait(_WATCH_SECONDS), interrupted(), "")
        except subprocess.TimeoutExpired:
            reason = stop_reason()
        if reason:
            _end(process)
            return Ended(process.returncode, interrupted(), reason)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let Pulumi write its state, with its own ^C and the second one for haste; then end everything."""
    for seconds in _END_SECONDS:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    process.wait()
    # Language host and plugins have their own process groups, in the session of the engine.
    while members := _members(process.pid):
        for each in members:
            each.kill()
        psutil.wait_procs(members, timeout=_WATCH_SECONDS)


def _members(session: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (ProcessLookupError, psutil.Error):
            continue
    return members
