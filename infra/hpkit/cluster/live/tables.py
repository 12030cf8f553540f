"""The tables of a platform's state: rows of text, the first one with their headers."""

from collections.abc import Iterable
from decimal import Decimal

from hpkit.cluster.live.model import NodePool
from hpkit.cluster.live.status import Status
from hpkit.cluster.live.waiting import counted, sized
from hpkit.text.formatting import amount

__all__ = ["groups_table", "limit_words", "nodes_table", "teams_table", "topology_table"]

Rows = list[tuple[str, ...]]
# More nodes are only listed if they don't take pods.
_NODES = 20


def groups_table(status: Status) -> Rows:
    """Return a row for each instance group: type, target, and instances that run or are in another state."""
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
    return [("instance group", "type", "target", "running", "others"), *rows]


def limit_words(pool: NodePool) -> Iterable[str]:
    """Yield how much of each limit of a NodePool is used."""
    for name, limit in pool.limits.items():
        # Karpenter reports at least `nodes` in status.resources; a status without any is unknown.
        used = f"{sized(pool.used.get(name, Decimal(0)), name)} of" if pool.used else "at most"
        yield f"{used} {counted(limit, name)}"


def teams_table(status: Status) -> Rows:
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
    return [("team", "counted in", "quota", "used", "borrowed", "lent", "runs", "waits"), *rows]


def nodes_table(status: Status) -> tuple[Rows, int]:
    """Return the nodes, and the number of available nodes that the table omits."""
    nodes = [node for node in status.nodes if len(status.nodes) <= _NODES or not node.is_available]
    rows = [(node.name, node.group, node.state_words, node.use_words, ", ".join(sorted(node.tasks))) for node in nodes]
    return [("node", "group", "state", "used", "tasks"), *rows], len(status.nodes) - len(nodes)


def topology_table(status: Status) -> Rows:
    """Return all nodes by network layer, the widest first."""
    rows = [
        (*(*node.layers, "", "", "")[:3], node.name, node.zone, node.use_words, ", ".join(sorted(node.tasks)))
        for node in sorted(status.nodes, key=lambda node: (not node.layers, node.layers, node.name))
    ]
    return [("layer 1", "layer 2", "layer 3", "node", "zone", "used", "tasks"), *rows]
