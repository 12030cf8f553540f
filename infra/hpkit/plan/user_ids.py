"""User and group ids of the teams on a file system that they share."""

from hashlib import sha256
from typing import Final

from hpkit.config.models.governance import MOST_ID, UserIds

__all__ = ["SQUASHED", "user_ids_of"]

# `nobody` in the Linux kernel (fs.overflowuid): the user to which root on a client is mapped on the file system.
SQUASHED: Final = 65534
_FIRST: Final = 1_000_000
_COUNT: Final = 1000


def user_ids_of(team: str, stated: UserIds | None) -> range:
    """Return a team's IDs: those in the file, or a range that depends only on its name.

    Other teams don't change it. Names are mapped to one of two million ranges. With a hundred teams, two of them
    collide with a probability of 1 in 400; the validator then requires `userIds`.
    """
    if stated is not None:
        return range(stated.first, stated.first + stated.count)
    slots = (MOST_ID + 1 - _FIRST) // _COUNT
    first = _FIRST + int.from_bytes(sha256(team.encode()).digest()[:8], "big") % slots * _COUNT
    return range(first, first + _COUNT)
