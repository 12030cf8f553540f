"""The maximum length of a waiver, for the validator's rules and the policy pack."""

import datetime
from typing import Final

__all__ = ["LONGEST_DAYS", "is_too_long"]

# Waivers are renewed within a year; a longer one would be another rule.
LONGEST_DAYS: Final = 366


def is_too_long(until: datetime.date, today: datetime.date) -> bool:
    """Return whether a waiver ends later than allowed as of today."""
    return (until - today).days > LONGEST_DAYS
