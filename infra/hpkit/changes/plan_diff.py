"""Compares two plans of one stack: teams, capacity, policy and resources.

It doesn't compute quota: every amount comes from plan/capacity.py. A missing plan (the stack is created or removed)
counts as having nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, computed_field

from hpkit.catalog.prices import near_monthly_cost
from hpkit.changes.steps import value_text
from hpkit.plan.capacity import Amount, TeamShare, TypeQuota, borrow_percent
from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan, TeamPlan

__all__ = ["CapacityChange", "Change", "PlanDiff", "ShareChange", "TeamChange", "diff"]

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A value before and after; None where the side has no value."""

    before: T | None
    after: T | None

    @property
    def changed(self) -> bool:
        """Return whether the sides differ."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class ShareChange:
    """A team's amounts of one instance type, before and after, in instances, and the monthly cost of its quota.

    monthly_usd_is_about: whether another region's prices are used.
    """

    instance_type: str
    quota: Change[Amount]
    elastic: Change[Amount]
    borrow_limit: Change[Amount]
    borrowable: Change[Amount]
    lendable: Change[Amount]
    monthly_usd: Annotated[
        Change[int], Field(description="null: there's no quota on that side, or the catalog has no price.")
    ]
    monthly_usd_is_about: bool

    @property
    def changed(self) -> bool:
        """Return whether any amount differs."""
        return any(part.changed for part in (self.quota, self.elastic, self.borrowable, self.lendable))


@dataclass(frozen=True, slots=True)
class TeamChange:
    """One team: its settings and its shares. A side without the team has None everywhere.

    borrow_limit_percent applies where the team has no absolute limit; members are IAM roles that gain or lose access.
    written: quotas and absolute limits that the file has differently, with the same number of instances.
    The shared pool is a team too, with what the others leave.
    """

    name: str
    is_shared_pool: bool
    present: Change[bool]
    fair_share_weight: Change[int]
    strategy: Change[str]
    borrow_limit_percent: Change[int]
    preempt_team_tasks: Change[str]
    activation_state: Change[str]
    members_added: tuple[str, ...]
    members_removed: tuple[str, ...]
    shares: tuple[ShareChange, ...]
    written: Mapping[str, Change[str]]

    @property
    def changed(self) -> bool:
        """Return whether anything of the team differs, even if only what others leave it to borrow."""
        return self.edited or any(share.changed for share in self.shares)

    @property
    def borrowable_types(self) -> set[str]:
        """Return the instance types that the team may borrow before and after."""
        return {share.instance_type for share in self.shares if share.borrow_limit.before and share.borrow_limit.after}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def edited(self) -> bool:
        """Return whether the team itself was edited: its settings, its members or its quota."""
        settings: tuple[Change[Any], ...] = (
            self.present,
            self.fair_share_weight,
            self.strategy,
            self.borrow_limit_percent,
            self.preempt_team_tasks,
            self.activation_state,
        )
        quota = (part for share in self.shares for part in (share.quota, share.elastic, share.borrow_limit))
        edits = self.members_added or self.members_removed or self.written
        return any(part.changed for part in (*settings, *quota)) or bool(edits)


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """One instance type: permanent, maximum and unallocated amounts.

    - present: whether a group provides the type.
    - bounded: whether a NodePool limit bounds its maximum. If not, a maximum of None means unbounded if the type is
      present, and nothing otherwise.
    """

    instance_type: str
    present: Change[bool]
    permanent: Change[int]
    maximum: Annotated[
        Change[int], Field(description="On a side that has the type, null means that no NodePool limit bounds it.")
    ]
    bounded: Change[bool]
    unallocated: Change[Amount]
    quota: Change[Amount]

    @property
    def changed(self) -> bool:
        """Return whether capacity or the unallocated amount differs."""
        return any(
            part.changed for part in (self.present, self.permanent, self.maximum, self.bounded, self.unallocated)
        )


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """Everything that differs between two plans of a stack."""

    stack: str
    before: Plan | None
    after: Plan | None
    teams: tuple[TeamChange, ...]
    capacity: tuple[CapacityChange, ...]
    policy: Mapping[str, Change[str]]
    priority_classes: Mapping[str, Change[int]]

    @property
    def changed(self) -> bool:
        """Return whether the plans differ in anything that is deployed."""
        return self.before != self.after


def diff(before: Plan | None, after: Plan | None, *, stack: str) -> PlanDiff:
    """Return the differences; None means a missing stack."""
    quotas = Change(_quotas(before), _quotas(after))
    return PlanDiff(
        stack=stack,
        before=before,
        after=after,
        teams=tuple(_teams(before, after, quotas)),
        capacity=tuple(_capacity(before, after, quotas)),
        policy=_policy(before, after),
        priority_classes=_classes(before, after),
    )


def _quotas(plan: Plan | None) -> dict[str, TypeQuota]:
    return {} if plan is None else {quota.instance_type: quota for quota in quotas_of(plan)}


def _keys(*sides: Iterable[str] | None) -> list[str]:
    return sorted({key for side in sides for key in side or ()})


def _both(was: S | None, now: S | None, get: Callable[[S], T | None]) -> Change[T]:
    return Change(None if was is None else get(was), None if now is None else get(now))


def _percent(team: TeamPlan) -> int | None:
    return borrow_percent(team) if team.borrows and not team.spec.sharing.absolute_borrow_limits else None


def _teams(before: Plan | None, after: Plan | None, quotas: Change[dict[str, TypeQuota]]) -> Iterable[TeamChange]:
    old, new = ({team.name: team for team in plan.teams} if plan else {} for plan in (before, after))
    regions = _both(before, after, lambda plan: plan.spec.region)
    shares_before, shares_after = _shares(quotas.before or {}), _shares(quotas.after or {})
    for name in _keys(old, new):
        was, now = old.get(name), new.get(name)
        own_before, own_after = shares_before.get(name, {}), shares_after.get(name, {})
        shares = tuple(
            _share(kind, own_before.get(kind), own_after.get(kind), regions) for kind in _keys(own_before, own_after)
        )
        others = {share.instance_type for share in shares if share.quota.changed or share.elastic.changed}
        rows = [_written(plan, team, others) for plan, team in ((before, was), (after, now))]
        written = {key: Change(*(side.get(key) for side in rows)) for key in _keys(*rows)}
        yield TeamChange(
            name=name,
            is_shared_pool=any(team.is_shared_pool for team in (was, now) if team is not None),
            present=Change(was is not None, now is not None),
            fair_share_weight=_both(was, now, lambda team: team.spec.fair_share_weight),
            strategy=_both(was, now, lambda team: team.spec.sharing.strategy),
            borrow_limit_percent=_both(was, now, _percent),
            preempt_team_tasks=_both(was, now, lambda team: team.spec.preempt_team_tasks),
            activation_state=_both(was, now, lambda team: team.spec.activation_state),
            members_added=_without(now, was),
            members_removed=_without(was, now),
            shares=shares,
            written={key: each for key, each in written.items() if each.changed},
        )


def _written(plan: Plan | None, team: TeamPlan | None, without: set[str]) -> dict[str, str]:
    """Return a team's quotas and absolute limits as the file has them, by key and instance type."""
    governance, rows = plan.spec.governance if plan else None, dict[str, list[Any]]()
    quotas = governance.allocations.get(team.name, ()) if governance and team else ()
    limits = team.spec.sharing.absolute_borrow_limits if team else ()
    for key, row in (*(("allocations", row) for row in quotas), *(("absoluteBorrowLimits", row) for row in limits)):
        if row.instance_type not in without:
            values = row.model_dump(exclude={"instance_type"}, exclude_defaults=True, by_alias=True)
            rows.setdefault(f"{key}[{row.instance_type}]", []).append(values)
    return {key: value_text(values) for key, values in rows.items()}


