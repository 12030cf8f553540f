"""The differences that the first preview after an adoption shows, each with its reason.

Reads the output of `pulumi preview --json`. Pure.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

__all__ = ["Difference", "differences"]

_UNCHANGED: Final = ("same", "read", "refresh", "read-discard")
# Operations that delete a resource, now or as a part of its replacement.
_DESTRUCTIVE: Final = ("delete", "replace", "create-replacement", "delete-replaced", "discard", "discard-replaced")

# A step of a path: a key in quotes, an index, or a plain key.
_STEPS: Final = re.compile(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[]+)')
# Characters in front of the place where two long values differ.
_BEFORE: Final = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """One resource that an `up` would change: operation, `<type> <name>`, `property: live → file` lines, and why."""

    operation: str
    resource: str
    lines: tuple[str, ...]
    reason: str

    @property
    def is_destructive(self) -> bool:
        """Return whether it deletes or replaces."""
        return self.operation in _DESTRUCTIVE


def differences(preview: str) -> list[Difference]:
    """Return the changes that a preview announces, destructive ones first; raises ValueError for any other text."""
    steps = json.loads(preview).get("steps", [])
    found = [_difference(step) for step in steps if step["op"] not in _UNCHANGED]
    return sorted(found, key=lambda each: (not each.is_destructive, each.resource))


def _difference(step: Mapping[str, Any]) -> Difference:
    kind, _, name = step["urn"].rpartition("::")
    token = kind.rpartition("$")[2].rpartition("::")[2]
    lines = tuple(_lines(step))
    return Difference(step["op"], f"{token} {name}", lines, _reason(step, token))


def _lines(step: Mapping[str, Any]) -> Iterator[str]:
    if step["op"] != "update":
        return
    old, new = (step.get(side, {}).get("inputs", {}) for side in ("oldState", "newState"))
    for path in sorted(_changed(step)):
        before, after = (json.dumps(_value(side, path), sort_keys=True, default=str) for side in (old, new))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        yield f"{path}: {_short(before, same)} → {_short(after, same)}"


def _changed(step: Mapping[str, Any]) -> list[str]:
    return list(step.get("detailedDiff") or step.get("diffReasons") or ())


def _value(inputs: Any, path: str) -> Any:
    """Return the value at a path such as `spec.rules[0].verbs`, or None."""
    for quoted, index, key in _STEPS.findall(path):
        try:
            inputs = inputs[int(index) if index else quoted or key]
        except (LookupError, TypeError):
            return None
    return inputs


def _short(text: str, same: int, most: int = 160) -> str:
    """Return a long text from a little before the place where it differs from another one."""
    start = max(0, same - _BEFORE) if len(text) > most else 0
    end = "…" if len(text) - start > most else ""
    return ("…" if start else "") + text[start : start + most] + end


def _reason(step: Mapping[str, Any], token: str) -> str:
    if step["op"] in _DESTRUCTIVE:
        return "an adoption must not delete or replace anything: correct the file before you run anything else"
    if step["op"] == "create":
        return "doesn't exist yet, so the first `pulumi up` creates it"
    names = {path.partition(".")[0].partition("[")[0] for path in _changed(step)}
    for known, reason in _REASONS.get(token, {}).items():
        if names == {known}:
            return reason
    if names <= {"tags", "tagsAll"}:
        return "hpkit tags its resources; `manageTags: false` leaves tags alone"
    return "the file has a different value: change the file to the live value, or let the first `pulumi up` change it"


# Differences of an adoption that change nothing that matters, or that cannot be avoided: type → property → why.
_REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    "aws:eks/addon:Addon": {"configurationValues": "the same settings in a different order or layout"},
    "kubernetes:karpenter.sh/v1:NodePool": {"metadata": "a note for Pulumi on the object: wait until it is Ready"},
    "kubernetes:karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass": {
        "metadata": "a note for Pulumi on the object: wait until it is Ready"
    },
}
