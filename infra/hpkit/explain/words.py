"""Explanations as paragraphs, with headings."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from hpkit.catalog import InstanceType
from hpkit.catalog.prices import near_price
from hpkit.explain.group import GroupExplanation
from hpkit.explain.team import Peer, TeamExplanation, TypeExplanation
from hpkit.plan.capacity import TypeQuota
from hpkit.plan.model import Plan, TeamPlan
from hpkit.text.formatting import amount, listing
from hpkit.text.plural import plural

__all__ = ["Section", "group_text", "team_text"]

# A heading, and the paragraphs below it.
Section = tuple[str, tuple[str, ...]]
_MOST_PEERS = 5
_BY_AGE = (
    "Fair share is Disabled: idle instances go to the job with the highest priority class, then to the oldest job, "
    "regardless of team. A job that borrows doesn't preempt another borrower."
)
_BY_WEIGHT = (
    "Weights matter only if several teams want the same idle instances. Kueue divides what each team borrows by its "
    "weight, and serves the team with the smallest result first."
)
_NOT_A_LIMIT = "If no other team wants the instances, each team can borrow up to its own limit, regardless of weights."

_NO_GANGS = (
    "Gang scheduling is off: an admitted job keeps its quota even if some of its pods can't start, so jobs with many "
    "pods can wait for each other forever."
)


def team_text(explained: TeamExplanation) -> tuple[Section, ...]:
    """Return what a team has, what it can borrow from which teams, and why."""
    team = explained.team
    title = f"{team.name} in {explained.plan.stack} ({explained.plan.spec.region})"
    if not explained.types:
        types: list[Section] = [
            ("Quota", ("The team has none: its allocation is an empty list, so its jobs wait forever.",))
        ]
    else:
        types = [(part.quota.instance_type, _type(team, part)) for part in explained.types]
    if team.is_shared_pool:
        # No one submits jobs to it, so it has no borrowing, weights or order.
        return ((title, _queue(team)), *types)
    return (
        (title, _queue(team)),
        *types,
        ("Compared with other teams", _weight(explained)),
        ("Order of its jobs", _ranks(explained)),
        *([("Start of its jobs", start)] if (start := _start(explained.plan)) else []),
    )


def _queue(team: TeamPlan) -> tuple[str, ...]:
    if team.is_shared_pool:
        return (
            "The shared pool: a team without members that has all unreserved instances, and lends them.",
            f"Queue {team.local_queue} in namespace {team.namespace}.",
        )
    members = listing(_role_names(team.spec.members), _MOST_PEERS)
    return (
        f"Jobs go to queue {team.local_queue} in namespace {team.namespace}.",
        f"Roles that can submit {_joined([_SUBMITTED[workload] for workload in team.spec.workloads])}: {members}."
        if members
        else "Roles that can submit work: only administrators, because the team has no members here.",
    )


_SUBMITTED: Final = {"training": "training jobs", "inference": "Deployments", "spaces": "spaces"}


def _joined(names: Sequence[str]) -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _role_names(members: Sequence[str]) -> list[str]:
    """Return each role's name, or its whole ARN where another role has the same name."""
    names = Counter(member.rpartition("/")[2] for member in members)
    return [name if names[name := member.rpartition("/")[2]] == 1 else member for member in members]


def _type(team: TeamPlan, part: TypeExplanation) -> tuple[str, ...]:
    if team.is_shared_pool:
        return (_has(part), _lends(team, part))
    return (
        _has(part, " Its jobs always get this capacity, regardless of other teams."),
        _lends(team, part),
        _borrows(team, part),
    )


