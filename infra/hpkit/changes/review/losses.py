"""Losses of teams: every amount and right that the change lowers."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from hpkit.catalog import find_instance_type
from hpkit.changes import GUARDED_TYPES
from hpkit.changes.plan_diff import PlanDiff, ShareChange, TeamChange
from hpkit.changes.review.cost import group_cost, pool_cost, total
from hpkit.changes.review.formatting import as_fraction, decreased
from hpkit.changes.review.model import Loss, MoneyChange, Risk
from hpkit.config.models.registry import Registry
from hpkit.plan.capacity import DIMENSIONS, borrow_percent, dimensions_of, usage
from hpkit.plan.existing import team_buckets
from hpkit.plan.lustre import CLAIM, LOCAL_CLAIM
from hpkit.plan.model import Plan, QuotaResource, TeamPlan

__all__ = ["GRAVITY", "TEAM_RESOURCES", "losses_of", "most_severe_risks_first", "with_effects"]

# Resources that the program creates for each team with the team's name, by the last part of their type.
TEAM_RESOURCES: Final = frozenset(
    (
        *("ComputeQuota", "LimitRange", "NamespacePatch", "PersistentVolume", "PersistentVolumeClaim"),
        *("ResourceQuota", "Role", "RoleBinding"),
    )
)
# Measures of a team's quota other than whole instances.
_MEASURES: Final = DIMENSIONS[1:4]
_NOTHING: Final[Counter[str]] = Counter()
# Amounts of instance types, by measure and, for GPUs in parts, by MIG profile.
_Held = dict[str, Counter[str]]
_ORDER: Final = (
    "queue", "quota", *_MEASURES, "elastic quota", "borrowable", "borrow limit",
    *(f"borrowable {each}" for each in _MEASURES), "weight", "access", "workloads",
    "run time", "priority classes", "service accounts", "buckets", "files", "shared files", "local files",
    "images kept", "untagged images", "topology", "node recovery",
)  # fmt: skip


def losses_of(diff: PlanDiff) -> tuple[Loss, ...]:
    """Return all losses, quotas first, and the largest of them first.

    A new stack takes nothing from anyone. The shared pool has no owner, so a smaller pool is a loss of the teams that
    can borrow from it.
    """
    losses = [loss for team in diff.teams if not team.is_shared_pool for loss in _team(team)]
    if diff.before is not None and diff.after is not None:
        fewer = {
            (team.name, share.instance_type)
            for team in diff.teams
            for share in team.shares
            if decreased(share.quota) or decreased(share.elastic)
        }
        less = {
            (team.name, share.instance_type): as_fraction(share.borrow_limit.after)
            for team in diff.teams
            for share in team.shares
            if decreased(share.borrowable) or decreased(share.borrow_limit)
        }
        losses += [
            each
            for each in _of_staying(diff.before, diff.after)
            if (each.team, each.instance_type) not in fewer and not _follows(each, less)
        ]
    return tuple(
        sorted(
            losses,
            key=lambda loss: (
                _ORDER.index(loss.what) if loss.what in _ORDER else len(_ORDER),
                as_fraction(loss.after) - as_fraction(loss.before),
                loss.team,
                loss.instance_type or "",
            ),
        )
    )


def _follows(loss: Loss, limits: Mapping[tuple[str, str], Fraction]) -> bool:
    """Return whether an amount falls no further than the limit in instances, which is listed."""
    limit = limits.get((loss.team, loss.instance_type or ""))
    instance = find_instance_type(loss.instance_type or "")
    measure = loss.what.removeprefix("borrowable ")
    if limit is None or instance is None or measure == loss.what:
        return False
    of_one = dict(zip(DIMENSIONS, dimensions_of(instance), strict=True)).get(measure) or 0
    return as_fraction(loss.after) >= limit * as_fraction(of_one)


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
    parts = [("quota", share.quota), ("elastic quota", share.elastic)]
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
            yield from _of_platform(old, before, after)
            if old.spec.registry and new[old.name].spec.registry:
                yield from _images(old.name, before, after)


def _measures(old: TeamPlan, new: TeamPlan) -> Iterator[Loss]:
    """Yield lower amounts of resources, such as vCPUs that no longer follow accelerators."""
    was, now = _held(old.quota_resources), _held(new.quota_resources)
    yield from _lower(old.name, "{}", was, now)
    # A percentage follows the quota, whose loss is listed.
    limited = old.absolute_borrow_limits | new.absolute_borrow_limits
    could, can = _borrows(old, was), _borrows(new, now)
    yield from _lower(old.name, "borrowable {}", {kind: could[kind] for kind in limited if kind in could}, can)


def _lower(team: str, what: str, was: _Held, now: _Held) -> Iterator[Loss]:
    for instance_type, amounts in was.items():
        for measure, had in amounts.items():
            has = now.get(instance_type, _NOTHING)[measure]
            if has < had:
                yield Loss(team, what.format(measure), instance_type, had, has)


def _held(quota_resources: Iterable[QuotaResource]) -> _Held:
    """Return the amounts of each type, in every measure, including elastic quota."""
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for quota in quota_resources:
        instance = find_instance_type(quota.instance_type)
        if instance is not None:
            amounts = map(as_fraction, usage(quota, instance).vector[1:4])
            held[quota.instance_type].update(dict(zip(_MEASURES, amounts, strict=True)))
            if quota.partition is not None:
                held[quota.instance_type][quota.partition.type] += quota.partition.count
    return dict(held)


def _borrows(team: TeamPlan, held: _Held) -> _Held:
    """Return the amounts that a team's own limit allows it to borrow."""
    if not team.borrows:
        return {}
    limits = team.absolute_borrow_limits
    part = Fraction(borrow_percent(team), 100)
    by_percentage = {
        kind: Counter({measure: amount * part for measure, amount in amounts.items()})
        for kind, amounts in held.items()
        if kind not in limits
    }
    return by_percentage | _held(each for limit in limits.values() for each in limit)


