"""How long a waiver may last, of the validator's rules and of the policy pack's alike."""

import datetime
from typing import Final

__all__ = ["LONGEST_DAYS", "is_too_long"]

# Waivers are renewed within a year; a longer one would be another rule.
LONGEST_DAYS: Final = 366


def is_too_long(until: datetime.date, today: datetime.date) -> bool:
    """Say whether a waiver ends later than one may that is looked at today."""
    return (until - today).days > LONGEST_DAYS
