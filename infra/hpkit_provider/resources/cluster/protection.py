"""Prevents losses in a cluster: the cluster itself, groups with instances, subnets of groups that stay.

The cause doesn't matter: what is lost is compared with the state and the service.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hpkit.catalog.training_plans import training_plan_problem
from hpkit.text.formatting import allowances, to_allow
from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError, RejectedError
from hpkit_provider.engine.results import PropertyChange
from hpkit_provider.engine.values import Props, has_unknown, is_unknown
from hpkit_provider.resources.cluster.cluster_state import GROUPS

__all__ = [
    "RemovedGroup",
    "deletion_rejected",
    "deletion_warning",
    "lost_subnets",
    "nodes_by_group",
    "removed_groups",
    "replacement_reasons",
    "replacement_rejected",
    "require_training_plans",
    "unused_allowances",
    "with_instances",
]

# Where the settings are in a program without an organization file.
_CLUSTER = "the inputs of the Cluster"
_NOT_KNOWN = "not known yet, because what it comes from is replaced"


@dataclass(frozen=True)
class RemovedGroup:
    """A live group that the program no longer has; count is None if it isn't known."""

    name: str
    count: int | None
    types: str

    @property
    def text(self) -> str:
        """Return name, count and instance type, for messages."""
        return f"{self.name} ({'?' if self.count is None else self.count} × {self.types or 'unknown type'})"


def removed_groups(old: Props, new: Props, state: Props) -> list[RemovedGroup]:
    """Return the groups that a change deletes, with the state's counts; empty while names aren't known.

    Karpenter's groups have no count there; groups that an earlier run began to delete have no entry at all.
    """
    if any(is_unknown(new.get(member)) for member in GROUPS) or has_unknown(list(_named(new))):
        return []
    groups_before = {**_groups(old), **_groups(state)}
    managed = state.get("managedInstanceGroups", [])
    autoscaled = old.get("autoscaledInstanceGroups", [])
    return [
        RemovedGroup(
            name,
            groups_before[name].get("instanceCount", 0) if name in groups_before and name not in autoscaled else None,
            _types(groups_before.get(name, {})),
        )
        for name in sorted({*groups_before, *managed} - set(_named(new)))
    ]


def with_instances(removed: Iterable[RemovedGroup], document: Mapping[str, Any] | None) -> list[RemovedGroup]:
    """Return those that have instances by DescribeCluster.

    Without it (None), those that might have some by the state.
    """
    if document is None:
        return [group for group in removed if group.count is None or group.count > 0]
    live = {
        group["InstanceGroupName"]: group
        for member in ("InstanceGroups", "RestrictedInstanceGroups")
        for group in document.get(member, [])
        if group.get("Status") != "Deleting"
    }
    removed_with_instances = []
    for group in removed:
        seen = live.get(group.name, {})
        count = max(group.count or 0, seen.get("CurrentCount", 0), seen.get("TargetCount", 0)) if seen else 0
        if count:
            types = group.types or seen.get("InstanceType", "")
            removed_with_instances.append(RemovedGroup(group.name, count, types))
    return removed_with_instances


def lost_subnets(new: Props, state: Props) -> list[str]:
    """List groups that stay and lose a subnet: it's replaced, because others that aren't known yet are in the list.

    The API accepts other subnets only for new groups; it would reject this in the middle of the run.
    """
    before = {name: _subnets(group) for name, group in _groups(state).items()}
    problems = []
    for name, group in _groups(new).items():
        subnets = _subnets(group)
        lost = [subnet for subnet in before.get(name, []) if subnet not in subnets]
        if lost and has_unknown(subnets):
            problems.append(
                f"instanceGroups[{name}].overrideVpcConfig.subnets: {', '.join(lost)} is replaced, and an existing "
                "group can't change its subnets: give the group a new name"
            )
    return problems


