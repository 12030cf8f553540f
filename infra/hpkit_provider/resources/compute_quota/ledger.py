"""The ledger of a cluster's quotas: some decrease before others increase, so that what is reserved always fits.

Pulumi names a quota to the plugin when it diffs it, but never how many will follow. So no decision can be final for all
quotas. What holds whenever a quota is declared:

- Whole instances of types that a cluster has in fixed numbers are counted. An increase waits until the live quotas and
  those under way leave capacity for it. Reserved instances never exceed the capacity, however late a decrease is
  declared.
- For other amounts (managed Karpenter, fractions of an instance), no number is known. An increase waits for every
  decrease of its type that is declared before it starts. It waits at most _DECLARING_SECONDS after the quota declared
  before it. A decrease declared later doesn't delay the increase: the sum is larger until that decrease is done, if the
  service allows it.
- A quota of a team that leaves is never declared, and the engine deletes it last. An increase that needs its capacity
  empties it first.
- A preview only warns. A quota declared after the warning may make it wrong, and fails nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.aws.statuses import classify_status
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import CancelledError, PluginError, TimedOutError
from hpkit_provider.engine.single_flight import Answer, SingleFlight
from hpkit_provider.resources.compute_quota.amounts import (
    Amounts,
    decreased,
    increased,
    maximum,
    reserved_amounts,
    total,
)
from hpkit_provider.resources.compute_quota.pending_decreases import PendingDecrease, PendingDecreases
from hpkit_provider.resources.compute_quota.snapshot import (
    QuotaSnapshot,
    capacity_timeout,
    decrease_failed,
    missing_instances,
    preview_warning,
    types_without_limit,
)

__all__ = ["QuotaLedger"]

_MAX_POLL_SECONDS: Final = 3.0
_CAPACITY_MAX_AGE: Final = 10.0
_PAGE_SIZE: Final = 100
_DECLARING_SECONDS: Final = 2.0  # after the last quota that the engine named, until all count as named
_PATIENCE_WITH_PENDING: Final = 15  # times as long as without a decrease that is announced

QuotaList = Answer[list[dict[str, Any]]]


@dataclass
class _Reservation:
    amounts: Amounts
    finished: float | None = None


@dataclass
class _ClusterQuotas:
    """The known state of one cluster's quotas."""

    listed: SingleFlight[list[dict[str, Any]]] = field(default_factory=SingleFlight)
    described: SingleFlight[dict[str, Any]] = field(default_factory=SingleFlight)
    lock: threading.Lock = field(default_factory=threading.Lock)
    reservations: dict[str, _Reservation] = field(default_factory=dict)
    pending: PendingDecreases = field(default_factory=PendingDecreases)
    declared: dict[str, Amounts] = field(default_factory=dict)
    last_declared: float = field(default_factory=time.monotonic)
    resized: bool = False
    leaving: set[str] = field(default_factory=set)

    def declare(self, name: str, amounts: Amounts) -> None:
        """Record the program's values, and when the engine last named a quota."""
        self.declared[name] = amounts
        self.last_declared = time.monotonic()

    @property
    def declaring(self) -> bool:
        """Return whether the engine is still naming quotas.

        More decreases might be announced, others might have started.
        """
        return time.monotonic() < self.last_declared + _DECLARING_SECONDS


@dataclass(frozen=True)
class _Shortage:
    """Why a quota cannot increase yet."""

    missing: Amounts
    used: Amounts
    instance_types: Set[str]
    snapshot: QuotaSnapshot
    changing: bool  # something is under way that may end the shortage


