"""Empty nodes that Karpenter removes now: consolidation of a NodePool, within its budgets.

With policy WhenEmptyOrUnderutilized, pods aren't moved from half-used nodes, unlike on AWS. Nodes don't expire.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hpkit.text.formatting import seconds_in

__all__ = ["Claimed", "surplus"]


@dataclass(frozen=True)
class Claimed:
    """A node of a node pool: whether pods are on it that are not daemons', and since when that is so."""

    name: str
    empty: bool
    since: datetime
    going: bool = False


def surplus(pool: Mapping[str, Any], nodes: Sequence[Claimed], *, now: datetime, factor: float) -> list[str]:
    """Return the names of nodes to delete; `factor` shortens the pool's waiting time.

    Budgets without a schedule count, the strictest of them; a share of nodes is rounded up, as Karpenter does.
    """
    disruption = pool["spec"].get("disruption") or {}
    after = disruption.get("consolidateAfter", "0s")
    if after == "Never":
        return []
    idle = [each for each in nodes if each.empty and not each.going]
    ripe = [each for each in idle if (now - each.since).total_seconds() >= seconds_in(after) * factor]
    return [each.name for each in sorted(ripe, key=lambda each: (each.since, each.name))][: _allowed(disruption, nodes)]


def _allowed(disruption: Mapping[str, Any], nodes: Sequence[Claimed]) -> int:
    budgets = [
        budget["nodes"]
        for budget in disruption.get("budgets") or [{"nodes": "10%"}]
        if "schedule" not in budget and "Empty" in budget.get("reasons", ["Empty"])
    ]
    most = [
        math.ceil(len(nodes) * int(budget.removesuffix("%")) / 100) if budget.endswith("%") else int(budget)
        for budget in budgets
    ]
    return max(0, min(most, default=len(nodes)) - sum(each.going for each in nodes))
