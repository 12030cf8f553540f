"""The services' `Tag…` and `Untag…` operations, which differ in how they name the resource and its tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import ChangeTags
from hpkit_local.plugins.aws.shapes import tag_list
from hpkit_provider.engine.values import Props

__all__ = ["BY_ARN", "arn_of", "tagging"]

_ARNS = ("arn", "accessEntryArn", "associationArn")


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
