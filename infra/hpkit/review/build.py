"""From both sides of a change to the review: pure, given the files, the findings and the previews."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hpkit.change import StackChange
from hpkit.checks import Finding
from hpkit.plan.diff import Change, PlanDiff, diff
from hpkit.plan.model import Plan
from hpkit.review.cautions import cautions_of
from hpkit.review.cost import guaranteed_cost, maximum_cost
from hpkit.review.findings import compare_findings
from hpkit.review.losses import losses_of
from hpkit.review.model import (
    Caution,
    Cost,
    FileReview,
    FindingChanges,
    Loss,
    Preview,
    Review,
    StackReview,
    Verdict,
    worst,
)
from hpkit.review.resources import Record, beside, compare
from hpkit.review.words import plural

__all__ = ["FileInput", "Half", "Side", "StackInput", "review"]

Status = Literal["added", "removed", "changed", "unchanged", "unreadable"]


@dataclass(frozen=True, slots=True)
class Side:
    """One organization file as it was at one side: each environment's plan, and everything found in it.

    plans is empty where the file could not be read.
    """

    plans: Mapping[str, Plan]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Half:
    """Which environment of which file a stack is on one side."""

    side: Side
    environment: str


@dataclass(frozen=True, slots=True)
class StackInput:
    """A stack that the change touches, and why; None on the side where it is not there."""

    stack: str
    file: str
    why: str
    before: Half | None
    after: Half | None


@dataclass(frozen=True, slots=True)
class FileInput:
    """An organization file that the change touches; None on the side where it is not there."""

    file: str
    before: Side | None
    after: Side | None


def review(
    files: Sequence[FileInput],
    stacks: Sequence[StackInput],
    *,
    record: Record,
    base: str,
    commit: str,
    notes: Sequence[str] = (),
    previews: Mapping[str, Preview] | None = None,
) -> Review:
    """Return the review of a change.

    record returns what a plan registers in a stack; base and commit name what the change is compared with; previews
    holds what the engine said, by stack.
    """
    reviewed_files = tuple(
        FileReview(each.file, compare_findings(_shared(each.before), _shared(each.after))) for each in files
    )
    reviewed = tuple(_stack(each, record, (previews or {}).get(each.stack)) for each in stacks)
    reviewed = beside(reviewed)
    of_files: list[tuple[Verdict, str]] = [
        (verdict, f"{each.file}: {reason}") for each in reviewed_files for verdict, reason in _judge(each.findings)
    ]
    return Review(
        base=base,
        commit=commit,
        verdict=worst([*(verdict for verdict, _ in of_files), *(each.verdict for each in reviewed)]),
        reasons=(
            *(reason for _, reason in of_files),
            *(f"{each.stack}: {reason}" for each in reviewed for reason in each.reasons),
        ),
        notes=tuple(notes),
        files=reviewed_files,
        stacks=reviewed,
    )


def _shared(side: Side | None) -> list[Finding]:
    """Return the findings of what all environments share."""
    return [] if side is None else [each for each in side.findings if not each.path.startswith("environments.")]


def _own(half: Half | None) -> list[Finding]:
    if half is None:
        return []
    own = f"environments.{half.environment}."
    return [each for each in half.side.findings if f"{each.path}.".startswith(own)]


def _plan(half: Half | None) -> Plan | None:
    """Return the plan of a side; None when the environment is not there or could not be read."""
    return half.side.plans.get(half.environment) if half is not None else None


def _stack(given: StackInput, record: Record, preview: Preview | None) -> StackReview:
    before, after = _plan(given.before), _plan(given.after)
    unread = [
        name
        for name, half, plan in (("base", given.before, before), ("head", given.after, after))
        if half is not None and plan is None
    ]
    difference = None if unread else diff(before, after, stack=given.stack)
    findings = compare_findings(_own(given.before), _own(given.after))
    changed, unrecorded = _compared(given, before, after, record)
    cautions = cautions_of(difference, changed) if difference else ()
    losses = losses_of(difference) if difference else ()
    judged = [*_judge(findings), *_judge_plan(cautions, losses), *_judge_preview(preview)]
    if "head" in unread:
        judged.insert(0, ("blocked", "the head cannot be read"))
    return StackReview(
        stack=given.stack,
        file=given.file,
        why=given.why,
        status=_status(difference),
        verdict=worst(verdict for verdict, _ in judged),
        reasons=tuple(reason for _, reason in judged),
        note=f"the {' and the '.join(unread)} could not be read, so nothing is compared" if unread else unrecorded,
        diff=difference,
        change=changed,
        guaranteed_cost=_costs(before, after, guaranteed_cost),
        maximum_cost=_costs(before, after, maximum_cost),
        findings=findings,
        cautions=cautions,
        losses=losses,
        preview=preview,
    )


def _compared(
    given: StackInput, before: Plan | None, after: Plan | None, record: Record
) -> tuple[StackChange | None, str]:
    halves = [half for half in (given.before, given.after) if half is not None]
    faulty = any(each.severity == "error" for half in halves for each in half.side.findings)
    return compare(given.stack, before, after, record, faulty=faulty)


def _costs(before: Plan | None, after: Plan | None, cost: Callable[[Plan], Cost]) -> Change[Cost]:
    return Change(None if before is None else cost(before), None if after is None else cost(after))


def _status(difference: PlanDiff | None) -> Status:
    if difference is None:
        return "unreadable"
    if difference.before is None:
        return "added"
    if difference.after is None:
        return "removed"
    return "changed" if difference.changed else "unchanged"


def _judge(findings: FindingChanges) -> list[tuple[Verdict, str]]:
    judged: list[tuple[Verdict, str]] = []
    for name, group in (("new", findings.new), ("old", findings.remaining)):
        errors = sum(each.severity == "error" for each in group)
        if errors:
            judged.append(("blocked", plural(errors, f"{name} error")))
    warnings = sum(each.severity == "warning" for each in findings.new)
    if warnings:
        judged.append(("attention", plural(warnings, "new warning")))
    return judged


def _judge_plan(cautions: Sequence[Caution], losses: Sequence[Loss]) -> list[tuple[Verdict, str]]:
    judged: list[tuple[Verdict, str]] = [(caution.verdict, caution.message) for caution in cautions]
    guarantees = {loss.team for loss in losses if loss.what == "guarantee"}
    if guarantees:
        judged.append(("attention", f"{plural(len(guarantees), 'team')} with a lower guarantee"))
    others = {loss.team for loss in losses} - guarantees
    if others:
        judged.append(("attention", f"{plural(len(others), 'team')} with less to borrow, less weight or less access"))
    return judged


def _judge_preview(preview: Preview | None) -> list[tuple[Verdict, str]]:
    if preview is None:
        return []
    judged: list[tuple[Verdict, str]] = []
    if preview.problems:
        judged.append(("blocked", f"the preview fails: {preview.problems[0]}"))
    for action in ("replace", "delete"):
        steps = preview.of(action)
        if steps:
            judged.append(("attention", f"the preview {action}s {plural(len(steps), 'resource')}"))
    return judged
