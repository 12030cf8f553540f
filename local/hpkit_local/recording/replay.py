"""Sends recorded calls to a new local endpoint, and names each difference between the answers.

IDs, and other values that a service makes up, are placeholders in a recording. The first answer that contains one shows
which local value it is; later calls are sent with that value. Times, messages, contents' hashes and addresses aren't
compared.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hpkit.errors import ToolError
from hpkit.text.plural import plural
from hpkit_local.aws.clock import ManualClock
from hpkit_local.aws.errors import Reply
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import services
from hpkit_local.aws.testing import RunningEndpoint, running_endpoint
from hpkit_local.recording.proxy import FORMAT, parsed_answer
from hpkit_local.recording.redaction import ACCOUNT, PLACEHOLDER, UNIT, Plain

__all__ = ["Difference", "Replayed", "replay"]

_ABSENT: Final = "absent"
_READS = ("Describe", "Get", "List", "Head")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d.*")
# Hashes of contents, which a recording doesn't have, and addresses and certificates that a service makes up.
_MADE_UP = re.compile(
    r"(?i)(?:etag|checksum\w*|sha256|digest|fingerprint|thumbprint|certificateauthority\.data|endpoint|dnsname|hostname"
    r"|issuer|url|ip|ipaddress|macaddress)$"
)
# The caller of another call.
_CALLERS = frozenset({"CreatedBy", "LastModifiedBy"})
_TIME_NAME = re.compile(r"(?i)(?:time|date|timestamp|at)$")
# What botocore computes from a body.
_OF_BODIES = re.compile(r"Checksum|ContentMD5$|ContentLength$")
# Some delayed effects have no timer: the clock is advanced by this many seconds, so often.
_STEP_SECONDS: Final = 30.0
_STEPS_OF_TIME: Final = 12
_STEPS: Final = 60
# More than differences in an answer: an error where the other is none.
_FAILS: Final = 1000
# Items of a list that an item is compared with.
_CANDIDATES: Final = 50
_ERROR: Final = 400


@dataclass(frozen=True)
class Difference:
    """One difference between a recorded and a local answer."""

    call: int
    operation: str
    path: str
    recorded: Any
    local: Any

    def __str__(self) -> str:
        """Return a line of output."""
        if not self.path:
            return f"call {self.call} isn't in the recording"
        shown = [value if value is _ABSENT else json.dumps(value) for value in (self.recorded, self.local)]
        return f"call {self.call} {self.operation}: {self.path}: recorded {shown[0]}, local {shown[1]}"


@dataclass(frozen=True)
class Replayed:
    """The result of a replay; `unsent` calls have parameters that weren't recorded."""

    calls: int
    same: int
    unsent: int
    differences: tuple[Difference, ...]

    @property
    def summary(self) -> str:
        """Return the counts as a line of text."""
        unsent = f", {self.unsent} not sent, because parameters aren't in the recording" if self.unsent else ""
        return f"{plural(self.calls, 'call')}, {self.same} with the same answer{unsent}"


def replay(file: Path) -> Replayed:
    """Send the calls of a recording in its order. Raises ToolError if the file isn't one."""
    begin, lines = _read(file)
    clock = ManualClock(begin)
    differences: list[Difference] = []
    same = unsent = expected = 0
    with running_endpoint(latency_factor=1.0, clock=clock, account=ACCOUNT) as endpoint:
        run = _Run(endpoint, clock)
        for line in lines:
            missing = range(expected + 1, line["call"])
            differences += [Difference(number, "", "", None, None) for number in missing]
            expected = line["call"]
            if line["operation"] is None or line["parameters"] is None:
                unsent += 1
                continue
            found = run.call(line)
            same += not found
            differences += found
    return Replayed(len(lines), same, unsent, tuple(differences))


def _read(file: Path) -> tuple[float, list[dict[str, Any]]]:
    """Return when a recording began, and its calls."""
    try:
        header, *lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        formats, begin = header["format"], datetime.fromisoformat(header["begin"])
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ToolError(f"{file} isn't a recording of AWS calls, or is cut. Name a file that --record wrote") from None
    if formats != FORMAT:
        raise ToolError(f"{file} has format {formats}, and this version reads {FORMAT}. Use the version that wrote it")
    return begin.timestamp(), lines


