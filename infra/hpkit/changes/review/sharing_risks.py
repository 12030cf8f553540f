"""Risks in how teams share: less borrowing, deleted queues and priority classes, changed preemption.

Source of the policy's settings: SageMaker API reference, SchedulerConfig.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from hpkit.changes import value_text
from hpkit.changes.plan_diff import PlanDiff, ShareChange, TeamChange
from hpkit.changes.review.formatting import arrow, as_fraction, decreased, quantity
from hpkit.changes.review.model import Loss, Risk
from hpkit.plan.capacity import Amount
from hpkit.text.formatting import amount, listing

__all__ = ["sharing_risks"]

# fairSharing is in Kueue's configuration, which Kueue reads when it starts.
_RESTART: Final = "Kueue restarts: running jobs continue, and nothing is admitted for some seconds"
_POLICY_MEANS: Final = {
    ("fairShare", "Enabled"): f"idle compute is shared by the weights of the teams. {_RESTART}",
    ("fairShare", "Disabled"): (
        "idle compute goes to the first request, regardless of the teams' weights. A job that requests more than its "
        f"team's quota no longer preempts the team's own jobs of lower priority. {_RESTART}"
    ),
    ("idleResourceSharing", "Enabled"): "unallocated capacity can be borrowed",
    ("idleResourceSharing", "Disabled"): "unallocated capacity can no longer be borrowed",
    ("taskPrioritization", "Rank"): "tasks of a team queue by priority class",
    (
        "taskPrioritization",
        "FirstComeFirstServed",
    ): "tasks queue in order of arrival, regardless of their priority classes",
}
# Whether a team's queue still has the instance type → what that means for its running jobs.
_LOWERED: Final = {
    True: "lower quotas ({}): running jobs continue{}. Usage above the quota counts as borrowed, and other teams can "
    "reclaim it: jobs with the lowest priority first, then the newest",
    False: "removed quotas ({}): running jobs continue{}. Kueue no longer counts them, so other teams can't reclaim "
    "their instances, and jobs that it admits find no free node: stop them first",
}
_TEAM_MEANS: Final = {
    "LendAndBorrow": "it borrows what others leave idle, and lends its own idle capacity",
    "Lend": "it lends what it leaves idle, and borrows nothing",
    "DontLend": "it lends nothing and borrows nothing",
    "LowerPriority": "a task of a higher priority class now evicts the team's own lower ones",
    "Never": "a task of a higher priority class now waits for the team's own lower ones",
    "Enabled": "its waiting jobs can start",
    "Disabled": "its queue admits no jobs, and its running ones can stop: AWS doesn't document what happens to them",
}


def sharing_risks(diff: PlanDiff, losses: Sequence[Loss]) -> Iterator[Risk]:
    """Return the risks between teams of a stack that exists before and after."""
    yield from _borrowing(diff)
    yield from _lowered(diff, losses)
    yield from _settings(diff)
    yield from _shared_pool(diff)
    yield from _weights(diff)
    yield from _ranks(diff)
    yield from _gangs(diff)


def _borrowing(diff: PlanDiff) -> Iterator[Risk]:
    """Report whose borrowing ends because another team lends less, although their limits would allow it."""
    for change in diff.capacity:
        own = _shares(diff, change.instance_type)
        victims = [(team, share) for team, share in own if _held_back(share)]
        causes = [
            f"{team.name} lends {arrow(quantity(share.lendable.before), quantity(share.lendable.after or 0))}"
            for team, share in own
            if decreased(share.lendable)
        ]
        idle = diff.policy["idleResourceSharing"]
        if idle.before == "Enabled" and (idle.changed or decreased(change.unallocated)):
            causes.append(
                "idle capacity is no longer lent"
                if idle.changed
                else f"unallocated {arrow(quantity(change.unallocated.before), quantity(change.unallocated.after))}"
            )
        if victims and causes:
            yield Risk(
                "borrowing",
                "attention",
                change.instance_type,
                f"less of {change.instance_type} can be borrowed by {listing([team.name for team, _ in victims])}: "
                f"{listing(causes)}",
                teams=tuple(team.name for team, _ in victims),
            )


def _lowered(diff: PlanDiff, losses: Sequence[Loss]) -> Iterator[Risk]:
    """Report what happens to jobs that run above a lowered quota: nothing, until a lender reclaims it.

    Jobs on nodes that are deleted end, which is another risk. A queue without an instance type doesn't count its jobs.
    """
    counted = {
        (team.name, share.instance_type)
        for team in diff.teams
        for share in team.shares
        if share.quota.after or share.elastic.after or share.borrow_limit.after
    }
    permanent = {each.instance_type: each.permanent for each in diff.capacity if each.present.after}
    staying, units = {team.name for team in diff.teams if team.present.after}, {"quota": "instances"}
    unless = " unless their nodes are deleted" if any(map(decreased, permanent.values())) else ""
    for is_counted, message in _LOWERED.items():
        parts = [
            (loss.team, _fewer(loss.before, loss.after, units.get(loss.what, loss.what), loss.instance_type))
            for loss in losses
            if loss.team in staying and loss.instance_type in permanent and not loss.what.startswith("borrow")
            if ((loss.team, loss.instance_type) in counted) is is_counted
        ]
        if parts:
            said = message.format(listing([" ".join(part) for part in parts]), unless)
            teams = tuple(dict.fromkeys(team for team, _ in parts))
            yield Risk("quota-lowered", "attention", "quotas", said, teams=teams)


def _fewer(before: Amount | None, after: Amount, measure: str, instance_type: str | None) -> str:
    """Return `3 → 2 instances of ml.g5.12xlarge`."""
    return f"{arrow(quantity(before), quantity(after))} {measure} of {instance_type}"


def _held_back(share: ShareChange) -> bool:
    return decreased(share.borrowable) and as_fraction(share.borrowable.after) < as_fraction(share.borrow_limit.after)


def _settings(diff: PlanDiff) -> Iterator[Risk]:
    for team in diff.teams:
        changes = {
            "preemptTeamTasks": team.preempt_team_tasks,
            "sharing": team.strategy,
            "activationState": team.activation_state,
        }
        for key, change in changes.items() if team.present.before and team.present.after else ():
            if not change.changed:
                continue
            text = f"{key} of {team.name} {change.before} → {change.after}: {_TEAM_MEANS[str(change.after)]}"
            if key == "preemptTeamTasks":
                yield Risk("preemption", "attention", team.name, text)
            else:
                yield Risk("sharing", "attention", team.name, text)


def _shared_pool(diff: PlanDiff) -> Iterator[Risk]:
    """Report the reduction of the pool, which no one owns and every team with a borrow limit can borrow."""
    for team in diff.teams:
        if not team.is_shared_pool or not team.present.before or not team.present.after:
            continue
        parts = [share for share in team.shares if decreased(share.quota)]
        less = [_fewer(each.quota.before, each.quota.after or 0, "instances", each.instance_type) for each in parts]
        if less:
            message = f"the shared pool {team.name} lends less: {listing(less)}"
            yield Risk("shared-pool", "attention", team.name, message)


def _weights(diff: PlanDiff) -> Iterator[Risk]:
    """Yield the teams whose weight rises: others that borrow get less of contested capacity, although theirs stays."""
    if diff.policy["fairShare"].before != "Enabled" or diff.policy["fairShare"].after != "Enabled":
        return
    staying = [team for team in diff.teams if team.present.before and team.present.after]
    borrowing = [team for team in staying if team.strategy.before == team.strategy.after == "LendAndBorrow"]
    weights = {team.name: _weight(team) for team in borrowing}
    raised = [team for team in borrowing if weights[team.name][1] > weights[team.name][0]]
    totals = [sum(side) for side in zip(*weights.values(), strict=True)]
    others = [
        team
        for team in borrowing
        if not (team in raised or decreased(team.fair_share_weight))
        and _part(team, 1, totals) < _part(team, 0, totals)
        # Teams compete only for types that both can borrow.
        and any(team.borrowable_types & other.borrowable_types for other in raised)
    ]
    if raised and others:
        texts = ["{} {} → {}".format(team.name, *weights[team.name]) for team in raised]
        sides = [(team.name, *weights[team.name]) for team in others]
        lower = [f"{name} {was} of {totals[0]} → {now} of {totals[1]}" for name, was, now in sides]
        less = "when several teams want idle instances, the others get less"
        said = f"weight of {listing(texts)}: {less} ({listing(lower)})"
        yield Risk("weights", "attention", raised[0].name, said, teams=tuple(team.name for team in others))


def _weight(team: TeamChange) -> tuple[int, int]:
    return team.fair_share_weight.before or 0, team.fair_share_weight.after or 0


def _part(team: TeamChange, side: int, totals: Sequence[int]) -> Fraction:
    """Return which part of all weights a team has."""
    return Fraction(_weight(team)[side], totals[side]) if totals[side] else Fraction(0)


def _shares(diff: PlanDiff, instance_type: str) -> list[tuple[TeamChange, ShareChange]]:
    """Return each team's amount of an instance type."""
    return [(team, share) for team in diff.teams for share in team.shares if share.instance_type == instance_type]


