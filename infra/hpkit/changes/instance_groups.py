"""Decisions about the instance groups of a cluster that stays: deletions, and immutable settings.

Sources: UpdateCluster of the SageMaker API; BatchDeleteClusterNodes and InstanceGroupsToDelete stop what runs on a
node.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.catalog import frozen_of_groups, has_unknown, in_any_order, other_volume_keys, sticky_of_groups, type_facts
from hpkit.catalog.differences import adds_subnets
from hpkit.changes.compare import Recorded, RecordedResource, with_unknown
from hpkit.changes.decision import CLUSTER, DELETION_ALLOWED, GuardDecision
from hpkit.changes.steps import Step, root_causes
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan

__all__ = ["deleted_groups", "group_decisions", "renamed_group"]

_Group = GroupPlan | RestrictedGroupPlan
_MEMBERS: Final = ("instanceGroups", "restrictedInstanceGroups")

_DELETE: Final = "instanceGroups"
# A group's name has at most 63 characters; a number is added to it.
_LONGEST_STEM: Final = 59
_KEYS: Final = {"capacityRequirements": "capacityType", "overrideVpcConfig": "the subnets"}


def group_decisions(before: Recorded, after: Recorded, steps: Sequence[Step]) -> Iterator[GuardDecision]:
    """Yield the decisions about instance groups; nothing if the cluster itself is deleted with them."""
    pair = _cluster_that_stays(before, after, steps)
    if pair is None:
        return
    yield from _deletions(before, after)
    old, new = (_by_member(side) for side in pair)
    replaced = _replaced_by_id(pair[1], after, steps)
    for (member, name), group in new.items():
        if (member, name) in old:
            for reason in _unchangeable(old[member, name], group, before, after, replaced):
                yield _rejected(name, reason, before, after)
        elif any(name == other for _, other in old):
            yield _rejected(name, f"instance group {name} moves to {member}", before, after)
    yield from _karpenter_role(*pair, before, after)


def _rejected(name: str, reason: str, before: Recorded, after: Recorded) -> GuardDecision:
    """Return the decision about what HyperPod can't change: a group with another name can have it."""
    groups = {group.spec.name: group for side in (after, before) for group in side.plan.own_groups}
    stem = name[:_LONGEST_STEM]
    new = next(each for number in range(2, len(groups) + 3) if (each := f"{stem}-{number}") not in groups)
    there = " there and in its NodeClass" if groups[name].autoscaled else ""
    fix = f"HyperPod can't change this in an existing group; to replace the group, write `name: {new}`{there}"
    needs = ((_DELETE, name),) if _has_nodes(groups[name]) else ()
    return GuardDecision("immutable", "", name, reason, fix, rejected=True, needs=needs)


def _by_member(cluster: RecordedResource) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return (list, name) → group; a group never moves between the lists."""
    return {
        (member, group["instanceGroupName"]): group for member in _MEMBERS for group in cluster.inputs.get(member) or ()
    }


def deleted_groups(before: Recorded, after: Recorded) -> list[_Group]:
    """Return the groups that leave and have nodes, or may have them because Karpenter counts them."""
    staying = {group.spec.name for group in after.plan.own_groups}
    gone = [group for group in before.plan.own_groups if group.spec.name not in staying]
    return [group for group in gone if _has_nodes(group)]


def _has_nodes(group: _Group) -> bool:
    """Return whether a group has nodes, or can have them because Karpenter manages its count."""
    return group.spec.instance_count > 0 or group.autoscaled


def _cluster_that_stays(
    before: Recorded, after: Recorded, steps: Sequence[Step]
) -> tuple[RecordedResource, RecordedResource] | None:
    lost = {step.urn for step in steps if step.lost}
    for urn, resource in after.resources.items():
        if resource.type == CLUSTER and urn in before.resources and urn not in lost:
            return before.resources[urn], resource
    return None


def _deletions(before: Recorded, after: Recorded) -> Iterator[GuardDecision]:
    """Yield the decisions about the groups that leave a cluster which stays."""
    allowed = after.plan.spec.allow_delete.instance_groups
    for group in deleted_groups(before, after):
        name, is_allowed = group.spec.name, group.spec.name in allowed
        instance_types = "/".join(group.spec.types)
        nodes = "all nodes that Karpenter started" if group.autoscaled else f"{group.spec.instance_count}"
        renamed_to = renamed_group(group, before.plan, after.plan)
        rename = (
            f", {renamed_to.spec.name} starts empty; HyperPod can't rename an existing group"
            if renamed_to is not None
            else ", together with the jobs on its nodes"
        )
        fix = DELETION_ALLOWED if is_allowed else ""
        code = "group-renamed" if renamed_to is not None else "group-removed"
        reason = f"{name} is deleted ({nodes} × {instance_types}){rename}"
        yield GuardDecision(code, name, name, reason, fix, rejected=not is_allowed, needs=((_DELETE, name),))


def renamed_group(group: _Group, before: Plan, after: Plan) -> _Group | None:
    """Return the new group that equals a deleted one: a probable rename."""
    old_names = {each.spec.name for each in before.own_groups}
    for candidate in after.own_groups:
        same = (type(candidate), candidate.spec.types, candidate.zones) == (type(group), group.spec.types, group.zones)
        if candidate.spec.name not in old_names and same and candidate.spec.instance_count == group.spec.instance_count:
            return candidate
    return None


def _replaced_by_id(cluster: RecordedResource, after: Recorded, steps: Sequence[Step]) -> Mapping[str, Step]:
    """Return ID → step, for replaced resources that the groups use."""
    used = frozenset().union(*(cluster.uses.get(member, frozenset()) for member in _MEMBERS))
    replaced = {step.urn: step for step in steps if step.action == "replace" and step.urn in used}
    made = ((after.resources[urn].made, step) for urn, step in replaced.items())
    return {str(texts[key]): step for texts, step in made for key in ("id", "arn") if key in texts}


def _unchangeable(
    old: Mapping[str, Any], new: Mapping[str, Any], before: Recorded, after: Recorded, replaced: Mapping[str, Step]
) -> Iterator[str]:
    """Yield what of a group would change that the service won't change."""
    name = new["instanceGroupName"]
    for member in frozen_of_groups():
        was, now = old.get(member), with_unknown(new.get(member), replaced)
        if was and now and member == "overrideVpcConfig" and adds_subnets(was["subnets"], now["subnets"]):
            now = {**now, "subnets": was["subnets"]}
        undisclosed = f"instanceGroups.{member}" in type_facts("hyperpod:index:Cluster").undisclosed
        if undisclosed and None in (was, now):
            continue
        if in_any_order(was) != in_any_order(now) or has_unknown(now):
            yield _reason(name, member, was, now, before, after, _steps_in(new.get(member), replaced))
    for volume in other_volume_keys(old.get("instanceStorageConfigs", ()), new.get("instanceStorageConfigs", ())):
        yield f"volumeKmsKeyId of the {volume} of instance group {name} changes"
    for member in sticky_of_groups():
        if member in old and member not in new and member != "instanceRequirements":
            yield f"{member} of instance group {name} is removed"


