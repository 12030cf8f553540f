"""Why a resource is replaced: the origin, and each difference as text."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hpkit.changes.steps import Cause, Step

__all__ = ["describe", "is_plain", "place_text", "root_causes", "value_text"]

# A list entry without a name is identified by its index.
_NUMBERED: Final = re.compile(r"\[\d+\]")
_LONGEST: Final = 120
# Characters in programs, policy documents and settings files, but not in short values that people write.
_MACHINE: Final = ("\n", "==", "&&", "||")


def root_causes(step: Step, steps: Sequence[Step]) -> list[str]:
    """Return where a replacement begins: the properties that a person changed, however far away."""
    by_urn = {each.urn: each for each in steps}
    causes: dict[str, None] = {}
    seen: set[str] = set()
    todo = [step]
    while todo:
        current = todo.pop(0)
        if current.urn in seen:
            continue
        seen.add(current.urn)
        for cause in current.causes:
            if not cause.because and cause.replaces:
                causes[("" if current is step else f"{_name(current)}: ") + describe(cause)] = None
            todo += [by_urn[urn] for urn in cause.because if cause.replaces and urn in by_urn]
    return list(causes)[:3]


def describe(cause: Cause) -> str:
    """Return a difference as text: `cidrBlock 10.1.0.0/16 → 10.2.0.0/16`; only the path for generated values."""
    if not cause.path:
        return "its provider changes"
    if cause.because:
        return f"{place_text(cause.place)} known only later"
    if cause.made_up or not is_plain(cause.place, cause.before, cause.after):
        return place_text(cause.place)
    return f"{cause.place} {value_text(cause.before)} → {value_text(cause.after)}"


def place_text(place: str) -> str:
    """Return a place as far as it has names: up to the first entry that has only a number."""
    return _NUMBERED.split(place, maxsplit=1)[0]


def is_plain(place: str, *values: object) -> bool:
    """Return whether a setting is readable: it has a name, and one-line values without generated text."""
    short = sum(len(value_text(each)) for each in values) <= _LONGEST
    return not _NUMBERED.search(place) and short and not any(map(_is_of_a_machine, values))


def _is_of_a_machine(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(each, Mapping) or _is_of_a_machine(each) for each in value)
    return isinstance(value, str) and (value.startswith(("{", "[")) or any(mark in value for mark in _MACHINE))


def _name(step: Step) -> str:
    if step.type.startswith("pulumi:providers:"):
        return f"provider {step.name}"
    kind = step.type.rpartition(":")[2]
    return kind if kind.lower() == step.name.lower() else f"{kind} {step.name}"


def value_text(value: object) -> str:
    """Return a value on one line, as people write it: `{key: a, effect: NoSchedule}`."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(each) for each in value) or "none"
    return str(value)
