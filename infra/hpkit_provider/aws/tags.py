"""Tags: separate calls, the same for every resource (AddTags, DeleteTags, ListTags)."""

from __future__ import annotations

from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.call import EngineCall

__all__ = ["live_tags", "set_tags"]

Tags = list[dict[str, str]]


def live_tags(api: SageMakerApi, call: EngineCall, arn: str) -> Tags:
    """Return a resource's tags, without those that AWS sets itself."""
    tags = api.pages(call, "list_tags", member="Tags", ResourceArn=arn)
    return [{"key": tag["Key"], "value": tag["Value"]} for tag in tags if not tag["Key"].startswith("aws:")]


def set_tags(api: SageMakerApi, call: EngineCall, arn: str, *, old: Tags, new: Tags) -> None:
    """Send changed tags; tags that others added stay."""
    before = {tag["key"]: tag["value"] for tag in old}
    after = {tag["key"]: tag["value"] for tag in new}
    changed = [{"Key": key, "Value": value} for key, value in after.items() if before.get(key) != value]
    if changed:
        api.call(call, "add_tags", ResourceArn=arn, Tags=changed)
    removed = sorted(before.keys() - after.keys())
    if removed:
        api.call(call, "delete_tags", ResourceArn=arn, TagKeys=removed)
