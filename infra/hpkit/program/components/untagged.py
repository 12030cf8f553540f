"""Resources without tags of hpkit: what is there keeps the tags that it has."""

from __future__ import annotations

from typing import Final

import pulumi

__all__ = ["untagged"]

# Where the tags of a resource stand, by the prefix of its type; tagsAll has the provider's own among them.
_TAGS: Final = {"aws:": ("tags", "tagsAll"), "hyperpod:": ("tags",)}


def untagged(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Take the tags out of what the program says of a resource, and have the engine leave live ones alone."""
    kept_tags = next((names for prefix, names in _TAGS.items() if args.type_.startswith(prefix)), ())
    if "tags" not in args.props or not kept_tags:
        return None
    opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(ignore_changes=list(kept_tags)))
    return pulumi.ResourceTransformationResult({**args.props, "tags": None}, opts)
