"""Room for quotas: on one cluster, quotas shrink before others grow, so that what is reserved always fits.

Counted are whole instances (`count` rows) of types that the cluster has in fixed numbers. With managed
Karpenter the maximum is not for this API to know, and fractions need the shape of a type: both are left to
`hpkit validate`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from provider.client import Api
from provider.errors import TimedOutError
from provider.shared import Answer, Shared
from provider.task import Task
from provider.waiter import kind_of

__all__ = ["Room", "Rows", "rows_of"]

Rows = Counter[str]
_MOST = 3.0
_CAPACITY_AGE = 10.0
_PAGE = 100
_FORESIGHT = 2.0
_PATIENCE_FOR_ANNOUNCED = 15


def rows_of(config: Mapping[str, Any]) -> Rows:
    """Whole instances that a quota reserves, by type (API form)."""
    rows: Rows = Counter()
    for row in config.get("ComputeQuotaResources", []):
        if isinstance(row.get("Count"), int):
            rows[row["InstanceType"]] += row["Count"]
    return rows


def _larger(one: Rows, other: Rows) -> Rows:
    return one | other


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
    announced: set[str] = field(default_factory=set)
    declared: dict[str, Rows] = field(default_factory=dict)
    resized: bool = False


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

    def quotas(self, task: Task, arn: str, *, age: float = 0.0) -> Answer[list[dict[str, Any]]]:
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
        cluster.declared[name] = new
        if not new - old:
            return None
        capacity = self._capacity(task, arn)
        until = time.monotonic() + _FORESIGHT
        while True:
            live = {
                entry["Name"]: rows_of(entry.get("ComputeQuotaConfig", {}))
                for entry in self.quotas(task, arn, age=_FORESIGHT).value
            }
            others = {**live, **cluster.declared}
            others.pop(name)
            missing = _missing(sum(others.values(), Counter()), new, old=old, capacity=capacity)
            if not missing or cluster.resized:
                return None
            if time.monotonic() >= until:
                return _foreseen(
                    missing, {key: rows for key, rows in live.items() if key not in cluster.declared}, name
                )
            task.pause(_FORESIGHT / 10)

    def announce(self, arn: str, name: str, *, old: Rows, new: Rows) -> None:
        """Take note, at diff time, of what the program wants; others may wait for a quota that will shrink."""
        self._cluster(arn).declared[name] = new
        if old - new:
            self._cluster(arn).announced.add(name)

    @contextmanager
    def reserve(self, task: Task, arn: str, name: str, *, old: Rows, new: Rows) -> Iterator[None]:
        """Hold room for a change from `old` to `new` while it runs; growing waits until there is some."""
        cluster = self._cluster(arn)
        cluster.announced.discard(name)
        if new - old:
            self._await_room(task, arn, name, old=old, new=new)
        else:
            with cluster.lock:
                cluster.bookings[name] = _Booking(_larger(old, new))
        try:
            yield
        finally:
            with cluster.lock:
                cluster.bookings[name].done = time.monotonic()

    def _await_room(self, task: Task, arn: str, name: str, *, old: Rows, new: Rows) -> None:
        cluster = self._cluster(arn)
        began, waited, last = time.monotonic(), 0.0, None
        for delay in task.delays(0.1, _MOST):
            capacity = self._capacity(task, arn)
            seen = self.quotas(task, arn, age=max(0.0, time.monotonic() - began) if last is None else 0.0)
            with cluster.lock:
                used = _used(cluster, seen, without=name)
                missing = _missing(used, new, old=old, capacity=capacity)
                if not missing:
                    cluster.bookings[name] = _Booking(_larger(old, new))
                    return
                moving = any(booking.done is None for booking in cluster.bookings.values())
            moving = moving or any(kind_of(entry["Status"]) == "modifying" for entry in seen.value)
            if moving or used != last:
                waited, last = 0.0, used
            limit = self._patience * (_PATIENCE_FOR_ANNOUNCED if cluster.announced else 1)
            if waited > limit:
                raise TimedOutError(_stuck(missing, used, capacity, seen.value, name))
            task.progress("waiting for room: " + ", ".join(f"{n} × {kind}" for kind, n in missing.items()))
            task.pause(delay)
            waited += delay

    def _capacity(self, task: Task, arn: str) -> Rows:
        """Instances by type, of the types whose number is fixed."""

        def fetch() -> dict[str, Any]:
            return self._api.find(task, "describe_cluster", ClusterName=arn) or {}

        about = self._cluster(arn).about.get(fetch, not_before=time.monotonic() - _CAPACITY_AGE).value
        if about.get("AutoScaling", {}).get("Mode") == "Enable":
            return Counter()
        groups = about.get("InstanceGroups", [])
        loose = {
            kind for group in groups for kind in group.get("InstanceRequirements", {}).get("DesiredInstanceTypes", [])
        }
        capacity: Rows = Counter()
        for group in groups:
            if group.get("InstanceType") and group["InstanceType"] not in loose:
                capacity[group["InstanceType"]] += group["TargetCount"]
        return capacity


def _used(cluster: _Cluster, seen: Answer[list[dict[str, Any]]], *, without: str) -> Rows:
    """Count what others hold, changes under way counted at their larger end."""
    live = {entry["Name"]: rows_of(entry.get("ComputeQuotaConfig", {})) for entry in seen.value}
    for name, booking in list(cluster.bookings.items()):
        if booking.done is not None and booking.done < seen.started:
            del cluster.bookings[name]
        else:
            live[name] = _larger(live.get(name, Counter()), booking.rows)
    live.pop(without, None)
    return sum(live.values(), Counter())


def _missing(used: Rows, new: Rows, *, old: Rows, capacity: Rows) -> Rows:
    growing = [kind for kind in new if new[kind] > old[kind] and kind in capacity]
    return Counter({kind: lack for kind in growing if (lack := used[kind] + new[kind] - capacity[kind]) > 0})


def _foreseen(missing: Rows, undeclared: Mapping[str, Rows], name: str) -> str:
    lacking = ", ".join(f"{lack} × {kind}" for kind, lack in missing.items())
    holders = [key for key, rows in undeclared.items() if any(rows[kind] for kind in missing)]
    if not holders:
        return (
            f"The quota {name!r} will find no room ({lacking} too few): the quotas of this program together reserve "
            "more than the cluster has. What to do: shrink one of them, or add instances."
        )
    return (
        f"The quota {name!r} will find no room ({lacking} too few): it is held by {', '.join(sorted(holders))}, which "
        "this program does not declare, and Pulumi deletes only after it has updated. What to do: remove "
        f"{'it' if len(holders) == 1 else 'them'} in a `pulumi up` of its own first, then let this one grow."
    )


def _stuck(missing: Rows, used: Rows, capacity: Rows, live: list[dict[str, Any]], name: str) -> str:
    parts = []
    for kind, lack in missing.items():
        holders = [
            f"{entry['Name']} {rows_of(entry['ComputeQuotaConfig'])[kind]}"
            for entry in live
            if entry["Name"] != name and rows_of(entry.get("ComputeQuotaConfig", {}))[kind]
        ]
        parts.append(
            f"{kind}: {lack} instance(s) too few; the cluster has {capacity[kind]}, others hold {used[kind]} "
            f"({', '.join(holders) or 'changes under way'})"
        )
    return (
        f"There is no room for quota {name!r} and no known change will make some. {'; '.join(parts)}. What to do: "
        "shrink one of these quotas first, or add instances. Pulumi deletes only after it has updated: a quota that "
        "is to go must go in a `pulumi up` of its own, before the others grow."
    )
