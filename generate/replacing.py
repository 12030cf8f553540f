"""What no type can change in place, from the tables of the plugins: the data that hpkit.changes reads."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_local.cloud import Prop, ResourceType
    from hpkit_provider.schema.field_table import Field

__all__ = ["replacing_text"]

_SOURCE = (
    "pulumi-aws, pulumi-kubernetes and the SageMaker API, as the tables of the fake plugins and of the hyperpod plugin "
    "have them: hpkit_local.plugins, hpkit_provider.schema.declarations"
)


def replacing_text() -> str:
    """Return the data file: a type a line."""
    from hpkit_local.cloud import CONTENT, IMMUTABLE, REPLACES, RESOURCE_TYPES, TOKEN
    from hpkit_provider.schema.field_table import RESOURCES, table

    types = {token: _kind(kind) for token, kind in RESOURCE_TYPES.items()}
    types |= {each.token: _resource(table(name)) for name, each in RESOURCES.items()}
    # A provider's plugin is not asked: whatever lies in another region, or another account, is another resource.
    types |= {f"pulumi:providers:{name}": {"immutable": ["region"]} for name in ("aws", "hyperpod")}
    # A chart takes its default for a value that is left out, and that may be true.
    types[TOKEN] = {"immutable": list(REPLACES), "literal": True}
    objects = {"/".join(filter(None, key)): list(fields) for key, fields in IMMUTABLE.items()}
    objects |= {kind: list(fields) for kind, fields in CONTENT.items()}
    parts = {
        "source": json.dumps(_SOURCE),
        "types": _lines(types),
        "kubernetes": _lines(objects),
        "groups": json.dumps(_groups(table("Cluster").by_name["instanceGroups"])),
    }
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {text}" for key, text in parts.items()) + "\n}\n"


def _lines(data: dict[str, Any]) -> str:
    lines = [f"    {json.dumps(key)}: {json.dumps(data[key], sort_keys=True)}" for key in sorted(data)]
    return "{\n" + ",\n".join(lines) + "\n  }"


def _kind(kind: "ResourceType") -> dict[str, Any]:
    # The region of a resource is its provider's: the program states none on a resource.
    props = [(path, prop) for path, prop in _props(kind.spec, "") if path != "region"]
    found = {
        "immutable": [path for path, prop in props if prop.immutable],
        # Leaving these out is no difference: AWS fills them in, or never tells them.
        "optional": [path for path, prop in props if prop.computed or (prop.write_only and prop.default is None)],
        "unasked": [path for path, prop in props if prop.write_only and prop.immutable],
        "grows": [path for path, prop in props if prop.only_grows],
        "sets": [path for path, prop in props if prop.kind == "set"],
        "defaults": {path: prop.default for path, prop in props if prop.default is not None},
        "identity": list(kind.identity),
    }
    return {key: value for key, value in found.items() if value} | (
        {"autoname": kind.autoname} if kind.autoname else {}
    )


def _props(spec: "Prop", above: str) -> "Iterator[tuple[str, Prop]]":
    for prop in spec.members:
        path = f"{above}.{prop.name}" if above else prop.name
        yield path, prop
        yield from _props(prop, path)


def _resource(spec: "Field") -> dict[str, Any]:
    fields = list(_fields(spec, ""))
    found = {
        "immutable": [path for path, each in fields if each.immutable],
        "sets": [path for path, each in fields if each.identity == "*"],
        "present": [path for path, each in fields if each.kind == "object" and not each.members],
        "entries": {path: each.identity for path, each in fields if each.identity not in ("", "*")},
        "defaults": {path: each.default for path, each in fields if each.default is not None},
    }
    return {key: value for key, value in found.items() if value} | {"deletesFirst": True}


def _groups(spec: "Field") -> dict[str, list[str]]:
    members = (spec.item or spec).members
    return {
        "frozen": [each.name for each in members if each.frozen],
        "sticky": [each.name for each in members if each.sticky],
    }


def _fields(spec: "Field", above: str) -> "Iterator[tuple[str, Field]]":
    for each in (spec.item or spec).members if spec.kind == "list" else spec.members:
        path = f"{above}.{each.name}" if above else each.name
        yield path, each
        yield from _fields(each, path)
