"""Converts names and documents between the provider's form and the APIs'."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["camel", "pascal", "policy_text", "tag_list", "tag_map"]

Tags = dict[str, str]


def pascal(value: Any) -> Any:
    """`cidrBlock` → `CidrBlock`, all the way down."""
    return _renamed(value, str.upper)


def camel(value: Any) -> Any:
    """`CidrBlock` → `cidrBlock`, all the way down."""
    return _renamed(value, str.lower)


def _renamed(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _renamed(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, change) for item in value]
    return value


def tag_list(tags: Tags) -> list[dict[str, str]] | None:
    """Return tags as most APIs take them; None, which is not sent, for none."""
    return [{"Key": key, "Value": value} for key, value in tags.items()] or None


def tag_map(tags: Iterable[dict[str, str]] | None) -> Tags:
    """Return tags in the provider's form."""
    return {tag["Key"]: tag["Value"] for tag in tags or []}


def policy_text(document: Any) -> str:
    """Return a policy as text, whether botocore decoded it or not."""
    return document if isinstance(document, str) else json.dumps(document)
