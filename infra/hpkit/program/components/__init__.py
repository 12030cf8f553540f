"""Registers the plan's resources: translation only, without decisions that a check could make."""

from hpkit.program.components.platform import build

__all__ = ["build"]