class QuotaLedger:
    """The changes of quotas that this process is about to make, on top of the live state."""

    def __init__(
        self, api: SageMakerApi, *, patience: float = 20.0, leaving_teams: frozenset[str] = frozenset()
    ) -> None:
        self._api = api
        self._patience = patience
        self._leaving_teams = leaving_teams
        self._lock = threading.Lock()
        self._clusters: dict[str, _ClusterQuotas] = {}

    def _cluster(self, arn: str) -> _ClusterQuotas:
        with self._lock:
            return self._clusters.setdefault(arn, _ClusterQuotas())

    def quotas(self, task: EngineCall, arn: str, *, age: float = 0.0) -> QuotaList:
        """Return the quotas of a cluster, at most `age` seconds old; one list serves all callers."""

        def fetch() -> list[dict[str, Any]]:
            pages = self._api.pages(
                task,
                "list_compute_quotas",
                member="ComputeQuotaSummaries",
                ClusterArn=arn,
                SortBy="CreationTime",
                SortOrder="Ascending",
                MaxResults=_PAGE_SIZE,
            )
            return [entry for entry in pages if entry["Status"] != "Deleted"]

        return self._cluster(arn).listed.get(fetch, not_before=time.monotonic() - age)

    def mark_resized(self, arn: str) -> None:
        """Record, at diff time, that the cluster's own counts will change: live counts then limit nothing."""
        self._cluster(arn).resized = True

    def preview_warning(self, task: EngineCall, arn: str, name: str, *, old: Amounts, new: Amounts) -> str | None:
        """Return, at preview, why an increase will find no capacity; None if it will, or if that isn't known.

        Waits a moment for the other quotas of the program, which the engine names in parallel. A live quota that isn't
        named by then will be deleted by this run, or belongs to another program. Its capacity isn't free in time,
        unless its team is known to be removed.
        """
        cluster = self._cluster(arn)
        cluster.declare(name, new)
        if not increased(old, new):
            return None
        capacity = self._capacity(task, arn)
        until = time.monotonic() + _DECLARING_SECONDS
        while True:
            quotas = self.quotas(task, arn, age=_DECLARING_SECONDS)
            leaving = {entry["Name"] for entry in self._leaving(cluster, quotas)}
            live = {key: amounts for key, amounts in _live_amounts(quotas).items() if key not in leaving}
            warning = preview_warning(QuotaSnapshot(live, dict(cluster.declared), capacity), name, old=old, new=new)
            if warning is None or cluster.resized:
                return None
            if time.monotonic() >= until:
                return warning
            task.pause(_DECLARING_SECONDS / 10)

    def declare(self, arn: str, name: str, *, new: Amounts) -> None:
        """Record, at diff time, the program's values."""
        self._cluster(arn).declare(name, new)

    def announce(
        self, arn: str, name: str, *, old: Amounts, new: Amounts, quota_arn: str, apply: Callable[[EngineCall], object]
    ) -> None:
        """Record, at diff time, whether a quota will decrease; `apply` decreases it for one that waits for it."""
        pending = self._cluster(arn).pending
        types = frozenset(measure.instance_type for measure in decreased(old, new))
        if types:
            pending.announce(PendingDecrease(name, types, quota_arn, apply))
        else:
            pending.complete(name)

    @contextmanager
    def updating(self, arn: str, name: str) -> Iterator[None]:
        """Notify those that wait for this quota's decrease that its own step is running, and how it ended."""
        pending = self._cluster(arn).pending
        pending.start(name)
        try:
            yield
        except PluginError as error:
            pending.fail(name, str(error).partition("\n")[0])
            raise
        pending.complete(name)

    def deleted(self, quota_arn: str) -> None:
        """Record that a quota is deleted, so that nothing waits for its decrease any more."""
        with self._lock:
            clusters = list(self._clusters.values())
        for cluster in clusters:
            cluster.pending.deleted(quota_arn)

    @contextmanager
    def reserve(
        self,
        task: EngineCall,
        arn: str,
        name: str,
        *,
        old: Amounts,
        new: Amounts,
        empty: Callable[[EngineCall, str], object],
    ) -> Iterator[None]:
        """Reserve capacity for a change from `old` to `new` while it runs; an increase waits until there is enough.

        `empty` empties the quota with an ARN: that of a removed team.
        """
        cluster = self._cluster(arn)
        if name not in cluster.declared:
            cluster.declare(name, new)
        if increased(old, new):
            # What it frees is free by now; two waiting ones must not wait for each other.
            cluster.pending.complete(name)
            self._announce_leaving(task, arn, empty)
            reservation = self._await_capacity(task, arn, name, old=old, new=new)
        else:
            reservation = _Reservation(maximum(old, new))
            with cluster.lock:
                cluster.reservations[name] = reservation
        try:
            yield
        finally:
            with cluster.lock:
                reservation.finished = time.monotonic()
        cluster.pending.complete(name)

    def _leaving(self, cluster: _ClusterQuotas, quotas: QuotaList) -> list[dict[str, Any]]:
        """Return the live quotas of teams that leave."""
        return [
            entry
            for entry in quotas.value
            if entry["ComputeQuotaTarget"]["TeamName"] in self._leaving_teams and entry["Name"] not in cluster.declared
        ]

    def _announce_leaving(self, task: EngineCall, arn: str, empty: Callable[[EngineCall, str], object]) -> None:
        """Announce, once, decreases that the engine never announces: quotas of removed teams decrease to nothing."""
        cluster = self._cluster(arn)
        if not self._leaving_teams:
            return
        for entry in self._leaving(cluster, self.quotas(task, arn, age=_DECLARING_SECONDS)):
            name, quota_arn = entry["Name"], entry["ComputeQuotaArn"]
            with cluster.lock:
                known = quota_arn in cluster.leaving
                cluster.leaving.add(quota_arn)
            if not known:
                amounts = reserved_amounts(entry.get("ComputeQuotaConfig", {}))
                apply = partial(_empty_quota, cluster, name, quota_arn, empty)
                self.announce(arn, name, old=amounts, new={}, quota_arn=quota_arn, apply=apply)

    def _await_capacity(self, task: EngineCall, arn: str, name: str, *, old: Amounts, new: Amounts) -> _Reservation:
        cluster = self._cluster(arn)
        started, waited, last = time.monotonic(), 0.0, None
        for delay in task.delays(0.1, _MAX_POLL_SECONDS):
            capacity = self._capacity(task, arn)
            quotas = self.quotas(task, arn, age=max(0.0, time.monotonic() - started) if last is None else 0.0)
            attempt = _try_reserve(cluster, quotas, name, old=old, new=new, capacity=capacity)
            if isinstance(attempt, _Reservation):
                return attempt
            decrease = None if cluster.declaring else cluster.pending.claim(attempt.instance_types)
            if decrease is not None:
                self._apply(task, cluster, decrease)
                continue
            if attempt.changing or attempt.used != last:
                waited, last = 0.0, attempt.used
            self._check_patience(cluster, attempt, name, waited=waited)
            task.progress(_progress(cluster, attempt))
            task.pause(delay)
            waited += delay
        raise AssertionError  # pragma: no cover - delays never end

    @staticmethod
    def _apply(task: EngineCall, cluster: _ClusterQuotas, decrease: PendingDecrease) -> None:
        """Decrease another quota before its regular step; if that fails, the regular step may still do it."""
        task.progress(f"waiting for capacity: shrinking {decrease.name} first")
        try:
            decrease.apply(task)
        except CancelledError:
            raise
        except PluginError:
            return
        cluster.pending.complete(decrease.name)

    def _check_patience(self, cluster: _ClusterQuotas, shortage: _Shortage, name: str, *, waited: float) -> None:
        """Stop if no capacity can be expected any more."""
        first = cluster.pending.of_types(shortage.instance_types)
        hopeless = bool(first) and not shortage.missing and all(decrease.failure for decrease in first)
        expected = any(not decrease.failure for decrease in first)
        if not hopeless and waited <= self._patience * (_PATIENCE_WITH_PENDING if expected else 1):
            return
        if shortage.missing:
            raise TimedOutError(capacity_timeout(shortage.missing, shortage.used, shortage.snapshot, name))
        raise TimedOutError(decrease_failed({decrease.name: decrease.failure for decrease in first}, name))

    def _capacity(self, task: EngineCall, arn: str) -> dict[str, int]:
        """Instances by type, of the types whose number is fixed."""

        def fetch() -> dict[str, Any]:
            return self._api.find(task, "describe_cluster", ClusterName=arn) or {}

        cluster = self._cluster(arn).described.get(fetch, not_before=time.monotonic() - _CAPACITY_MAX_AGE).value
        if cluster.get("AutoScaling", {}).get("Mode") == "Enable":
            return {}
        groups = cluster.get("InstanceGroups", [])
        flexible = {
            each for group in groups for each in group.get("InstanceRequirements", {}).get("DesiredInstanceTypes", [])
        }
        capacity: dict[str, int] = {}
        for group in groups:
            instance_type = group.get("InstanceType")
            if instance_type and instance_type not in flexible:
                capacity[instance_type] = capacity.get(instance_type, 0) + group["TargetCount"]
        return capacity


