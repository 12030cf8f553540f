"""What a growing quota will run into, and the words for it: pure comparison, no call in sight."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from provider.rows import WHOLE, Measure, Rows, filled, grown, total

__all__ = ["Outlook", "foreseen", "missing", "overtaken", "stuck", "unbounded"]

_SHOWN: Final = 8
# The engine names a resource only when it has a place for the one before (`--parallel`, four times the processors):
# so many growing quotas in a row keep it from ever naming those that shrink. A preview has the same order and places.
_OR_LATE: Final = " (or names only after more growing quotas than Pulumi changes at once)"
_PLACES: Final = "if it is to shrink in this run, declare it before those that grow, or give `--parallel` more places"


@dataclass(frozen=True)
class Outlook:
    """The quotas of a cluster: as they are live, as the program declares them, and whole instances by type."""

    live: Mapping[str, Rows]
    declared: Mapping[str, Rows]
    capacity: Mapping[str, int]

    @property
    def strangers(self) -> dict[str, Rows]:
        """Live quotas that the program does not declare: it deletes them, or they are another program's."""
        return {name: rows for name, rows in self.live.items() if name not in self.declared}


def missing(used: Rows, new: Rows, *, old: Rows, capacity: Mapping[str, int]) -> Rows:
    """Return the whole instances that a quota grows by and that are not there, of types with a fixed number."""
    sums = total([used, new])
    return {
        measure: sums[measure] - capacity[measure.kind]
        for measure in sorted(grown(old, new))
        if measure.name == WHOLE and measure.kind in capacity and sums[measure] > capacity[measure.kind]
    }


def unbounded(used: Rows, new: Rows, *, old: Rows, capacity: Mapping[str, int]) -> Set[str]:
    """Return the types a quota grows in where no number tells if there is room: only the order of changes helps."""
    fractions = {measure.kind for measure in total([used, old, new]) if measure.name != WHOLE}
    return {measure.kind for measure in grown(old, new) if measure.kind not in capacity or measure.kind in fractions}


def foreseen(outlook: Outlook, name: str, *, old: Rows, new: Rows) -> str | None:
    """Return why a growing quota will find no room, or will pass what the cluster has for a while."""
    declared = {key: filled(rows, outlook.live.get(key, {})) for key, rows in outlook.declared.items()}
    after = total(rows for key, rows in {**outlook.live, **declared}.items() if key != name)
    lacking = missing(after, new, old=old, capacity=outlook.capacity)
    if lacking:
        return _no_room(lacking, outlook, name)
    kinds = unbounded(after, new, old=old, capacity=outlook.capacity)
    now, then = total(outlook.live.values()), total([after, new])
    rising = {measure for measure in grown(old, new) if measure.kind in kinds and then[measure] > now.get(measure, 0)}
    holders = _holders(outlook, rising)
    if not holders:
        return None
    return (
        f"The quota {name!r} grows ({', '.join(map(str, sorted(rising)))}) while {_some(holders)}, which this "
        f"program does not declare{_OR_LATE}, {'holds' if len(holders) == 1 else 'hold'} some. If this run takes some "
        "of that away, it is after the growth, and what is reserved may pass what the cluster has. What to do: remove "
        f"what is to go in a `pulumi up` of its own first; {_PLACES}."
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _holders(outlook: Outlook, measures: Set[Measure]) -> list[str]:
    kinds = {measure.kind for measure in measures}
    return sorted(
        name
        for name, rows in outlook.strangers.items()
        if any(value for measure, value in rows.items() if measure.kind in kinds)
    )


def _no_room(lacking: Rows, outlook: Outlook, name: str) -> str:
    few = ", ".join(f"{number:g} × {measure}" for measure, number in lacking.items())
    holders = _holders(outlook, lacking.keys())
    if not holders:
        return (
            f"The quota {name!r} will find no room ({few} too few): the quotas of this program together reserve "
            "more than the cluster has. What to do: shrink one of them, or add instances."
        )
    return (
        f"The quota {name!r} will find no room ({few} too few): it is held by {_some(holders)}, which this program "
        f"does not declare{_OR_LATE}, and Pulumi deletes only after it has updated. What to do: remove "
        f"{'it' if len(holders) == 1 else 'them'} in a `pulumi up` of its own first, then let this one grow; {_PLACES}."
    )


def stuck(lacking: Rows, used: Rows, outlook: Outlook, name: str) -> str:
    """Return why a growing quota gives up waiting for room."""
    parts = []
    for measure, number in lacking.items():
        holders = [
            f"{key} {rows[measure]:g}" for key, rows in outlook.live.items() if key != name and rows.get(measure)
        ]
        parts.append(
            f"{measure.kind}: {number:g} instance(s) too few; the cluster has {outlook.capacity[measure.kind]}, others "
            f"hold {used.get(measure, 0):g} ({_some(holders) or 'changes under way'})"
        )
    return (
        f"There is no room for quota {name!r} and no known change will make some. {'; '.join(parts)}. What to do: "
        "shrink one of these quotas first, or add instances. Pulumi deletes only after it has updated: a quota that "
        f"is to go must go in a `pulumi up` of its own, before the others grow; {_PLACES}."
    )


def overtaken(first: Mapping[str, str], name: str) -> str:
    """Return why a growing quota gives up waiting for quotas that were to shrink before it (name → failure)."""
    parts = [f"{key} ({failure})" if failure else key for key, failure in sorted(first.items())]
    return (
        f"The quota {name!r} does not grow, so that what is reserved does not pass what the cluster has: "
        f"{', '.join(parts)} {'was' if len(first) == 1 else 'were'} to shrink first in this run, and did not. "
        "What to do: run `pulumi up` again; if that does not shrink, take the growth out of the program until it does."
    )