def replacement_rejected(
    name: str, why: Iterable[str], *, nodes: Iterable[str], teams: Iterable[str], where: str
) -> str:
    """Report what a replacement of the cluster deletes, and how to allow it; where: the place of hpkit's settings."""
    teams = list(teams)
    going = [*(f"nodes: {each}" for each in nodes), *([f"teams: {', '.join(teams)}"] if teams else [])]
    return "\n  ".join(
        [
            f"This change would REPLACE the HyperPod cluster {name}: it's deleted with everything on it and recreated.",
            *why,
            *(["This also deletes:", *(f"  {each}" for each in going)] if going else []),
        ]
    ) + (
        "\nTo fix: revert the change, or, "
        f"{to_allow(allowances(['cluster'], {}) if where else '`allowReplace`', where=where or _CLUSTER)}; remove this "
        "afterward."
    )


def replacement_reasons(changes: Iterable[PropertyChange], old: Props, new: Props) -> list[str]:
    """Report the old and new value of each property that replaces the cluster."""
    return [
        f"{change.path}: {_shown(_get_path(old, change.path))} → {_shown(_get_path(new, change.path))}"
        for change in changes
        if change.replaces
    ]


def nodes_by_group(state: Props) -> list[str]:
    """Return group, count and type of every group that has instances by the state."""
    return [
        f"{name} {group['instanceCount']} × {_types(group)}"
        for name, group in sorted(_groups(state).items())
        if group.get("instanceCount", 0) > 0
    ]


def deletion_rejected(groups: Iterable[RemovedGroup], allowed: Iterable[str], *, where: str) -> str:
    """Report which groups would be deleted with their instances, and how to allow it in addition to what is allowed."""
    groups = list(groups)
    names = [*allowed, *(group.name for group in groups)]
    setting = (
        allowances([], {"instanceGroups": names}) if where else f"`allowDeleteInstanceGroups: [{', '.join(names)}]`"
    )
    return (
        f"This change would DELETE {_plural(groups)} with all instances: {', '.join(group.text for group in groups)}. "
        "HyperPod can't rename an existing group: a new name deletes the group and creates an empty one.\n"
        "To fix: revert the change, create the new group first, and delete this one when nothing runs on it, or, "
        f"{to_allow(setting, where=where or _CLUSTER)}; remove this afterward."
    )


def deletion_warning(groups: Iterable[RemovedGroup]) -> str:
    """Warn about what an allowed deletion deletes."""
    groups = list(groups)
    return f"This change DELETES {_plural(groups)}, as allowed: {', '.join(each.text for each in groups)}."


def unused_allowances(new: Props, removed: Iterable[RemovedGroup], *, replaced: bool) -> list[str]:
    """Return a warning for each unused allowance; none while names aren't known."""
    allowed, group_names = new.get("allowDeleteInstanceGroups", []), list(_named(new))
    warnings = []
    if new.get("allowReplace") is True and not replaced:
        warnings.append("allowReplace is set, but this change doesn't replace the cluster: remove allowReplace.")
    if has_unknown([allowed, group_names]) or replaced:
        return warnings
    gone = {group.name for group in removed}
    for name in sorted(set(allowed) - gone):
        why = "stays" if name in group_names else "doesn't exist"
        warnings.append(f"The deletion of instance group {name} is allowed, but it {why}: remove the allowance.")
    return warnings


def _plural(groups: list[RemovedGroup]) -> str:
    return "the instance group" if len(groups) == 1 else f"{len(groups)} instance groups"


def _lists(inputs: Props) -> Iterator[Any]:
    for member in GROUPS:
        groups = inputs.get(member)
        if isinstance(groups, list):
            yield from groups


def _named(inputs: Props) -> Iterator[Any]:
    for group in _lists(inputs):
        yield group.get("instanceGroupName") if isinstance(group, dict) else group


def _groups(inputs: Props) -> dict[str, Props]:
    return {
        group["instanceGroupName"]: group
        for group in _lists(inputs)
        if isinstance(group, dict) and isinstance(group.get("instanceGroupName"), str)
    }


