"""Bucket policies as moto evaluates them, but for statements with a condition, which moto reads as if it had none.

A statement that refuses what does not come over TLS would then refuse everything. Loopback counts as TLS here, and
other conditions are not evaluated: their statements are left out.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket

__all__ = ["install"]


def install() -> None:
    """Make every bucket of this process evaluate its policy so."""
    setattr(FakeBucket, "get_permission", _get_permission)  # noqa: B010 - a plain assignment is no typed one


def _get_permission(bucket: Any, action: str, resource: str) -> Any:
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    document = json.loads(bucket.policy)
    statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    evaluated = [statement for statement in statements if not statement.get("Condition")]
    if not evaluated:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**document, "Statement": evaluated})).is_action_permitted(action, resource)
