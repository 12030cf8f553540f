"""The review as JSON: the contract that docs/guides/review.md describes."""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Literal, TypedDict, TypeVar

from hpkit.changes import Step
from hpkit.changes.plan_diff import CapacityChange, Change, PlanDiff, ShareChange, TeamChange
from hpkit.changes.review.cost import quota_cost
from hpkit.changes.review.formatting import cost_change
from hpkit.changes.review.model import (
    Cost,
    FileReview,
    FindingChanges,
    Loss,
    MoneyChange,
    Preview,
    Review,
    ScenarioChange,
    StackReview,
    Status,
    Verdict,
)
from hpkit.changes.review.tables import concerned_teams, nodes_lost
from hpkit.text.formatting import json_number

__all__ = ["ChangeReview", "as_dict"]

T = TypeVar("T")
Written = TypeVar("Written")
Number = int | float


class _Base(TypedDict):
    ref: str
    commit: str


class _Summary(TypedDict):
    stack: str
    verdict: Verdict
    nodesLost: int
    resourcesLost: int
    teamsConcerned: list[str]
    guaranteedCost: str
    maximumCost: str


class _Money(TypedDict):
    of: Literal["guaranteed", "maximum"]
    change: str
    about: Annotated[bool, "Whether the prices are those of another region."]


class _Risk(TypedDict):
    code: str
    verdict: Verdict
    subject: str
    message: str
    teams: list[str]
    monthlyCost: _Money | None


class _Cost(TypedDict):
    known: Annotated[str, "US dollars per month."]
    complete: bool
    unknown: Annotated[list[str], "What has no price."]
    unbounded: list[str]
    pricesOf: Annotated[list[str], "Other regions whose prices are used."]


class _CostChange(TypedDict):
    before: _Cost | None
    after: _Cost | None
    change: str


class _Costs(TypedDict):
    currency: Literal["USD"]
    per: Literal["month"]
    guaranteed: _CostChange
    maximum: _CostChange
    platform: Annotated[
        _CostChange, "EKS, NAT gateways, interface endpoints, additional volumes, FSx for Lustre; not in the others."
    ]


class _Share(TypedDict):
    instanceType: str
    guarantee: Change[Number]
    elastic: Change[Number]
    borrowable: Change[Number]
    lendable: Change[Number]
    monthlyUsd: Annotated[Change[int], "null: nothing is reserved on that side, or the catalog has no price."]
    monthlyUsdIsAbout: bool


class _Team(TypedDict):
    team: str
    present: Change[bool]
    edited: bool
    fairShareWeight: Change[int]
    strategy: Change[str]
    borrowLimitPercent: Change[int]
    preemptTeamTasks: Change[str]
    membersAdded: list[str]
    membersRemoved: list[str]
    shares: list[_Share]


class _Cause(TypedDict):
    path: str
    place: str
    replaces: bool
    because: list[str]


class _Step(TypedDict):
    action: str
    type: str
    name: str
    urn: str
    retained: Annotated[bool, "Whether the resource remains when Pulumi forgets it."]
    causes: list[_Cause]


class _Stack(TypedDict):
    stack: str
    file: str
    why: str
    status: Status
    verdict: Verdict
    reasons: list[str]
    note: str
    findings: FindingChanges
    watch: list[_Risk]
    losses: list[Loss]
    cost: _Costs
    capacity: list[CapacityChange]
    teams: Annotated[list[_Team], "Teams with a difference."]
    unchangedTeams: int
    policy: dict[str, Change[str]]
    priorityClasses: dict[str, Change[int]]
    changes: Annotated[list[_Step], "Resources that change."]
    preview: Annotated[Preview | None, "What `pulumi preview` reports, with --preview."]
    scenario: Annotated[ScenarioChange | None, "The simulation, with --scenario."]


class ChangeReview(TypedDict):
    """The effect of a change on the stacks that it affects."""

    base: _Base
    verdict: Verdict
    reasons: list[str]
    notes: list[str]
    summary: list[_Summary]
    files: list[FileReview]
    stacks: list[_Stack]


