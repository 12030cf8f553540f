"""The common part of every type: create, read, update and delete around its own functions."""

from dataclasses import dataclass
from typing import Any

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.check import DEFAULTS, changes, inputs_of, overlaid, projected
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType, defaults
from hpkit_provider.engine.errors import InitFailedError, PluginError
from hpkit_provider.engine.results import PropertyChange
from hpkit_provider.engine.values import UNKNOWN, Props, is_unknown

__all__ = ["ResourceState", "create", "delete", "differences", "preview_outputs", "read", "update"]

Tags = dict[str, str]


@dataclass(frozen=True)
class ResourceState:
    """A live resource: what the engine keeps of it."""

    resource_id: str
    state: Props
    inputs: Props


def differences(
    resource_type: ResourceType, *, old: Props, new: Props, state: Props, common: Tags
) -> list[PropertyChange]:
    """Return the differences; tags are compared with all existing tags, including those of the configuration."""
    property_changes = list(changes(resource_type, _before(resource_type, old=old, state=state), new))
    if resource_type.tagging:
        wanted = _all_tags(new, common)
        if is_unknown(wanted) or wanted != state.get("tagsAll", {}):
            stated = old.get("tags") != new.get("tags")
            property_changes.append(PropertyChange("tags" if stated else "tagsAll", "update", input=stated))
    return property_changes


def preview_outputs(resource_type: ResourceType, new: Props, state: Props, common: Tags, region: str) -> Props:
    """Return the outputs that a preview shows: computed ones are unknown until the resource exists."""
    computed = (
        dict.fromkeys(resource_type.computed, UNKNOWN) if not state else dict.fromkeys(resource_type.volatile, UNKNOWN)
    )
    kept = {name: state[name] for name in resource_type.computed if name in state}
    tags = {"tagsAll": _all_tags(new, common)} if resource_type.tagging else {}
    stated = {
        name: _expected(resource_type.spec.by_name[name], value, state.get(name)) for name, value in _given(new).items()
    }
    return {**_effective(resource_type, {}), **kept, **computed, "region": region, **stated, **tags}


def create(resource_type: ResourceType, call: Calls, inputs: Props, common: Tags) -> ResourceState:
    """Create it; a failure after it exists keeps it in state."""
    desired = _effective(resource_type, inputs)
    if resource_type.tagging:
        desired["tagsAll"] = _all_tags(inputs, common)
    resource_id = resource_type.create(call, desired)
    try:
        call.engine_call.mark_changed()
        if resource_type.wait:
            resource_type.wait(call, resource_id, PlannedUpdate({}, desired, frozenset(desired)))
        stated = frozenset(name for name in resource_type.later if name in desired)
        if stated and resource_type.update:
            resource_type.update(call, resource_id, PlannedUpdate({}, desired, stated))
        return _seen(resource_type, call, resource_id, inputs=inputs, expected_state=desired, common=common)
    except PluginError as error:
        raise _partly(error, resource_id, inputs, desired) from None


def read(
    resource_type: ResourceType, call: Calls, resource_id: str, *, inputs: Props, state: Props, common: Tags
) -> ResourceState | None:
    """Return it as it is; None when it is gone.

    Without outputs it's an import, which doesn't know the program's inputs: the official plugin runs Terraform's
    importer, and takes the inputs from what it reads (pulumi-terraform-bridge 3.136.0, pkg/tfbridge/provider.go, Read).
    """
    imported = {} if state else resource_type.imported
    if not state:
        inputs = {}
    live = resource_type.read(call, resource_id, {**imported, **state, **_given(inputs)})
    return None if live is None else _live(resource_type, call, resource_id, {**imported, **live}, inputs, common)


def update(
    resource_type: ResourceType, call: Calls, resource_id: str, *, old: Props, new: Props, state: Props, common: Tags
) -> ResourceState:
    """Update the live resource to the new inputs."""
    there = _before(resource_type, old=old, state=state)
    names = frozenset(change.path for change in changes(resource_type, there, new))
    before, desired = _effective(resource_type, there), _effective(resource_type, new)
    # What the program no longer sets must not come back from the state.
    inputs = {name for name, prop in resource_type.spec.by_name.items() if not prop.computed}
    expected_state = {**{name: value for name, value in state.items() if name not in inputs}, **desired}
    if resource_type.tagging:
        expected_state["tagsAll"] = _all_tags(new, common)
        state = _whole(resource_type, call, resource_id, inputs=new, state=state, common=common)
        _retag(resource_type, call, resource_id, state=state, desired=_all_tags(new, common))
    if names and resource_type.update:
        resource_type.update(call, resource_id, PlannedUpdate(before, expected_state, names))
    if names and resource_type.wait:
        resource_type.wait(call, resource_id, PlannedUpdate(before, expected_state, names))
    return _seen(resource_type, call, resource_id, inputs=new, expected_state=expected_state, common=common)


