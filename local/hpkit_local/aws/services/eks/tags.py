"""Tags of EKS resources by ARN."""

from __future__ import annotations

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__: list[str] = []


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_TagResource.html
def _tags(ctx: Context, arn: str) -> dict[str, str]:
    places: tuple[tuple[str, str], ...] = (("eks", "arn"), ("addons", "addonArn"), ("podidentity", "associationArn"))
    for table, member in places:
        for entry in ctx.table(table).values():
            if entry.get(member) == arn:
                found: dict[str, str] = entry["tags"]
                return found
    for entry in ctx.table("access").values():
        if entry["entry"]["accessEntryArn"] == arn:
            mine: dict[str, str] = entry["entry"]["tags"]
            return mine
    raise ServiceError("NotFoundException", f"Resource was not found: {arn}")


@operation("eks", "TagResource")
def tag_resource(ctx: Context, params: Record) -> Record:
    """Set tags; a key that exists gets the new value."""
    _tags(ctx, params["resourceArn"]).update(params["tags"])
    return {}


@operation("eks", "UntagResource")
def untag_resource(ctx: Context, params: Record) -> Record:
    """Remove tags by key."""
    tags = _tags(ctx, params["resourceArn"])
    for key in params["tagKeys"]:
        tags.pop(key, None)
    return {}


@operation("eks", "ListTagsForResource")
def list_tags_for_resource(ctx: Context, params: Record) -> Record:
    """All tags of a resource."""
    tags = _tags(ctx, params["resourceArn"])
    return {"tags": dict(tags)} if tags else {}