def _reason(
    name: str, member: str, was: Any, now: Any, before: Recorded, after: Recorded, replaced: Sequence[Step]
) -> str:
    if replaced:
        what = ", ".join(f"{step.name}: {'; '.join(root_causes(step, [step])) or 'replaced'}" for step in replaced)
        kind = "subnet" if member == "overrideVpcConfig" and all("Subnet" in step.type for step in replaced) else member
        return f"the {kind} of instance group {name} is replaced ({what})"
    if member == "overrideVpcConfig":
        zones = [_zones(side, name) for side in (before, after)]
        if zones[0] != zones[1]:
            return f"availabilityZone of instance group {name} {zones[0]} → {zones[1]}"
    then, after_that = (_text(member, _known(value, side)) for value, side in ((was, before), (now, after)))
    return f"{_KEYS.get(member, member)} of instance group {name} {then} → {after_that}"


def _known(value: Any, side: Recorded) -> Any:
    """Return a value; for values that AWS assigns and a recording invents, a description of the resource."""
    makers = (each.name for each in side.resources.values() if isinstance(value, str) and value in each.made.values())
    name = next(makers, None)
    return value if name is None else f"hpkit's own ({name})"


def _zones(side: Recorded, name: str) -> str:
    return ", ".join(zone for group in side.plan.own_groups if group.spec.name == name for zone in group.zones)


def _steps_in(value: Any, replaced: Mapping[str, Step]) -> list[Step]:
    return [step for mark, step in replaced.items() if has_unknown(with_unknown(value, [mark]))]


def _text(member: str, value: Any) -> str:
    if member == "capacityRequirements":
        return "OnDemand" if value is None else "Spot"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text('', item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "unset" if value is None else str(value)


def _karpenter_role(
    old: RecordedResource, new: RecordedResource, before: Recorded, after: Recorded
) -> Iterator[GuardDecision]:
    enabled = all((side.inputs.get("autoScaling") or {}).get("mode") == "Enable" for side in (old, new))
    then, now = (side.inputs.get("clusterRole") for side in (old, new))
    if enabled and then != now:
        change = f"{_known(then, before)} → {_known(now, after)}"
        reason = f"the role of managed Karpenter {change}: it can't change while autoscaling is on"
        pools = ", ".join(pool.spec.name for pool in before.plan.node_pools)
        keda = ", addons: [keda]" if before.plan.spec.autoscaling and before.plan.spec.autoscaling.keda else ""
        fix = (
            f"first run `pulumi up` without `autoscaling` and elastic quota, with `allowDelete: {{nodePools: [{pools}]"
            f"{keda}}}`; then add both again with the new role"
        )
        yield GuardDecision("immutable", "", "autoscaling", reason, fix, rejected=True)