def _empty_quota(
    cluster: _ClusterQuotas, name: str, quota_arn: str, empty: Callable[[EngineCall, str], object], task: EngineCall
) -> None:
    """Empty a quota; no other step does, so a failure is final."""
    try:
        empty(task, quota_arn)
    except PluginError as error:
        cluster.pending.fail(name, str(error).partition("\n")[0])
        raise


def _try_reserve(
    cluster: _ClusterQuotas, quotas: QuotaList, name: str, *, old: Amounts, new: Amounts, capacity: dict[str, int]
) -> _Reservation | _Shortage:
    """Reserve the capacity if it's free; otherwise return what it waits for."""
    with cluster.lock:
        used = _used_by_others(cluster, quotas, name)
        missing = missing_instances(used, new, old=old, capacity=capacity)
        unlimited = types_without_limit(used, new, old=old, capacity=capacity)
        unannounced = _may_be_announced(cluster, quotas) if unlimited else False
        if not missing and not unannounced and not cluster.pending.of_types(unlimited):
            cluster.reservations[name] = _Reservation(maximum(old, new))
            return cluster.reservations[name]
        changing = unannounced or any(each.finished is None for each in cluster.reservations.values())
    return _Shortage(
        missing,
        used,
        {measure.instance_type for measure in missing} | unlimited,
        QuotaSnapshot(_live_amounts(quotas), dict(cluster.declared), capacity),
        changing or any(classify_status(entry["Status"]) == "modifying" for entry in quotas.value),
    )


