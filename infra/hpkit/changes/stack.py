"""One stack's change: its steps, the guards' decisions, and unused allowances."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpkit.changes.compare import Recorded
from hpkit.changes.decision import GUARDED_TYPES, RELOCATIONS, REPLACE, GuardDecision, deletion_decisions, with_advice
from hpkit.changes.guarded_resources import (
    policy_decisions,
    range_decisions,
    relocation_decision,
    resource_decisions,
    version_decisions,
)
from hpkit.changes.instance_groups import deleted_groups, group_decisions
from hpkit.changes.reductions import Reduction, reductions_of
from hpkit.changes.steps import Action, Step, steps_of
from hpkit.plan.protected import parts_allowed, parts_of

__all__ = ["StackChange", "UnusedAllowance", "change"]


@dataclass(frozen=True, slots=True)
class UnusedAllowance:
    """An allowance for something that this change doesn't do; while it exists, the guard is off."""

    key: str
    name: str

    @property
    def message(self) -> str:
        """Return the problem and the fix."""
        verb = "replace or delete" if self.key == REPLACE else "delete"
        nothing = f"{self.key} names {self.name}, but this change doesn't {verb} it"
        return f"{nothing}: remove the entry, which allows later changes to do so"


@dataclass(frozen=True, slots=True)
class StackChange:
    """Everything about one stack: steps, replacements first; decisions, blocking ones first; unused allowances.

    reductions: reductions and other changes of what stays.
    """

    steps: tuple[Step, ...]
    decisions: tuple[GuardDecision, ...]
    unused_allowances: tuple[UnusedAllowance, ...]
    reductions: tuple[Reduction, ...] = ()

    @property
    def rejected(self) -> bool:
        """Return whether a guard blocks the run."""
        return any(each.rejected for each in self.decisions)

    def of(self, action: Action) -> tuple[Step, ...]:
        """Return the steps of one action."""
        return tuple(step for step in self.steps if step.action == action)

    @property
    def moves(self) -> bool:
        """Return whether the stack would move to another account or region, which is rejected before anything else."""
        return any(each.code in RELOCATIONS for each in self.decisions)

    @property
    def lost(self) -> tuple[Step, ...]:
        """Return what is replaced or deleted, without components and providers."""
        return tuple(step for step in self.steps if step.lost)


def change(before: Recorded | None, after: Recorded | None) -> StackChange:
    """Return what the engine's preview would do and reject; None is a missing stack."""
    moved = relocation_decision(before.plan, after.plan) if before is not None and after is not None else None
    if moved is not None:
        return StackChange((), (moved,), ())
    steps = steps_of(before, after)
    if before is None or after is None:
        return StackChange(steps, (), tuple(_unused(before, after, steps)))
    resources, deletions = deletion_decisions(list(resource_decisions(before, after, steps)), before, after)
    plans = before.plan, after.plan
    unchangeable = [*range_decisions(*plans), *policy_decisions(*plans, steps), *version_decisions(*plans)]
    unadvised = [*resources, *group_decisions(before, after, steps), *deletions, *unchangeable]
    decisions = tuple(sorted(with_advice(unadvised, *plans), key=lambda each: not each.rejected))
    reductions = tuple(reductions_of(before, after, steps))
    return StackChange(steps, decisions, tuple(_unused(before, after, steps)), reductions)


def _unused(before: Recorded | None, after: Recorded | None, steps: Sequence[Step]) -> Iterator[UnusedAllowance]:
    if after is None:
        return
    lost = {GUARDED_TYPES[step.type] for step in steps if step.lost and step.type in GUARDED_TYPES}
    # The EKS cluster can't follow its VPC, nor can the HyperPod cluster: allowing one requires allowing the others.
    lost |= {"eks", "cluster"} if "vpc" in lost else set()
    for key in after.plan.spec.allow_replace:
        if key not in lost:
            yield UnusedAllowance(REPLACE, key)
    deleted_names = {group.spec.name for group in deleted_groups(before, after)} if before is not None else set()
    staying = {group.spec.name for group in after.plan.own_groups}
    for name in after.plan.spec.allow_delete.instance_groups:
        # A group that stays is a finding of the validator already (ALW001).
        if name not in deleted_names | staying:
            yield UnusedAllowance("allowDelete.instanceGroups", name)
    parts = set(parts_of(after.plan)) | (set(parts_of(before.plan)) if before is not None else set())
    for name in parts_allowed(after.plan):
        if name not in parts:
            kind, _, called = name.partition("/")
            yield UnusedAllowance(f"allowDelete.{kind}", called)
