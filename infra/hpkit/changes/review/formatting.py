"""Amounts, money and changes as text, alike in every format."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from hpkit.changes.plan_diff import CapacityChange, Change
from hpkit.changes.review.model import Cost
from hpkit.plan.capacity import Amount
from hpkit.text.formatting import amount

__all__ = [
    "arrow",
    "as_fraction",
    "cost",
    "cost_change",
    "cost_sides",
    "decreased",
    "maximum",
    "money",
    "quantity",
    "signed_money",
]

_CENT = Decimal("0.01")


def quantity(value: Amount | None) -> str:
    """Return an amount, `–` for none."""
    return "–" if value is None else amount(value)


def as_fraction(value: Amount | None) -> Fraction:
    """Return an amount as a number; a missing one is 0."""
    return Fraction(value or 0)


def arrow(before: str, after: str) -> str:
    """Return `3 → 2`, or `3` where nothing changed."""
    return after if before == after else f"{before} → {after}"


def decreased(change: Change[Amount] | Change[int]) -> bool:
    """Return whether an amount went down."""
    return as_fraction(change.after) < as_fraction(change.before)


def maximum(change: CapacityChange, *, after: bool) -> str:
    """Return a type's maximum on one side; `unbounded` if no limit bounds it."""
    side = change.maximum.after if after else change.maximum.before
    if side is not None:
        return str(side)
    present = change.present.after if after else change.present.before
    return "unbounded" if present else "–"


def money(value: Decimal) -> str:
    """Return dollars; cents only where they matter."""
    if abs(value) >= 100 or value == value.to_integral_value():
        return f"${value.quantize(Decimal(1), ROUND_HALF_UP):,}"
    return f"${value.quantize(_CENT, ROUND_HALF_UP):,}"


def cost(value: Cost | None) -> str:
    """Return a monthly cost: `at least` where a part is unknown, `unknown` where all is, `about` by near prices."""
    if value is None:
        return "–"
    if value.unbounded:
        return "unbounded"
    about = "about " if value.prices_of else ""
    if value.complete:
        return f"{about}{money(value.known)}"
    return f"at least {about}{money(value.known)}" if value.known else "unknown"


def cost_sides(change: Change[Cost]) -> tuple[str, str]:
    """Return both costs; a cost without a price that the other has is unknown, or growth would look smaller."""
    before, after = change.before, change.after
    return _beside(before, after), _beside(after, before)


def _beside(value: Cost | None, other: Cost | None) -> str:
    lacks_more = value is not None and other is not None and bool(set(value.unknown) - set(other.unknown))
    return "unknown" if lacks_more and value is not None and not value.unbounded else cost(value)


def cost_change(change: Change[Cost]) -> str:
    """Return the difference in dollars if it's known: unknown parts must be the same on both sides.

    `unbounded` if no limit bounds it any more. A removed stack costs money until it's destroyed, and the text states
    that.
    """
    if change.before is None and change.after is None:
        return "unknown"
    before = change.before or Cost(Decimal(0))
    after = change.after or Cost(Decimal(0))
    if set(after.unbounded) - set(before.unbounded):
        return "unbounded"
    if (sorted(before.unknown), sorted(before.unbounded)) != (sorted(after.unknown), sorted(after.unbounded)):
        return "unknown"
    difference = after.known - before.known
    if not difference:
        return "no change"
    later = " once it is destroyed" if change.after is None else ""
    return f"{'about ' if before.prices_of or after.prices_of else ''}{signed_money(difference)}{later}"


def signed_money(value: Decimal) -> str:
    """Return dollars more or less: `+$120`, `−$120`."""
    return f"{'+' if value > 0 else '−'}{money(abs(value))}"
