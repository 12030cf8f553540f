"""Room for quotas: on one cluster, quotas shrink before others grow, so that what is reserved always fits.

Whole instances of types that a cluster has in fixed numbers are counted. Where no number is known (managed Karpenter,
fractions of an instance) the order alone keeps the sum down: a quota grows after all shrinks of that type that the
program announces.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from provider.client import Api
from provider.errors import CancelledError, PluginError, TimedOutError
from provider.foresight import Outlook, foreseen, missing, overtaken, stuck, unbounded
from provider.rows import Rows, grown, larger, rows_of, shrunk, total
from provider.shared import Answer, Shared
from provider.shrinks import Shrink, Shrinks
from provider.task import Task
from provider.waiter import kind_of

__all__ = ["Room"]

_MOST = 3.0
_CAPACITY_AGE = 10.0
_PAGE = 100
_FORESIGHT = 2.0
_PATIENCE_FOR_ANNOUNCED = 15

Quotas = Answer[list[dict[str, Any]]]


@dataclass
class _Booking:
    rows: Rows
    done: float | None = None


@dataclass
class _Cluster:
    quotas: Shared[list[dict[str, Any]]] = field(default_factory=Shared)
    about: Shared[dict[str, Any]] = field(default_factory=Shared)
    lock: threading.Lock = field(default_factory=threading.Lock)
    bookings: dict[str, _Booking] = field(default_factory=dict)
    shrinks: Shrinks = field(default_factory=Shrinks)
    declared: dict[str, Rows] = field(default_factory=dict)
    named: float = field(default_factory=time.monotonic)
    resized: bool = False

    def declare(self, name: str, rows: Rows) -> None:
        """Take note of what the program wants, and of when it was last heard."""
        self.declared[name] = rows
        self.named = time.monotonic()

    @property
    def naming(self) -> bool:
        """Whether the engine is still naming quotas: more may be announced, and those that were may have begun."""
        return time.monotonic() < self.named + _FORESIGHT


@dataclass(frozen=True)
class _Wait:
    """Why a quota cannot grow yet."""

    lacking: Rows
    used: Rows
    kinds: Set[str]
    outlook: Outlook
    moving: bool


class Room:
    """The ledger of what this process is about to change, over what is live."""

    def __init__(self, api: Api, *, patience: float = 20.0) -> None:
        self._api = api
        self._patience = patience
        self._lock = threading.Lock()
        self._clusters: dict[str, _Cluster] = {}

    def _cluster(self, arn: str) -> _Cluster:
        with self._lock:
            return self._clusters.setdefault(arn, _Cluster())

    def quotas(self, task: Task, arn: str, *, age: float = 0.0) -> Quotas:
        """Return the quotas of a cluster, at most `age` seconds old; one list serves all who ask."""

        def fetch() -> list[dict[str, Any]]:
            pages = self._api.pages(
                task,
                "list_compute_quotas",
                member="ComputeQuotaSummaries",
                ClusterArn=arn,
                SortBy="CreationTime",
                SortOrder="Ascending",
                MaxResults=_PAGE,
            )
            return [entry for entry in pages if entry["Status"] != "Deleted"]

        return self._cluster(arn).quotas.get(fetch, not_before=time.monotonic() - age)

    def resize(self, arn: str) -> None:
        """Take note, at diff time, that the cluster's own counts will change: what is live is no measure then."""
        self._cluster(arn).resized = True

    def foresee(self, task: Task, arn: str, name: str, *, old: Rows, new: Rows) -> str | None:
        """Return, at preview, why a growing quota will find no room; None when it will, or nothing can be said.

        Waits a moment for the other quotas of the program, which the engine names side by side. One that is live and
        not named by then will be deleted by this run, or is another program's; its room is not free in time.
        """
        cluster = self._cluster(arn)
        cluster.declare(name, new)
        if not grown(old, new):
            return None
        capacity = self._capacity(task, arn)
        until = time.monotonic() + _FORESIGHT
        while True:
            live = _live(self.quotas(task, arn, age=_FORESIGHT))
            said = foreseen(Outlook(live, dict(cluster.declared), capacity), name, old=old, new=new)
            if said is None or cluster.resized:
                return None
            if time.monotonic() >= until:
                return said
            task.pause(_FORESIGHT / 10)

    def declare(self, arn: str, name: str, *, new: Rows) -> None:
        """Take note, at diff time, of what the program wants."""
        self._cluster(arn).declare(name, new)

    def announce(
        self, arn: str, name: str, *, old: Rows, new: Rows, resource: str, give: Callable[[Task], object]
    ) -> None:
        """Take note, at diff time, of whether a quota will shrink; `give` does so for one that waits for it."""
        shrinks = self._cluster(arn).shrinks
        kinds = frozenset(measure.kind for measure in shrunk(old, new))
        if kinds:
            shrinks.announce(Shrink(name, kinds, resource, give))
        else:
            shrinks.land(name)

    @contextmanager
    def updating(self, arn: str, name: str) -> Iterator[None]:
        """Tell those who wait for this quota to shrink that its own step is under way, and how it ended."""
        shrinks = self._cluster(arn).shrinks
        shrinks.begin(name)
        try:
            yield
        except PluginError as error:
            shrinks.fail(name, str(error).partition("\n")[0])
            raise
        shrinks.land(name)

    def vanished(self, resource: str) -> None:
        """Hear that a quota is deleted: whoever waits for it to shrink need not any more."""
        with self._lock:
            clusters = list(self._clusters.values())
        for cluster in clusters:
            cluster.shrinks.vanish(resource)

    @contextmanager
    def reserve(self, task: Task, arn: str, name: str, *, old: Rows, new: Rows) -> Iterator[None]:
        """Hold room for a change from `old` to `new` while it runs; growing waits until there is some."""
        cluster = self._cluster(arn)
        if name not in cluster.declared:
            cluster.declare(name, new)
        if grown(old, new):
            cluster.shrinks.land(name)  # whatever it gave is given; two that wait must not wait for each other
            booking = self._await_room(task, arn, name, old=old, new=new)
        else:
            booking = _Booking(larger(old, new))
            with cluster.lock:
                cluster.bookings[name] = booking
        try:
            yield
        finally:
            with cluster.lock:
                booking.done = time.monotonic()
        cluster.shrinks.land(name)

    def _await_room(self, task: Task, arn: str, name: str, *, old: Rows, new: Rows) -> _Booking:
        cluster = self._cluster(arn)
        began, waited, last = time.monotonic(), 0.0, None
        for delay in task.delays(0.1, _MOST):
            capacity = self._capacity(task, arn)
            seen = self.quotas(task, arn, age=max(0.0, time.monotonic() - began) if last is None else 0.0)
            found = _book(cluster, seen, name, old=old, new=new, capacity=capacity)
            if isinstance(found, _Booking):
                return found
            due = None if cluster.naming else cluster.shrinks.claim(found.kinds)
            if due is not None:
                self._carry_out(task, cluster, due)
                continue
            if found.moving or found.used != last:
                waited, last = 0.0, found.used
            self._patient(cluster, found, name, waited=waited)
            task.progress(_waiting(cluster, found))
            task.pause(delay)
            waited += delay
        raise AssertionError  # pragma: no cover - delays never end

    @staticmethod
    def _carry_out(task: Task, cluster: _Cluster, due: Shrink) -> None:
        """Shrink another quota ahead of its own step; if that fails, its own step may still do it."""
        task.progress(f"waiting for room: shrinking {due.name} first")
        try:
            due.give(task)
        except CancelledError:
            raise
        except PluginError:
            return
        cluster.shrinks.land(due.name)

    def _patient(self, cluster: _Cluster, found: _Wait, name: str, *, waited: float) -> None:
        """Give up when no room is to be expected any more."""
        first = cluster.shrinks.before(found.kinds)
        hopeless = bool(first) and not found.lacking and all(shrink.failure for shrink in first)
        expected = any(not shrink.failure for shrink in first)
        if not hopeless and waited <= self._patience * (_PATIENCE_FOR_ANNOUNCED if expected else 1):
            return
        if found.lacking:
            raise TimedOutError(stuck(found.lacking, found.used, found.outlook, name))
        raise TimedOutError(overtaken({shrink.name: shrink.failure for shrink in first}, name))

    def _capacity(self, task: Task, arn: str) -> dict[str, int]:
        """Instances by type, of the types whose number is fixed."""

        def fetch() -> dict[str, Any]:
            return self._api.find(task, "describe_cluster", ClusterName=arn) or {}

        about = self._cluster(arn).about.get(fetch, not_before=time.monotonic() - _CAPACITY_AGE).value
        if about.get("AutoScaling", {}).get("Mode") == "Enable":
            return {}
        groups = about.get("InstanceGroups", [])
        loose = {
            kind for group in groups for kind in group.get("InstanceRequirements", {}).get("DesiredInstanceTypes", [])
        }
        capacity: dict[str, int] = {}
        for group in groups:
            kind = group.get("InstanceType")
            if kind and kind not in loose:
                capacity[kind] = capacity.get(kind, 0) + group["TargetCount"]
        return capacity