def _rights(old: TeamPlan, new: TeamPlan, before: Plan, after: Plan) -> Iterator[Loss]:
    class_names = {each.name for each in after.policy.priority_classes} if after.policy else set()
    for right, was, now in (
        ("workloads", old.spec.workloads, new.spec.workloads),
        ("service accounts", old.spec.service_accounts, new.spec.service_accounts),
        ("buckets", _buckets(old, before), _buckets(new, after)),
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
    _, longest = old.run_seconds or (None, None)
    if new.run_seconds is not None and (longest is None or new.run_seconds[1] < longest):
        yield Loss(old.name, "run time", None, longest, new.run_seconds[1])


def _buckets(team: TeamPlan, plan: Plan) -> tuple[str, ...]:
    """Return the buckets that the team's pods read, and those that they write, in words."""
    buckets = team_buckets(plan).get(team.name, ())
    names = {f"s3://{each.bucket}/{each.prefix or ''}": each.read_only for each in buckets}
    return (*names, *(f"{name} (write)" for name, read_only in names.items() if not read_only))


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


def _of_platform(of: TeamPlan, before: Plan, after: Plan) -> Iterator[Loss]:
    """Yield what a team has that the platform switches off."""
    team, types = of.name, [find_instance_type(row.instance_type) for row in _rows(of)]
    lustre = [plan.spec.storage.lustre if plan.spec.storage else None for plan in (before, after)]
    if lustre[0] is not None and lustre[0].teams and not (lustre[1] is not None and lustre[1].teams):
        yield Loss(team, "files" if lustre[1] is None else "shared files", None, 1, 0, (CLAIM,))
    disks = [plan.spec.storage.local_disk if plan.spec.storage else None for plan in (before, after)]
    if disks[0] is not None and disks[1] is None:
        yield Loss(team, "local files", None, 1, 0, (LOCAL_CLAIM,))
    has_layers = any(each is not None and each.network_layers for each in types)
    is_off = after.manages_topology and not after.topology_aware_scheduling
    if before.topology_aware_scheduling and is_off and has_layers:
        yield Loss(team, "topology", None, 1, 0)
    if before.spec.cluster.node_recovery == "Automatic" and after.spec.cluster.node_recovery != "Automatic":
        yield Loss(team, "node recovery", None, 1, 0)


_OF_ALL: Final = {f"{action}-{key}" for action in ("replace", "delete") for key in GUARDED_TYPES.values()} | {
    "account-changed", "region-changed", "network-changed", "addon-removed", "configuration", "dependency-removed",
    "governance-removed", "nat-gateway-removed", "node-recovery", "policy", "priority-order",
    "priority-class-removed", "gang-scheduling", "addon-migration", "addon-version", "tiered-storage",
    "egress-changed", "stack-removed", "stack-renamed", "version",
}  # fmt: skip
_OF_TEAM: Final = {"team-removed", "team-renamed", "preemption", "sharing"}
_OF_POOL: Final = {"node-pool-removed", "node-pool-renamed", "node-pool-settings", "limit-raised", "limit-lowered"}
_OF_TYPE: Final = {"type-removed", "limit-below-elastic", "borrowing"}
# Permanent losses first, then running work, then permissions; what might be lost later is last.
GRAVITY: Final = (
    "account-changed", "region-changed", "network-changed",
    *(f"{action}-{key}" for key in GUARDED_TYPES.values() for action in ("delete", "replace")),
    "stack-removed", "stack-renamed", "governance-removed", "group-removed", "group-renamed", "team-removed",
    "team-renamed", "type-removed", "node-pool-removed", "node-pool-renamed", "nodes-removed", "karpenter-off",
    "karpenter-group-removed", "karpenter-group-added",
    "addon-removed", "dependency-removed", "node-recovery", "nat-gateway-removed", "repository-removed",
    "immutable", "version", "addon-migration",
    "limit-raised", "limit-lowered", "limit-below-elastic", "unprotected", "stack-file",
    "boundary", "root-squash", "user-ids", "access-removed", "image-access-reduced", "egress-changed", "spaces",
    "endpoint", "administrators", "viewers", "alerts", "quota-lowered", "borrowing", "shared-pool", "sharing",
    "policy", "gang-scheduling", "policy-settings", "priority-class-removed", "priority-order",
    "preemption", "weights", "group-settings", "node-pool-settings", "tiered-storage", "addon-version",
    "configuration", "resources-removed", "tags", "settings", "waiver", "allowance",
    "nodes-added",
)  # fmt: skip


def most_severe_risks_first(risks: Iterable[Risk]) -> tuple[Risk, ...]:
    """Return blocking risks first, and for each verdict, the greatest losses first."""
    return tuple(
        sorted(
            risks,
            key=lambda risk: (
                risk.verdict != "blocked",
                GRAVITY.index(risk.code),
                -abs(risk.monthly_cost.change) if risk.monthly_cost else Decimal(0),
            ),
        )
    )


def with_effects(risks: Sequence[Risk], diff: PlanDiff) -> tuple[Risk, ...]:
    """Return the risks with affected teams and the change of cost, as far as known."""
    return tuple(
        replace(each, teams=each.teams or _teams(each, diff), monthly_cost=each.monthly_cost or _money(each, diff))
        for each in risks
    )


def _teams(risk: Risk, diff: PlanDiff) -> tuple[str, ...]:
    plan = diff.before or diff.after
    if plan is None:
        return ()
    # The shared pool has no members, so nothing affects it.
    teams = [team for team in plan.teams if not team.is_shared_pool]
    if risk.subject == "idleResourceSharing":
        return tuple(team.name for team in diff.teams if team.borrowable_types)
    if risk.code in _OF_ALL:
        return tuple(team.name for team in teams)
    if risk.code in _OF_TEAM or risk.code == "shared-pool":
        is_pool = risk.subject not in {team.name for team in teams}
        return _borrowers(risk.subject, plan, diff) if is_pool else (risk.subject,)
    if risk.code == "repository-removed":
        return (risk.subject.partition("/")[0],)
    types = _types(risk, plan) or (_types(risk, diff.after) if diff.after is not None else set())
    return tuple(team.name for team in teams if types & {each.instance_type for each in _rows(team)})


def _rows(team: TeamPlan) -> list[QuotaResource]:
    """Return what a team has quota for, and what it may borrow without quota."""
    limits = team.absolute_borrow_limits.values() if team.borrows else ()
    return [*team.quota_resources, *(row for limit in limits for row in limit)]


def _borrowers(pool: str, plan: Plan, diff: PlanDiff) -> tuple[str, ...]:
    """Return the teams that can borrow what a shared pool has less of, and don't get as much quota instead.

    The pool lends whole accelerators, which a team that may only borrow MIG partitions can't use.
    """
    shares = [share for team in diff.teams if team.name == pool for share in team.shares]
    lost = {share.instance_type: -_gained(share) for share in shares if decreased(share.quota)}
    whole = {(team.name, row.instance_type) for team in plan.teams for row in _rows(team) if row.partition is None}
    return tuple(
        team.name
        for team in diff.teams
        if any(
            (team.name, share.instance_type) in whole and _gained(share) < lost.get(share.instance_type, 0)
            for share in team.shares
            if share.instance_type in team.borrowable_types
        )
    )


def _gained(share: ShareChange) -> Fraction:
    return as_fraction(share.quota.after) - as_fraction(share.quota.before)


def _types(risk: Risk, plan: Plan) -> set[str]:
    """Return the instance types that a risk is about."""
    if risk.code in _OF_TYPE:
        return {risk.subject}
    if risk.code in _OF_POOL:
        return {kind for pool in plan.node_pools if pool.spec.name == risk.subject for kind in pool.instance_types}
    return {kind for group in plan.groups if group.spec.name == risk.subject for kind in group.spec.types}


def _money(risk: Risk, diff: PlanDiff) -> MoneyChange | None:
    before, after = diff.before, diff.after
    if before is None or after is None:
        return None
    if risk.code in ("group-removed", "nodes-removed", "nodes-added"):
        return _of_group(risk.subject, before, after)
    if risk.code == "node-pool-removed":
        pools = [pool_cost(pool, before) for pool in before.node_pools if pool.spec.name == risk.subject]
        known = pools and pools[0].complete and pools[0].known
        return MoneyChange(-pools[0].known, "maximum", bool(pools[0].prices_of)) if known else None
    return None


def _of_group(name: str, before: Plan, after: Plan) -> MoneyChange | None:
    old, new = (
        total(group_cost(group, plan.spec.region) for group in plan.own_groups if group.spec.name == name)
        for plan in (before, after)
    )
    if not (old.complete and new.complete) or old.known == new.known:
        return None
    return MoneyChange(new.known - old.known, "minimum", bool(old.prices_of or new.prices_of))
