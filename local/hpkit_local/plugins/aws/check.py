"""Check and diff: every property is known and has the right type, and which changes replace a resource."""

import difflib
import json
import random
from collections.abc import Iterator
from typing import Any

from hpkit.catalog import Difference, differences
from hpkit_local.plugins.aws.resource_type import Prop, ResourceType
from hpkit_provider.engine.results import CheckFailure, PropertyChange
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["DEFAULTS", "changes", "check", "deletes_first", "inputs_of", "named", "overlaid", "projected"]

DEFAULTS = "__defaults"  # the real provider, too, keeps the names of generated inputs here
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "policy": (str,),
    "url": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "object": (dict,),
    "asset": (dict,),
}
_SUFFIX = 7


def check(resource_type: ResourceType, inputs: Props) -> list[CheckFailure]:
    """Return everything that is wrong with the inputs."""
    given = {name: value for name, value in inputs.items() if name != DEFAULTS}
    return list(_object(resource_type.token, resource_type.spec, given, ""))


def named(resource_type: ResourceType, name: str, *, old: Props, new: Props, seed: bytes) -> Props:
    """Return the inputs, with a generated name if the program sets none; an earlier generated one stays."""
    key = resource_type.autoname
    if not key or key in new or f"{key}Prefix" in new:
        return new
    if key in old.get(DEFAULTS, []):
        return {**new, key: old[key], DEFAULTS: [key]}
    suffix = "".join(random.Random(seed or None).choices("0123456789abcdef", k=_SUFFIX))  # noqa: S311 - no secret
    made = f"{name[: resource_type.longest_name - _SUFFIX - 1]}-{suffix}"
    return {**new, key: made.lower() if resource_type.lowercase else made, DEFAULTS: [key]}


def _object(token: str, spec: Prop, value: Props, path: str) -> Iterator[CheckFailure]:
    for name, item in value.items():
        inner = f"{path}.{name}" if path else name
        member = spec.by_name.get(name)
        if member is None:
            yield CheckFailure(inner, _unknown(token, spec, name))
        else:
            yield from _value(token, member, item, inner)
    for member in spec.members:
        if member.required and member.name not in value:
            yield CheckFailure(f"{path}.{member.name}" if path else member.name, "is required")


def _unknown(token: str, spec: Prop, name: str) -> str:
    near = difflib.get_close_matches(name, spec.by_name, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(spec.by_name))}"
    return f"the local cloud's {token} has no property {name!r}; {hint}"


def _value(token: str, spec: Prop, value: Any, path: str) -> Iterator[CheckFailure]:
    if is_unknown(value):
        return
    wanted = _TYPES[spec.kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        yield CheckFailure(path, f"{value!r} isn't of type {spec.kind}")
    elif spec.kind == "policy":
        yield from _document(str(value), path)
    elif spec.members and isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield from _object(token, spec, item, f"{path}[{index}]")
    elif spec.members and isinstance(value, dict):
        yield from _object(token, spec, value, path)


def _document(value: str, path: str) -> Iterator[CheckFailure]:
    try:
        json.loads(value)
    except ValueError as error:
        yield CheckFailure(path, f"isn't a JSON document: {error}")


def changes(resource_type: ResourceType, old: Props, new: Props) -> Iterator[PropertyChange]:
    """Yield the properties that differ, tags left out."""
    for prop in resource_type.spec.members:
        property_changes = (
            [] if prop.name == "tags" else list(_differences(prop, old.get(prop.name), new.get(prop.name)))
        )
        if property_changes:
            how = "add" if prop.name not in old else "delete" if prop.name not in new else "update"
            yield PropertyChange(prop.name, how, any(each.replaces for each in property_changes))


def deletes_first(resource_type: ResourceType, new: Props) -> bool:
    """Return whether a replacement deletes the old one first; a generated name doesn't count as set by the program."""
    return resource_type.facts.deletes_before_create(new.keys() - set(new.get(DEFAULTS, [])))


def inputs_of(resource_type: ResourceType, stated: Props, live: Props) -> Props:
    """Return live values as inputs, in the program's own form if both mean the same."""
    inputs: Props = {DEFAULTS: stated[DEFAULTS]} if DEFAULTS in stated else {}
    for prop in resource_type.spec.members:
        name = prop.name
        if prop.write_only or name == "region":
            if name in stated:
                inputs[name] = stated[name]
        elif name in stated:
            if name in live:
                inputs[name] = projected(prop, stated[name], live[name])
        elif name in live and not prop.computed and any(_differences(prop, None, live[name])):
            inputs[name] = live[name]
    return inputs


def _differences(prop: Prop, old: Any, new: Any) -> Iterator[Difference]:
    return differences(prop.facts, _meaning(prop, old), _meaning(prop, new), prop.path)


def overlaid(live: Any, stated: Any) -> Any:
    """Return live values with the program's values in the program's own form, at every depth."""
    if isinstance(live, dict) and isinstance(stated, dict):
        return {**live, **{name: overlaid(live.get(name), value) for name, value in stated.items()}}
    if isinstance(live, list) and isinstance(stated, list) and len(live) == len(stated):
        return [overlaid(*pair) for pair in zip(live, stated, strict=True)]
    return stated


def projected(prop: Prop, stated: Any, live: Any) -> Any:
    """Return the live value, limited to what the program sets."""
    if prop.members and isinstance(stated, dict) and isinstance(live, dict):
        return {
            name: projected(prop.by_name[name], value, live[name]) if name in live else value
            for name, value in stated.items()
            if name in live or prop.by_name[name].write_only
        }
    if prop.members and isinstance(stated, list) and isinstance(live, list) and len(stated) == len(live):
        inner = Prop("", "object", members=prop.members)
        return [projected(inner, *pair) for pair in zip(stated, live, strict=True)]
    return live if any(_differences(prop, stated, live)) else stated


def _meaning(prop: Prop, value: Any) -> Any:
    """Return a value without meaningless differences: the layout of JSON, IAM's lists with one entry, a scheme."""
    if isinstance(value, list) and prop.members:
        return [_meaning(prop, entry) for entry in value]
    if isinstance(value, dict) and prop.members:
        return {
            name: _meaning(prop.by_name[name], item) if name in prop.by_name else item for name, item in value.items()
        }
    if prop.kind == "policy" and isinstance(value, str):
        try:
            return _unlisted(json.loads(value))
        except ValueError:
            return value
    return value.removeprefix("https://") if prop.kind == "url" and isinstance(value, str) else value


def _unlisted(value: Any) -> Any:
    """Return IAM's value: a list with one entry equals the entry, and lists have no order."""
    if isinstance(value, dict):
        return {key: _unlisted(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [_unlisted(item) for item in value]
        return items[0] if len(items) == 1 else sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    return value
