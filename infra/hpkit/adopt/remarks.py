"""Remarks on an adoption, reported with the file that it writes."""

from dataclasses import dataclass, field

__all__ = ["Remarks"]


@dataclass
class Remarks:
    """Notes for the user.

    - unmanaged: live, and not managed by hpkit.
    - assumed: in the file, although no API returns it.
    - changes: what the first `up` will change.
    - blockers: what makes the adoption impossible.
    """

    unmanaged: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    blockers: list[str] = field(default_factory=list)