class _Identities:
    """Which local value each placeholder of a recording is."""

    def __init__(self) -> None:
        self.local: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._words: dict[str, str] = {}

    def bind(self, recorded: str, local: str, *, alone: bool = False) -> bool:
        """Note a pair; return whether it contradicts none.

        alone: it's a whole value, such as a certificate, which AWS can change where the endpoint doesn't.
        """
        if self.local.get(recorded) == recorded != local and not PLACEHOLDER.fullmatch(local):
            # A word of AWS that a user has also chosen.
            return self._words.setdefault(recorded, local) == local
        if self.local.get(recorded, local) != local:
            return False
        if not alone and self._recorded.get(local, recorded) != recorded:
            return False
        self.local[recorded], self._recorded[local] = local, recorded
        return True

    @contextmanager
    def attempt(self) -> Iterator[list[bool]]:
        """Yield a list; unless it contains True at the end, forget the pairs that were noted meanwhile."""
        before = dict(self.local), dict(self._recorded)
        keep: list[bool] = []
        yield keep
        if True not in keep:
            self.local, self._recorded = before

    def translated(self, value: Any) -> Any:
        """Return parameters with local values; placeholders of names that users chose stay."""
        if isinstance(value, str):
            return UNIT.sub(lambda unit: self._translated(unit[0]), value)
        if isinstance(value, list):
            return [self.translated(item) for item in value]
        if isinstance(value, dict):
            if value.keys() == {"bytes"}:
                return b"\0" * int(value["bytes"])
            return {self.translated(name): self.translated(item) for name, item in value.items()}
        return value

    def _translated(self, unit: str) -> str:
        if PLACEHOLDER.fullmatch(unit) and unit not in self.local:
            self.bind(unit, unit)
        return self.local.get(unit, unit)


@dataclass(frozen=True)
class _Answer:
    status: int
    error: str | None
    answer: Any


@dataclass(frozen=True)
class _Moment:
    time: float
    state: Mapping[str, bytes]


@dataclass(frozen=True)
class _Best:
    """The most alike answer so far, its number of differences, and when it was given."""

    count: int
    local: _Answer
    moment: _Moment


