"""The stack file after nodes were deleted, with each group's count changed in place. No side effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpkit.config.document import Document, Path
from hpkit.config.edit import edited, with_values

__all__ = ["count_paths", "counted", "with_counts"]


def count_paths(document: Document, environment: str) -> dict[str, Path]:
    """Return instance group → the path of its count in an environment, of ordinary and restricted groups."""
    cluster: Any = document.data["environments"][environment]["cluster"]
    return {
        group["name"]: ("environments", environment, "cluster", key, index, "instanceCount")
        for key in ("instanceGroups", "restrictedInstanceGroups")
        for index, group in enumerate(cluster.get(key) or ())
    }


def with_counts(text: str, document: Document, environment: str, counts: Mapping[str, int], *, file: str) -> str:
    """Return the file's text with other counts of groups; groups that aren't in the file are skipped.

    Raises InputError if a count can't be changed separately.
    """
    return edited(text, document, _values(document, environment, counts), file=file)


def counted(document: Document, environment: str, counts: Mapping[str, int]) -> Document:
    """Return the file's data with other counts of groups, whether an anchor shares them or not."""
    return replace(document, data=with_values(document.data, _values(document, environment, counts)))


def _values(document: Document, environment: str, counts: Mapping[str, int]) -> dict[Path, str | int]:
    paths = count_paths(document, environment)
    return {paths[name]: count for name, count in counts.items() if name in paths}
