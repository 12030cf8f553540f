"""The table: every type that the stand-in answers for."""

from __future__ import annotations

from typing import Final

from local.plugins.aws.kind import Kind
from local.plugins.aws.services import iam, s3, vpc

__all__ = ["KINDS"]

KINDS: Final[dict[str, Kind]] = {kind.token: kind for module in (vpc, s3, iam) for kind in module.KINDS}
