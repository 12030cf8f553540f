"""Who loses what: every amount and right of a team that the change lowers."""

from collections.abc import Iterator

from hpkit.plan.diff import PlanDiff, ShareChange, TeamChange
from hpkit.review.formatting import as_fraction, decreased
from hpkit.review.model import Loss

__all__ = ["losses_of"]


def losses_of(diff: PlanDiff) -> tuple[Loss, ...]:
    """Return all losses, guarantees first and the largest first among them.

    A stack that comes takes nothing from anybody, and the shared pool is nobody's: what its shrinking takes from
    others is in what they may borrow.
    """
    found = [loss for team in diff.teams if not team.is_shared_pool for loss in _team(team)]
    order = ("queue", "guarantee", "elastic quota", "borrowable", "borrow limit", "weight", "access")
    return tuple(
        sorted(
            found,
            key=lambda loss: (
                order.index(loss.what),
                as_fraction(loss.after) - as_fraction(loss.before),
                loss.team,
                loss.instance_type,
            ),
        )
    )


def _team(team: TeamChange) -> Iterator[Loss]:
    if not team.present.before:
        return
    if not team.present.after:
        yield Loss(team.name, "queue", "", 1, 0)
    for share in team.shares:
        yield from _share(team.name, share)
    if team.present.after and decreased(team.weight):
        yield Loss(team.name, "weight", "", team.weight.before or 0, team.weight.after or 0)
    if team.members_removed:
        yield Loss(team.name, "access", "", len(team.members_removed), 0)


def _share(team: str, share: ShareChange) -> Iterator[Loss]:
    parts = (
        ("guarantee", share.guarantee),
        ("elastic quota", share.elastic),
        ("borrowable", share.borrowable),
        ("borrow limit", share.borrow_limit),
    )
    for what, change in parts:
        if decreased(change):
            yield Loss(team, what, share.instance_type, change.before or 0, change.after or 0)
