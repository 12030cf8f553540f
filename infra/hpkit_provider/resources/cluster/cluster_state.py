"""A live cluster as inputs and state: what is compared, and what the engine keeps."""

from typing import Any, Final

from hpkit.catalog.differences import adds_subnets
from hpkit_provider.aws.client import Document
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.handler import ResourceState
from hpkit_provider.schema.diff import project
from hpkit_provider.schema.field_table import Field, from_api

__all__ = [
    "GROUPS",
    "first_stated",
    "group_names",
    "groups_with_added_subnets",
    "live_inputs",
    "to_state",
    "with_live_values",
    "without_added_subnets",
    "without_autoscaled_counts",
    "without_inherited_network",
]

GROUPS: Final = ("instanceGroups", "restrictedInstanceGroups")


def live_inputs(spec: Field, document: Document) -> Props:
    """Return DescribeCluster's response as inputs: the desired counts, not the current ones."""
    desired = dict(document)
    for member in GROUPS:
        api = member[:1].upper() + member[1:]
        groups = [group for group in document.get(api, []) if group.get("Status") != "Deleting"]
        if api in document:
            desired[api] = [_desired_group(group) for group in groups]
    shared = document.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig")
    if shared:
        desired["RestrictedInstanceGroupsConfig"] = {"SharedEnvironmentConfig": _desired_environment(shared)}
    if document.get("AutoScaling", {}).get("Status") == "Failed":
        # Requested but missing: this is a difference, which the next run fixes.
        desired["AutoScaling"] = {**document["AutoScaling"], "Mode": "Disable"}
    return {name: value for name, value in from_api(spec, desired).items() if value != []}


def _desired_group(details: Document) -> Document:
    group = {**details, "InstanceCount": details["TargetCount"]}
    renamed = {
        "MinInstanceCount": "MinCount",
        "ImageId": "DesiredImageId",
        "ImageReleaseVersion": "DesiredImageReleaseVersion",
    }
    for name, source in renamed.items():
        if details.get(source) is not None:
            group[name] = details[source]
    if "KubernetesConfig" in details:
        config = details["KubernetesConfig"]
        group["KubernetesConfig"] = {
            name: config[source]
            for name in ("Labels", "Taints")
            if (source := f"Desired{name}") in config or (source := f"Current{name}") in config
        }
    if "InstanceRequirements" in details:
        types = details["InstanceRequirements"]
        group["InstanceRequirements"] = {
            "InstanceTypes": types.get("DesiredInstanceTypes") or types.get("CurrentInstanceTypes", [])
        }
    return group


def _desired_environment(details: Document) -> Document:
    return {
        name: details[source]
        for name in ("FSxLustreConfig", "FSxLustreDeletionPolicy")
        if (source := f"Desired{name}") in details or (source := f"Current{name}") in details
    }


def to_state(
    spec: Field, document: Document, live: Props, inputs: Props, *, managed: list[str], failed: bool
) -> ResourceState:
    """Return live values in the inputs' form; without inputs, it's an import."""
    projected = project(spec, inputs or None, {**live, **_declared_parts(spec, live, inputs)} if inputs else live)
    extra = {
        "clusterArn": document["ClusterArn"],
        "clusterStatus": document["ClusterStatus"],
        "creationTime": document["CreationTime"].isoformat(),
        "failureMessage": document.get("FailureMessage"),
        "managedInstanceGroups": sorted(managed),
        "creationFailed": True if failed else None,
    }
    state = {**projected, **{name: value for name, value in extra.items() if value is not None}}
    # The program might have given a group more subnets than it can use: state has the real ones, inputs the requested
    # ones.
    return ResourceState(
        str(document["ClusterArn"]),
        state,
        _replace_subnets(projected, _overrides(inputs), _groups_with_added(inputs, projected)),
    )


def group_names(inputs: Props) -> list[str]:
    """Return the names of all instance groups."""
    return sorted(group["instanceGroupName"] for member in GROUPS for group in inputs.get(member, []))


def first_stated(spec: Field, old: Props, new: Props) -> dict[str, Props]:
    """Return newly set values of existing groups, by name, for settings with an undisclosed default."""
    before, stated = _named_groups(old), {}
    for member in GROUPS:
        undisclosed = [each.name for each in (spec.by_name[member].item or spec).members if each.undisclosed]
        for name, group in _named_groups({member: new.get(member)}).items():
            names = [each for each in undisclosed if each in group and each not in before.get(name, group)]
            if names:
                stated[name] = {each: group[each] for each in names}
    return stated


def with_live_values(inputs: Props, live: Props, stated: dict[str, Props]) -> Props:
    """Return the inputs with the service's values of newly set settings."""
    groups = _named_groups(live)

    def filled(group: Any) -> Any:
        name = group.get("instanceGroupName") if isinstance(group, dict) else None
        if name not in stated or name not in groups:
            return group
        return {**group, **{each: groups[name][each] for each in stated[name] if each in groups[name]}}

    return {**inputs, **{member: [filled(group) for group in groups] for member, groups in _lists(inputs).items()}}


