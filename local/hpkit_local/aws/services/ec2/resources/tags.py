"""What all EC2 types share: their tags, and looking one up by its id."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import Tagging
from hpkit_local.plugins.aws.shapes import tag_list
from hpkit_provider.engine.values import Props

__all__ = ["TAGS", "describe_one", "specifications"]


def _change(call: Calls, resource_id: str, _live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    if changed:
        call("CreateTags", Resources=[resource_id], Tags=tag_list(changed))
    if dropped:
        call("DeleteTags", Resources=[resource_id], Tags=[{"Key": key} for key in dropped])


TAGS: Final = Tagging(_change, "CreateTags DeleteTags")


def specifications(resource_type: str, inputs: Props) -> list[dict[str, Any]] | None:
    """Return the tags of a resource about to be made."""
    tags = tag_list(inputs.get("tagsAll", {}))
    return [{"ResourceType": resource_type, "Tags": tags}] if tags else None


def describe_one(call: Calls, operation: str, member: str, **which: Any) -> dict[str, Any] | None:
    """Return the one entry that a Describe call answers with; None when it is gone, or on its way out."""
    answer = call.find(operation, **which)
    entries: list[dict[str, Any]] = [] if answer is None else answer[member]
    alive = [entry for entry in entries if str(entry.get("State", "")).lower() not in ("deleted", "deleting")]
    return alive[0] if alive else None
