"""Each step as a change of the organization file on top of the previous ones, and its effect. No side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hpkit.changes import Recorded, StackChange, change
from hpkit.cluster.upgrade.model import Step
from hpkit.config import Document, Parsed, parse
from hpkit.config.edit import diff, edited
from hpkit.errors import HpkitError
from hpkit.plan.derive import derive
from hpkit.plan.model import Plan

__all__ = ["PatchedStep", "patched"]

Read = Callable[[str], Document]
Record = Callable[[Plan], Recorded]


@dataclass(frozen=True, slots=True)
class PatchedStep:
    """A step, its patch (a unified diff, empty if the file doesn't change), its changes, and what blocks it."""

    step: Step
    patch: str
    change: StackChange | None
    problem: str = ""


def patched(
    text: str, plan: Plan, steps: Sequence[Step], *, file: str, record: Record | None, read: Read
) -> Iterator[PatchedStep]:
    """Yield the steps with their patches; record, if given, returns what a plan registers.

    read: turns a text of the organization file into a document, together with the files that it refers to.
    """
    before = None if record is None else record(plan)
    for step in steps:
        if not step.edits:
            yield PatchedStep(step, "", None)
            continue
        try:
            new = edited(text, read(text), step.edits, file=file)
            after_plan = _plan(read(new), plan.environment)
        except HpkitError as error:
            yield PatchedStep(step, "", None, str(error))
            continue
        after = None if record is None else record(after_plan)
        yield PatchedStep(step, diff(text, new, file), None if record is None else change(before, after))
        text, before = new, after


def _plan(document: Document, environment: str) -> Plan:
    parsed: Parsed = parse(document)
    if parsed.organization is None or environment not in parsed.organization.environments:
        raise HpkitError("the organization file can't be read with this change; change it by hand")
    return derive(parsed.organization, environment)