def _has(part: TypeExplanation, promise: str = "") -> str:
    capacity = part.quota.capacity
    sentences = []
    if part.reserved:
        stand = f"{capacity.guaranteed} that always run{_in_groups(capacity.permanent_groups)}"
        together = part.quota.reserved_together
        if together > capacity.guaranteed:
            sentences.append(
                f"Has {_instances(part.reserved)}{_accelerators(part)} of {stand}; all teams together reserve "
                f"{amount(together)}, so its jobs may wait for instances that don't exist."
            )
        elif part.parts:
            resources = listing([f"{amount(value)} {resource}" for resource, value in part.parts])
            sentences.append(
                f"Has {resources} on the {stand}; the largest share equals {_instances(part.reserved)}. Jobs use "
                "all of these resources, and the scarcest one limits how many jobs fit."
            )
        else:
            sentences.append(f"Has {_instances(part.reserved)}{_accelerators(part)} of {stand}.{promise}")
    if part.elastic:
        most = "without a limit" if capacity.maximum is None else f"up to {capacity.maximum} in total"
        also = "also " if part.reserved else ""
        rely = "relies" if part.elastic == 1 else "rely"
        sentences.append(
            f"Has {also}{_instances(part.elastic)} that {rely} on Karpenter (elastic): NodePool "
            f"{' and '.join(capacity.pools) or '(none)'} adds nodes when jobs wait, {most}. New nodes take minutes, "
            "and AWS might have none available."
        )
    return " ".join(sentences) or "Has none of its own."


def _lends(team: TeamPlan, part: TypeExplanation) -> str:
    if not (part.reserved or part.elastic):
        return "Lends none: it has none."
    if not team.lends:
        return "Lends none (strategy DontLend): its unused instances stay idle."
    if not part.borrowers:
        return f"Lends up to {_instances(part.lendable)} when idle, but no other team can borrow this type."
    borrowers = _peers(part.borrowers, lambda peer: f"{amount(peer.instances)} to {peer.team}")
    return (
        f"Lends up to {_instances(part.lendable)} when idle (at most {borrowers}). It reclaims them as soon as its own "
        "jobs need them, regardless of the borrower's priority and weight. The borrower's job stops and waits again."
    )


def _borrows(team: TeamPlan, part: TypeExplanation) -> str:
    if part.bound == "strategy":
        return f"Borrows none (strategy {team.spec.sharing.strategy})."
    if part.bound == "noQuota":
        return "Borrows none: its limit is a percentage, and it has no quota here to apply it to."
    own = amount(part.reserved + part.elastic)
    limit = (
        f"its limit, {amount(part.borrow_limit)} (absoluteBorrowLimits)"
        if part.percent is None
        else f"its limit, {part.percent}% of {own} = {amount(part.borrow_limit)}"
        + (" (the service's default)" if team.spec.sharing.borrow_limit is None else "")
    )
    if not part.borrowable:
        return f"Borrows none: {limit}, would allow it, but no other team lends this type."
    lent = amount(sum((lender.instances for lender in part.lenders), part.idle))
    reason = f"This is {limit}." if part.bound == "limit" else f"Others lend no more, although {limit}, allows it."
    return (
        f"Borrows up to {_instances(part.borrowable)} of {lent} that others lend when idle ({_sources(part)}). "
        f"{reason} The lender can reclaim them at any time."
    )


def _sources(part: TypeExplanation) -> str:
    idle = [f"{amount(part.idle)} that no team reserved"] if part.idle else []
    named = [_peers(part.lenders, lambda peer: f"{peer.team} {amount(peer.instances)}")] if part.lenders else []
    return ", ".join([*named, *idle])


