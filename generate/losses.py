"""The table of docs/guides/review.md: what each type without a guard loses. The rest of the page is written by hand."""

import re
from typing import Final

from hpkit.catalog import losses
from hpkit.project import project_root

__all__ = ["FILE", "review_page"]

FILE: Final = "docs/guides/review.md"
_TABLE: Final = re.compile(r"(?<=\| type \| effect of a replacement or deletion \|\n\|---\|---\|\n)(?:\|.*\n)*")


def review_page() -> str:
    """Return the page with one row per effect."""
    types: dict[str, list[str]] = {}
    for token, loss in losses().items():
        types.setdefault(loss, []).append(f"`{token}`")
    rows = "".join(f"| {', '.join(tokens)} | {loss} |\n" for loss, tokens in types.items())
    return _TABLE.sub(lambda _: rows, (project_root() / FILE).read_text(encoding="utf-8"))
