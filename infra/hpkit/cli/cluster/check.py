"""`hpkit cluster check`: small pods and jobs test a running cluster, and are deleted afterward."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from pydantic import Field

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.live import kubernetes_api, platform_options, rights
from hpkit.cli.common.tables import columns
from hpkit.text.document import Document
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from hpkit.cluster.check.run import Result

__all__ = ["ClusterCheck", "command"]


class _Check(Document):
    name: str
    status: str = Field(description="ok, failed or skipped.")
    seconds: float
    detail: str
    simulated: str | None = Field(description="The parts that the local cloud doesn't test.")


class ClusterCheck(Document):
    """The results of `hpkit cluster check`."""

    items: list[_Check]


@click.command("check", epilog=rights("cluster check"))
@platform_options
@click.option(
    "--image", metavar="IMAGE", help="Image of all pods, with PyTorch for the all-reduce. Default: BusyBox, without it."
)
@click.option(
    "--timeout",
    type=click.IntRange(10),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Time limit per check.",
)
@output_options("text", "json", documents=("hpkit.cli.cluster.check:ClusterCheck",))
def command(stack: str | None, profile: str | None, image: str | None, timeout: int) -> Output:
    """Check a running cluster with small pods and jobs, and delete them.

    In each instance group, a pod must get all GPUs and EFA devices of a node, pull its image, and resolve names. For
    each team, a job must run through the team's queue and write to the team's FSx volume. In each group with EFA, NCCL
    runs an all-reduce on two nodes, with --image.

    Exits 1 if a check fails, or if no node of a group has all its devices free. Pods of groups use no quota. On the
    local cloud, containers are simulated, and each result names what isn't tested.
    """
    from hpkit.cli.common.aws_session import aws_session
    from hpkit.cluster.check.probes import probes_of
    from hpkit.cluster.check.run import cleared, run
    from hpkit.cluster.live.parse import node_of
    from hpkit.cluster.live.read import find
    from hpkit.plan.lustre import shell_image
    from hpkit.project import is_local

    plan = choose_stack(stack)
    session = aws_session(profile, plan.spec.region)
    eks = find(session, plan.spec.cluster.name).eks
    simulated = is_local(os.environ)
    needs = "create and delete namespaces, pods and jobs, such as one in eks.administrators"
    with _interruptible(), kubernetes_api(session, eks, needs=needs) as api:
        nodes = [node_of(document) for document in api.pages("/api/v1/nodes")]
        first, last = probes_of(plan, nodes, image=image or shell_image(plan.spec), torch_image=image)
        results: list[Result] = []
        with cleared(api, clock=time, say=_warn) as made:
            for probes in (first, last):
                results += run(api, probes, made, seconds=timeout, clock=time, report=_progress)
    failed = sum(result.status == "failed" for result in results)
    return Output(
        bool(failed),
        text=lambda: _table(plan.stack, results, failed, simulated=simulated),
        json=lambda: json_document(ClusterCheck(items=[_row(result, simulated=simulated) for result in results])),
    )


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make SIGTERM and SIGHUP do what Ctrl-C does, so that the pods are deleted."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _warn(line: str) -> None:
    click.echo(folded(line, "    ", "  "), err=True)


def _progress(result: Result) -> None:
    _warn(f"{result.probe.name}: {result.status}")


def _row(result: Result, *, simulated: bool) -> _Check:
    is_unreal = simulated and result.status == "ok" and result.probe.unreal
    return _Check(
        name=result.probe.name,
        status=result.status,
        seconds=round(result.seconds, 1),
        detail=result.detail,
        simulated=result.probe.unreal if is_unreal else None,
    )


def _table(stack: str, results: list[Result], failed: int, *, simulated: bool) -> str:
    rows = [_row(result, simulated=simulated) for result in results]
    lines = [(row.name, row.status, f"{row.seconds:.0f} s", row.detail, row.simulated or "") for row in rows]
    head = ("check", "result", "time", "detail", "simulated, so not tested" if simulated else "")
    skipped = sum(row.status == "skipped" for row in rows)
    summary = f"{stack}: {plural(len(rows), 'check')}, {failed} failed, {skipped} skipped"
    return f"{columns([head, *lines])}\n{summary}"
