"""One stack's change: its steps, what the guards say of them, and the allowances that nothing in it uses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpkit.change.decision import GUARDED_TYPES, GuardDecision
from hpkit.change.deletions import deletion_decisions
from hpkit.change.guarded_resources import resource_decisions, version_decisions
from hpkit.change.instance_groups import deleted_groups, group_decisions
from hpkit.change.recorded import Recorded
from hpkit.change.steps import Action, Step, steps_of
from hpkit.plan.protected import parts_allowed, parts_of

__all__ = ["StackChange", "UnusedAllowance", "change"]


@dataclass(frozen=True, slots=True)
class UnusedAllowance:
    """An allowance for something that this change does not do; while it stands, the guard is off."""

    key: str
    name: str

    @property
    def message(self) -> str:
        """What is wrong, and what to do."""
        verb = "replaces or deletes" if self.key == "allowReplace" else "deletes"
        nothing = f"{self.key} names {self.name}, and this change {verb} no such thing"
        return f"{nothing}: remove it, or it lets a later one do so"


@dataclass(frozen=True, slots=True)
class StackChange:
    """Everything about one stack: steps, replacements first; decisions, refusals first; unused allowances."""

    steps: tuple[Step, ...]
    decisions: tuple[GuardDecision, ...]
    unused_allowances: tuple[UnusedAllowance, ...]

    @property
    def refused(self) -> bool:
        """Return whether a guard ends the run."""
        return any(each.refused for each in self.decisions)

    def of(self, action: Action) -> tuple[Step, ...]:
        """Return the steps of one action."""
        return tuple(step for step in self.steps if step.action == action)

    @property
    def lost(self) -> tuple[Step, ...]:
        """Return what is replaced or deleted, components and providers left out."""
        return tuple(step for step in self.steps if step.lost)


def change(before: Recorded | None, after: Recorded | None) -> StackChange:
    """Return what the engine's preview would do, and refuse; None is a stack that is not there."""
    steps = steps_of(before, after)
    if before is None or after is None:
        return StackChange(steps, (), tuple(_unused(before, after, steps)))
    resources, deletions = deletion_decisions(list(resource_decisions(before, after, steps)), before, after)
    found = [
        *resources,
        *group_decisions(before, after, steps),
        *deletions,
        *version_decisions(before, after),
    ]
    decisions = tuple(sorted(found, key=lambda each: not each.refused))
    return StackChange(steps, decisions, tuple(_unused(before, after, steps)))


def _unused(before: Recorded | None, after: Recorded | None, steps: Sequence[Step]) -> Iterator[UnusedAllowance]:
    if after is None:
        return
    lost = {GUARDED_TYPES[step.type] for step in steps if step.lost and step.type in GUARDED_TYPES}
    # EKS cannot follow its VPC, nor does the cluster: whoever allows the one has to allow the others.
    lost |= {"eks", "cluster"} if "vpc" in lost else set()
    for key in after.plan.spec.allow_replace:
        if key not in lost:
            yield UnusedAllowance("allowReplace", key)
    gone = {group.spec.name for group in deleted_groups(before, after)} if before is not None else set()
    staying = {group.spec.name for group in after.plan.all_groups}
    for name in after.plan.spec.allow_delete.instance_groups:
        # A group that stays is a finding of the validator already (ALW001).
        if name not in gone | staying:
            yield UnusedAllowance("allowDelete.instanceGroups", name)
    parts = set(parts_of(after.plan)) | (set(parts_of(before.plan)) if before is not None else set())
    for name in parts_allowed(after.plan):
        if name not in parts:
            kind, _, called = name.partition("/")
            yield UnusedAllowance(f"allowDelete.{kind}", called)
