"""Writes into Pulumi's state what exists only there: the stack, its components, its providers.

`pulumi import` can neither create a provider with settings nor use one that is missing from the state. Otherwise it
imports under default providers, which the first `up` would delete. So before the import, the state gets these resources
exactly as the program registers them. They exist nowhere else. After the import, the inputs that AWS never returns are
added as the program sets them. They only instruct the API, and would be the only differences in the first preview.
"""

import json
import uuid
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from hpkit.adopt.imports import LiveObject, is_state_only
from hpkit.program.recording import RecordedResource, Recording

__all__ = ["loses_claims", "moved", "undeclared", "with_objects", "with_state_only", "with_write_only_inputs"]

_STACK: Final = "pulumi:pulumi:Stack"
_CLAIM: Final = "kubernetes:core/v1:PersistentVolumeClaim"
_GUARD: Final = "hyperpod:index:ChangeGuard"
# Inputs that no response of AWS contains:
# - How to resolve conflicts (EKS API, CreateAddon and UpdateAddon).
# - Whether EKS installs its own add-ons, for which the importer assumes true, so the next `up` would replace the
#   cluster (terraform-provider-aws 6.58.0, eks/resourceCluster).
# - The security groups of a file system, for which the first preview would replace it (FSx API, DescribeFileSystems).
# - Which groups belong to Karpenter. Only the NodeClasses in Kubernetes know that.
_WRITE_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "aws:eks/cluster:Cluster": ("bootstrapSelfManagedAddons",),
    "aws:eks/addon:Addon": ("resolveConflictsOnCreate", "resolveConflictsOnUpdate"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ("securityGroupIds",),
    "hyperpod:index:Cluster": ("autoscaledInstanceGroups",),
}


def with_state_only(exported: Mapping[str, Any], recording: Recording) -> dict[str, Any]:
    """Return an exported state with the stack, components and providers that it lacks."""
    deployment = dict(exported["deployment"] or {})
    resources = list(deployment.get("resources") or [])
    urns = {each["urn"] for each in resources}
    stack = _stack_urn(recording)
    if stack not in urns:
        resources.insert(0, {"urn": stack, "custom": False, "type": _STACK})
    state_only = [each for each in recording.resources.values() if is_state_only(each)]
    resources += [_entry(each, stack) for each in state_only if each.urn not in urns]
    return {**exported, "deployment": {**deployment, "resources": _parents_first(resources)}}