def _ranks(diff: PlanDiff) -> Iterator[Risk]:
    policy = diff.policy
    governed = diff.before is not None and diff.before.policy is not None
    if governed and diff.after is not None and diff.after.policy is None:
        yield Risk(
            "governance-removed",
            "attention",
            "governance",
            "task governance is removed, with its queues, ranks and quota",
        )
        return
    for key in ("taskPrioritization", "fairShare", "idleResourceSharing"):
        change = policy[key]
        if governed and change.changed:
            both, means = arrow(str(change.before), str(change.after)), _POLICY_MEANS.get((key, change.after or ""))
            whom = "teams that can borrow" if key == "idleResourceSharing" else "every team"
            message = f"{key} {both}, for {whom}" + (f": {means}" if means else "")
            yield Risk("policy", "attention", key, message)
    removed = [name for name, change in diff.priority_classes.items() if change.after is None]
    if removed:
        labels = listing([f"{name}-priority" for name in sorted(removed)], 20)
        message = f"jobs that carry {labels} are no longer accepted{_new_name(diff, removed)}"
        yield Risk("priority-class-removed", "attention", "priorityClasses", message)
    yield from _order(diff)


def _new_name(diff: PlanDiff, removed: Sequence[str]) -> str:
    """Return the probable new name of a class: the only new one with the weight of the only deleted one."""
    come = [name for name, change in diff.priority_classes.items() if change.before is None]
    classes = diff.priority_classes
    if len(removed) != 1 or len(come) != 1 or classes[removed[0]].before != classes[come[0]].after:
        return ""
    return f"; {come[0]} has its weight now: if you meant a rename, jobs must use {come[0]}-priority"


