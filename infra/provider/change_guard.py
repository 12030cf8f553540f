"""ChangeGuard: says no, at preview already, to a change that would replace what must not be lost.

It makes nothing anywhere. The program hands it what the guarded resource cannot change in place, and lets the
guarded resource depend on it: a change that is not allowed ends the run before anything else is touched.
"""

from __future__ import annotations

from typing import Any, ClassVar

from provider.errors import RefusedError
from provider.handler import Diff, Handler, Live
from provider.task import Task
from provider.values import Props, is_unknown

__all__ = ["ChangeGuard"]


class ChangeGuard(Handler):
    """Handler of hyperpod:index:ChangeGuard."""

    name: ClassVar[str] = "ChangeGuard"
    seconds: ClassVar[float] = 60.0

    def diff(self, old: Props, new: Props, state: Props) -> Diff:
        """Compare; a change that would replace the subject, or skip a version, is an error unless it is allowed."""
        skipped = _skipped(old.get("version"), new.get("version"))
        if skipped:
            raise RefusedError(f"{new['subject']}: {skipped}")
        lost = _lost(old.get("identity", {}), new.get("identity", {}))
        if lost and new.get("allowReplace") is not True:
            raise RefusedError(
                f"This change would REPLACE {new['subject']}, with everything in it:\n  "
                + "\n  ".join(lost)
                + f"\nWhat to do: take the change back, or {new['remedy']}"
            )
        return super().diff(old, new, state)

    def foresee(self, task: Task, old: Props, new: Props) -> None:
        """Say loudly what an allowed change costs."""
        lost = _lost(old.get("identity", {}), new.get("identity", {}))
        if old and lost:
            task.warn(f"This change REPLACES {new['subject']}, as allowed: {'; '.join(lost)}")

    def create(self, task: Task, inputs: Props) -> Live:
        """Take note of the subject as it is."""
        return Live(task.urn.rpartition("::")[2], inputs, inputs)

    def read(self, task: Task, resource_id: str, inputs: Props, state: Props) -> Live | None:
        """Return what was noted: there is nothing else."""
        del task
        return Live(resource_id, state, inputs or state) if state else None

    def update(self, task: Task, resource_id: str, *, old: Props, new: Props, state: Props) -> Live:
        """Take note of the subject as it becomes."""
        del state
        self.foresee(task, old, new)
        return Live(resource_id, new, new)

    def delete(self, task: Task, resource_id: str) -> None:
        """Forget the subject."""


def _lost(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """List what would be replaced; what was not noted before, or is not known yet, is no change."""
    return [
        f"{name}: {old[name]} becomes {new[name]}"
        for name in sorted(old.keys() & new.keys())
        if not is_unknown(new[name]) and old[name] != new[name]
    ]


def _skipped(old: str | None, new: str | None) -> str:
    """Say what is wrong with a step between minor versions: EKS goes up one at a time, and never down."""
    if old is None or new is None or is_unknown(new):
        return ""
    before, after = (tuple(int(part) for part in version.split(".")) for version in (old, new))
    if after < before:
        return f"version {old} cannot go back to {new}. What to do: write version {old} or a newer one."
    if after > (before[0], before[1] + 1):
        step = f"{before[0]}.{before[1] + 1}"
        return (
            f"version {old} cannot become {new} in one step: EKS upgrades one minor version at a time. "
            f"What to do: write {step} first, run `pulumi up`, then go on."
        )
    return ""