def as_dict(review: Review) -> ChangeReview:
    """Return the review as plain values."""
    return {
        "base": {"ref": review.base, "commit": review.commit},
        "verdict": review.verdict,
        "reasons": list(review.reasons),
        "notes": list(review.notes),
        "summary": [_summary(each) for each in review.stacks],
        "files": list(review.files),
        "stacks": [_stack(each) for each in review.stacks],
    }


def _summary(stack: StackReview) -> _Summary:
    return {
        "stack": stack.stack,
        "verdict": stack.verdict,
        "nodesLost": nodes_lost(stack),
        "resourcesLost": len(stack.change.lost) if stack.change else 0,
        "teamsConcerned": concerned_teams(stack),
        "guaranteedCost": cost_change(stack.guaranteed_cost),
        "maximumCost": cost_change(stack.maximum_cost),
    }


def _stack(stack: StackReview) -> _Stack:
    diff = stack.diff
    return {
        "stack": stack.stack,
        "file": stack.file,
        "why": stack.why,
        "status": stack.status,
        "verdict": stack.verdict,
        "reasons": list(stack.reasons),
        "note": stack.note,
        "findings": stack.findings,
        "watch": [
            {
                "code": risk.code,
                "verdict": risk.verdict,
                "subject": risk.subject,
                "message": risk.message,
                "teams": list(risk.teams),
                "monthlyCost": None if risk.money is None else _money(risk.money),
            }
            for risk in stack.risks
        ],
        "losses": list(stack.losses),
        "cost": {
            "currency": "USD",
            "per": "month",
            "guaranteed": _costs(stack.guaranteed_cost),
            "maximum": _costs(stack.maximum_cost),
            "platform": _costs(stack.platform_cost),
        },
        "capacity": list(diff.capacity) if diff else [],
        "teams": [_team(diff, each) for each in diff.teams if each.changed] if diff else [],
        "unchangedTeams": sum(not each.changed for each in diff.teams) if diff else 0,
        "policy": dict(diff.policy) if diff else {},
        "priorityClasses": dict(diff.priority_classes) if diff else {},
        "changes": [_step(each) for each in stack.change.steps if each.custom] if stack.change else [],
        "preview": stack.preview,
        "scenario": stack.scenario,
    }


def _step(step: Step) -> _Step:
    return {
        "action": step.action,
        "type": step.type,
        "name": step.name,
        "urn": step.urn,
        "retained": step.retained,
        "causes": [
            {"path": cause.path, "place": cause.place, "replaces": cause.replaces, "because": list(cause.because)}
            for cause in step.causes
        ],
    }


def _written(change: Change[T], write: Callable[[T], Written]) -> Change[Written]:
    before = None if change.before is None else write(change.before)
    return Change(before, None if change.after is None else write(change.after))


def _money(money: MoneyChange) -> _Money:
    return {"of": money.of, "change": str(money.change), "about": money.about}


def _costs(change: Change[Cost]) -> _CostChange:
    written = _written(change, _cost)
    return {"before": written.before, "after": written.after, "change": cost_change(change)}


def _cost(cost: Cost) -> _Cost:
    """Write money as text, since a JSON number would round it."""
    return {
        "known": str(cost.known.quantize(Decimal("0.01"))),
        "complete": cost.complete,
        "unknown": list(cost.unknown),
        "unbounded": list(cost.unbounded),
        "pricesOf": list(cost.about),
    }


def _team(diff: PlanDiff, team: TeamChange) -> _Team:
    return {
        "team": team.name,
        "present": team.present,
        "edited": team.edited,
        "fairShareWeight": team.weight,
        "strategy": team.strategy,
        "borrowLimitPercent": team.borrow_limit,
        "preemptTeamTasks": team.preempt,
        "membersAdded": list(team.members_added),
        "membersRemoved": list(team.members_removed),
        "shares": [_share(diff, each) for each in team.shares],
    }


def _share(diff: PlanDiff, share: ShareChange) -> _Share:
    money, is_about = quota_cost(diff, share)
    return {
        "instanceType": share.instance_type,
        "guarantee": _written(share.guarantee, json_number),
        "elastic": _written(share.elastic, json_number),
        "borrowable": _written(share.borrowable, json_number),
        "lendable": _written(share.lendable, json_number),
        "monthlyUsd": money,
        "monthlyUsdIsAbout": is_about,
    }
