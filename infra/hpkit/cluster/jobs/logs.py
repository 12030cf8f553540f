"""Reads the logs of a job's ranks: one after the other, or all at once while they grow."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from hpkit.cluster.jobs.running import Job, Rank, pods_of, ranks_of, refreshed
from hpkit.cluster.live.kubernetes import NOT_FOUND, Kubernetes

__all__ = ["Line", "follow", "logs"]

_PAUSE_SECONDS: Final = 2.0
_BAD_REQUEST: Final = 400
# Length of a time without parts of seconds.
_SECOND: Final = 19
Line = tuple[int, str]
"""A rank's number, and a line of its log."""


def logs(api: Kubernetes, ranks: list[Rank], since: int | None) -> Iterator[Line]:
    """Yield the lines of all ranks that have started, one rank after the other."""
    for rank in ranks:
        if not rank.waits:
            for _, line in _lines(api, rank, since=since):
                yield rank.number, line


def follow(
    api: Kubernetes,
    job: Job,
    since: int | None,
    *,
    waiting: Callable[[list[Rank]], None],
    pause: float = _PAUSE_SECONDS,
) -> Iterator[Line]:
    """Yield lines of all ranks as they're written, also of pods that start later, until the job ends or is deleted.

    waiting: gets the ranks whenever the pods were read.
    """
    lines: SimpleQueue[Line | ApiException] = SimpleQueue()
    readers: dict[tuple[str, int], Thread] = {}
    while True:
        current = refreshed(api, job)
        ranks = [] if current is None else ranks_of(current, pods_of(api, current))
        waiting(ranks)
        for rank in ranks:
            if rank.attempt not in readers and not rank.waits:
                # A reader may wait for a line forever, and must not keep the process alive.
                reader = Thread(target=_read, args=(api, rank, since, lines), daemon=True)
                readers[rank.attempt] = reader
                reader.start()
        ends = current is None or (current.has_ended and not any(each.is_running for each in ranks))
        deadline = time.monotonic() + pause
        while (left := deadline - time.monotonic()) > 0 or not lines.empty():
            if ends and lines.empty() and not any(each.is_alive() for each in readers.values()):
                return
            try:
                line = lines.get(timeout=max(0.01, min(left, 0.2)))
            except Empty:
                continue
            if isinstance(line, ApiException):
                raise line
            yield line


def _read(api: Kubernetes, rank: Rank, since: int | None, lines: SimpleQueue[Line | ApiException]) -> None:
    # Lines of the last second, because a kubelet returns whole seconds again.
    second, passed = "", Counter[tuple[str, str]]()
    while True:
        again = passed.copy()
        try:
            for moment, line in _lines(api, rank, since=since, second=second, follows=True):
                if again[moment, line]:
                    again[moment, line] -= 1
                    continue
                if moment[:_SECOND] > second:
                    second, passed = moment[:_SECOND], Counter()
                passed[moment, line] += 1
                lines.put((rank.number, line))
        except HTTPError:
            # The connection broke: continue after the last line.
            time.sleep(_PAUSE_SECONDS)
            continue
        except ApiException as error:
            if error.status not in (NOT_FOUND, _BAD_REQUEST):
                lines.put(error)
        return


def _lines(
    api: Kubernetes, rank: Rank, *, since: int | None, second: str = "", follows: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield time and text of each line of a rank's main container; second: skip lines before this time."""
    namespace = rank.pod["metadata"]["namespace"]
    query = [("container", rank.container), ("timestamps", "true")]
    query += [("follow", "true")] if follows else []
    if second:
        query.append(("sinceTime", f"{second}Z"))
    elif since is not None:
        query.append(("sinceSeconds", str(since)))
    for text in api.lines(f"/api/v1/namespaces/{namespace}/pods/{rank.name}/log", tuple(query)):
        moment, _, line = text.partition(" ")
        yield moment, line
