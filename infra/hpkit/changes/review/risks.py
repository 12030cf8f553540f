"""Risks of a change: deletions, rejections, removed types, and limits below elastic quota; others by subject.

hpkit.changes decides what is replaced or rejected.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hpkit.changes import GUARDED_TYPES, StackChange, Step
from hpkit.changes.plan_diff import CapacityChange, Change, PlanDiff
from hpkit.changes.review.access_risks import access_risks
from hpkit.changes.review.capacity_risks import group_risks, node_pool_risks
from hpkit.changes.review.cost import minimum_cost
from hpkit.changes.review.formatting import as_fraction, cost, maximum
from hpkit.changes.review.losses import TEAM_RESOURCES, most_severe_risks_first, with_effects
from hpkit.changes.review.model import Loss, Risk, StackReview, worst
from hpkit.changes.review.setting_risks import (
    PolicySettings,
    StackSettings,
    policy_risks,
    setting_risks,
    stack_file_risks,
)
from hpkit.changes.review.sharing_risks import sharing_risks
from hpkit.changes.review.software_risks import software_risks
from hpkit.checks.waivers import covers
from hpkit.config.models.organization import Waiver
from hpkit.plan.model import Plan
from hpkit.plan.names import short_type
from hpkit.text.formatting import amount, listing, plural

__all__ = ["risks_of", "with_rename_risks"]

# A decision's resource by its code: last part of the type, and the prefix of its name.
_TEAM, _POOL = (("ComputeQuota", ""),), (("NodePool", "node-pool-"),)
_NAMED = {
    "team-removed": _TEAM,
    "team-renamed": _TEAM,
    "node-pool-removed": _POOL,
    "node-pool-renamed": _POOL,
    "addon-removed": (("Addon", ""), ("Release", "")),
    "nat-gateway-removed": (("NatGateway", ""),),
    "repository-removed": (("Repository", ""),),
}

_TEAM_LEAVES = ("team-removed", "team-renamed")

_NO_POLICIES: Change[PolicySettings] = Change(None, None)
_NO_SETTINGS: Change[StackSettings] = Change(None, None)


def risks_of(
    diff: PlanDiff,
    change: StackChange | None,
    losses: Sequence[Loss] = (),
    policies: Change[PolicySettings] = _NO_POLICIES,
    stack_file: Change[StackSettings] = _NO_SETTINGS,
    waivers: tuple[Sequence[Waiver], Sequence[Waiver]] = ((), ()),
) -> tuple[Risk, ...]:
    """Return the risks, worst first; change is None if the sides couldn't be recorded.

    Losses that are reported about a team aren't repeated.

    - policies: the contents of the organization's policy file.
    - stack_file: the contents of the stack's own file.
    - waivers: those with an effect, before and after.
    """
    risks = list(_stack(diff))
    risks += _guards(change, diff) if change is not None else ()
    # A move is rejected before anything else is compared.
    moved = change is not None and change.moves
    if diff.before is not None and diff.after is not None and not moved:
        before, after = diff.before, diff.after
        lost = {each.key for each in change.decisions} if change is not None else set()
        rejected = {each.subject for each in change.decisions if each.rejected} if change is not None else set()
        # A recreated EKS cluster isn't updated, so EKS has nothing to reject.
        risks += [] if "eks" in lost else software_risks(before, after)
        risks += [*access_risks(before, after), *_tags(before, after), *_allowances(before, after)]
        # Groups and NodePools are deleted with a replaced cluster, and its own decision states that.
        risks += (
            []
            if "cluster" in lost
            else [*node_pool_risks(before, after), *group_risks(before, after, rejected), *_recovery(before, after)]
        )
        risks += [*_capacity(diff), *sharing_risks(diff, losses)]
        risks += stack_file_risks(diff.stack, stack_file)
        risks += setting_risks(change.reductions if change is not None else (), risks, losses, diff)
    risks += [*_waivers(*waivers), *policy_risks(policies)] if diff.after is not None else ()
    return most_severe_risks_first(with_effects(risks, diff))


def _stack(diff: PlanDiff) -> Iterator[Risk]:
    if diff.before is not None and diff.after is None:
        nodes = listing(
            [
                f"{group.spec.instance_count} × {'/'.join(group.spec.types)}"
                for group in diff.before.own_groups
                if group.spec.instance_count
            ]
        )
        yield Risk(
            "stack-removed",
            "attention",
            diff.stack,
            f"{diff.stack} is no longer described, and nothing deletes what it created. If it is deployed, "
            f"{nodes or 'its resources'} keep costing {cost(minimum_cost(diff.before))} a month: first run "
            f"`hpkit aws destroy --stack {diff.stack}` from the old commit",
        )


def _guards(change: StackChange, diff: PlanDiff) -> Iterator[Risk]:
    """Yield the guards' decisions, other losses, and unused allowances."""
    pools = {team.name for team in diff.teams if team.is_shared_pool}
    for decision in change.decisions:
        message = decision.message
        if decision.code in _TEAM_LEAVES and decision.subject not in pools:
            message = f"{decision.reason}; stop the jobs of {decision.subject} before you merge; {decision.fix}"
        yield Risk(decision.code, "blocked" if decision.rejected else "attention", decision.subject, message)
    further = _unnamed_losses(change, diff)
    if further:
        names = listing([f"{short_type(step.type)} {step.name} ({step.action})" for step in further])
        verb = "is" if len(further) == 1 else "are"
        count = f"{plural(len(further), 'other resource' if change.decisions else 'resource')}"
        yield Risk("resources-removed", "attention", "resources", f"{count} {verb} replaced or deleted: {names}")
    for unused in change.unused_allowances:
        yield Risk("allowance", "attention", unused.key, unused.message)


