"""The next UpdateCluster call of a cluster: compares inputs with the live state, without any call."""

from dataclasses import dataclass, field
from typing import Any, Final

from hpkit.catalog import in_any_order, other_volume_keys
from hpkit_provider.aws.client import Document
from hpkit_provider.aws.errors import classify_status
from hpkit_provider.engine.values import Props, has_unknown
from hpkit_provider.resources.cluster.cluster_state import (
    GROUPS,
    group_names,
    without_added_subnets,
    without_inherited_network,
)
from hpkit_provider.schema.diff import project, same, says_nothing
from hpkit_provider.schema.field import with_resets
from hpkit_provider.schema.field_table import Field, to_api, value_to_api

__all__ = [
    "UpdateRequest",
    "next_update",
    "rejected_changes",
    "removed_autoscaled_groups",
    "settled",
    "undeclared_groups",
    "undone_images",
]

_UNDONE: Final = frozenset({"RollbackInProgress", "RollbackComplete", "Failed"})
# What UpdateCluster takes in addition to groups and autoscaling.
_CLUSTER_MEMBERS: Final = ("nodeRecovery", "tieredStorageConfig", "clusterRole", "restrictedInstanceGroupsConfig")


@dataclass
class UpdateRequest:
    """One UpdateCluster call: `body` in API form, empty if nothing has to change.

    `waits_for` names what can change only in a call after this one.
    """

    body: Document = field(default_factory=dict)
    waits_for: str = ""


def _by_name(inputs: Props, member: str = "instanceGroups") -> dict[str, Props]:
    return {group["instanceGroupName"]: group for group in inputs.get(member, [])}


def rejected_changes(spec: Field, old: Props, new: Props) -> list[str]:
    """List changes that the API rejects on an existing group or cluster, each with a fix."""
    if has_unknown([group.get("instanceGroupName") for member in GROUPS for group in new.get(member, [])]):
        return []
    rejected = [rejection for member in GROUPS for rejection in _rejected_of_groups(spec, old, new, member)]
    enabled = all(side.get("autoScaling", {}).get("mode") == "Enable" for side in (old, new))
    if enabled and _differs(old.get("clusterRole"), new.get("clusterRole")):
        rejected.append(
            "clusterRole: can't change while autoScaling is enabled: set autoScaling.mode to Disable in one `pulumi "
            "up`, and change the role in the next"
        )
    return rejected


def _rejected_of_groups(spec: Field, old: Props, new: Props, list_name: str) -> list[str]:
    rejected = []
    before, item = _by_name(old, list_name), _item(spec.by_name[list_name])
    for name, group in _by_name(new, list_name).items():
        if any(name in _by_name(old, other) for other in GROUPS if other != list_name):
            rejected.append(f"{list_name}[{name}]: an existing group can't change its kind: give the group a new name")
        if name not in before:
            continue
        past = before[name]
        frozen = [
            member.name
            for member in item.members
            if member.frozen
            and not (member.undisclosed and None in (past.get(member.name), group.get(member.name)))
            and _differs(past.get(member.name), group.get(member.name))
        ]
        if ("instanceType" in past) != ("instanceType" in group) and "instanceType" not in frozen:
            frozen.append("instanceType")
        rejected += [
            (
                f"{list_name}[{name}].{member}: {past.get(member)!r} can't become {group.get(member)!r} on an existing "
                "group: give the group a new name"
            )
            for member in frozen
        ]
        storage = [_known_storage(side) for side in (past, group)]
        rejected += [
            f"{list_name}[{name}].instanceStorageConfigs: the KMS key of the {volume} can't change on an existing "
            "group: give the group a new name"
            for volume in other_volume_keys(*storage)
        ]
        rejected += [
            f"{list_name}[{name}].{member.name}: can't be removed from an existing group: give the group a new name"
            for member in item.members
            # A group that loses its instanceRequirements gets an instanceType, which is rejected above.
            if member.sticky and member.name in past.keys() - group.keys() and member.name != "instanceRequirements"
        ]
    return rejected


def _known_storage(group: Props) -> list[Any]:
    storage = group.get("instanceStorageConfigs", [])
    return [] if has_unknown(storage) else storage


def _differs(old: Any, new: Any) -> bool:
    """Return whether two values certainly differ; sets of IDs have no order."""
    if has_unknown([old, new]):
        return False
    return bool(in_any_order(old) != in_any_order(new))


def undeclared_groups(inputs: Props, live: Props, managed: list[str]) -> list[str]:
    """Return live groups that neither the program nor its earlier runs know."""
    known = {*managed, *(name for member in GROUPS for name in _by_name(inputs, member))}
    return sorted(name for member in GROUPS for name in _by_name(live, member) if name not in known)


def removed_autoscaled_groups(old: Props, new: Props) -> list[str]:
    """Return Karpenter's groups that are removed: their AutoscaledGroup deletes them later, not the cluster."""
    return sorted(set(old.get("autoscaledInstanceGroups", [])).difference(group_names(new)))


