"""What a cluster needs: pure comparison of inputs with what is live, no call in sight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from provider.cluster_words import GROUPS, group_names, inherited, keep_subnets
from provider.diff import same
from provider.fields import GROUP_FROZEN, Field, to_api
from provider.projection import SERVICE_OWNED, project
from provider.values import Props, walk_unknown
from provider.waiter import kind_of

__all__ = ["STICKY", "Plan", "handed_over", "nodes", "plan_update", "refusals", "settled", "unknown_groups"]

# What a member that is no longer stated goes back to; the API keeps whatever is left out of a call.
_RESETS: Final[dict[str, Any]] = {
    "minInstanceCount": 0,
    "kubernetesConfig": {"labels": {}, "taints": []},
    "imageId": "default",
    "instanceStorageConfigs": [],
}
# The API has no empty value for these.
STICKY: Final = (
    "lifeCycleConfig",
    "onStartDeepHealthChecks",
    "trainingPlanArn",
    "scheduledUpdateConfig",
    "autoPatchConfig",
    "networkInterface",
    "instanceRequirements",
)
_SETTINGS: Final[dict[str, Any]] = {
    "nodeRecovery": "Automatic",
    "tieredStorageConfig": {"mode": "Disable"},
    "clusterRole": None,
    "restrictedInstanceGroupsConfig": None,
}


@dataclass
class Plan:
    """One UpdateCluster call: `request` in API form, empty if nothing is to be done.

    `waits_for` names what can only be changed by a call after this one.
    """

    request: dict[str, Any] = field(default_factory=dict)
    waits_for: str = ""


def _by_name(inputs: Props, member: str = "instanceGroups") -> dict[str, Props]:
    return {group["instanceGroupName"]: group for group in inputs.get(member, [])}


def refusals(old: Props, new: Props) -> list[str]:
    """List changes that the API refuses on a group or cluster that exists; each says what to do instead."""
    if any(walk_unknown([group.get("instanceGroupName") for group in new.get("instanceGroups", [])])):
        return []
    found = []
    before = _by_name(old)
    for name, group in _by_name(new).items():
        if name not in before:
            continue
        frozen = [member for member in GROUP_FROZEN if _differs(before[name].get(member), group.get(member))]
        if ("instanceType" in before[name]) != ("instanceType" in group) and "instanceType" not in frozen:
            frozen.append("instanceType")
        found += [
            f"instanceGroups[{name}].{member}: {before[name].get(member)!r} cannot become {group.get(member)!r} "
            "on a group that exists: give the group a new name"
            for member in frozen
        ]
        found += [
            f"instanceGroups[{name}].{member}: cannot be taken away from a group that exists: give the group a new name"
            for member in STICKY
            if member in before[name] and member not in group and member != "instanceRequirements"
        ]
    enabled = all(side.get("autoScaling", {}).get("mode") == "Enable" for side in (old, new))
    if enabled and _differs(old.get("clusterRole"), new.get("clusterRole")):
        found.append(
            "clusterRole: cannot change while autoScaling is enabled: "
            "set autoScaling.mode to Disable in one `pulumi up`, change the role in the next"
        )
    return found


def _differs(old: Any, new: Any) -> bool:
    """Whether two values surely differ; sets of ids have no order."""
    if any(walk_unknown([old, new])):
        return False
    return bool(_sorted(old) != _sorted(new))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    return sorted(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else value


def unknown_groups(inputs: Props, live: Props, managed: list[str]) -> list[str]:
    """Live groups that neither the program nor an earlier run of it knows."""
    known = {*managed, *(name for member in GROUPS for name in _by_name(inputs, member))}
    return sorted(name for member in GROUPS for name in _by_name(live, member) if name not in known)


def handed_over(old: Props, new: Props) -> list[str]:
    """Return the groups that were Karpenter's and leave: their AutoscaledGroup deletes them later, not the cluster."""
    return sorted(set(old.get("autoscaledInstanceGroups", [])).difference(group_names(new)))