def with_write_only_inputs(exported: Mapping[str, Any], inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return an exported state with the program's inputs where AWS returns none.

    inputs: each resource's inputs by URN, with live IDs. The plugin reads such a property as null, or as its default.
    """

    def completed(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        names, stated = _WRITE_ONLY.get(entry["type"], ()), inputs.get(entry["urn"], {})
        write_only = {name: stated[name] for name in names if name in stated}
        sides = {side: {**entry[side], **write_only} for side in ("inputs", "outputs") if write_only and side in entry}
        return {**entry, **sides}

    deployment = exported["deployment"]
    return {
        **exported,
        "deployment": {**deployment, "resources": [completed(each) for each in deployment["resources"]]},
    }


def with_objects(exported: Mapping[str, Any], recording: Recording, objects: Sequence[LiveObject]) -> dict[str, Any]:
    """Return an exported state with the Kubernetes objects that it lacks, protected as what Pulumi imports."""
    deployment = exported["deployment"]
    ids = {each["urn"]: each.get("id", "") for each in deployment["resources"]}
    added = []
    for live in objects:
        if live.urn in ids:
            continue
        resource = recording.resources[live.urn]
        added.append(
            {
                "urn": live.urn,
                "custom": True,
                "type": resource.type,
                "id": live.id,
                "parent": resource.parent,
                "provider": f"{resource.provider}::{ids[resource.provider]}",
                "inputs": live.inputs,
                "outputs": {
                    **live.inputs,
                    "__fieldManager": live.manager,
                    "__initialApiVersion": live.inputs["apiVersion"],
                },
                "protect": True,
            }
        )
    return {**exported, "deployment": {**deployment, "resources": [*deployment["resources"], *added]}}


def moved(
    source: Mapping[str, Any], target: Mapping[str, Any], *, staying: Recording, recording: Recording
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Return the states of two stacks after moving what only the second program registers, and the number of moves.

    target has the components and providers of its program. `pulumi state move` can't do this: it also moves the
    provider, whose dependencies stay behind (Pulumi 3.200: "refers to missing resource"). staying: what the first
    program registers from now on; recording: what the second program registers.
    """
    prefixes = [f"urn:pulumi:{each.plan.stack}::" for each in (staying, recording)]
    entries = source["deployment"]["resources"]
    renamed = _renamed(entries, *prefixes)
    providers = {each["urn"]: each for each in renamed if each["type"].startswith("pulumi:providers:")}
    # With the inputs of the first stack: a provider with another address would replace all its resources.
    present = [
        {**resource, **{side: providers[resource["urn"]][side] for side in ("inputs", "outputs")}}
        if resource["urn"] in providers
        else resource
        for resource in target["deployment"]["resources"]
    ]
    ids = {each["urn"]: each.get("id", "") for each in present}
    urns = recording.resources.keys() - set(_renamed(list(staying.resources), *prefixes))
    leaving = {
        old["urn"]: new
        for old, new in zip(entries, renamed, strict=True)
        if new["urn"] in urns and not is_state_only(recording.resources[new["urn"]])
    }
    target_urns = ids.keys() | {entry["urn"] for entry in leaving.values()}
    for entry in leaving.values():
        registered = recording.resources[entry["urn"]]
        entry["parent"] = registered.parent or _stack_urn(recording)
        entry["provider"] = f"{registered.provider}::{ids[registered.provider]}"
    added = [_within(entry, target_urns) for entry in leaving.values() if entry["urn"] not in ids]
    parts = {part for each in recording.all("ChangeGuard") for part in each.inputs.get("parts") or ()}
    remaining = [_without_parts(each, parts) for each in entries if each["urn"] not in leaving]
    names = {each["urn"] for each in remaining}
    return (
        {**source, "deployment": {**source["deployment"], "resources": [_within(each, names) for each in remaining]}},
        {**target, "deployment": {**target["deployment"], "resources": [*present, *added]}},
        len(leaving),
    )


def loses_claims(exported: Mapping[str, Any], *recordings: Recording) -> bool:
    """Return whether a state has claims that no program registers."""
    claims = {each["urn"].rpartition("::")[2] for each in exported["deployment"]["resources"] if each["type"] == _CLAIM}
    return not claims <= {claim.name for recording in recordings for claim in recording.all(_CLAIM)}


def _without_parts(entry: Mapping[str, Any], parts: Container[str]) -> Mapping[str, Any]:
    """Return a guard without the parts that moved, whose absence it would reject; any other resource as it is."""
    if entry["type"] != _GUARD:
        return entry
    sides = {
        side: {
            name: {part: text for part, text in value.items() if part not in parts}
            if name in ("contents", "parts")
            else value
            for name, value in entry[side].items()
        }
        for side in ("inputs", "outputs")
    }
    return {**entry, **sides}


def _renamed(value: Any, old: str, new: str) -> Any:
    """Return a value of a state with the URNs of another stack."""
    return json.loads(json.dumps(value).replace(old, new))


def _within(entry: Mapping[str, Any], urns: Container[str]) -> dict[str, Any]:
    """Return a resource of a state without its dependencies on others than these."""
    by_property = entry.get("propertyDependencies") or {}
    kept = {
        "dependencies": [urn for urn in entry.get("dependencies") or () if urn in urns],
        "propertyDependencies": {name: [u for u in found or () if u in urns] for name, found in by_property.items()},
    }
    ignored = [name for name in kept if name not in entry]
    if entry.get("deletedWith") and entry["deletedWith"] not in urns:
        ignored.append("deletedWith")
    return {name: value for name, value in {**entry, **kept}.items() if name not in ignored}


def undeclared(exported: Mapping[str, Any], recording: Recording) -> list[str]:
    """Return the URNs of resources in the state that the program does not register: an `up` would delete them."""
    known = {*recording.resources, _stack_urn(recording)}
    resources = (exported["deployment"] or {}).get("resources") or []
    return [each["urn"] for each in resources if each["urn"] not in known and not each.get("external")]


def _stack_urn(recording: Recording) -> str:
    name, project = recording.plan.stack, recording.project
    return f"urn:pulumi:{name}::{project}::{_STACK}::{project}-{name}"


def _entry(resource: RecordedResource, stack: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "urn": resource.urn,
        "custom": resource.custom,
        "type": resource.type,
        "parent": resource.parent or stack,
    }
    if resource.custom:
        version = {"version": resource.version} if resource.version else {}
        inputs = {**resource.inputs, **version}
        entry |= {"id": str(uuid.uuid4()), "inputs": inputs, "outputs": inputs}
    return entry


def _parents_first(resources: list[Any]) -> list[Any]:
    """Return the resources in the order that Pulumi demands of a state: each after its parent and its provider."""
    depth: dict[str, int] = {}
    by_urn = {each["urn"]: each for each in resources}

    def depth_of(urn: str) -> int:
        if urn not in depth:
            parent = by_urn.get(urn, {}).get("parent", "")
            depth[urn] = depth_of(parent) + 1 if parent in by_urn else 0
        return depth[urn]

    state_only = [each for each in resources if not each["custom"] or each["type"].startswith("pulumi:providers:")]
    others = [each for each in resources if each not in state_only]
    return [*sorted(state_only, key=lambda each: depth_of(each["urn"])), *others]
