"""Why a resource is replaced: where it begins, and each difference in words."""

from collections.abc import Mapping, Sequence

from hpkit.change.steps import Cause, Step

__all__ = ["describe", "root_causes", "value_text"]


def root_causes(step: Step, steps: Sequence[Step]) -> list[str]:
    """Return where a replacement begins: the properties that a person changed, however far away."""
    by_urn = {each.urn: each for each in steps}
    found: dict[str, None] = {}
    seen: set[str] = set()
    todo = [step]
    while todo:
        here = todo.pop(0)
        if here.urn in seen:
            continue
        seen.add(here.urn)
        for cause in here.causes:
            if not cause.because and cause.replaces:
                found[("" if here is step else f"{_name(here)}: ") + describe(cause)] = None
            todo += [by_urn[urn] for urn in cause.because if cause.replaces and urn in by_urn]
    # Another region is another everything: what follows from it is no cause of its own.
    provider = [each for each in found if each.startswith("provider ")]
    return (provider or list(found))[:3]


def describe(cause: Cause) -> str:
    """Return a difference in words: `cidrBlock 10.1.0.0/16 → 10.2.0.0/16`."""
    if not cause.path:
        return "its provider is another"
    if cause.because:
        return f"{cause.place} known only later"
    before, after = value_text(cause.before), value_text(cause.after)
    return f"{cause.place} {before} → {after}" if len(before) + len(after) <= 120 else cause.place


def _name(step: Step) -> str:
    if step.type.startswith("pulumi:providers:"):
        return f"provider {step.name}"
    kind = step.type.rpartition(":")[2]
    return kind if kind.lower() == step.name.lower() else f"{kind} {step.name}"


def value_text(value: object) -> str:
    """Return a value as people write it in one line: `{key: a, effect: NoSchedule}`."""
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
