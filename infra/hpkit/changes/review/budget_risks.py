"""Risks in an organization's budgets: teams whose quota no longer counts.

It doesn't compare sums; an exceeded budget is a reason of the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpkit.changes import renamed_parts
from hpkit.changes.review.model import BudgetChange, Risk
from hpkit.plan.budgets import Budget, budget_cells
from hpkit.plan.model import Plan
from hpkit.text.formatting import listing

__all__ = ["budget_risks"]

_POLICY_FILE = "the organization's policy file"


def budget_risks(before: Plan, after: Plan, budgets: Sequence[BudgetChange]) -> Iterator[Risk]:
    """Yield each team that drops out of a budget that exists before and after, with the budget's new quota."""
    names = _Names.of(before, after, [each.given.after for each in budgets if each.given.after is not None])
    for budget in budgets:
        was, now = budget.given.before, budget.given.after
        if was is None or now is None or budget.cost.before is None or budget.cost.after is None:
            continue
        sums = [budget_cells(now, cost)[0] for cost in (budget.cost.before, budget.cost.after)]
        new_cost = f"the quota of {now.label} costs {' → '.join(sums)} US$ a month"
        for team in sorted(was.teams & names.before):
            dropped = _dropped(team, now, names)
            if dropped:
                yield Risk("budget-teams", "attention", team, f"{dropped}; {new_cost}")


@dataclass(frozen=True, slots=True)
class _Names:
    """Teams on both sides; renamed: old name → new name; counted: kind of budget → whose quota counts to one after."""

    before: frozenset[str]
    after: frozenset[str]
    renamed: Mapping[str, str]
    counted: Mapping[str, set[str]]

    @classmethod
    def of(cls, before: Plan, after: Plan, given: Sequence[Budget]) -> _Names:
        counted: dict[str, set[str]] = {}
        for each in given:
            counted.setdefault(each.kind, set()).update(each.teams)
        renamed = {old: new for new, old in renamed_parts("teams", before, after).items()}
        return cls(_names(before), _names(after), renamed, counted)


def _dropped(team: str, budget: Budget, names: _Names) -> str:
    """Return why a team's quota no longer counts toward a budget; nothing if it does, or if the budget is removed."""
    counted = names.counted[budget.kind]
    if team in names.after:
        if team in counted:
            return ""
        return (
            f"{team} no longer counts toward the budget of {budget.label}, or any other {budget.kind} budget: if it "
            f"still belongs there, add it to {_POLICY_FILE} again"
        )
    renamed = names.renamed.get(team)
    new = names.after - names.before - counted
    if not new or renamed in counted:
        return ""
    if renamed is not None:
        return (
            f"{team} is renamed to {renamed}, which doesn't count toward any {budget.kind} budget: in {_POLICY_FILE}, "
            f"in the budget of {budget.label}, replace {team} with {renamed}"
        )
    return (
        f"{team}, which counts toward the budget of {budget.label}, no longer has quota here, and the new team "
        f"{listing(sorted(new))} doesn't count toward any {budget.kind} budget: if it replaces {team}, add it to "
        f"{_POLICY_FILE}"
    )


def _names(plan: Plan) -> frozenset[str]:
    return frozenset(team.name for team in plan.teams if not team.is_shared_pool)
