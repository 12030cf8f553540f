"""Names, documents and tags in the provider's form and in the APIs', which differ in how they name a tag."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import ChangeTags
from hpkit_provider.engine.values import Props

__all__ = [
    "BY_ARN",
    "arn_of",
    "camel",
    "change_tags",
    "describe_one",
    "pascal",
    "policy_text",
    "specifications",
    "tag_list",
    "tag_map",
    "tagging",
]

Tags = dict[str, str]
_ARNS = ("arn", "accessEntryArn", "associationArn")


def pascal(value: Any) -> Any:
    """`cidrBlock` → `CidrBlock`, all the way down."""
    return _renamed(value, str.upper)


def camel(value: Any) -> Any:
    """`CidrBlock` → `cidrBlock`, all the way down."""
    return _renamed(value, str.lower)


def _renamed(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _renamed(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, change) for item in value]
    return value


def tag_list(tags: Tags) -> list[dict[str, str]] | None:
    """Return tags as most APIs take them; None, which is not sent, for none."""
    return [{"Key": key, "Value": value} for key, value in tags.items()] or None


def tag_map(tags: Iterable[dict[str, str]] | None) -> Tags:
    """Return tags in the provider's form."""
    return {tag["Key"]: tag["Value"] for tag in tags or []}


def policy_text(document: Any) -> str:
    """Return a policy as text, whether botocore decoded it or not."""
    return document if isinstance(document, str) else json.dumps(document)


def arn_of(_resource_id: str, live: Props) -> str:
    """Return the ARN of a resource."""
    return str(next(live[name] for name in _ARNS if live.get(name)))


def tagging(
    noun: str,
    resource: str,
    *,
    tags: str = "Tags",
    keys: str = "TagKeys",
    form: Callable[[dict[str, str]], Any] = tag_list,
    identify: Callable[[str, Props], str] = lambda resource_id, _live: resource_id,
) -> ChangeTags:
    """Return the tagging by `Tag<noun>` and `Untag<noun>`.

    resource, tags, keys: the names of their parameters; form: how tags are written; identify: the value of `resource`.
    """

    def change(call: Calls, resource_id: str, live: Props, changed: dict[str, str], dropped: list[str]) -> None:
        target = {resource: identify(resource_id, live)}
        if changed:
            call(f"Tag{noun}", **target, **{tags: form(changed)})
        if dropped:
            call(f"Untag{noun}", **target, **{keys: dropped})

    return change


# EKS, Managed Prometheus, Managed Grafana.
BY_ARN: Final = tagging("Resource", "resourceArn", tags="tags", keys="tagKeys", form=dict, identify=arn_of)


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
