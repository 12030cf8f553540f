"""Microsoft's Philly trace (github.com/msr-fiddle/philly-traces): cluster_job_log, a JSON list of jobs.

A job may have several attempts, each with the GPUs that it had; times are local, to the second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

from hpkit.errors import InputError
from hpkit.scenario.lines import opened, refuse_no_utf8
from hpkit.scenario.traces.model import Tally, TraceTask

__all__ = ["philly"]

_TIME: Final = "%Y-%m-%d %H:%M:%S"
_EPOCH: Final = datetime(2017, 1, 1)  # noqa: DTZ001 - the trace says no zone; differences alone are used
# The trace's clock is local, and is set back by an hour in November.
_SET_BACK: Final = 3600.0
_NO_TIME: Final = (None, "None", "")
_CHUNK: Final = 1 << 20
# No job of the trace comes near it; a file that is no list of jobs must not fill the memory.
_MOST_OBJECT: Final = 64 << 20
_NO_BLANK: Final = re.compile(r"[^ \t\r\n]")


def philly(path: Path, tally: Tally) -> Iterator[TraceTask]:
    """Return the jobs of cluster_job_log; their group is the virtual cluster.

    The run time is that of all attempts, the pods are those of the last one. Jobs without attempts, with times that
    were not logged, still running or begun before they were submitted are counted in tally. InputError with the line
    for what is no list of jobs, a job of another form, a time that is none, or an attempt that ends an hour or more
    before it starts.
    """
    for place, job in _objects(path):
        for key in ("jobid", "vc", "submitted_time", "attempts"):
            if key not in job:
                raise InputError(f"{place}: the job has no `{key}`. Is this cluster_job_log?")
        task = _task(place, job, tally)
        if task is not None:
            yield task


def _task(place: str, job: Mapping[str, Any], tally: Tally) -> TraceTask | None:
    attempts = _objects_of(place, job, "attempts")
    if not attempts:
        tally.add("jobs have no attempt, so that nobody knows what they took: left out", place)
        return None
    if attempts[-1].get("end_time") in _NO_TIME:
        tally.add("jobs still ran when the trace was taken: left out", place)
        return None
    submit, run = _seconds(place, "submitted_time", job["submitted_time"]), 0.0
    begins = []
    for attempt in attempts:
        times = [attempt.get(key) for key in ("start_time", "end_time")]
        if any(time in _NO_TIME for time in times):
            tally.add("attempts have a time that was not logged: their part is not counted", place)
            continue
        start, end = (_seconds(place, key, time) for key, time in zip(("start_time", "end_time"), times, strict=True))
        if 0 < start - end < _SET_BACK:
            tally.add("attempts end within an hour before they start, as the clock is set back: put right", place)
            end += _SET_BACK
        if end < start:
            raise InputError(f"{place}: an attempt ends {times[1]}, before it starts {times[0]}")
        begins.append(start)
        run += end - start
    if begins and min(begins) < submit:
        tally.add("jobs begin before they were submitted: they are submitted when they begin", place)
        submit = min(begins)
    machines = [_gpus(place, each) for each in _objects_of(place, attempts[-1], "detail")]
    gpus = sum(machines)
    if not gpus:
        tally.add("jobs have no GPU in their last attempt: left out", place)
        return None
    # A pod a machine, and as many GPUs on each: where they differ, a pod for each GPU says the same in all.
    even = len(set(machines)) == 1
    if not even:
        tally.add("jobs had different numbers of GPUs on their machines: they become a pod for each GPU", place)
    pods, each_gpus = (len(machines), machines[0]) if even else (gpus, 1)
    return TraceTask(place, _text(job["jobid"]), _text(job["vc"]) or "none", submit, run, pods, float(each_gpus))


def _objects_of(place: str, of: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects; one that is not there, or null, is empty."""
    found = of.get(key)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{place}: `{key}` of the job must be a list of JSON objects. Is this cluster_job_log?")
    return found


def _gpus(place: str, machine: Mapping[str, Any]) -> int:
    found = machine.get("gpus") or ()
    if not isinstance(found, (list, tuple)):
        raise InputError(f"{place}: `gpus` of a machine must be a list of their names. Is this cluster_job_log?")
    return len(found)


def _text(value: Any) -> str:
    """Return a name; none where there is none."""
    return "" if value is None else str(value)


def _seconds(place: str, key: str, text: Any) -> float:
    try:
        return (datetime.strptime(str(text), _TIME) - _EPOCH).total_seconds()  # noqa: DTZ007 - see _EPOCH
    except ValueError:
        raise InputError(f"{place}: {key} is `{text}` and must be a time such as 2017-10-07 01:11:39") from None


def _objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the objects of a JSON list one by one, each with the line where it begins."""
    with opened(path) as file:
        yield from _Stream(path, file).objects()


class _Stream:
    """The text of a list, of which only the object that is being read is held."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path = path
        self._file = file
        self._text = ""
        self._at = 0
        self._line = 1
        self._decoder = json.JSONDecoder()

    def objects(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if self._next() != "[":
            raise InputError(f"{self._place()}: the file is no JSON list of jobs. Is this cluster_job_log?")
        self._drop(1)
        while self._next() != "]":
            place = self._place()
            found = self._object()
            if not isinstance(found, dict):
                raise InputError(f"{place}: a job must be a JSON object")
            yield place, found
            if self._next() == ",":
                self._drop(1)
            elif self._next() != "]":
                raise InputError(f"{self._place()}: after a job there must be `,` or `]`")

    def _place(self) -> str:
        return f"{self._path}:{self._line}"

    def _next(self) -> str:
        """Return the next character that is no blank; InputError where the file ends before its list does."""
        while True:
            found = _NO_BLANK.search(self._text, self._at)
            self._drop((found.start() if found else len(self._text)) - self._at)
            if found:
                return found[0]
            if not self._read():
                raise InputError(f"{self._place()}: the file ends inside the list: it was cut off")

    def _object(self) -> Any:
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) > _MOST_OBJECT or not self._read():
                    line = self._line + self._text.count("\n", self._at, error.pos)
                    raise InputError(f"{self._path}:{line}: no JSON: {error.msg}, or the file was cut off") from None
                continue
            except (RecursionError, ValueError):
                # The second is a number of thousands of digits.
                said = "a job is nested too deeply, or has a number that is too long. Is this cluster_job_log?"
                raise InputError(f"{self._place()}: {said}") from None
            self._drop(end - self._at)
            return found

    def _drop(self, count: int) -> None:
        """Go on behind so many characters; they are cut off when more is read, not one object at a time."""
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count

    def _read(self) -> bool:
        more = self._file.read(_CHUNK)
        if not more.isascii():
            refuse_no_utf8(self._path, self._line + self._text.count("\n", self._at), more)
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)
