"""The review as JSON: the contract that docs/guides/review.md describes."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from hpkit.changes import Step
from hpkit.changes.plan_diff import CapacityChange, Change, PlanDiff, ShareChange, TeamChange
from hpkit.changes.review.cost import quota_cost
from hpkit.changes.review.formatting import cost_change
from hpkit.changes.review.model import (
    BudgetChange,
    Cost,
    FindingChanges,
    Loss,
    MoneyChange,
    Preview,
    Review,
    ScenarioChange,
    StackReview,
)
from hpkit.changes.review.tables import concerned_teams, nodes_lost
from hpkit.text.formatting import json_number, json_text

__all__ = ["VERSION", "as_dict", "as_json"]

VERSION = 1
T = TypeVar("T")


def as_json(review: Review) -> str:
    """Return the review as JSON text."""
    return json_text(as_dict(review))


def as_dict(review: Review) -> dict[str, Any]:
    """Return the review as plain values."""
    return {
        "version": VERSION,
        "base": {"ref": review.base, "commit": review.commit},
        "verdict": review.verdict,
        "reasons": list(review.reasons),
        "notes": list(review.notes),
        "summary": [_summary(each) for each in review.stacks],
        "files": [{"file": each.file, "findings": _findings(each.findings)} for each in review.files],
        "stacks": [_stack(each) for each in review.stacks],
    }


def _summary(stack: StackReview) -> dict[str, Any]:
    return {
        "stack": stack.stack,
        "verdict": stack.verdict,
        "nodesLost": nodes_lost(stack),
        "resourcesLost": len(stack.change.lost) if stack.change else 0,
        "teamsConcerned": concerned_teams(stack),
        "guaranteedCost": cost_change(stack.guaranteed_cost),
        "maximumCost": cost_change(stack.maximum_cost),
    }


def _stack(stack: StackReview) -> dict[str, Any]:
    diff = stack.diff
    return {
        "stack": stack.stack,
        "file": stack.file,
        "why": stack.why,
        "status": stack.status,
        "verdict": stack.verdict,
        "reasons": list(stack.reasons),
        "note": stack.note,
        "findings": _findings(stack.findings),
        "watch": [
            {
                "code": each.code,
                "verdict": each.verdict,
                "subject": each.subject,
                "message": each.message,
                "teams": list(each.teams),
                "monthlyCost": None if each.money is None else _money(each.money),
            }
            for each in stack.risks
        ],
        "losses": [_loss(each) for each in stack.losses],
        "cost": {
            "currency": "USD",
            "per": "month",
            "guaranteed": _costs(stack.guaranteed_cost),
            "maximum": _costs(stack.maximum_cost),
        },
        "budgets": [_budget(each) for each in stack.budgets],
        "capacity": [_capacity(each) for each in diff.capacity] if diff else [],
        "teams": [_team(diff, each) for each in diff.teams if each.changed] if diff else [],
        "unchangedTeams": sum(not each.changed for each in diff.teams) if diff else 0,
        "policy": {key: _change(each) for key, each in diff.policy.items()} if diff else {},
        "priorityClasses": {key: _change(each) for key, each in diff.priority_classes.items()} if diff else {},
        "changes": [_step(each) for each in stack.change.steps if each.custom] if stack.change else [],
        "preview": _preview(stack.preview),
        "scenario": _scenario(stack.scenario),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "action": step.action,
        "type": step.type,
        "name": step.name,
        "urn": step.urn,
        "retained": step.retained,
        "causes": [
            {"path": each.path, "place": each.place, "replaces": each.replaces, "because": list(each.because)}
            for each in step.causes
        ],
    }


def _findings(changes: FindingChanges) -> dict[str, Any]:
    return {
        "new": [each.as_dict() for each in changes.new],
        "fixed": [each.as_dict() for each in changes.fixed],
        "remaining": [each.as_dict() for each in changes.remaining],
        "waived": [each.as_dict() for each in changes.waived],
    }


def _change(change: Change[T], write: Callable[[T], Any] = lambda value: value) -> dict[str, Any]:
    return {
        "before": None if change.before is None else write(change.before),
        "after": None if change.after is None else write(change.after),
    }


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "team": loss.team,
        "what": loss.what,
        "instanceType": loss.instance_type or None,
        "before": None if loss.before is None else json_number(loss.before),
        "after": json_number(loss.after),
        "names": list(loss.names),
    }


def _money(money: MoneyChange) -> dict[str, Any]:
    return {"of": money.of, "change": str(money.change), "about": money.about}


def _costs(change: Change[Cost]) -> dict[str, Any]:
    return {**_change(change, _cost), "change": cost_change(change)}


def _cost(cost: Cost) -> dict[str, Any]:
    """Write money as text, since a JSON number would round it."""
    return {
        "known": str(cost.known.quantize(Decimal("0.01"))),
        "complete": cost.complete,
        "unknown": list(cost.unknown),
        "unbounded": list(cost.unbounded),
        "pricesOf": list(cost.about),
    }


def _budget(change: BudgetChange) -> dict[str, Any]:
    budget = change.budget
    return {
        "kind": budget.kind,
        "name": budget.name,
        "teams": sorted(budget.teams),
        "givenUsd": _change(change.given, lambda given: round(given.monthly)),
        "quotaUsd": _change(change.cost, lambda spent: round(spent.dollars)),
        "unknown": _change(change.cost, lambda spent: list(spent.unknown)),
        "pricesOf": _change(change.cost, lambda spent: list(spent.about)),
    }


def _capacity(change: CapacityChange) -> dict[str, Any]:
    return {
        "instanceType": change.instance_type,
        "present": _change(change.present),
        "guaranteed": _change(change.guaranteed),
        # null on a side where the type is present: no NodePool limit bounds it.
        "maximum": _change(change.maximum),
        "unreserved": _change(change.unreserved, json_number),
        "quota": _change(change.quota, json_number),
    }


def _team(diff: PlanDiff, team: TeamChange) -> dict[str, Any]:
    return {
        "team": team.name,
        "present": _change(team.present),
        "edited": team.edited,
        "fairShareWeight": _change(team.weight),
        "strategy": _change(team.strategy),
        "borrowLimitPercent": _change(team.borrow_limit),
        "preemptTeamTasks": _change(team.preempt),
        "membersAdded": list(team.members_added),
        "membersRemoved": list(team.members_removed),
        "shares": [_share(diff, each) for each in team.shares],
    }


def _share(diff: PlanDiff, share: ShareChange) -> dict[str, Any]:
    money, is_about = quota_cost(diff, share)
    return {
        "instanceType": share.instance_type,
        "guarantee": _change(share.guarantee, json_number),
        "elastic": _change(share.elastic, json_number),
        "borrowable": _change(share.borrowable, json_number),
        "lendable": _change(share.lendable, json_number),
        # null: nothing is reserved on that side, or the catalog has no price of the type near it.
        "monthlyUsd": _change(money),
        "monthlyUsdIsAbout": is_about,
    }


def _scenario(scenario: ScenarioChange | None) -> dict[str, Any] | None:
    if scenario is None:
        return None
    return {
        "file": scenario.scenario,
        "note": scenario.note,
        "utilization": _change(scenario.utilization),
        "waitedInstanceHours": _change(scenario.waited),
        "preemptions": _change(scenario.preemptions),
        "teams": [
            {
                "team": each.name,
                "service": _change(each.service),
                "waitMedian": _change(each.wait_median),
                "waitP95": _change(each.wait_p95),
                "preempted": _change(each.preempted),
                "never": _change(each.never),
            }
            for each in scenario.teams
        ],
    }


def _preview(preview: Preview | None) -> dict[str, Any] | None:
    if preview is None:
        return None
    return {
        "problems": list(preview.problems),
        "unchanged": preview.unchanged,
        "steps": [
            {
                "action": each.action,
                "type": each.type,
                "name": each.name,
                "urn": each.urn,
                "properties": list(each.properties),
            }
            for each in preview.steps
        ],
    }