def delete(resource_type: ResourceType, call: Calls, resource_id: str, state: Props) -> None:
    """Delete it; no error if it is gone."""
    resource_type.delete(call, resource_id, _effective(resource_type, state))


def _before(resource_type: ResourceType, *, old: Props, state: Props) -> Props:
    """Return the old inputs as the state has them, and known values of those that the program omitted until now.

    The official plugin compares the program with the state's outputs (pulumi-terraform-bridge 3.136.0,
    pkg/tfbridge/provider.go, Diff). They differ from the inputs after an import, and after a creation that failed.
    """
    by_name = resource_type.spec.by_name
    before = {name: state[name] for name, prop in by_name.items() if prop.computed and name in state}
    for name, value in old.items():
        if name in state and name in by_name:
            before[name] = projected(by_name[name], value, state[name])
        elif name not in resource_type.write_only_inputs:
            before[name] = value
    return {**{name: state[name] for name in resource_type.write_only_inputs if name in state}, **before}


def _whole(
    resource_type: ResourceType, call: Calls, resource_id: str, *, inputs: Props, state: Props, common: Tags
) -> Props:
    """Return the state with the ARN and tags that one of an interrupted creation does not have."""
    if "tagsAll" in state:
        return state
    live = read(resource_type, call, resource_id, inputs=inputs, state=state, common=common)
    return {**state, **live.state} if live else state


def _retag(resource_type: ResourceType, call: Calls, resource_id: str, *, state: Props, desired: Tags) -> None:
    there: Tags = state.get("tagsAll", {})
    changed = {key: value for key, value in desired.items() if there.get(key) != value}
    dropped = sorted(there.keys() - desired.keys())
    if resource_type.tagging and (changed or dropped):
        resource_type.tagging(call, resource_id, state, changed, dropped)


def _seen(
    resource_type: ResourceType, call: Calls, resource_id: str, *, inputs: Props, expected_state: Props, common: Tags
) -> ResourceState:
    live = resource_type.read(call, resource_id, expected_state)
    if live is None:
        raise PluginError(f"{resource_id} was created, but no longer exists.")
    return _live(resource_type, call, resource_id, live, inputs, common)


def _live(
    resource_type: ResourceType, call: Calls, resource_id: str, live: Props, inputs: Props, common: Tags
) -> ResourceState:
    live = {name: value for name, value in live.items() if value is not None}
    if resource_type.tagging:
        tags = {key: value for key, value in live.pop("tags", {}).items() if not key.startswith("aws:")}
        stated: Any = inputs.get("tags", {})
        live["tagsAll"] = tags
        live["tags"] = {k: v for k, v in tags.items() if k in stated or common.get(k) != v}
    live_inputs = inputs_of(resource_type, inputs, live)
    base = {
        name: value
        for name, value in _effective(resource_type, {}).items()
        if inputs or name not in resource_type.write_only_inputs
    }
    state = {**base, **overlaid(live, _given(live_inputs)), "region": call.region}
    resource_id = str(state.pop("id", resource_id))
    return ResourceState(resource_id, state, live_inputs)


def _expected(prop: Prop, value: Any, live_value: Any) -> Any:
    """Return an input as an output of a preview: parts that the service fills in are as they are, or unknown."""
    if not isinstance(value, dict) or prop.kind != "object":
        return value
    computed = [member.name for member in prop.members if member.computed and not member.write_only]
    return {**{name: (live_value or {}).get(name, UNKNOWN) for name in computed}, **value}


def _partly(error: PluginError, resource_id: str, inputs: Props, desired: Props) -> InitFailedError:
    """Return the failure of a creation: the state then has all planned values.

    The next update has nothing to change, so it only reads; the one after it changes what the reading shows
    (Terraform's SDK 2, schema.Resource.Apply; `tags` are compared with the live ones).
    """
    state = {name: value for name, value in desired.items() if name not in ("tags", "tagsAll")}
    return InitFailedError(str(error), resource_id=resource_id, state=state, inputs=inputs)


def _effective(resource_type: ResourceType, inputs: Props) -> Props:
    return {**defaults(resource_type.spec), **_given(inputs)}


def _given(inputs: Props) -> Props:
    return {name: value for name, value in inputs.items() if name != DEFAULTS}


def _all_tags(inputs: Props, common: Tags) -> Any:
    tags = inputs.get("tags", {})
    return UNKNOWN if is_unknown(tags) else {**common, **tags}