def _weight(explained: TeamExplanation) -> tuple[str, ...]:
    team, rivals = explained.team, explained.rivals
    if not any(part.borrowable for part in explained.types):
        return ("It borrows nothing, so its fairShareWeight has no effect.",)
    if not rivals:
        return ("No other team can borrow the same instances, so its fairShareWeight has no effect.",)
    if not explained.fair_share:
        return (_BY_AGE,)
    weight = team.spec.fair_share_weight
    ahead = [peer for peer in rivals if peer.fair_share_weight > weight]
    level = [peer for peer in rivals if peer.fair_share_weight == weight]
    behind = [peer for peer in rivals if peer.fair_share_weight < weight]
    sentences = [f"fairShareWeight {weight}; other teams: {_peers(rivals, _weighed)}. {_BY_WEIGHT}"]
    if weight == 0:
        if ahead:
            sentences.append(
                f"With weight 0, it's served after {_names(ahead)}, which can also reclaim what it borrowed. Its own "
                "quota isn't affected."
            )
        if level:
            sentences.append(f"It's served equally with {_names(level)}, also with weight 0.")
        return tuple(sentences)
    parts = []
    if ahead:
        first = ahead[0]
        parts.append(f"{first.team} gets about {_times(first.fair_share_weight, weight)} as many as {team.name}")
    if level:
        parts.append(f"{_names(level)} {'gets' if len(level) == 1 else 'get'} as many as {team.name}")
    if behind:
        nearest = behind[0]
        parts.append(
            f"{nearest.team} gets only what the others leave"
            if nearest.fair_share_weight == 0
            else f"{team.name} gets about {_times(weight, nearest.fair_share_weight)} as many as {nearest.team}"
        )
    sentences.append(f"If all teams want more instances than are idle, {'; '.join(parts)}. {_NOT_A_LIMIT}")
    return tuple(sentences)


def _ranks(explained: TeamExplanation) -> tuple[str, ...]:
    team = explained.team
    if not explained.ranks:
        return ("Oldest first: the cluster has no priority classes (taskPrioritization FirstComeFirstServed).",)
    if not explained.priority_classes:
        return ("The cluster has no priority classes: every job has weight 0, and the oldest is served first.",)
    classes = explained.priority_classes
    order = ", ".join(f"{priority.name} ({priority.weight})" for priority in classes)
    label = f"kueue.x-k8s.io/priority-class: {classes[0].name}-priority"
    within = (
        "Within the team, a job of a higher class stops a job of a lower class if capacity is missing "
        "(preemptTeamTasks LowerPriority)."
        if team.spec.preempt_team_tasks == "LowerPriority"
        else (
            "Within the team, no job stops another (preemptTeamTasks Never): jobs of a higher class only start earlier."
        )
    )
    return (
        f"Priority classes, highest first: {order}. A job sets its class with a label such as `{label}`.",
        "A job without this label has weight 0.",
        within,
    )


def _start(plan: Plan) -> tuple[str, ...]:
    gang = plan.gang_scheduling
    if gang is None:
        return ()
    if not gang.enable:
        return (_NO_GANGS,)
    strategy = gang.requeuing_strategy
    limit = strategy.backoff_limit_count
    recovery = (
        "without a limit"
        if not gang.recovery_seconds
        else f"for {gang.timeout if gang.recovery_timeout is None else gang.recovery_timeout}"
    )
    sentences = [
        f"Gang scheduling is on: a job is evicted if not all of its pods are ready {gang.timeout} after admission. It "
        f"returns to its queue after {strategy.backoff_base_seconds} seconds. Each further time, it waits twice as "
        f"long, at most {strategy.backoff_max_seconds} seconds."
        + ("" if limit is None else f" Kueue retries it at most {plural(limit, 'time')}, and then deactivates it."),
        f"A running job waits {recovery} until a failed pod is replaced.",
    ]
    if gang.block_admission:
        sentences.append(
            "Jobs of all teams are admitted one by one: the next one when all pods of the previous one are ready."
        )
    return tuple(sentences)


