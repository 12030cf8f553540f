"""The steps of a preview in a form that can be published and compared: what is approved is what `up` does.

It has no values, only a hash of each resource's inputs. Not compared: secrets, which the engine hides, and inputs that
a plugin generates, because names with random letters differ in each preview.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, TypedDict

from hpkit.errors import InputError

__all__ = ["Step", "differences", "steps_of"]

_NO_CHANGE: Final = ("same", "read", "refresh")
# Pulumi, sdk/go/common/resource/sig: marks a secret in JSON. The engine writes the ciphertext, which differs each time.
_SECRET: Final = "4dabf18193072939515e22adb298388d"  # noqa: S105 - a marker
_HIDDEN: Final = "[secret]"


class Step(TypedDict):
    """A change of one resource: its operation, changed properties, provider ID, and the hash of all of its inputs."""

    op: str
    urn: str
    id: str | None
    changes: list[str]
    inputs: str | None


def steps_of(text: str) -> list[Step]:
    """Return the changes in the output of `pulumi preview --json`, sorted.

    Raises InputError for other text, and for a preview without steps, which didn't reach the stack.
    """
    try:
        steps = json.loads(text)["steps"]
        changes = [_step(each) for each in steps if each["op"] not in _NO_CHANGE]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("the input isn't the output of `pulumi preview --json` with steps") from None
    if not steps:
        raise InputError("the preview is empty: Pulumi reported no steps. Run `pulumi preview --json` again")
    return sorted(changes, key=lambda step: (step["urn"], step["op"]))


def differences(approved: Sequence[Step], now: Sequence[Step]) -> list[str]:
    """Return a line for each step that is only in one of two previews."""
    return [
        *(f"approved, but not in this preview: {_line(step)}" for step in approved if step not in now),
        *(f"not approved: {_line(step)}" for step in now if step not in approved),
    ]


def _step(step: dict[str, Any]) -> Step:
    new, old = step.get("newState") or {}, step.get("oldState") or {}
    return {
        "op": step["op"],
        "urn": step["urn"],
        "id": old.get("id"),
        "changes": sorted(step.get("detailedDiff") or {}),
        "inputs": _hash(new["inputs"]) if new.get("inputs") else None,
    }


def _hash(inputs: Any) -> str:
    return hashlib.sha256(json.dumps(_comparable(inputs), sort_keys=True).encode()).hexdigest()


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if not isinstance(value, dict):
        return value
    if _SECRET in value:
        return _HIDDEN
    # Plugins bridged from Terraform list the properties that they generated.
    generated = value.get("__defaults") or ()
    return {key: _comparable(each) for key, each in value.items() if key not in generated and not key.startswith("__")}


def _line(step: Step) -> str:
    changes = f" ({', '.join(step['changes'])})" if step["changes"] else ""
    return f"{step['op']} {step['urn']}{changes}, inputs {(step['inputs'] or 'none')[:12]}"