def _book(
    cluster: _Cluster, seen: Quotas, name: str, *, old: Rows, new: Rows, capacity: dict[str, int]
) -> _Booking | _Wait:
    """Book the room if it is there; else say what it waits for."""
    with cluster.lock:
        used = _used(cluster, seen, without=name)
        lacking = missing(used, new, old=old, capacity=capacity)
        blind = unbounded(used, new, old=old, capacity=capacity)
        unnamed = _unnamed(cluster, seen) if blind else False
        if not lacking and not unnamed and not cluster.shrinks.before(blind):
            cluster.bookings[name] = _Booking(larger(old, new))
            return cluster.bookings[name]
        moving = unnamed or any(booking.done is None for booking in cluster.bookings.values())
    return _Wait(
        lacking,
        used,
        {measure.kind for measure in lacking} | blind,
        Outlook(_live(seen), dict(cluster.declared), capacity),
        moving or any(kind_of(entry["Status"]) == "modifying" for entry in seen.value),
    )


def _unnamed(cluster: _Cluster, seen: Quotas) -> bool:
    """Whether a live quota may still be announced."""
    return cluster.naming and any(entry["Name"] not in cluster.declared for entry in seen.value)


def _live(seen: Quotas) -> dict[str, Rows]:
    return {entry["Name"]: rows_of(entry.get("ComputeQuotaConfig", {})) for entry in seen.value}


def _used(cluster: _Cluster, seen: Quotas, *, without: str) -> Rows:
    """Count what others hold, changes under way counted at their larger end."""
    live = _live(seen)
    for name, booking in list(cluster.bookings.items()):
        if booking.done is not None and booking.done < seen.started:
            del cluster.bookings[name]
        else:
            live[name] = larger(live.get(name, {}), booking.rows)
    live.pop(without, None)
    return total(live.values())


def _waiting(cluster: _Cluster, found: _Wait) -> str:
    lacking = [f"{number:g} × {measure}" for measure, number in found.lacking.items()]
    first = [f"{shrink.name} to shrink" for shrink in cluster.shrinks.before(found.kinds)]
    return "waiting for room: " + ", ".join([*lacking, *first[:3]])
