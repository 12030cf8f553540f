"""The stack file after nodes were deleted: each group's count, changed where it stands. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpkit.config.document import Document, Path
from hpkit.config.edit import replaced

__all__ = ["count_paths", "with_counts"]


def count_paths(document: Document, environment: str) -> dict[str, Path]:
    """Return instance group → the path of its count in an environment, of ordinary and restricted groups."""
    cluster: Any = document.data["environments"][environment]["cluster"]
    return {
        group["name"]: ("environments", environment, "cluster", key, index, "instanceCount")
        for key in ("instanceGroups", "restrictedInstanceGroups")
        for index, group in enumerate(cluster.get(key) or ())
    }


def with_counts(text: str, document: Document, environment: str, counts: Mapping[str, int], *, file: str) -> str:
    """Return the file's text with other counts of groups; a group that the file does not have is left out.

    Raises InputError where a count cannot be changed alone.
    """
    paths = count_paths(document, environment)
    return replaced(text, document, {paths[name]: n for name, n in counts.items() if name in paths}, file=file)
