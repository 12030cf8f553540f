"""The review as frozen records: verdict, findings, teams, capacity, cost, what to watch."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, computed_field

from hpkit.changes import CLUSTER, Action, StackChange
from hpkit.changes.plan_diff import Change, PlanDiff
from hpkit.checks import Finding
from hpkit.plan.capacity import Amount

__all__ = [
    "Cost",
    "FileReview",
    "FindingChanges",
    "Loss",
    "MoneyChange",
    "Preview",
    "PreviewStep",
    "Review",
    "Risk",
    "ScenarioChange",
    "StackReview",
    "Status",
    "TeamWaits",
    "Verdict",
    "most_severe_first",
    "worst",
]

Status = Literal["added", "removed", "changed", "unchanged", "unreadable"]
Verdict = Literal["ok", "attention", "blocked"]
# JSON has money as text, since a number would be rounded.
_CENTS = PlainSerializer(lambda money: str(money.quantize(Decimal("0.01"))), return_type=str)
_UNKNOWN: Change[Any] = Change(None, None)
_ORDER: tuple[Verdict, ...] = ("ok", "attention", "blocked")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the most_severe verdict; ok if the list is empty."""
    return max(verdicts, key=_ORDER.index, default="ok")


@dataclass(frozen=True, slots=True)
class FindingChanges:
    """Findings by what the change did to them; positions are the head's, for fixed and waived ones the base's."""

    new: tuple[Finding, ...]
    fixed: tuple[Finding, ...]
    remaining: tuple[Finding, ...]
    waived: tuple[Finding, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the errors after the change, new ones first."""
        return tuple(finding for finding in (*self.new, *self.remaining) if finding.severity == "error")


@dataclass(frozen=True, slots=True)
class MoneyChange:
    """The change of a month's cost by one item, in dollars; of: whether minimum or maximum.

    about: whether another region's prices are used.
    """

    change: Decimal
    of: Literal["minimum", "maximum"]
    about: bool = False


@dataclass(frozen=True, slots=True)
class Risk:
    """A risk: a code for tools, its subject, and one sentence.

    teams: whose work or permissions it affects; monthly_cost: the change of cost, None if unchanged or unknown.
    """

    code: str
    verdict: Verdict
    subject: str
    message: str
    teams: tuple[str, ...] = ()
    monthly_cost: MoneyChange | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """A reduction for one team; instance_type is None for what isn't counted in instances.

    before is None if it was unbounded; names: what exactly is lost, if it has names.
    """

    team: str
    what: str
    instance_type: str | None
    before: Amount | None
    after: Amount
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars a month on demand.

    - known: the sum of the known prices.
    - unknown: what has no known price (`4 × ml.p5e.48xlarge`).
    - unbounded: NodePools without a limit, whose cost isn't limited either.
    - prices_of: regions whose prices are used because the stack's region has none.
    - own: the stack's region, if its prices are used.
    """

    known: Annotated[Decimal, _CENTS]
    unknown: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()
    prices_of: tuple[str, ...] = ()
    own: Annotated[tuple[str, ...], Field(exclude=True)] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def complete(self) -> bool:
        """Return whether known is the whole cost."""
        return not self.unknown and not self.unbounded


@dataclass(frozen=True, slots=True)
class PreviewStep:
    """One resource of a real preview; properties are the names of changed properties, never values."""

    action: Action
    type: str
    name: str
    urn: str
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """The result of `pulumi preview` for a stack; problems are its errors, empty if it succeeded.

    ran: false if the stack couldn't be previewed, for example because it doesn't exist; problems explain why.
    """

    steps: tuple[PreviewStep, ...]
    unchanged: int
    problems: tuple[str, ...]
    ran: bool = True

    def of(self, action: str) -> tuple[PreviewStep, ...]:
        """Return the steps of one action."""
        return tuple(step for step in self.steps if step.action == action)


@dataclass(frozen=True, slots=True)
class TeamWaits:
    """A team's tasks of a scenario, simulated before and after; None on a side without the team.

    service: the fraction of its requests that it got. Waits in seconds. never: tasks that can never run.
    """

    team: str
    service: Change[float]
    wait_median: Change[float]
    wait_p95: Change[float]
    preempted: Change[int]
    never: Change[int]


@dataclass(frozen=True, slots=True)
class ScenarioChange:
    """The effect of a change on a scenario's tasks; note: what is omitted, or why nothing is known.

    utilization: a fraction; waited_instance_hours: what tasks waited for in queues.
    """

    file: str
    note: str = ""
    utilization: Change[float] = _UNKNOWN
    waited_instance_hours: Change[float] = _UNKNOWN
    preemptions: Change[int] = _UNKNOWN
    teams: tuple[TeamWaits, ...] = ()


@dataclass(frozen=True, slots=True)
class FileReview:
    """Findings of an organization file that concern all of its stacks."""

    file: str
    findings: FindingChanges


@dataclass(frozen=True, slots=True)
class StackReview:
    """One stack that the change affects.

    diff is None if a side couldn't be read, change if nothing differs; note: what isn't known. before or after of cost
    is None on a side without the stack, both if a side couldn't be read.
    """

    stack: str
    file: str
    why: str
    status: Status
    verdict: Verdict
    reasons: tuple[str, ...]
    note: str
    diff: PlanDiff | None
    change: StackChange | None
    minimum_cost: Change[Cost]
    maximum_cost: Change[Cost]
    platform_cost: Change[Cost]
    findings: FindingChanges
    risks: tuple[Risk, ...]
    losses: tuple[Loss, ...]
    preview: Preview | None
    scenario: ScenarioChange | None = None

    @property
    def nodes_lost(self) -> int:
        """Return how many nodes are certainly deleted: of deleted or smaller groups, and of a recreated cluster."""
        if self.diff is None or self.diff.before is None or self.diff.after is None:
            return 0
        anew = self.change is not None and any(step.lost and step.type == CLUSTER for step in self.change.steps)
        # Nodes of one type don't count as another, even if the group keeps its name.
        after = () if anew else self.diff.after.own_groups
        staying = {(group.spec.name, group.spec.types): group.spec.instance_count for group in after}
        # Nodes of a group that Karpenter now manages stay.
        kept = {group.spec.name for group in after if group.autoscaled}
        specs = [
            each.spec for each in self.diff.before.own_groups if not each.autoscaled and each.spec.name not in kept
        ]
        return sum(max(0, each.instance_count - staying.get((each.name, each.types), 0)) for each in specs)

    @property
    def teams_concerned(self) -> list[str]:
        """Return the teams with losses, the greatest losses first, and those that risks affect."""
        about = (team for risk in self.risks for team in risk.teams)
        return list(dict.fromkeys([*(loss.team for loss in self.losses), *about]))


@dataclass(frozen=True, slots=True)
class Review:
    """Everything about one change; notes explain its scope to readers."""

    base: str
    commit: str
    verdict: Verdict
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[FileReview, ...]
    stacks: tuple[StackReview, ...]


def most_severe_first(stacks: Iterable[StackReview]) -> list[StackReview]:
    """Return the stacks by verdict, blocked ones first, and by name."""
    return sorted(stacks, key=lambda stack: (-_ORDER.index(stack.verdict), stack.stack))
