"""From the plan to registered resources: translation only, no decision that a check could have made."""

from hpkit.components.platform import build

__all__ = ["build"]
