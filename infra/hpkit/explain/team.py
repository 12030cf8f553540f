"""Explains what a team has, lends and can borrow, and which teams compete with it.

Sources: SageMaker HyperPod developer guide, "Policies" and "Compute allocation" of task governance. AWS's workshop,
which evicts a borrower of equal priority, implies that lenders reclaim regardless of the borrower's priority.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hpkit.catalog import InstanceType
from hpkit.config.governance import PriorityClass
from hpkit.errors import SelectionError
from hpkit.plan.capacity import Amount, TypeQuota, borrow_percent, dimensions_of, reserve
from hpkit.plan.derive import instances_of, quotas_of
from hpkit.plan.model import Plan, QuotaResource, TeamPlan
from hpkit.text.spelling import near

__all__ = ["Bound", "Peer", "TeamExplanation", "TypeExplanation", "explain_team"]

# Reasons why a team can't borrow more:
# - It never borrows.
# - It has no quota that a percentage could apply to.
# - Its own limit.
# - Others don't lend more.
Bound = Literal["strategy", "noQuota", "limit", "lenders"]

# The resources of an instance that jobs request, in the order of quota's dimensions after whole instances.
_RESOURCES = ("accelerators", "vCPU", "GiB of memory")


@dataclass(frozen=True, slots=True)
class Peer:
    """Another team, and a number of instances of one type."""

    team: str
    instances: Amount
    fair_share_weight: int


@dataclass(frozen=True, slots=True)
class TypeExplanation:
    """One instance type: the team's quota, its lenders and its borrowers.

    - accelerators, slices: None if the catalog doesn't know them.
    - parts: the reserved amount of each resource, if they aren't the same fraction of an instance. Then no job can use
      as many instances as reserved states.
    - percent: None if the limit is in instances.
    - borrowers: how much of the team's own quota each can borrow at most.
    - idle: unreserved instances that the policy lends.
    """

    quota: TypeQuota
    reserved: Amount
    elastic: Amount
    parts: tuple[tuple[str, Amount], ...]
    accelerators: Amount | None
    slices: Amount | None
    percent: int | None
    borrow_limit: Amount
    borrowable: Amount
    bound: Bound
    lendable: Amount
    lenders: tuple[Peer, ...]
    borrowers: tuple[Peer, ...]
    idle: Amount


@dataclass(frozen=True, slots=True)
class TeamExplanation:
    """A team in one environment.

    rivals: the teams that can borrow the same instances, those with the highest weight first.
    """

    plan: Plan
    team: TeamPlan
    types: tuple[TypeExplanation, ...]
    rivals: tuple[Peer, ...]
    fair_share: bool
    ranks: bool
    priority_classes: tuple[PriorityClass, ...]


def explain_team(plan: Plan, name: str, organization_teams: Iterable[str] = ()) -> TeamExplanation:
    """Return the explanation of a team; organization_teams are all teams in the file, with or without quota.

    Raises SelectionError for a team that has no quota in this environment.
    """
    team = next((each for each in plan.teams if each.name == name), None)
    if team is None:
        raise SelectionError(_missing(plan, name, tuple(organization_teams)))
    weights = {each.name: each.spec.fair_share_weight for each in plan.teams}
    policy = plan.policy
    lends_idle = policy is not None and policy.idle_resource_sharing == "Enabled"
    instances = instances_of(plan)
    types = tuple(
        _of_type(team, quota, weights, instances.get(quota.instance_type), lends_idle=lends_idle)
        for quota in quotas_of(plan)
        if any(share.team == name for share in quota.teams)
    )
    borrowed_types = {part.quota.instance_type for part in types if part.borrowable}
    rivals = {
        share.team: Peer(share.team, share.borrowable, weights[share.team])
        for part in types
        if part.quota.instance_type in borrowed_types
        for share in part.quota.teams
        if share.borrowable and share.team != name
    }
    ranks = policy is not None and policy.task_prioritization == "Rank"
    classes = policy.priority_classes if policy is not None and ranks else ()
    return TeamExplanation(
        plan=plan,
        team=team,
        types=types,
        rivals=_sorted(rivals.values()),
        fair_share=policy is None or policy.fair_share == "Enabled",
        ranks=ranks,
        priority_classes=tuple(sorted(classes, key=lambda each: (-each.weight, each.name))),
    )


def _missing(plan: Plan, name: str, known: tuple[str, ...]) -> str:
    if name in known:
        where = f"environments.{plan.environment}.governance.allocations"
        return (
            f"{name} is a team of {plan.organization}, but has no allocation in {plan.environment}, so it has no "
            f"queue there; add an allocation under {where}"
        )
    team_names = [team.name for team in plan.teams]
    likely = near(name, team_names)
    if likely:
        return f"{plan.stack} has no team {name}; did you mean {likely}?"
    if not team_names:
        return f"{plan.stack} has no team {name}: no team has an allocation there"
    return f"{plan.stack} has no team {name}; to list its teams, run `hpkit quota --stack {plan.stack}`"


def _of_type(
    team: TeamPlan, quota: TypeQuota, weights: dict[str, int], instance: InstanceType | None, *, lends_idle: bool
) -> TypeExplanation:
    own = next(share for share in quota.teams if share.team == team.name)
    others = [share for share in quota.teams if share.team != team.name]
    lenders = [Peer(share.team, share.lendable, weights[share.team]) for share in others if share.lendable]
    borrowers = [
        Peer(share.team, min(share.borrowable, own.lendable), weights[share.team])
        for share in others
        if share.borrowable
    ]
    accelerators, slices = _accelerators(team.quota_resources, quota.instance_type, instance)
    absolute = quota.instance_type in team.absolute_borrow_limits
    return TypeExplanation(
        quota=quota,
        reserved=own.reserved,
        elastic=own.elastic,
        parts=_parts(team.quota_resources, quota.instance_type, instance),
        accelerators=accelerators,
        slices=slices,
        percent=None if absolute else borrow_percent(team),
        borrow_limit=own.borrow_limit,
        borrowable=own.borrowable,
        bound=_bound(team, own.borrow_limit, own.borrowable, absolute=absolute),
        lendable=own.lendable,
        lenders=_sorted(lenders, by_amount=True),
        borrowers=_sorted(borrowers) if own.lendable else (),
        idle=quota.unreserved if lends_idle else 0,
    )


def _bound(team: TeamPlan, limit: Amount, borrowable: Amount, *, absolute: bool) -> Bound:
    if not team.borrows:
        return "strategy"
    if not limit and not absolute:
        return "noQuota"
    return "limit" if borrowable == limit else "lenders"


def _accelerators(
    resources: tuple[QuotaResource, ...], instance_type: str, instance: InstanceType | None
) -> tuple[Amount | None, Amount | None]:
    if instance is None:
        return None, None
    vector = reserve((each, instance) for each in resources if each.instance_type == instance_type)
    return vector[1], vector[4]


def _parts(
    resources: tuple[QuotaResource, ...], instance_type: str, instance: InstanceType | None
) -> tuple[tuple[str, Amount], ...]:
    if instance is None:
        return ()
    static = [each for each in resources if each.instance_type == instance_type and not each.elastic]
    reserved = reserve((each, instance) for each in static)
    named = zip(_RESOURCES, reserved[1:4], dimensions_of(instance)[1:4], strict=True)
    # A team without reserved accelerators runs jobs that request none.
    needed = [(what, part, one) for what, part, one in named if part or (part is not None and what != _RESOURCES[0])]
    known = [(what, part, Fraction(part) / one) for what, part, one in needed if one]
    uneven = len({ratio for _, _, ratio in known}) > 1
    return tuple((what, part) for what, part, _ in known) if uneven else ()


def _sorted(peers: Iterable[Peer], *, by_amount: bool = False) -> tuple[Peer, ...]:
    if by_amount:
        return tuple(sorted(peers, key=lambda each: (-each.instances, each.team)))
    return tuple(sorted(peers, key=lambda each: (-each.fair_share_weight, each.team)))