class _Run:
    """A replay on one endpoint."""

    def __init__(self, endpoint: RunningEndpoint, clock: ManualClock) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._identities = _Identities()
        self._clients: dict[tuple[str, str], _Client] = {}

    def call(self, line: Mapping[str, Any]) -> list[Difference]:
        """Send a call; return the differences between its answers.

        If the recorded answer is one of a later time, such as another status, the changes that lead to it are applied.
        """
        found, local = self._once(line)
        reads = line["operation"].startswith(_READS)
        late = local.error is not None and line["error"] is None
        if not found or not (late or (reads and services()[line["service"]].machines)):
            return self._committed(line, local)
        best = _Best(found, local, self._now())
        for attempt in (self._singly, self._later, self._in_order):
            tried = False
            for local, count in attempt(line, best):
                tried = True
                if local.error is None and not reads:
                    # It has made its change: once only.
                    return self._committed(line, local)
                if count < best.count:
                    best = _Best(count, local, self._now())
                if not count:
                    return self._committed(line, local)
            if tried:
                self._restore(best.moment)
        return self._committed(line, best.local)

    def _singly(self, line: Mapping[str, Any], best: _Best) -> Iterator[tuple[_Answer, int]]:
        """Complete single changes, as long as each makes the answers more alike."""
        done = False
        while not done:
            done = True
            for serial, changed in self._endpoint.pending().items():
                if not self._is_related(line, best.local, changed):
                    continue
                self._endpoint.complete(serial)
                found, local = self._once(line)
                yield local, found
                if found < best.count:
                    best, done = _Best(found, local, self._now()), False
                    break
                self._restore(best.moment)

    def _in_order(self, line: Mapping[str, Any], _: _Best) -> Iterator[tuple[_Answer, int]]:
        """Advance the clock to one change after another."""
        for _number in range(_STEPS):
            seconds = self._endpoint.seconds_to_next()
            if seconds is None:
                return
            self._clock.advance(seconds + 0.001)
            found, local = self._once(line)
            yield local, found

    def _is_related(self, line: Mapping[str, Any], local: _Answer, changed: str) -> bool:
        """Return whether a change is one of an object that a call or its answers name."""
        with self._identities.attempt():
            named = json.dumps(
                [self._identities.translated([line["parameters"], line["answer"]]), local.answer], default=str
            )
        objects = [re.findall(r"\w{2,}", text) for text in re.findall(r'"([^"]+)"', changed)]
        return any(words and all(word in named for word in words) for words in objects)

    def _later(self, line: Mapping[str, Any], best: _Best) -> Iterator[tuple[_Answer, int]]:
        """Let time pass without changes of other objects: effects that are delayed occur."""
        for _number in range(_STEPS_OF_TIME):
            # Some effects are delayed from a time of the wall clock, which can be ahead.
            seconds = max(0.0, time.time() - self._clock.now()) + _STEP_SECONDS
            self._endpoint.postpone(seconds)
            self._clock.advance(seconds)
            for serial, changed in self._endpoint.pending().items():
                if self._is_related(line, best.local, changed):
                    self._endpoint.complete(serial)
            found, local = self._once(line)
            yield local, found

    def _now(self) -> _Moment:
        return _Moment(self._clock.now(), self._endpoint.state())

    def _restore(self, moment: _Moment) -> None:
        self._clock = ManualClock(moment.time)
        self._endpoint.reset(latency_factor=1.0, clock=self._clock, state=moment.state)

    def _once(self, line: Mapping[str, Any]) -> tuple[int, _Answer]:
        """Send a call, without noting IDs; return the number of differences, and the answer."""
        with self._identities.attempt():
            local = self._client(line).send(line, self._identities)
            found = list(_differences(line, local, self._identities))
        return _FAILS if local.error != line["error"] else len(found), local

    def _committed(self, line: Mapping[str, Any], local: _Answer) -> list[Difference]:
        name = f"{line['service']}.{line['operation']}"
        self._identities.translated(line["parameters"])
        found = list(_differences(line, local, self._identities))
        return [Difference(line["call"], name, *each) for each in found]

    def _client(self, line: Mapping[str, Any]) -> _Client:
        key = (line["service"], line["region"])
        if key not in self._clients:
            self._clients[key] = _Client(self._endpoint.url, *key)
        return self._clients[key]


class _Client:
    """A client of the endpoint for one service, which returns answers as a recording has them."""

    def __init__(self, url: str, service: str, region: str) -> None:
        self._service = service
        self._replies: list[Reply] = []
        self._client = boto3.client(
            service,
            region_name=region,
            endpoint_url=url,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106 - the endpoint checks no signature
            config=Config(
                parameter_validation=False, retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}
            ),
        )
        self._client.meta.events.register("before-parse", self._keep)

    def _keep(self, response_dict: Mapping[str, Any], **_: Any) -> None:
        body = response_dict["body"]
        content = body if isinstance(body, bytes) else b""
        self._replies.append(Reply(response_dict["status_code"], content, dict(response_dict["headers"])))

    def send(self, line: Mapping[str, Any], identities: _Identities) -> _Answer:
        """Send a recorded call with local values."""
        operation = service_model(self._service).operation_model(line["operation"])
        parameters = identities.translated(line["parameters"])
        if operation.has_streaming_input:
            parameters = {name: value for name, value in parameters.items() if not _OF_BODIES.search(name)}
        replies: list[Reply] = []
        self._replies = replies
        streamed = 0
        try:
            answer = getattr(self._client, xform_name(line["operation"]))(**parameters)
            if operation.has_streaming_output:
                streamed = len(answer[operation.output_shape.serialization["payload"]].read())
        except ClientError:
            pass
        except (BotoCoreError, ValueError, TypeError, KeyError, AttributeError) as error:
            # What can't be sent has no answer. Otherwise, botocore's changes to the answer failed.
            if not replies:
                return _Answer(0, type(error).__name__, None)
        reply = replies[-1]
        parsed = parsed_answer(operation, str(service_model(self._service).resolved_protocol), reply)
        if reply.status >= _ERROR:
            return _Answer(reply.status, str(parsed.get("Error", {}).get("Code", "")), None)
        if operation.has_streaming_output:
            parsed[operation.output_shape.serialization["payload"]] = b"\0" * streamed
        return _Answer(
            reply.status, None, Plain().value(operation.output_shape, parsed) if operation.output_shape else {}
        )