def without_autoscaled_counts(inputs: Props, new: Props) -> Props:
    """Leave the counts out that belong to Karpenter."""
    autoscaled = new.get("autoscaledInstanceGroups", [])
    groups = inputs.get("instanceGroups")
    if not isinstance(autoscaled, list) or not isinstance(groups, list):
        return inputs
    zeroed_groups = [
        {**group, "instanceCount": 0}
        if isinstance(group, dict) and group.get("instanceGroupName") in autoscaled
        else group
        for group in groups
    ]
    return {**inputs, "instanceGroups": zeroed_groups}


def without_added_subnets(inputs: Props, live: Props) -> Props:
    """Omit subnets that were only added to live groups: the API accepts them only for new groups."""
    return _replace_subnets(inputs, _overrides(live), _groups_with_added(inputs, live))


def without_inherited_network(inputs: Props, live: Props | None = None) -> Props:
    """Omit the network of groups that set the cluster's own: for the API, that is the same as none.

    With live, existing groups keep their networks, and new ones get theirs: the API rejects changes.
    """
    own = _network(inputs.get("vpcConfig"))
    live_overrides, exist = _overrides(live or {}), group_names(live or {})

    def own_network_left_out(group: Any) -> Any:
        override = group.get("overrideVpcConfig") if isinstance(group, dict) else {}
        if own is None or (override is not None and _network(override) != own):
            return group
        name = group.get("instanceGroupName")
        if name in live_overrides:
            return (
                {**group, "overrideVpcConfig": live_overrides[name]} if _network(live_overrides[name]) == own else group
            )
        if live is not None and name not in exist:
            return group
        return {key: value for key, value in group.items() if key != "overrideVpcConfig"}

    return {
        **inputs,
        **{member: [own_network_left_out(group) for group in groups] for member, groups in _lists(inputs).items()},
    }


def _network(config: Any) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return subnets and security groups, which have no order; None if they aren't known yet."""
    lists = [config.get(name) for name in ("subnets", "securityGroupIds")] if isinstance(config, dict) else [None]
    if not all(isinstance(ids, list) and all(isinstance(each, str) for each in ids) for ids in lists):
        return None
    return frozenset(lists[0] or ()), frozenset(lists[1] or ())


def groups_with_added_subnets(old: Props, new: Props, live: Props) -> list[str]:
    """Return the live groups that now get more subnets than before."""
    before, after = _overrides(old), _overrides(new)
    return sorted(
        name
        for name in _groups_with_added(new, live)
        if any(subnet not in before.get(name, {}).get("subnets", ()) for subnet in after[name]["subnets"])
    )


def _groups_with_added(inputs: Props, live: Props) -> set[str]:
    """Return the groups that have all their live subnets and more; some of them might not be known yet."""
    live_overrides = _overrides(live)
    return {
        name
        for name, override in _overrides(inputs).items()
        if name in live_overrides and adds_subnets(live_overrides[name]["subnets"], override["subnets"])
    }


def _overrides(inputs: Props) -> dict[str, Props]:
    """Return the network of each group with a separate one, without values that aren't known yet."""
    return {
        name: override
        for name, group in _named_groups(inputs).items()
        if isinstance(override := group.get("overrideVpcConfig"), dict) and isinstance(override.get("subnets"), list)
    }


def _named_groups(inputs: Props) -> dict[str, Props]:
    return {
        group["instanceGroupName"]: group
        for groups in _lists(inputs).values()
        for group in groups
        if isinstance(group, dict) and isinstance(group.get("instanceGroupName"), str)
    }


def _replace_subnets(inputs: Props, overrides: dict[str, Props], group_names: set[str]) -> Props:
    """Return the inputs, in which the named groups take their subnets from elsewhere."""

    def with_subnets(group: Any) -> Any:
        name = group.get("instanceGroupName") if isinstance(group, dict) else None
        if name not in group_names:
            return group
        return {**group, "overrideVpcConfig": {**group["overrideVpcConfig"], "subnets": overrides[name]["subnets"]}}

    return {
        **inputs,
        **{member: [with_subnets(group) for group in groups] for member, groups in _lists(inputs).items()},
    }


def _lists(inputs: Props) -> dict[str, list[Any]]:
    return {member: groups for member in GROUPS if isinstance(groups := inputs.get(member), list)}


def _declared_parts(spec: Field, live: Props, inputs: Props) -> Props:
    """Return the live groups of the program, with the declared count where Karpenter counts, and own members."""
    declared = {group["instanceGroupName"]: group for group in inputs.get("instanceGroups", [])}
    autoscaled = inputs.get("autoscaledInstanceGroups", [])
    groups = []
    for group in live.get("instanceGroups", []):
        name = group["instanceGroupName"]
        if name in declared:
            count = declared[name]["instanceCount"] if name in autoscaled else group["instanceCount"]
            groups.append({**group, "instanceCount": count})
    # What the API doesn't have is live as declared.
    own = {member.name: inputs[member.name] for member in spec.members if not member.api and member.name in inputs}
    return {"instanceGroups": groups, **own}
