"""Resources without hpkit's tags: existing resources keep their tags."""

from __future__ import annotations

from typing import Final

import pulumi

__all__ = ["untagged"]

# The position of a resource's tags, by the prefix of its type; tagsAll includes the provider's own.
_TAGS: Final = {"aws:": ("tags", "tagsAll"), "hyperpod:": ("tags",)}


def untagged(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Remove the tags from a resource's inputs, and make the engine ignore live ones."""
    kept_tags = next((names for prefix, names in _TAGS.items() if args.type_.startswith(prefix)), ())
    if "tags" not in args.props or not kept_tags:
        return None
    opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(ignore_changes=list(kept_tags)))
    return pulumi.ResourceTransformationResult({**args.props, "tags": None}, opts)
