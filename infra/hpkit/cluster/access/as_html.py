"""The matrix of access as a page."""

from __future__ import annotations

from collections.abc import Sequence

from hpkit.cluster.access.model import Row, called
from hpkit.cluster.live.page import page
from hpkit.cluster.live.sections import Section

__all__ = ["as_html"]


def as_html(stack: str, places: Sequence[str], rows: Sequence[Row], differs: Sequence[str]) -> str:
    """Return the page: a row per principal, a column per place, and differences from the organization file."""
    cells = [
        [
            row.principal,
            called(row),
            *(row.cell(place) for place in places),
        ]
        for row in rows
    ]
    through = [
        [row.principal, place, grant.role, grant.through]
        for row in rows
        for place, grants in row.grants.items()
        for grant in grants
    ]
    return page(
        f"{stack}: permissions",
        f"{len(rows)} principals, {len(places)} places",
        (
            Section("Differs from the organization file", lines=differs, grave=True),
            Section("Roles", head=("principal", "in the file", *places), rows=cells),
            Section("Granted by", head=("principal", "where", "role", "through"), rows=through),
        ),
    )
