"""From the plan to registered resources: translation only, no decision that a check could have made."""

import hpkit.components.lazy  # noqa: F401 - before what loads the SDKs
from hpkit.components.platform import build

__all__ = ["build"]
