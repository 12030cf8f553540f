"""Names of what hpkit owns in a Grafana workspace: unique ids that say which stack each belongs to.

Grafana takes 40 letters, digits, `-` and `_` of a uid. A stack's name may be longer, and one may begin like another,
so that a digest of it stands there.
"""

import hashlib
from typing import Final

__all__ = ["prefix_of", "uid_of"]

_MOST: Final = 40
_DIGITS: Final = 8


def prefix_of(stack: str) -> str:
    """Return how every uid of a stack begins, and of no other."""
    return f"hpkit-{_digest(stack)}-"


def uid_of(stack: str, name: str) -> str:
    """Return the uid of one object; name: its part within the stack."""
    prefix = prefix_of(stack)
    room = _MOST - len(prefix)
    return prefix + (name if len(name) <= room else f"{name[: room - _DIGITS - 1]}-{_digest(name)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
