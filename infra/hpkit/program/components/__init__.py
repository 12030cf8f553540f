"""Registers the plan's resources: translation only, without decisions that a check could make."""

import hpkit.program.components.lazy  # noqa: F401 - before what loads the SDKs
from hpkit.program.components.platform import build

__all__ = ["build"]
