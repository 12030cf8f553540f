"""The affected teams and the cost of each risk: teams by quota, money by the price table."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from hpkit.changes import GUARDED_TYPES
from hpkit.changes.plan_diff import PlanDiff
from hpkit.changes.review.cost import group_cost, pool_cost, total
from hpkit.changes.review.model import MoneyChange, Risk
from hpkit.plan.model import Plan

__all__ = ["GRAVITY", "most_severe_risks_first", "with_effects"]

_OF_ALL: Final = {f"{action}-{key}" for action in ("replace", "delete") for key in GUARDED_TYPES.values()} | {
    "account-changed", "region-changed", "addon-removed", "configuration", "dependency-removed", "governance-removed",
    "nat-gateway-removed", "node-recovery", "shared-pool", "policy", "priority-order", "priority-class-removed",
    "gang-scheduling", "addon-migration", "addon-version", "tiered-storage", "egress-changed", "stack-removed",
    "stack-renamed", "version",
}  # fmt: skip
_OF_TEAM: Final = {"team-removed", "team-renamed", "preemption", "sharing"}
_OF_POOL: Final = {"node-pool-removed", "node-pool-renamed", "node-pool-settings", "limit-raised", "limit-lowered"}
_OF_TYPE: Final = {"type-removed", "limit-below-elastic", "borrowing"}
# Permanent losses first, then running work, then permissions; what might be lost later is last.
GRAVITY: Final = (
    "account-changed", "region-changed",
    *(f"{action}-{key}" for key in GUARDED_TYPES.values() for action in ("delete", "replace")),
    "stack-removed", "stack-renamed", "governance-removed", "group-removed", "group-renamed", "team-removed",
    "team-renamed", "type-removed", "node-pool-removed", "node-pool-renamed", "nodes-removed", "karpenter-off",
    "karpenter-group-removed", "karpenter-group-added",
    "addon-removed", "dependency-removed", "node-recovery", "nat-gateway-removed", "repository-removed",
    "immutable", "version", "addon-migration",
    "limit-raised", "limit-lowered", "limit-below-elastic", "unprotected", "stack-file",
    "boundary", "root-squash", "user-ids", "access-removed", "image-access-reduced", "egress-changed", "spaces",
    "endpoint", "administrators", "viewers", "alerts", "guarantee-lowered", "borrowing", "shared-pool", "sharing",
    "policy", "gang-scheduling", "policy-settings", "priority-class-removed", "priority-order",
    "preemption", "weights", "group-settings", "node-pool-settings", "tiered-storage", "addon-version",
    "configuration", "resources-removed", "tags", "settings", "waiver", "allowance",
    "nodes-added",
)  # fmt: skip


def most_severe_risks_first(risks: Iterable[Risk]) -> tuple[Risk, ...]:
    """Return blocking risks first, and for each verdict, the greatest losses first."""
    return tuple(
        sorted(
            risks,
            key=lambda risk: (
                risk.verdict != "blocked",
                GRAVITY.index(risk.code),
                -abs(risk.monthly_cost.change) if risk.monthly_cost else Decimal(0),
            ),
        )
    )


def with_effects(risks: Sequence[Risk], diff: PlanDiff) -> tuple[Risk, ...]:
    """Return the risks with affected teams and the change of cost, as far as known."""
    return tuple(
        replace(each, teams=each.teams or _teams(each, diff), monthly_cost=each.monthly_cost or _money(each, diff))
        for each in risks
    )


def _teams(risk: Risk, diff: PlanDiff) -> tuple[str, ...]:
    plan = diff.before or diff.after
    if plan is None:
        return ()
    if risk.code in _OF_ALL:
        return tuple(team.name for team in plan.teams)
    if risk.code in _OF_TEAM:
        return (risk.subject,)
    if risk.code == "repository-removed":
        return (risk.subject.partition("/")[0],)
    types = _types(risk, plan) or (_types(risk, diff.after) if diff.after is not None else set())
    return tuple(team.name for team in plan.teams if types & {each.instance_type for each in team.quota_resources})


def _types(risk: Risk, plan: Plan) -> set[str]:
    """Return the instance types that a risk is about."""
    if risk.code in _OF_TYPE:
        return {risk.subject}
    if risk.code in _OF_POOL:
        return {kind for pool in plan.node_pools if pool.spec.name == risk.subject for kind in pool.instance_types}
    return {kind for group in plan.groups if group.spec.name == risk.subject for kind in group.spec.types}


def _money(risk: Risk, diff: PlanDiff) -> MoneyChange | None:
    before, after = diff.before, diff.after
    if before is None or after is None:
        return None
    if risk.code in ("group-removed", "nodes-removed", "nodes-added"):
        return _of_group(risk.subject, before, after)
    if risk.code == "node-pool-removed":
        pools = [pool_cost(pool, before) for pool in before.node_pools if pool.spec.name == risk.subject]
        known = pools and pools[0].complete and pools[0].known
        return MoneyChange(-pools[0].known, "maximum", bool(pools[0].prices_of)) if known else None
    return None


def _of_group(name: str, before: Plan, after: Plan) -> MoneyChange | None:
    old, new = (
        total(group_cost(group, plan.spec.region) for group in plan.own_groups if group.spec.name == name)
        for plan in (before, after)
    )
    if not (old.complete and new.complete) or old.known == new.known:
        return None
    return MoneyChange(new.known - old.known, "guaranteed", bool(old.prices_of or new.prices_of))
