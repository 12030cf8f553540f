"""The review as JSON: the contract that docs/guides/review.md describes."""

from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from hpkit.changes.plan_diff import CapacityChange, Change, TeamChange
from hpkit.changes.review.formatting import cost_change
from hpkit.changes.review.model import (
    Cost,
    FileReview,
    FindingChanges,
    Loss,
    Preview,
    Risk,
    ScenarioChange,
    Status,
    Verdict,
)
from hpkit.text.document import Document

__all__ = ["ChangeReview"]

_TEAMS, _STEPS = AliasPath("diff", "teams"), AliasPath("change", "steps")


class _CostChange(Document):
    before: Cost | None
    after: Cost | None
    change: str


_Costs = Annotated[
    _CostChange, BeforeValidator(lambda cost: {"before": cost.before, "after": cost.after, "change": cost_change(cost)})
]


class _Cause(Document):
    path: str
    place: str
    replaces: bool
    because: list[str]


class _Step(Document):
    action: str
    type: str
    name: str
    urn: str
    retained: bool = Field(description="Whether the resource remains when Pulumi forgets it.")
    lost: bool = Field(description="Whether an existing resource is deleted.")
    causes: list[_Cause]


class _Stack(Document):
    stack: str
    file: str
    why: str
    status: Status
    verdict: Verdict
    reasons: list[str]
    note: str
    findings: FindingChanges
    watch: list[Risk] = Field(validation_alias="risks")
    losses: list[Loss]
    nodes_lost: int
    teams_concerned: list[str]
    minimum_cost: _Costs
    maximum_cost: _Costs
    platform_cost: _Costs = Field(
        description="EKS, NAT gateways, interface endpoints, additional volumes, FSx for Lustre; not in the others."
    )
    capacity: list[CapacityChange] = Field([], validation_alias=AliasPath("diff", "capacity"))
    teams: Annotated[list[TeamChange], BeforeValidator(lambda teams: [each for each in teams if each.changed])] = Field(
        [], validation_alias=_TEAMS, description="Teams with a difference."
    )
    unchanged_teams: Annotated[int, BeforeValidator(lambda teams: sum(not each.changed for each in teams))] = Field(
        0, validation_alias=_TEAMS
    )
    policy: dict[str, Change[str]] = Field({}, validation_alias=AliasPath("diff", "policy"))
    priority_classes: dict[str, Change[int]] = Field({}, validation_alias=AliasPath("diff", "priority_classes"))
    changes: Annotated[list[_Step], BeforeValidator(lambda steps: [each for each in steps if each.custom])] = Field(
        [], validation_alias=_STEPS, description="Resources that change."
    )
    preview: Preview | None = Field(description="What `pulumi preview` reports, with --preview.")
    scenario: ScenarioChange | None = Field(description="The simulation, with --scenario.")


class ChangeReview(Document):
    """The effect of a change on the stacks that it affects."""

    base: str
    commit: str
    verdict: Verdict
    reasons: list[str]
    notes: list[str]
    files: list[FileReview]
    stacks: list[_Stack]