def _differences(line: Mapping[str, Any], local: _Answer, identities: _Identities) -> Iterator[tuple[str, Any, Any]]:
    if (line["error"], line["status"]) != (local.error, local.status):
        if line["error"] != local.error:
            yield "error", line["error"] or "none", local.error or "none"
        else:
            yield "status", line["status"], local.status
    elif line["answer"] is not None:
        yield from _compared(line["answer"], local.answer, identities, "")


def _compared(recorded: Any, local: Any, identities: _Identities, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, recorded and local value of each difference."""
    if _is_empty(recorded) and _is_empty(local):
        return
    if isinstance(recorded, dict) and isinstance(local, dict):
        names = {name: _translated_key(name, local, identities) for name in recorded}
        names |= {name: name for name in local if name not in names.values()}
        for name, there in names.items():
            if name in _CALLERS:
                continue
            yield from _compared(recorded.get(name), local.get(there), identities, f"{path}.{name}".lstrip("."))
    elif isinstance(recorded, list) and isinstance(local, list):
        yield from _compared_lists(recorded, local, identities, path)
    elif isinstance(recorded, str) and isinstance(local, str):
        made_up = _MADE_UP.search(path) or (_TIME.fullmatch(recorded) and _TIME.fullmatch(local))
        if not made_up and not _is_same_text(recorded, local, identities):
            yield path, recorded, local
    elif _TIME_NAME.search(path) and isinstance(recorded, int | float) and isinstance(local, int | float):
        return
    elif recorded != local or isinstance(recorded, bool) != isinstance(local, bool):
        yield path, _ABSENT if recorded is None else recorded, _ABSENT if local is None else local


def _is_empty(value: Any) -> bool:
    """Return whether a value is one that protocols leave out."""
    return value is None or value in ("", [], {})


def _translated_key(name: str, local: Mapping[str, Any], identities: _Identities) -> str:
    return name if name in local else UNIT.sub(lambda unit: identities.local.get(unit[0], unit[0]), name)


def _compared_lists(
    recorded: list[Any], local: list[Any], identities: _Identities, path: str
) -> Iterator[tuple[str, Any, Any]]:
    """Compare lists in any order: each recorded item with the local one that differs least."""
    rest = list(enumerate(local))
    for number, item in enumerate(recorded):
        best: tuple[int, int] | None = None
        for place, (_, candidate) in enumerate(rest[:_CANDIDATES]):
            with identities.attempt():
                count = len(list(_compared(item, candidate, identities, path)))
            if best is None or count < best[0]:
                best = (count, place)
            if count == 0:
                break
        if best is None:
            yield f"{path}[{number}]", item, _ABSENT
        else:
            yield from _compared(item, rest.pop(best[1])[1], identities, f"{path}[{number}]")
    for number, item in rest:
        yield f"{path}[{number}]", _ABSENT, item


def _is_same_text(recorded: str, local: str, identities: _Identities) -> bool:
    if PLACEHOLDER.fullmatch(recorded):
        return identities.bind(recorded, local, alone=True)
    documents = _document(recorded), _document(local)
    if None not in documents:
        return not list(_compared(*documents, identities, ""))
    units = list(UNIT.finditer(recorded)), list(UNIT.finditer(local))
    if len(units[0]) != len(units[1]) or UNIT.sub("", recorded) != UNIT.sub("", local):
        return False
    with identities.attempt() as keep:
        pairs = [(first[0], second[0]) for first, second in zip(*units, strict=True)]
        same = all(
            identities.bind(first, second) if PLACEHOLDER.fullmatch(first) else first == second
            for first, second in pairs
        )
        keep.append(same)
    return same


def _document(text: str) -> Any:
    readable = unquote(text) if text.startswith(("%7B", "%5B")) else text
    if not readable.lstrip().startswith(("{", "[")):
        return None
    with suppress(ValueError):
        return json.loads(readable)
    return None
