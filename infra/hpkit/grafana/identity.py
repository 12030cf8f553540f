"""Names of hpkit's objects in a Grafana: unique IDs that identify the stack.

Grafana allows 40 letters, digits, `-` and `_` in a UID. A stack's name can be longer, and can be the beginning of
another name, so UIDs contain a digest of it.
"""

import hashlib
from typing import Final

__all__ = ["uid_of"]

_MOST: Final = 40
_DIGITS: Final = 8


def uid_of(stack: str, name: str) -> str:
    """Return the UID of one object; name: its name within the stack."""
    prefix = f"hpkit-{_digest(stack)}-"
    room = _MOST - len(prefix)
    return prefix + (name if len(name) <= room else f"{name[: room - _DIGITS - 1]}-{_digest(name)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