def _unnamed_losses(change: StackChange, diff: PlanDiff) -> list[Step]:
    """Return losses that aren't part of a decision, a deleted team, or a member's access."""
    reported = {
        (resource_type, f"{prefix}{decision.subject}")
        for decision in change.decisions
        for resource_type, prefix in _NAMED.get(decision.code, ())
    }
    gone = [team for team in diff.teams if team.present.before and not team.present.after]
    reported |= {(resource_type, team.name) for team in gone for resource_type in TEAM_RESOURCES}
    reported |= {
        ("AccessEntry", member.partition(":iam::")[2]) for team in diff.teams for member in team.members_removed
    }
    return [
        step
        for step in change.lost
        if step.type not in GUARDED_TYPES and (step.type.rpartition(":")[2], step.name) not in reported
    ]


def _recovery(before: Plan, after: Plan) -> Iterator[Risk]:
    old, new = before.spec.cluster.node_recovery, after.spec.cluster.node_recovery
    yield from _tiered_storage(before, after)
    if old == "Automatic" and new != old:
        change = f"nodeRecovery {old} → {new}"
        means = "failed nodes aren't replaced, and their jobs stay on them, until someone reboots or replaces them"
        yield Risk("node-recovery", "attention", "cluster", f"{change}: {means}")


def _tiered_storage(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield less node memory for checkpoints, or none; if it's missing, the service decides."""
    old, new = (plan.spec.cluster.tiered_storage for plan in (before, after))
    if old is None or old.mode != "Enable":
        return
    if new is None or new.mode != "Enable":
        message = "is switched off: jobs can no longer save checkpoints in node memory, or find existing ones"
        yield Risk("tiered-storage", "attention", "cluster", f"tieredStorage {message}")
        return
    was, now = (each.instance_memory_allocation_percentage for each in (old, new))
    if was != now and (was is None or now is None or now < was):
        change = f"{'the default' if was is None else f'{was}%'} → {'the default' if now is None else f'{now}%'}"
        message = (
            f"tieredStorage, share of each node's memory {change}: the number of checkpoints that fit there changes"
        )
        yield Risk("tiered-storage", "attention", "cluster", message)


def _tags(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield tags that are removed or changed; a new tag changes no previous cost report."""
    if before.spec.manage_tags and not after.spec.manage_tags:
        means = (
            "all tags of hpkit and of the file are removed from every resource, including Name and SageMaker. Costs "
            "are no longer counted by them, and several HyperPod add-ons and load balancers need theirs"
        )
        yield Risk("tags", "attention", "tags", f"manageTags true → false: {means}")
    changed_tags = [
        f"{key} {was} → {after.tags.get(key, 'none')}"
        for key, was in before.tags.items()
        if after.spec.manage_tags and after.tags.get(key) != was
    ]
    if changed_tags:
        means = "cost reports and policies that use it see the new value from then on"
        yield Risk("tags", "attention", "tags", f"tag {listing(changed_tags)} on every resource of the stack: {means}")


def _waivers(before: Sequence[Waiver], after: Sequence[Waiver]) -> Iterator[Risk]:
    """Yield changed waivers; those that are new, longer or wider need attention: their findings aren't fixed."""
    old = {(each.rule, each.path): each for each in before}
    for new, same in [(waiver, old.pop((waiver.rule, waiver.path), None)) for waiver in after]:
        moved = next((key for key in old if key[0] == new.rule), None)
        was = same or (old.pop(moved) if moved else None)
        if was == new:
            continue
        within = was is not None and covers(was, new.rule, new.path) and was.until >= new.until
        place = f" instead of {was.path}" if was is not None and was.path != new.path else ""
        until = f" instead of {was.until}" if was is not None and was.until != new.until else ""
        why = "" if was is None or place or until else ", for another reason"
        message = f"{new.rule} at {new.path}{place} is now waived until {new.until}{until}{why}: {new.reason}"
        yield Risk("waiver", "ok" if within else "attention", new.rule, message)
    for rule, path in old:
        others = [each.path for each in after if covers(each, rule, path)]
        message = f"is still waived, at {others[0]}" if others else "is no longer waived"
        yield Risk("waiver", "ok", rule, f"{rule} at {path} {message}")


def _allowances(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield what the file no longer allows to replace or delete."""
    sides = [(plan.spec.allow_replace, plan.spec.allow_delete.model_dump(by_alias=True)) for plan in (before, after)]
    old, new = ([*names, *(f"{key}/{each}" for key in parts for each in parts[key])] for names, parts in sides)
    if removed := [name for name in old if name not in new]:
        message = f"allowReplace or allowDelete no longer names {listing(removed)}, so guards apply again"
        yield Risk("allowance", "ok", "allowances", message)


def _capacity(diff: PlanDiff) -> Iterator[Risk]:
    for change in diff.capacity:
        name = change.instance_type
        if change.present.before and not change.present.after:
            quota = (
                f"; teams still have quota for {amount(as_fraction(change.quota.after))}" if change.quota.after else ""
            )
            most = maximum(change, after=False)
            message = f"{change.permanent.before} permanent instances, {most} at most, and the jobs on them{quota}"
            yield Risk("type-removed", "attention", name, f"{name} is removed: {message}")
        yield from _limit(diff, change)


def _limit(diff: PlanDiff, change: CapacityChange) -> Iterator[Risk]:
    """Report that Karpenter's maximum no longer covers elastic quota."""
    name, most, quota = change.instance_type, change.maximum.after, change.quota.after
    fell = most is not None and (change.maximum.before is None or most < change.maximum.before)
    if not fell or not change.present.before or most is None or quota is None or quota <= most:
        return
    team_names = [
        team.name for team in diff.teams for share in team.shares if share.instance_type == name and share.elastic.after
    ]
    if team_names:
        growth = f"{name} can grow to {most} instead of {maximum(change, after=False)}"
        quotas = f"teams have quota for {amount(quota)} (elastic: {listing(team_names)})"
        yield Risk("limit-below-elastic", "attention", name, f"{growth}, but {quotas}")


def with_rename_risks(stacks: Sequence[StackReview]) -> tuple[StackReview, ...]:
    """Return the stacks; if a stack equals another except for its name, say that a new name is a new stack.

    The cluster's name identifies it, because cluster names are unique in a region.
    """
    gone = [each for each in stacks if each.status == "removed" and each.diff and each.diff.before]
    return tuple(_with_rename_risk(each, gone) if each.status == "added" else each for each in stacks)


def _with_rename_risk(stack: StackReview, gone: Sequence[StackReview]) -> StackReview:
    after = stack.diff.after if stack.diff else None
    for removed in gone:
        before = removed.diff.before if removed.diff else None
        if before is None or after is None or before.spec.cluster.name != after.spec.cluster.name:
            continue
        message = (
            f"{stack.stack} has the HyperPod cluster {after.spec.cluster.name} of {removed.stack}, which is no longer "
            f"described: a new name is a new stack. {stack.stack} is created from scratch, and {removed.stack} keeps "
            "running; if you meant a rename, keep the old name"
        )
        risk = Risk("stack-renamed", "attention", stack.stack, message)
        return replace(
            stack,
            verdict=worst([stack.verdict, risk.verdict]),
            reasons=(*stack.reasons, message),
            risks=most_severe_risks_first((*stack.risks, risk)),
        )
    return stack
