"""A scenario on many plans, in processes of this machine or on a Dask cluster."""

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from hpkit.errors import HpkitError, SelectionError, ToolError
from hpkit.plan.model import Plan
from hpkit_whatif.scenario.read import Located, Source
from hpkit_whatif.simulate.report import Report
from hpkit_whatif.simulate.run import simulate_tasks

__all__ = ["Cluster", "cluster", "simulate_plans"]

_ADDRESS = re.compile(r"dask://(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(?P<port>[0-9]{1,5})/?\Z")
_CONNECT_SECONDS = 10
# Two thousand plans of a tenth of a second each are one task in fifty for a worker, and not one network trip each.
_MOST_AT_ONCE = 16
# Tasks of a scenario that a process keeps between plans: a few hundred megabytes.
_MOST_HELD = 200_000
# By their names: neither joblib's nor Dask's modules are loaded before they are needed.
_DIED = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker")
_LOST = ("FutureCancelledError", "CommClosedError")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of a Dask cluster's scheduler."""

    host: str
    port: int


def cluster(text: str) -> Cluster:
    """Return the address in `dask://HOST:PORT`. Raises SelectionError for any other format."""
    match = _ADDRESS.match(text)
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise SelectionError(
            f"`{text}` isn't a cluster: use dask://HOST:PORT, with the address of Dask's scheduler, "
            "such as dask://10.0.0.5:8786"
        )
    return Cluster(match["host"], int(match["port"]))


@dataclass(frozen=True, slots=True)
class _Bench:
    """A scenario whose tasks a process reads or draws once per seed, for all plans, if it can hold them."""

    source: Source
    seeds: tuple[int | None, ...]
    token: str


_drawn: dict[tuple[str, int | None], list[Located]] = {}


def simulate_plans(
    plans: Sequence[Plan],
    source: Source,
    *,
    seeds: Sequence[int | None] = (None,),
    workers: int | None = None,
    on: Cluster | None = None,
) -> Iterator[tuple[Report, ...]]:
    """Return, for each plan in order, one report per seed, without single tasks.

    workers: processes on this machine, by default one per core; on: a Dask cluster instead. A task that can never run
    counts as waiting, because it might run with another plan. Raises InputError for an invalid scenario, ToolError if a
    process dies or the cluster doesn't respond.
    """
    import os

    bench = _Bench(source, tuple(seeds), uuid.uuid4().hex)
    count = min(workers or os.cpu_count() or 1, len(plans))
    if on is None and count <= 1:
        try:
            yield from (_simulate(bench, plan) for plan in plans)
        finally:
            _drawn.clear()
        return
    try:
        yield from _run_local(bench, plans, count) if on is None else _run_on_cluster(bench, plans, on)
    except HpkitError:
        raise
    except Exception as error:
        name = type(error).__name__
        if name in _DIED:
            raise ToolError(
                "a process of the sweep died, perhaps because memory ran out. Run fewer at once (--workers 1, or fewer "
                "workers per node)"
            ) from None
        if name in _LOST:
            raise ToolError(
                "the connection to the Dask cluster was lost. To fix: check its scheduler, then try again"
            ) from None
        raise


def _run_local(bench: _Bench, plans: Sequence[Plan], count: int) -> Iterator[tuple[Report, ...]]:
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise ToolError("a simulation on all cores requires joblib. Install it: pip install 'hpkit[whatif]'") from None

    size = max(1, min(_MOST_AT_ONCE, len(plans) // (4 * count)))
    parts = [plans[start : start + size] for start in range(0, len(plans), size)]
    done = Parallel(n_jobs=count, backend="loky", return_as="generator", batch_size=1)(
        delayed(_simulate_all)(bench, part) for part in parts
    )
    for part in done:
        yield from part


def _run_on_cluster(bench: _Bench, plans: Sequence[Plan], on: Cluster) -> Iterator[tuple[Report, ...]]:
    # Without joblib, which would leave a cluster with one core idle and simulate here.
    with _remote(on) as client:
        known = client.scatter(bench, broadcast=True, hash=False)
        for future in [client.submit(_simulate, known, plan, pure=False) for plan in plans]:
            yield future.result()


@contextmanager
def _remote(on: Cluster) -> Iterator[Any]:
    """Return a client of a Dask cluster, whose workers need the same hpkit version."""
    try:
        from distributed import Client
    except ImportError:
        raise ToolError(
            "--on requires the package distributed, which isn't installed. Install it: pip install 'hpkit[dask]'"
        ) from None
    address = f"tcp://{on.host}:{on.port}"
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        said = str(error).splitlines()[0]
        raise ToolError(
            f"no Dask scheduler responds at {on.host}:{on.port} within {_CONNECT_SECONDS} seconds ({said}). "
            "To fix: start one (`dask scheduler`, and `dask worker HOST:PORT` on each node), and use its address"
        ) from None
    with _quiet(), client:
        _check_workers(client, on)
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's client from logging a traceback for each canceled request: one error is enough."""
    import logging

    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado.application")]
    before = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log, was in zip(logs, before, strict=True):
            log.disabled = was


def _check_workers(client: Any, on: Cluster) -> None:
    """Raise ToolError for a cluster without workers, or if a worker has another version of hpkit."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        raise ToolError(f"the Dask cluster at {on.host}:{on.port} has no workers. To fix: `dask worker HOST:PORT`")
    mine = _version()
    for worker, theirs in sorted(client.run(_version).items()):
        if theirs != mine:
            has = f"hpkit {theirs}" if theirs else "no hpkit"
            raise ToolError(
                f"the worker {worker} has {has}, and this is {mine}. To fix: install the same version there"
            )


def _version() -> str:
    """Return the version of hpkit that is installed in this process, or ""."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hpkit")
    except PackageNotFoundError:
        return ""


def _simulate_all(bench: _Bench, plans: Sequence[Plan]) -> list[tuple[Report, ...]]:
    return [_simulate(bench, plan) for plan in plans]


def _simulate(bench: _Bench, plan: Plan) -> tuple[Report, ...]:
    return tuple(simulate_tasks(plan, bench.source, _tasks(bench, seed), lenient=True, keep=0) for seed in bench.seeds)


def _tasks(bench: _Bench, seed: int | None) -> Iterable[Located]:
    """Return the tasks of a draw; tasks that don't fit in memory are read or drawn again for each plan."""
    key = (bench.token, seed)
    known = _drawn.get(key)
    if known is not None:
        return known or bench.source.tasks(seed=seed)
    for other in [each for each in _drawn if each[0] != bench.token]:
        del _drawn[other]
    coming = bench.source.tasks(seed=seed)
    held = list(islice(coming, _MOST_HELD))
    following = next(coming, None)
    _drawn[key] = held if following is None else []
    return held if following is None else chain(held, (following,), coming)
