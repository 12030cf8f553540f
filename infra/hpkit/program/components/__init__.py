"""From the plan to registered resources: translation only, no decision that a check could have made."""

import hpkit.program.components.lazy  # noqa: F401 - before what loads the SDKs
from hpkit.program.components.platform import build

__all__ = ["build"]