def group_text(explained: GroupExplanation) -> tuple[Section, ...]:
    """Return an instance group's nodes, what manages their number, and which teams' quota depends on it."""
    plan, group = explained.plan, explained.group
    types = " or ".join(group.spec.types)
    title = f"{group.spec.name} in {plan.stack} ({plan.spec.region}): {types}"
    # For an existing cluster, the zones are only known if the file states them.
    if group.zones or not plan.spec.cluster.existing:
        title += f" in {', '.join(group.zones) or 'no zone'}"
    nodes = [_count(explained)]
    nodes += [_instance(instance, plan.spec.region) for instance in explained.instances]
    quotas = [(quota.instance_type, (_quota_of_teams(quota),)) for quota in explained.quotas]
    if not explained.quotas:
        quotas = [("Quota", ("No team's quota counts it: restricted groups are only for customizing Nova models.",))]
    return ((title, tuple(nodes)), *quotas)


def _count(explained: GroupExplanation) -> str:
    spec = explained.group.spec
    if explained.node_class is None:
        running = (
            "1 instance always runs" if spec.instance_count == 1 else f"{spec.instance_count} instances always run"
        )
        return f"{running} (instanceCount in the file)."
    pools = " and ".join(explained.node_pools)
    by = f"NodePool {pools} of NodeClass {explained.node_class} adds" if pools else "no matching NodePool adds"
    return f"Karpenter manages the number of instances: it starts at 0, and {by} nodes when pods wait for them."


def _instance(instance: InstanceType, region: str) -> str:
    accelerators = "accelerator" if instance.accelerators == 1 else "accelerators"
    figures = [
        (instance.accelerators, accelerators),
        (instance.vcpu, "vCPU"),
        (instance.memory_gib, "GiB"),
        (instance.max_pods, "pods per node"),
    ]
    stated = [f"{number} {unit}" for number, unit in figures if number is not None]
    has = f"has {', '.join(stated)}" if stated else "has no known specifications"
    return f"Each {instance.name} {has}. {_price(instance.name, region)}"


def _price(name: str, region: str) -> str:
    price = near_price(name, region)
    if price is None:
        return "Its price isn't known: https://aws.amazon.com/sagemaker/ai/pricing/"
    if price.region == region:
        return f"It costs ${price.hourly} per hour on demand ({price.source.date}: {price.source.url})."
    return (
        f"It costs about ${price.hourly} per hour on demand, the price in {price.region} ({price.source.date}: "
        f"{price.source.url}); the price in {region} isn't known."
    )


def _quota_of_teams(quota: TypeQuota) -> str:
    capacity = quota.capacity
    most = "without a limit" if capacity.maximum is None else f"{capacity.maximum} at most"
    held = [f"{share.team} {amount(share.reserved + share.elastic)}" for share in quota.teams]
    teams = listing([text for text in held if not text.endswith(" 0")], _MOST_PEERS) or "no team"
    return (
        f"{capacity.guaranteed} guaranteed, {most}{_in_groups(capacity.groups)}. Quota: {teams}; "
        f"{amount(quota.unreserved)} unreserved."
    )


def _in_groups(groups: Sequence[str]) -> str:
    if not groups:
        return ""
    return f", in group{'s' if len(groups) > 1 else ''} {listing(list(groups), _MOST_PEERS)}"


def _instances(value: object) -> str:
    return f"{amount(value)} instance" + ("" if value == 1 else "s")


def _accelerators(part: TypeExplanation) -> str:
    # With an additional elastic part, the sum would only describe the smaller half.
    if not part.accelerators or part.elastic:
        return ""
    return f" ({amount(part.accelerators)} accelerators)"


def _peers(peers: Sequence[Peer], text: Callable[[Peer], str]) -> str:
    return listing([text(peer) for peer in peers], _MOST_PEERS)


def _weighed(peer: Peer) -> str:
    return f"{peer.team} {peer.fair_share_weight}"


def _names(peers: Sequence[Peer]) -> str:
    """Return the teams' names as part of a sentence."""
    names = listing([peer.team for peer in peers], _MOST_PEERS)
    return " and ".join(names.rsplit(", ", 1)) if 1 < len(peers) <= _MOST_PEERS else names


def _times(more: int, less: int) -> str:
    return "twice" if more == 2 * less else f"{amount(round(more / less, 1))} times"
