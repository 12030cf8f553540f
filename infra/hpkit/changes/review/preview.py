"""Reads `pulumi preview --json`: the resources that it creates, updates, replaces and deletes.

It keeps no values. States in a preview contain a program's inputs; only names of properties are read.
"""

import json
from collections.abc import Iterable
from typing import Any

from hpkit.changes import Action
from hpkit.changes.review.model import Preview, PreviewStep
from hpkit.errors import InputError
from hpkit.program.teardown import counts_as_resource

__all__ = ["parse_preview"]

# The engine reports a replacement as up to three steps with one URN, one of which has the reason.
_ACTIONS: dict[str, Action] = {
    "create": "create",
    "import": "create",
    "update": "update",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "import-replacement": "replace",
    "delete": "delete",
}
# The engine's own error after a program has failed.
_FOLLOW_ON_ERROR = "Resource monitor has terminated, shutting down"
_GRAVITY: tuple[Action, ...] = ("update", "create", "delete", "replace")


def parse_preview(text: str, *, stack: str) -> Preview:
    """Return a parsed preview. Raises InputError for any other text."""
    try:
        data = json.loads(text)
    except ValueError:
        raise InputError(f"the preview of {stack} is not JSON; run `pulumi preview --json --stack {stack}`") from None
    if not isinstance(data, dict):
        raise InputError(f"the preview of {stack} is not the output of `pulumi preview --json`, which is a JSON object")
    steps: dict[str, PreviewStep] = {}
    unchanged = 0
    for step in data.get("steps") or ():
        if not counts_as_resource(_type(step)):
            continue
        action = _ACTIONS.get(str(step.get("op")))
        if action is None:
            unchanged += step.get("op") == "same"
            continue
        preview_step = _step(step, action)
        listed = steps.get(preview_step.urn)
        if listed is None or _weight(preview_step) > _weight(listed):
            steps[preview_step.urn] = preview_step
    ordered = sorted(steps.values(), key=lambda step: (-_GRAVITY.index(step.action), step.type, step.name))
    return Preview(tuple(ordered), unchanged, tuple(_problems(data.get("diagnostics") or ())))


def _weight(step: PreviewStep) -> tuple[int, int]:
    return _GRAVITY.index(step.action), len(step.properties)


def _type(step: dict[str, Any]) -> str:
    """Return a resource's own type: the last one of its URN's chain of parents."""
    return str(step.get("urn", "")).rpartition("::")[0].rpartition("::")[2].rpartition("$")[2]


def _step(step: dict[str, Any], action: Action) -> PreviewStep:
    urn = str(step.get("urn", ""))
    reasons = step.get("replaceReasons") if action == "replace" else None
    names = reasons or step.get("diffReasons") or list(step.get("detailedDiff") or {})
    return PreviewStep(action, _type(step), urn.rpartition("::")[2], urn, tuple(sorted({str(each) for each in names})))


def _problems(diagnostics: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Return the errors; one that only follows from another is left out."""
    problems = []
    for diagnostic in diagnostics:
        if diagnostic.get("severity") == "error":
            where = str(diagnostic.get("urn") or "").rpartition("::")[2]
            message = " ".join(str(diagnostic.get("message", "")).split()).removeprefix("error: ")
            problems.append(f"{where}: {message}" if where else message)
    return [each for each in problems if not each.endswith(_FOLLOW_ON_ERROR)] or problems