def next_update(
    spec: Field, *, old: Props, new: Props, live: Props, document: Document, managed: list[str]
) -> UpdateRequest:
    """Return the next UpdateCluster call: only differences from the live state."""
    body: Document = {}
    old = without_inherited_network(without_added_subnets(old, live), live)
    new = without_inherited_network(without_added_subnets(new, live), live)
    scaling, mode = _autoscaling(new, document)
    if mode == "Enable" and document.get("AutoScaling", {}).get("Status") == "Failed":
        # Requesting a mode that is already set changes nothing: turn off what failed, then turn it on again.
        return UpdateRequest({"AutoScaling": {"Mode": "Disable"}}, waits_for="autoScaling")
    role = new.get("clusterRole")
    if role and role != live.get("clusterRole") and document.get("AutoScaling", {}).get("Mode") == "Enable":
        # The role is in use: Karpenter must be turned off first.
        return UpdateRequest({"AutoScaling": {"Mode": "Disable"}} if mode == "Disable" else {}, waits_for="clusterRole")
    for name in _CLUSTER_MEMBERS:
        member = spec.by_name[name]
        wanted = new.get(name, member.reset_to if name in live else None)
        if wanted is not None and not _holds(member, wanted, live.get(name, member.reset_to)):
            body[member.api] = value_to_api(member, wanted)
    for member_name in GROUPS:
        member = spec.by_name[member_name]
        changed = _groups(member, old=old, new=new, live=live)
        if changed:
            body[member.api] = changed
    removed = sorted(
        name
        for member_name in GROUPS
        for name in _by_name(live, member_name)
        if name in managed and not any(name in _by_name(new, other) for other in GROUPS)
    )
    if removed:
        body["InstanceGroupsToDelete"] = removed
    if scaling:
        body["AutoScaling"] = scaling
        if mode == "Enable":
            # As the developer guide has it, "Enable Karpenter autoscaling", though the cluster may have it already.
            body["ClusterRole"] = role
    return UpdateRequest(body)


def _holds(member: Field, wanted: Any, live: Any) -> bool:
    return live is not None and same(member, project(member, wanted, live), wanted)


def _autoscaling(new: Props, document: Document) -> tuple[Document | None, str]:
    scaling = new.get("autoScaling", {"mode": "Disable"})
    mode = scaling["mode"]
    if document.get("AutoScaling", {}).get("Mode", "Disable") == mode:
        return None, mode
    return {"Mode": mode, "AutoScalerType": scaling.get("autoScalerType", "Karpenter")}, mode


def _groups(member: Field, *, old: Props, new: Props, live: Props) -> list[Document]:
    """Return the groups to send: new ones, and those that differ."""
    item = _item(member)
    before, existing = _by_name(old, member.name), _by_name(live, member.name)
    autoscaled = new.get("autoscaledInstanceGroups", [])
    sent = []
    for name, group in _by_name(new, member.name).items():
        if name not in existing:
            sent.append(to_api(item, group))
            continue
        full = _with_group_resets(item, group, existing[name], before.get(name, {}))
        if name in autoscaled:
            # Karpenter's own number: sending anything else would start or stop nodes.
            full["instanceCount"] = existing[name]["instanceCount"]
        past = before.get(name, group)
        restated = not same(item, {**past, "instanceCount": 0}, {**group, "instanceCount": 0})
        if restated or _group_differs(item, full, existing[name]):
            kept = {
                key: value
                for key, value in _without_kept(item, full, past).items()
                # The service might reject even a group's current value if it's set for the first time.
                if not (item.by_name[key].undisclosed and key not in existing[name])
            }
            sent.append(to_api(item, kept))
    return sent


def _without_kept(spec: Field, value: Props, past: Props) -> Props:
    """Return settings without unchanged ones that the service changes itself: sending one would undo that."""
    members = {name: spec.by_name[name] for name in value}
    return {
        name: _without_kept(member, value[name], past.get(name) or {}) if member.kind == "object" else value[name]
        for name, member in members.items()
        if not (member.service_owned and value[name] == past.get(name))
    }


def _with_group_resets(item: Field, group: Props, live: Props, old: Props) -> Props:
    """Write defaults explicitly for removed or manually changed settings, so that the service resets them."""
    dropped = {
        member.name: member.reset_to
        for member in item.members
        if member.reset_to is not None and (member.name in old or (member.watched and member.name in live))
    }
    return {
        name: with_resets(member, value) if (member := item.by_name[name]).kind == "object" else value
        for name, value in {**dropped, **group}.items()
    }


def _group_differs(item: Field, full: Props, live: Props) -> bool:
    for name, value in full.items():
        member = item.by_name[name]
        if member.service_owned:
            continue
        if name not in live:
            if value != member.reset_to and not says_nothing(member, value):
                return True
        elif not same(member, project(member, value, live[name]), value):
            return True
    return False


def _item(member: Field) -> Field:
    return member.item or member


def undone_images(body: Document, before: Document, after: Document) -> list[str]:
    """Return the groups of an UpdateCluster call whose image the service didn't keep.

    Source: API reference, ClusterInstanceGroupDetails, TargetStateCount: after a rollback, the current and the desired
    image are swapped.
    """
    was, now = ({group["InstanceGroupName"]: group for group in each["InstanceGroups"]} for each in (before, after))
    undone = []
    for sent in body.get("InstanceGroups", []):
        images = {f"Desired{key}": sent[key] for key in ("ImageId", "ImageReleaseVersion") if key in sent}
        old, new = (groups.get(sent["InstanceGroupName"], {}) for groups in (was, now))
        differs = any(value not in ("default", new.get(key, value)) for key, value in images.items())
        statuses = [group.get("SoftwareUpdateStatus") for group in (old, new)]
        if images and (differs or (statuses[1] in _UNDONE and statuses[0] != statuses[1])):
            undone.append(sent["InstanceGroupName"])
    return undone


def settled(document: Document | None) -> bool:
    """Return whether no change is running: on the cluster, on a group, or on the autoscaler."""
    if document is None:
        return True
    if classify_status(document["ClusterStatus"]) == "failed":
        return True
    groups = [*document.get("InstanceGroups", []), *document.get("RestrictedInstanceGroups", [])]
    statuses = [document["ClusterStatus"], document.get("AutoScaling", {}).get("Status", "InService")]
    statuses += [group.get("Status", "InService") for group in groups if group.get("Status") != "Degraded"]
    return all(classify_status(status) != "modifying" for status in statuses)
