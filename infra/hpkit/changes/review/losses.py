"""Losses of teams: every amount and right that the change lowers."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from hpkit.catalog import find_instance_type
from hpkit.changes.plan_diff import PlanDiff, ShareChange, TeamChange
from hpkit.changes.review.formatting import as_fraction, decreased
from hpkit.changes.review.model import Loss
from hpkit.config.models.registry import Registry
from hpkit.plan.capacity import DIMENSIONS, usage
from hpkit.plan.lustre import CLAIM, LOCAL_CLAIM
from hpkit.plan.model import Plan, TeamPlan

__all__ = ["TEAM_RESOURCES", "losses_of"]

# Resources that the program creates for each team with the team's name, by the last part of their type.
TEAM_RESOURCES: Final = frozenset(
    (
        *("ComputeQuota", "LimitRange", "NamespacePatch", "PersistentVolume", "PersistentVolumeClaim"),
        *("ResourceQuota", "Role", "RoleBinding"),
    )
)
# Measures of a team's quota other than whole instances, which are its guarantee.
_MEASURES: Final = DIMENSIONS[1:4]
_NOTHING: Final = (Fraction(0),) * len(_MEASURES)
_ORDER: Final = (
    "queue", "guarantee", *_MEASURES, "elastic quota", "borrowable", "borrow limit", "weight", "access", "workloads",
    "priority classes", "service accounts", "files", "shared files", "local files", "images kept", "untagged images",
    "topology", "node recovery",
)  # fmt: skip


def losses_of(diff: PlanDiff) -> tuple[Loss, ...]:
    """Return all losses, guarantees first, and the largest of them first.

    A new stack takes nothing from anyone. The shared pool has no owner, so a smaller pool is a loss of the teams that
    can borrow from it.
    """
    losses = [loss for team in diff.teams if not team.is_shared_pool for loss in _team(team)]
    if diff.before is not None and diff.after is not None:
        fewer = {
            (team.name, share.instance_type)
            for team in diff.teams
            for share in team.shares
            if decreased(share.guarantee) or decreased(share.elastic)
        }
        losses += [
            each for each in _of_staying(diff.before, diff.after) if (each.team, each.instance_type) not in fewer
        ]
    return tuple(
        sorted(
            losses,
            key=lambda loss: (
                _ORDER.index(loss.what),
                as_fraction(loss.after) - as_fraction(loss.before),
                loss.team,
                loss.instance_type or "",
            ),
        )
    )


def _team(team: TeamChange) -> Iterator[Loss]:
    if not team.present.before:
        return
    if not team.present.after:
        yield Loss(team.name, "queue", None, 1, 0)
    for share in team.shares:
        yield from _share(team.name, share, leaves=not team.present.after)
    if team.present.after and decreased(team.fair_share_weight):
        yield Loss(team.name, "weight", None, team.fair_share_weight.before or 0, team.fair_share_weight.after or 0)
    if team.members_removed:
        yield Loss(team.name, "access", None, len(team.members_removed), 0, team.members_removed)


def _share(team: str, share: ShareChange, *, leaves: bool) -> Iterator[Loss]:
    """Yield lower amounts; a team without a queue borrows nothing, which the loss of its queue implies."""
    parts = [("guarantee", share.guarantee), ("elastic quota", share.elastic)]
    if not leaves:
        parts += [("borrowable", share.borrowable), ("borrow limit", share.borrow_limit)]
    for what, change in parts:
        if decreased(change):
            yield Loss(team, what, share.instance_type, change.before or 0, change.after or 0)


def _of_staying(before: Plan, after: Plan) -> Iterator[Loss]:
    """Yield what teams with a queue before and after may no longer do or have, except instances and sharing."""
    new = {team.name: team for team in after.teams}
    for old in before.teams:
        if old.name in new and not old.is_shared_pool:
            yield from _measures(old, new[old.name])
            yield from _rights(old, new[old.name], before, after)
            yield from _of_platform(old.name, before, after)
            if old.spec.registry and new[old.name].spec.registry:
                yield from _images(old.name, before, after)


def _measures(old: TeamPlan, new: TeamPlan) -> Iterator[Loss]:
    """Yield lower amounts of resources, such as vCPUs that no longer follow accelerators."""
    was, now = _held(old), _held(new)
    for instance_type, amounts in was.items():
        for what, had, has in zip(_MEASURES, amounts, now.get(instance_type, _NOTHING), strict=True):
            if has < had:
                yield Loss(old.name, what, instance_type, had, has)


def _held(team: TeamPlan) -> dict[str, tuple[Fraction, ...]]:
    """Return a team's reserved amount of each type, in every measure, including elastic quota."""
    reserved: dict[str, tuple[Fraction, ...]] = {}
    for quota in team.quota_resources:
        instance = find_instance_type(quota.instance_type)
        if instance is not None:
            amounts = map(as_fraction, usage(quota, instance).vector[1:4])
            counted = reserved.get(quota.instance_type, _NOTHING)
            reserved[quota.instance_type] = tuple(one + other for one, other in zip(counted, amounts, strict=True))
    return reserved


def _rights(old: TeamPlan, new: TeamPlan, before: Plan, after: Plan) -> Iterator[Loss]:
    class_names = {each.name for each in after.policy.priority_classes} if after.policy else set()
    for right, was, now in (
        ("workloads", old.spec.workloads, new.spec.workloads),
        ("service accounts", old.spec.service_accounts, new.spec.service_accounts),
        # A class that the policy no longer has is reported for the policy, not for each team.
        (
            "priority classes",
            _classes(old, before),
            (*_classes(new, after), *(set(_classes(old, before)) - class_names)),
        ),
    ):
        removed = tuple(name for name in was if name not in now)
        if removed:
            yield Loss(old.name, right, None, len(was), len(was) - len(removed), removed)


def _classes(team: TeamPlan, plan: Plan) -> tuple[str, ...]:
    """Return the priority classes that members may use: all of the policy where the team names none."""
    return team.spec.priority_classes or tuple(
        each.name for each in (plan.policy.priority_classes if plan.policy else ())
    )


def _images(team: str, before: Plan, after: Plan) -> Iterator[Loss]:
    was, now = (plan.spec.registry or Registry() for plan in (before, after))
    if now.keep_images is not None and (was.keep_images is None or now.keep_images < was.keep_images):
        yield Loss(team, "images kept", None, was.keep_images, now.keep_images)
    if now.untagged_days < was.untagged_days:
        yield Loss(team, "untagged images", None, was.untagged_days, now.untagged_days)


def _of_platform(team: str, before: Plan, after: Plan) -> Iterator[Loss]:
    """Yield what every team has that the platform switches off."""
    lustre = [plan.spec.storage.lustre if plan.spec.storage else None for plan in (before, after)]
    if lustre[0] is not None and lustre[0].teams and not (lustre[1] is not None and lustre[1].teams):
        yield Loss(team, "files" if lustre[1] is None else "shared files", None, 1, 0, (CLAIM,))
    disks = [plan.spec.storage.local_disk if plan.spec.storage else None for plan in (before, after)]
    if disks[0] is not None and disks[1] is None:
        yield Loss(team, "local files", None, 1, 0, (LOCAL_CLAIM,))
    if before.topology_aware_scheduling and after.manages_topology and not after.topology_aware_scheduling:
        yield Loss(team, "topology", None, 1, 0)
    if before.spec.cluster.node_recovery == "Automatic" and after.spec.cluster.node_recovery != "Automatic":
        yield Loss(team, "node recovery", None, 1, 0)