def _may_be_announced(cluster: _ClusterQuotas, quotas: QuotaList) -> bool:
    """Return whether the decrease of a live quota might still be announced."""
    return cluster.declaring and any(entry["Name"] not in cluster.declared for entry in quotas.value)


def _live_amounts(quotas: QuotaList) -> dict[str, Amounts]:
    return {entry["Name"]: reserved_amounts(entry.get("ComputeQuotaConfig", {})) for entry in quotas.value}


def _used_by_others(cluster: _ClusterQuotas, quotas: QuotaList, name: str) -> Amounts:
    """Count what other quotas hold, with running changes at their larger end."""
    live = _live_amounts(quotas)
    for key, reservation in list(cluster.reservations.items()):
        if reservation.finished is not None and reservation.finished < quotas.started:
            del cluster.reservations[key]
        else:
            live[key] = maximum(live.get(key, {}), reservation.amounts)
    live.pop(name, None)
    return total(live.values())


def _progress(cluster: _ClusterQuotas, shortage: _Shortage) -> str:
    missing = [f"{number:g} × {measure}" for measure, number in shortage.missing.items()]
    first = [f"{decrease.name} to shrink" for decrease in cluster.pending.of_types(shortage.instance_types)]
    return "waiting for capacity: " + ", ".join([*missing, *first[:3]])
