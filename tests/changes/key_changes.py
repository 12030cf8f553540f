"""The effect of editing each key of a deployed stack: rejected by a rule or a guard, or applied to which resources."""

import datetime
import json
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpkit.changes import StackChange, change
from hpkit.checks import check
from hpkit.config import parse, read_text
from hpkit.errors import InputError
from hpkit.plan.derive import derive
from hpkit.plan.model import Plan
from hpkit.program.recording import Recording
from tests.changes.key_values import Edit, edits
from tests.program.recorder import recording_of

__all__ = ["Outcome", "outcomes", "refusals"]

# Before any waiver in the examples expires, so that results don't depend on the current date.
_TODAY = datetime.date(2026, 1, 1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One edit of one stack: the rules that reject it, or else what it changes (None: nothing in the plan).

    base, data: the organization before and after the edit, so that other tests can use them.
    """

    stack: str
    environment: str
    edit: Edit
    value: Any
    rules: tuple[str, ...]
    change: StackChange | None
    base: Any
    data: Any

    @property
    def kind(self) -> str:
        """The effect in one word."""
        if self.rules:
            return "invalid"
        if self.change is None or not self.change.steps:
            return "nothing"
        if self.change.rejected:
            return "refused"
        return "lost" if self.change.lost else "in place"


def outcomes(file: Path, keys: Container[str] | None = None) -> Iterator[Outcome]:
    """Yield the outcome of every edit of every environment of an organization file, or of the edits of some keys."""
    # Plain lists and maps without aliases: an edit must change only one place.
    data = json.loads(json.dumps(read_text(file.read_bytes()).data, default=str))
    for environment in data["environments"]:
        plan = _plan(data, environment)
        if isinstance(plan, tuple):
            raise InputError(f"{file} has errors ({', '.join(plan)}): run `hpkit validate {file}`")
        before, stack = recording_of(plan), plan.stack
        for edit in (each for each in edits(data, environment) if keys is None or each.key in keys):
            yield _outcome(data, environment, before, edit, stack)


def _outcome(data: Any, environment: str, before: Recording, edit: Edit, stack: str) -> Outcome:
    """Try the values in order, and use the first valid one; otherwise, return what rejects the first."""
    first: tuple[Any, tuple[str, ...]] | None = None
    for value in edit.values:
        edited = edit.apply(data, value)
        edited_plan = _plan(edited, environment)
        if not isinstance(edited_plan, tuple):
            same = edited_plan == before.plan
            changed = None if same else change(before, recording_of(edited_plan, stack=stack))
            return Outcome(stack, environment, edit, value, (), changed, data, edited)
        first = first or (value, edited_plan)
    value, rules = first or (None, ("no other value",))
    return Outcome(stack, environment, edit, value, rules, None, data, data)


def refusals(base: Any, head: Any, environment: str, stack: str) -> list[str]:
    """Return why a change of an organization can't be deployed: broken rules of its head, or guards.

    Either side may lack the environment; then the environments are different stacks.
    """
    sides = [_plan(side, environment) if environment in side["environments"] else None for side in (base, head)]
    if isinstance(sides[1], tuple):
        return list(sides[1])
    before, after = (recording_of(side, stack=stack) if isinstance(side, Plan) else None for side in sides)
    return [each.message for each in change(before, after).decisions if each.rejected]


def _plan(data: Any, environment: str) -> Plan | tuple[str, ...]:
    """Return the plan, or the rules with errors."""
    # JSON is YAML, and faster to write.
    parsed = parse(read_text(json.dumps(data).encode()))
    read = parsed.organization
    plans = {environment: derive(read, environment)} if read is not None and environment in read.environments else {}
    findings = check(parsed, plans, file="", today=_TODAY)
    own = [each for each in findings if each.severity == "error" and _concerns(each.path, environment)]
    if own or not plans:
        return tuple(sorted({each.rule for each in own or findings}))
    return plans[environment]


def _concerns(path: str, environment: str) -> bool:
    return not path.startswith("environments.") or f"{path}.".startswith(f"environments.{environment}.")