def plan_update(
    spec: Field, *, old: Props, new: Props, live: Props, document: dict[str, Any], managed: list[str]
) -> Plan:
    """Work out the next UpdateCluster call: only what differs from what is live."""
    request: dict[str, Any] = {}
    old, new = inherited(keep_subnets(old, live), live), inherited(keep_subnets(new, live), live)
    scaling, mode = _autoscaling(new, document)
    if mode == "Enable" and document.get("AutoScaling", {}).get("Status") == "Failed":
        # Asking for a mode that is set already changes nothing: let go of what failed, then enable it anew.
        return Plan({"AutoScaling": {"Mode": "Disable"}}, waits_for="autoScaling")
    role = new.get("clusterRole")
    if role and role != live.get("clusterRole") and document.get("AutoScaling", {}).get("Mode") == "Enable":
        # The role is in use: Karpenter has to let go of it first.
        return Plan({"AutoScaling": {"Mode": "Disable"}} if mode == "Disable" else {}, waits_for="clusterRole")
    for name, default in _SETTINGS.items():
        wanted = new.get(name, default if name in live else None)
        member = spec.by_name[name]
        if wanted is not None and not _holds(member, wanted, live.get(name, default)):
            request[member.api] = to_api(member, wanted)
    for member_name in GROUPS:
        member = spec.by_name[member_name]
        changed = _groups(member, old=old, new=new, live=live)
        if changed:
            request[member.api] = changed
    doomed = sorted(
        name
        for member_name in GROUPS
        for name in _by_name(live, member_name)
        if name in managed and not any(name in _by_name(new, other) for other in GROUPS)
    )
    if doomed:
        request["InstanceGroupsToDelete"] = doomed
    if scaling:
        request["AutoScaling"] = scaling
    return Plan(request)


def _holds(member: Field, wanted: Any, live: Any) -> bool:
    return live is not None and same(member, project(member, wanted, live), wanted)


def _autoscaling(new: Props, document: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    wanted = new.get("autoScaling", {"mode": "Disable"})
    mode = wanted["mode"]
    if document.get("AutoScaling", {}).get("Mode", "Disable") == mode:
        return None, mode
    return {"Mode": mode, "AutoScalerType": wanted.get("autoScalerType", "Karpenter")}, mode


def _groups(member: Field, *, old: Props, new: Props, live: Props) -> list[dict[str, Any]]:
    """Return the groups to send: those that are new, and those that are not as they should be."""
    item = member.item or member
    before, there = _by_name(old, member.name), _by_name(live, member.name)
    autoscaled = new.get("autoscaledInstanceGroups", [])
    sent = []
    for name, group in _by_name(new, member.name).items():
        if name not in there:
            sent.append(to_api(item, group))
            continue
        full = _full(group, there[name], before.get(name, {}))
        if name in autoscaled:
            # Karpenter's own number: sending anything else would start or stop nodes.
            full["instanceCount"] = there[name]["instanceCount"]
        past = before.get(name, group)
        moved = {key for key in SERVICE_OWNED if key in full and full[key] != past.get(key)}
        restated = not same(item, {**past, "instanceCount": 0}, {**group, "instanceCount": 0})
        if moved or restated or _group_differs(item, full, there[name]):
            kept = {key: value for key, value in full.items() if key not in SERVICE_OWNED or key in moved}
            sent.append(to_api(item, kept))
    return sent


def _full(group: Props, live: Props, old: Props) -> Props:
    """Write out what is no longer stated, so that the service goes back to its default."""
    full = dict(group)
    for name, default in _RESETS.items():
        stated_before = name in old
        if name not in full and (stated_before or (name in ("minInstanceCount", "kubernetesConfig") and name in live)):
            full[name] = default
    if "kubernetesConfig" in full:
        full["kubernetesConfig"] = {"labels": {}, "taints": [], **full["kubernetesConfig"]}
    return full


def _group_differs(item: Field, full: Props, live: Props) -> bool:
    for name, wanted in full.items():
        if name in SERVICE_OWNED:
            continue
        member = item.by_name[name]
        if name not in live:
            if wanted not in (0, [], {}, "") and wanted != {"labels": {}, "taints": []}:
                return True
        elif not same(member, project(member, wanted, live[name]), wanted):
            return True
    return False


def settled(document: dict[str, Any] | None) -> bool:
    """Whether no change runs: neither on the cluster, nor on a group, nor on the autoscaler."""
    if document is None:
        return True
    if kind_of(document["ClusterStatus"]) == "failed":
        return True
    groups = [*document.get("InstanceGroups", []), *document.get("RestrictedInstanceGroups", [])]
    statuses = [document["ClusterStatus"], document.get("AutoScaling", {}).get("Status", "InService")]
    statuses += [group.get("Status", "InService") for group in groups if group.get("Status") != "Degraded"]
    return all(kind_of(status) != "modifying" for status in statuses)


def nodes(document: dict[str, Any], *, autoscaled: list[str]) -> tuple[int, int]:
    """Return nodes that are there and nodes that should be, Karpenter's left out."""
    groups = [
        group
        for group in [*document.get("InstanceGroups", []), *document.get("RestrictedInstanceGroups", [])]
        if group["InstanceGroupName"] not in autoscaled
    ]
    return sum(group.get("CurrentCount", 0) for group in groups), sum(group["TargetCount"] for group in groups)