def _types(group: Props) -> str:
    flexible = group.get("instanceRequirements", {})
    kinds = [group.get("instanceType"), *(flexible.get("instanceTypes", []) if isinstance(flexible, dict) else [])]
    return " or ".join(kind for kind in kinds if isinstance(kind, str))


def _subnets(group: Props) -> list[Any]:
    override = group.get("overrideVpcConfig")
    subnets = override.get("subnets") if isinstance(override, dict) else None
    return subnets if isinstance(subnets, list) else []


def _get_path(inputs: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(inputs, dict):
            return inputs  # nothing of it is known
        inputs = inputs.get(step)
    return inputs


def _shown(value: Any) -> str:
    if has_unknown(value):
        return _NOT_KNOWN
    return "nothing" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def require_training_plans(api: SageMakerApi, call: EngineCall, old: Props, new: Props) -> None:
    """Reject groups that need instances from a training plan that can't supply them.

    Groups without new instances aren't checked: AWS removes the nodes of an expired plan. If the plan can't be read,
    AWS decides.

    Raises RejectedError with the group, the plan and its dates.
    """
    other_groups: defaultdict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for name, arn, instance_types, count in _growing(old, new):
        try:
            document = api.find(call, "describe_training_plan", TrainingPlanName=arn)
        except PluginError as error:
            call.warn(f"Training plan {arn} of instance group {name} isn't checked: {error}")
            continue
        if document is None:
            raise RejectedError(
                f"Instance group {name} uses training plan {arn}, which doesn't exist. To fix: use the ARN of a "
                "plan of this account and region, or remove trainingPlanArn."
            )
        problem = training_plan_problem(
            document,
            instance_types=instance_types,
            count=count,
            other_groups=other_groups[arn],
            zones=_zones(api, call, new, name),
        )
        other_groups[arn].append((instance_types, count))
        if problem is not None:
            raise RejectedError(
                f"Instance group {name} needs {count} × {' or '.join(instance_types)}, and training plan {arn} "
                f"{problem}. To fix: use another plan (`hpkit aws preflight --offerings` lists offers), or change "
                "the group."
            )


def _zones(api: SageMakerApi, call: EngineCall, new: Props, name: str) -> set[str]:
    """Return the zones of a group's subnets, or of the cluster's; empty if they can't be read, which AWS decides."""
    group = next(each for each in _all_groups(new) if each["instanceGroupName"] == name)
    subnets = (group.get("overrideVpcConfig") or new.get("vpcConfig") or {}).get("subnets")
    if not subnets:
        return set()
    try:
        response = api.find(call, "ec2.describe_subnets", SubnetIds=list(subnets)) or {}
    except PluginError as error:
        call.warn(f"The zone of instance group {name} isn't compared with its training plan: {error}")
        return set()
    return {str(each["AvailabilityZone"]) for each in response.get("Subnets", [])}


def _growing(old: Props, new: Props) -> Iterator[tuple[str, str, list[str], int]]:
    """Yield the name, plan, instance types and number of new instances of each group that takes more from a plan."""
    before = {group["instanceGroupName"]: group for group in _all_groups(old)}
    for group in _all_groups(new):
        arn, name = group.get("trainingPlanArn"), str(group["instanceGroupName"])
        former = before.get(name, {})
        same_plan = former.get("trainingPlanArn") == arn
        count = int(group.get("instanceCount", 0)) - (int(former.get("instanceCount", 0)) if same_plan else 0)
        types = [group["instanceType"]] if group.get("instanceType") else group["instanceRequirements"]["instanceTypes"]
        if arn and count > 0:
            yield name, str(arn), types, count


def _all_groups(inputs: Props) -> list[Props]:
    return [*inputs.get("instanceGroups", []), *inputs.get("restrictedInstanceGroups", [])]
