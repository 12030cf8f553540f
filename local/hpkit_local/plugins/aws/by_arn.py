"""Tags of services that take them by ARN (EKS, Managed Prometheus, Managed Grafana)."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import Tagging
from hpkit_provider.engine.values import Props

__all__ = ["TAGS"]

_ARNS = ("arn", "accessEntryArn", "associationArn")


def _change(call: Calls, _resource_id: str, live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    arn = next(live[name] for name in _ARNS if live.get(name))
    if changed:
        call("TagResource", resourceArn=arn, tags=changed)
    if dropped:
        call("UntagResource", resourceArn=arn, tagKeys=dropped)


TAGS: Final = Tagging(_change, "TagResource UntagResource")
