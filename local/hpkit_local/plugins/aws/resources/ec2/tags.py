"""Code that all EC2 types share: tags, and finding a resource by its ID."""

from __future__ import annotations

from typing import Any

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.shapes import tag_list
from hpkit_provider.engine.values import Props

__all__ = ["change_tags", "describe_one", "specifications"]


def change_tags(call: Calls, resource_id: str, _live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    """Set and remove tags, which EC2 does for all its resources by two operations."""
    if changed:
        call("CreateTags", Resources=[resource_id], Tags=tag_list(changed))
    if dropped:
        call("DeleteTags", Resources=[resource_id], Tags=[{"Key": key} for key in dropped])


def specifications(resource_type: str, inputs: Props) -> list[dict[str, Any]] | None:
    """Return the tags of a resource before its creation."""
    tags = tag_list(inputs.get("tagsAll", {}))
    return [{"ResourceType": resource_type, "Tags": tags}] if tags else None


def describe_one(call: Calls, operation: str, member: str, **which: Any) -> dict[str, Any] | None:
    """Return the only entry in a Describe response; None if it's deleted, or being deleted."""
    answer = call.find(operation, **which)
    entries: list[dict[str, Any]] = [] if answer is None else answer[member]
    alive = [entry for entry in entries if str(entry.get("State", "")).lower() not in ("deleted", "deleting")]
    return alive[0] if alive else None
