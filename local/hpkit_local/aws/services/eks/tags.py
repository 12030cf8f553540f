"""Tags of EKS resources by ARN."""

from hpkit_local.aws.api import tag_operations
from hpkit_local.aws.backend import Context
from hpkit_local.aws.errors import ServiceError

__all__: list[str] = []

_TABLES = ("eks", "addons", "podidentity")
_ARNS = ("arn", "addonArn", "associationArn", "accessEntryArn")


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_TagResource.html
def _tags(ctx: Context, arn: str) -> dict[str, str]:
    entries = (item["entry"] for item in ctx.table("access").values())
    for resource in (*(each for table in _TABLES for each in ctx.table(table).values()), *entries):
        if arn in (resource.get(member) for member in _ARNS):
            tags: dict[str, str] = resource["tags"]
            return tags
    raise ServiceError("NotFoundException", f"Resource was not found: {arn}")


tag_operations("eks", _tags, empty=False)