def _order(diff: PlanDiff) -> Iterator[Risk]:
    """Report classes that change their order: tasks then evict those that used to evict them."""
    kept = [
        (name, change.before, change.after)
        for name, change in diff.priority_classes.items()
        if change.before is not None and change.after is not None
    ]
    old = [name for name, was, _ in sorted(kept, key=lambda item: -item[1])]
    new = [name for name, _, now in sorted(kept, key=lambda item: -item[2])]
    if old != new:
        weights = [f"{name} {amount(was)} → {amount(now)}" for name, was, now in kept if was != now]
        message = f"the order of priority classes changes: {listing(weights)}"
        yield Risk("priority-order", "attention", "priorityClasses", message)


def _gangs(diff: PlanDiff) -> Iterator[Risk]:
    """Report that gang scheduling is turned on or off, or changed: it applies immediately to admitted tasks."""
    before, after = diff.before, diff.after
    if before is None or after is None or before.spec.governance is None or after.spec.governance is None:
        return
    was, now = before.gang_scheduling, after.gang_scheduling
    if was == now or (was is not None and now is not None and not was.enable and not now.enable):
        return
    if now is None:
        message = "the file no longer sets gang scheduling, so it stays as the cluster has it"
    elif not now.enable:
        message = (
            "gang scheduling is turned off, and Kueue restarts: workloads keep their quota even if some of their pods "
            "never start"
        )
    elif was is not None and was.enable:
        sides = [side.model_dump(by_alias=True) for side in (was, now)]
        old, new = ({**side, **side["requeuingStrategy"], "requeuingStrategy": None} for side in sides)
        edits = [f"{key} {arrow(value_text(old[key]), value_text(new[key]))}" for key in new if old[key] != new[key]]
        message = f"gang scheduling changes, and Kueue restarts: {listing(edits, len(edits))}"
    else:
        message = (
            "gang scheduling is turned on, and Kueue restarts: it evicts and requeues every admitted workload whose "
            f"pods aren't all ready within {now.timeout}"
        )
        message += ", and admits one workload at a time, of any team" if now.block_admission else ""
    yield Risk("gang-scheduling", "attention", "gangScheduling", message)