def _without(team: TeamPlan | None, other: TeamPlan | None) -> tuple[str, ...]:
    known = set(other.spec.members) if other else set()
    return tuple(member for member in (team.spec.members if team else ()) if member not in known)


def _shares(quotas: Mapping[str, TypeQuota]) -> dict[str, dict[str, TeamShare]]:
    by_team: dict[str, dict[str, TeamShare]] = {}
    for instance_type, quota in quotas.items():
        for share in quota.teams:
            by_team.setdefault(share.team, {})[instance_type] = share
    return by_team


def _share(kind: str, was: TeamShare | None, now: TeamShare | None, regions: Change[str]) -> ShareChange:
    def cost(share: TeamShare | None, region: str | None) -> tuple[int, str] | None:
        return near_monthly_cost(kind, region, Fraction(share.reserved + share.elastic)) if share and region else None

    before, after = cost(was, regions.before), cost(now, regions.after)
    return ShareChange(
        instance_type=kind,
        quota=_both(was, now, lambda share: share.reserved),
        elastic=_both(was, now, lambda share: share.elastic),
        borrow_limit=_both(was, now, lambda share: share.borrow_limit),
        borrowable=_both(was, now, lambda share: share.borrowable),
        lendable=_both(was, now, lambda share: share.lendable),
        monthly_usd=_both(before, after, lambda cost: cost[0]),
        monthly_usd_is_about=bool((before and before[1] != regions.before) or (after and after[1] != regions.after)),
    )


def _capacity(
    before: Plan | None, after: Plan | None, quotas: Change[dict[str, TypeQuota]]
) -> Iterable[CapacityChange]:
    old, new = quotas.before or {}, quotas.after or {}
    for instance_type in _keys(old, new):
        was, now = old.get(instance_type), new.get(instance_type)
        yield CapacityChange(
            instance_type=instance_type,
            present=Change(
                before is not None and instance_type in before.capacity,
                after is not None and instance_type in after.capacity,
            ),
            permanent=_both(was, now, lambda quota: quota.capacity.permanent),
            maximum=_both(was, now, lambda quota: quota.capacity.maximum),
            bounded=_both(was, now, lambda quota: quota.capacity.maximum is not None),
            unallocated=_both(was, now, lambda quota: quota.unallocated),
            quota=_both(was, now, _sum),
        )


def _sum(quota: TypeQuota) -> Amount:
    return quota.reserved_together + sum((share.elastic for share in quota.teams), start=0)


def _policy(before: Plan | None, after: Plan | None) -> dict[str, Change[str]]:
    old, new = (plan.policy if plan else None for plan in (before, after))
    return {
        "taskPrioritization": _both(old, new, lambda policy: policy.task_prioritization),
        "fairShare": _both(old, new, lambda policy: policy.fair_share),
        "idleResourceSharing": _both(old, new, lambda policy: policy.idle_resource_sharing),
    }


def _classes(before: Plan | None, after: Plan | None) -> dict[str, Change[int]]:
    old, new = (
        {each.name: each.weight for each in plan.policy.priority_classes} if plan and plan.policy else {}
        for plan in (before, after)
    )
    return {name: Change(old.get(name), new.get(name)) for name in _keys(old, new)}
