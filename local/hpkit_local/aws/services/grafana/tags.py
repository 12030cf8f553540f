"""Tags of Grafana workspaces by ARN."""

from __future__ import annotations

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.grafana.workspaces import TABLE

__all__: list[str] = []


# Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_TagResource.html
def _tags(ctx: Context, arn: str) -> dict[str, str]:
    for workspace in ctx.table(TABLE).values():
        if workspace["arn"] == arn:
            found: dict[str, str] = workspace["tags"]
            return found
    raise ServiceError("ResourceNotFoundException", f"Resource {arn} does not exist", status=404)


@operation("grafana", "TagResource")
def tag_resource(ctx: Context, params: Record) -> Record:
    """Set tags; a key that exists gets the new value."""
    _tags(ctx, params["resourceArn"]).update(params["tags"])
    return {}


@operation("grafana", "UntagResource")
def untag_resource(ctx: Context, params: Record) -> Record:
    """Remove tags by key."""
    tags = _tags(ctx, params["resourceArn"])
    for key in params["tagKeys"]:
        tags.pop(key, None)
    return {}


@operation("grafana", "ListTagsForResource")
def list_tags_for_resource(ctx: Context, params: Record) -> Record:
    """All tags of a workspace."""
    return {"tags": dict(_tags(ctx, params["resourceArn"]))}
