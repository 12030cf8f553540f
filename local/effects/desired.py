"""All that should be in the API server, from all that is in the AWS endpoint."""

from __future__ import annotations

from collections.abc import Collection

from local.aws.view import Picture
from local.effects.access import access
from local.effects.karpenter import kinds
from local.effects.nodes import nodes
from local.effects.objects import Plan
from local.effects.policy import governance

__all__ = ["desired"]


def desired(picture: Picture, namespaces: Collection[str]) -> Plan:
    """Return every object that should be; nothing without an EKS cluster. `namespaces` are those there now."""
    if not picture.eks:
        return Plan()
    return kinds(picture) + nodes(picture) + access(picture, namespaces) + governance(picture)
