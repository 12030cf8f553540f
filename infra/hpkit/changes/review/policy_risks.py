"""Risks in an organization's policy file: policies that accept more than before."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hpkit.changes import value_text
from hpkit.changes.plan_diff import Change
from hpkit.changes.review.model import Risk
from hpkit.text.formatting import listing

__all__ = ["PolicySettings", "policy_risks"]

# Policy → level, or its level and parameters.
PolicySettings = Mapping[str, Any]
_LEVEL: Final = "enforcementLevel"


def policy_risks(settings: Change[PolicySettings]) -> Iterator[Risk]:
    """Yield each policy whose settings differ; None is a side without a policy file."""
    before, after = settings.before or {}, settings.after or {}
    for policy in sorted(before.keys() | after.keys()):
        texts = list(_differences("", *(_spelled_out(side.get(policy)) for side in (before, after))))
        if texts:
            effect = "`hpkit validate --policies` uses it"
            yield Risk("policy-settings", "attention", policy, f"the policy {policy}: {listing(texts, 20)}; {effect}")


def _spelled_out(given: Any) -> Any:
    """Return settings as parameters; a level alone is one of them."""
    return {_LEVEL: given} if isinstance(given, str) else given


def _differences(place: str, was: Any, now: Any) -> Iterator[str]:
    """Yield every value that differs, at its place; a side that is not there has no values."""
    sides = [{} if side is None else side for side in (was, now)]
    if all(isinstance(side, Mapping) for side in sides) and any(sides):
        for key in {**sides[0], **sides[1]}:
            yield from _differences(f"{place}.{key}" if place else key, *(side.get(key) for side in sides))
    elif was != now:
        yield f"{place} {value_text(was)} → {value_text(now)}".strip()
