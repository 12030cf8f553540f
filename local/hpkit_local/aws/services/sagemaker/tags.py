"""AddTags, DeleteTags and ListTags for clusters, compute quotas and cluster policies."""

from __future__ import annotations

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__: list[str] = []

MOST = 50


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AddTags.html
def _tags(ctx: Context, arn: str) -> dict[str, str]:
    for table in ("clusters", "quotas", "policies"):
        for entry in ctx.table(table).values():
            if entry["arn"] == arn:
                found: dict[str, str] = entry["tags"]
                return found
    raise ServiceError("ValidationException", f"Could not find resource with ARN: {arn}")


def _listed(tags: dict[str, str]) -> list[Record]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AddTags.html
@operation("sagemaker", "AddTags")
def add_tags(ctx: Context, params: Record) -> Record:
    """Set tags; a key that exists gets the new value."""
    tags = _tags(ctx, params["ResourceArn"])
    new_tags = {tag["Key"]: tag["Value"] for tag in params["Tags"]}
    if len({**tags, **new_tags}) > MOST:
        raise ServiceError("ResourceLimitExceeded", f"A resource can have up to {MOST} tags")
    tags.update(new_tags)
    return {"Tags": _listed(tags)}


@operation("sagemaker", "DeleteTags")
def delete_tags(ctx: Context, params: Record) -> Record:
    """Remove tags by key; a key that is not there is no error."""
    tags = _tags(ctx, params["ResourceArn"])
    for key in params["TagKeys"]:
        tags.pop(key, None)
    return {}


@operation("sagemaker", "ListTags")
def list_tags(ctx: Context, params: Record) -> Record:
    """Tags in pages."""
    listed = _listed(_tags(ctx, params["ResourceArn"]))
    tags, token = page(listed, size=params.get("MaxResults"), token=params.get("NextToken"))
    return {"Tags": tags, **({"NextToken": token} if token else {})}
