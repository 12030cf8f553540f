"""The tables of a platform's state, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hpkit.cluster.live.model import NodePool
from hpkit.cluster.live.status import Status
from hpkit.cluster.live.waiting import counted, sized
from hpkit.text.formatting import amount

__all__ = ["Section", "groups_section", "limit_words", "node_rows", "pools_section", "teams_section"]

# More nodes are only listed if they don't take pods.
_NODES = 20


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: lines, then a drawing (SVG), then a table with its header.

    numbers: which columns are figures. grave: whether it requires action.
    """

    title: str
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: frozenset[int] = frozenset()
    drawing: str = ""
    grave: bool = False


def groups_section(status: Status) -> Section:
    """Return the instance groups."""
    rows = [
        (
            group_status.group.name,
            ", ".join(group_status.group.instance_types),
            str(group_status.group.target),
            "?" if group_status.running is None else str(group_status.running),
            ", ".join(f"{count} {name}" for name, count in group_status.others.items()),
        )
        for group_status in status.groups
    ]
    head = ("instance group", "type", "target", "running", "others")
    return Section("Instance groups", head=head, rows=rows, numbers=frozenset({2, 3}))


def pools_section(status: Status) -> Section:
    """Return the NodePools of Karpenter."""
    rows = [
        (pool.name, "" if pool.ready else f"not ready: {pool.message}", ", ".join(limit_words(pool)))
        for pool in status.pools
    ]
    return Section("Karpenter", head=("NodePool", "state", "used of its limits"), rows=rows)


def limit_words(pool: NodePool) -> Iterable[str]:
    """Yield how much of each limit of a NodePool is used."""
    for name, limit in pool.limits.items():
        yield f"{sized(pool.used.get(name, Decimal(0)), name)} of {counted(limit, name)}"


def teams_section(status: Status) -> Section:
    """Return quota and usage by team and instance type."""
    rows = [
        (
            team.team if share is team.shares[0] else "",
            f"{share.flavor} {share.resource.rpartition('/')[2]}",
            amount(share.quota),
            amount(share.used),
            share.borrowed_words,
            share.lent_words,
            team.runs_words if share is team.shares[0] else "",
            team.waits_words if share is team.shares[0] else "",
        )
        for team in status.teams
        for share in team.shares
    ]
    head = ("team", "resource", "quota", "used", "borrowed", "lent", "runs", "waits")
    return Section("Teams", head=head, rows=rows, numbers=frozenset({2, 3, 6, 7}))


def node_rows(status: Status) -> tuple[list[tuple[str, ...]], int]:
    """Return the table of nodes with its header, and the number of available nodes that it omits."""
    nodes = [node for node in status.nodes if len(status.nodes) <= _NODES or not node.is_available]
    rows = [
        (
            node.name,
            node.group,
            node.state_words,
            node.use_words,
            ", ".join(sorted(node.tasks)),
        )
        for node in nodes
    ]
    return [("node", "group", "state", "used", "tasks"), *rows], len(status.nodes) - len(nodes)
