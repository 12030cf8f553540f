"""User and group ids of the teams on a file system that they share."""

from hashlib import sha256
from typing import Final

from hpkit.config.governance import MOST_ID, UserIds

__all__ = ["SQUASHED", "user_ids_of"]

# `nobody` of the Linux kernel (fs.overflowuid): what root of a client becomes on the file system.
SQUASHED: Final = 65534
_FIRST: Final = 1_000_000
_COUNT: Final = 1000


def user_ids_of(team: str, stated: UserIds | None) -> range:
    """Return the ids of a team: those of the file, or a range that its name alone determines.

    No other team moves it. Two names meet in one of two million ranges with a chance of a four-hundredth for a hundred
    teams; the validator then asks for `userIds`.
    """
    if stated is not None:
        return range(stated.first, stated.first + stated.count)
    slots = (MOST_ID + 1 - _FIRST) // _COUNT
    first = _FIRST + int.from_bytes(sha256(team.encode()).digest()[:8], "big") % slots * _COUNT
    return range(first, first + _COUNT)
