"""What blocks an increase of a quota, and the messages about it: a comparison without any call."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from hpkit_provider.resources.compute_quota.amounts import WHOLE, Amounts, Measure, increased, total, with_pro_rata

__all__ = [
    "QuotaSnapshot",
    "capacity_timeout",
    "decrease_failed",
    "missing_instances",
    "preview_warning",
    "types_without_limit",
]

_SHOWN: Final = 8
# The engine names a resource only when the previous one has a slot (`--parallel`, four times the processors). That many
# increases in a row prevent it from ever naming the decreases. A preview has the same order and slots.
_OR_LATE: Final = " (or declares only after more growing quotas than Pulumi changes at once)"
_LEAVING: Final = (
    "if this run deletes it, name its team in `leavingTeams` of the provider (hpkit: `allowDelete: {teams: […]}` in "
    "the environment)"
)
_PLACES: Final = "if it shrinks in this run, declare it before those that grow, or raise `--parallel`"


@dataclass(frozen=True)
class QuotaSnapshot:
    """The quotas of a cluster: as they are live, as the program declares them, and whole instances by type."""

    live: Mapping[str, Amounts]
    declared: Mapping[str, Amounts]
    capacity: Mapping[str, int]

    @property
    def undeclared(self) -> dict[str, Amounts]:
        """Live quotas that the program does not declare: it deletes them, or they are another program's."""
        return {name: amounts for name, amounts in self.live.items() if name not in self.declared}


def missing_instances(used: Amounts, new: Amounts, *, old: Amounts, capacity: Mapping[str, int]) -> Amounts:
    """Return the whole instances that an increase takes and the cluster does not have, of types with a fixed number."""
    sums = total([used, new])
    return {
        measure: sums[measure] - capacity[measure.instance_type]
        for measure in sorted(increased(old, new))
        if measure.name == WHOLE
        and measure.instance_type in capacity
        and sums[measure] > capacity[measure.instance_type]
    }


def types_without_limit(used: Amounts, new: Amounts, *, old: Amounts, capacity: Mapping[str, int]) -> Set[str]:
    """Return the types a quota increases in for which no number limits it: only the order of changes helps."""
    fractions = {measure.instance_type for measure in total([used, old, new]) if measure.name != WHOLE}
    types = {measure.instance_type for measure in increased(old, new)}
    return {each for each in types if each not in capacity or each in fractions}


def preview_warning(snapshot: QuotaSnapshot, name: str, *, old: Amounts, new: Amounts) -> str | None:
    """Return why an increase will find no capacity, or will temporarily exceed the cluster's."""
    declared = {key: with_pro_rata(amounts, snapshot.live.get(key, {})) for key, amounts in snapshot.declared.items()}
    after = total(amounts for key, amounts in {**snapshot.live, **declared}.items() if key != name)
    missing = missing_instances(after, new, old=old, capacity=snapshot.capacity)
    if missing:
        return _no_capacity(missing, snapshot, name)
    types = types_without_limit(after, new, old=old, capacity=snapshot.capacity)
    now, then = total(snapshot.live.values()), total([after, new])
    rising = {
        measure
        for measure in increased(old, new)
        if measure.instance_type in types and then[measure] > now.get(measure, 0)
    }
    holders = _holders(snapshot, rising)
    if not holders:
        return None
    return (
        f"The quota {name!r} grows ({', '.join(map(str, sorted(rising)))}), but {_some(holders)}, which this program "
        f"doesn't declare{_OR_LATE}, {'holds' if len(holders) == 1 else 'hold'} some of the capacity. If this run "
        "frees it, that happens after the growth, so the reserved quota can exceed the cluster's capacity. What to "
        f"do: {_LEAVING}; {_PLACES}."
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _holders(snapshot: QuotaSnapshot, measures: Set[Measure]) -> list[str]:
    """Return the undeclared quotas that have some of these instance types."""
    types = {measure.instance_type for measure in measures}
    return sorted(
        name
        for name, amounts in snapshot.undeclared.items()
        if any(value for measure, value in amounts.items() if measure.instance_type in types)
    )


def _no_capacity(missing: Amounts, snapshot: QuotaSnapshot, name: str) -> str:
    few = ", ".join(f"{number:g} × {measure}" for measure, number in missing.items())
    holders = _holders(snapshot, missing.keys())
    if not holders:
        return (
            f"The quota {name!r} doesn't fit ({few} too few): the quotas of this program together reserve more than "
            "the cluster has. What to do: shrink one of them, or add instances."
        )
    return (
        f"The quota {name!r} doesn't fit ({few} too few): {_some(holders)}, which this program doesn't "
        f"declare{_OR_LATE}, {'holds' if len(holders) == 1 else 'hold'} the capacity, and Pulumi deletes quotas only "
        f"after it updates others. What to do: {_LEAVING}; {_PLACES}."
    )


def capacity_timeout(missing: Amounts, used: Amounts, snapshot: QuotaSnapshot, name: str) -> str:
    """Return why an increase gives up waiting for capacity."""
    parts = []
    for measure, number in missing.items():
        holders = [
            f"{key} {amounts[measure]:g}"
            for key, amounts in snapshot.live.items()
            if key != name and amounts.get(measure)
        ]
        capacity = snapshot.capacity[measure.instance_type]
        parts.append(
            f"{measure.instance_type}: {number:g} instance(s) too few; the cluster has {capacity}, others hold "
            f"{used.get(measure, 0):g} ({_some(holders) or 'changes in progress'})"
        )
    return (
        f"The quota {name!r} doesn't fit, and no known change will free capacity. {'; '.join(parts)}. What to do: "
        "shrink one of these quotas first, or add instances. Pulumi deletes a quota after it updates others: "
        f"{_LEAVING}; {_PLACES}."
    )


def decrease_failed(failures: Mapping[str, str], name: str) -> str:
    """Return why an increase stops waiting for the decreases before it (name → failure)."""
    parts = [f"{key} ({failure})" if failure else key for key, failure in sorted(failures.items())]
    return (
        f"The quota {name!r} doesn't grow, so that the reserved quota doesn't exceed the cluster's capacity: "
        f"{', '.join(parts)} should have shrunk first in this run, but didn't. What to do: run `pulumi up` again. If "
        "it still doesn't shrink, revert the growth until it does."
    )
