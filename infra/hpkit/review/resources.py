"""What the program registers on both sides, compared; and a stack that looks like another under a new name."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hpkit.change import PRECIOUS, Recorded, StackChange, Step, change
from hpkit.change.judgement import said
from hpkit.plan.model import Plan
from hpkit.plan.names import short_type
from hpkit.review.model import Caution, StackReview, worst

__all__ = ["Record", "Row", "beside", "compare", "resource_rows"]

# Returns what a plan registers in a stack of that name.
Record = Callable[[Plan, str], Recorded]
Row = tuple[str, ...]


def compare(
    stack: str, before: Plan | None, after: Plan | None, record: Record, *, faulty: bool
) -> tuple[StackChange | None, str]:
    """Return what changes and a note; None where nothing does, or where faults of a side keep it from being recorded.

    Nobody runs a stack that is no longer described: nothing changes there.
    """
    if after is None or before == after:
        return None, ""
    try:
        return change(record(before, stack) if before else None, record(after, stack)), ""
    except Exception:
        # A plan with errors may be one that nothing can be built from, whatever the program then says.
        if not faulty:
            raise
        return None, "errors keep one side from being planned, so what is replaced or deleted is not known"


def resource_rows(stack: StackReview) -> list[Row]:
    """Return action, type, name and why of every resource that does not stay as it is; what goes first."""
    if stack.change is None:
        return []
    # A guard holds nothing itself, and what it guards is said above.
    shown = [step for step in stack.change.steps if step.custom and not step.type.endswith(":ChangeGuard")]
    return [_row(step) for step in sorted(shown, key=lambda step: not (step.lost and step.type in PRECIOUS))]


def _row(step: Step) -> Row:
    deciding = [cause for cause in step.causes if cause.replaces or step.action != "replace"]
    why = [
        said(cause) if not cause.because else f"{cause.path or 'its provider'} ({_names(cause.because)})"
        for cause in deciding
    ]
    action = "forget" if step.retained and step.action == "delete" else step.action
    return action, short_type(step.type), step.name, "; ".join(dict.fromkeys(why))


def _names(urns: Sequence[str]) -> str:
    return ", ".join(urn.rpartition("::")[2] for urn in urns)


def beside(stacks: Sequence[StackReview]) -> tuple[StackReview, ...]:
    """Return the stacks, those that look like one that is no longer described with a word about it.

    The cluster's name tells: no two stacks of a region could have the same.
    """
    gone = [each for each in stacks if each.status == "removed" and each.diff and each.diff.before]
    return tuple(_beside(each, gone) if each.status == "added" else each for each in stacks)


def _beside(stack: StackReview, gone: Sequence[StackReview]) -> StackReview:
    after = stack.diff.after if stack.diff else None
    for other in gone:
        before = other.diff.before if other.diff else None
        if before is None or after is None or before.spec.cluster.name != after.spec.cluster.name:
            continue
        message = (
            f"{stack.stack} has the HyperPod cluster {after.spec.cluster.name} of {other.stack}, which is no longer "
            f"described: a new name is a new stack. All of {stack.stack} is made anew, and all of {other.stack} stays; "
            "if you meant a rename, keep the old name"
        )
        caution = Caution("stack-renamed", "attention", stack.stack, message)
        return replace(
            stack,
            verdict=worst([stack.verdict, caution.verdict]),
            reasons=(*stack.reasons, message),
            cautions=(*stack.cautions, caution),
        )
    return stack
