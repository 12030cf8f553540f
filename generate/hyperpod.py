"""Facts of the `hyperpod` plugin's own types, from its declarations: the data that hpkit.changes reads."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_provider.schema.field_table import Field

__all__ = ["hyperpod_text"]


def hyperpod_text() -> str:
    """Return the data file: a type a line."""
    from hpkit_provider.schema.field_table import RESOURCES, table

    types = {each.token: _resource(table(name)) for name, each in RESOURCES.items()}
    # Whatever lies in another region, or another account, is another resource.
    types["pulumi:providers:hyperpod"] = {"immutable": ["region"]}
    parts = {
        "source": json.dumps("hpkit_provider.schema.declarations"),
        "types": _lines(types),
        "groups": json.dumps(_groups(table("Cluster").by_name["instanceGroups"])),
    }
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {text}" for key, text in parts.items()) + "\n}\n"


def _lines(data: dict[str, Any]) -> str:
    lines = [f"    {json.dumps(key)}: {json.dumps(data[key], sort_keys=True)}" for key in sorted(data)]
    return "{\n" + ",\n".join(lines) + "\n  }"


def _resource(spec: "Field") -> dict[str, Any]:
    fields = list(_fields(spec, ""))
    behavior = {
        "immutable": [path for path, member in fields if member.immutable],
        "sets": [path for path, member in fields if member.identity == "*"],
        "present": [path for path, member in fields if member.kind == "object" and not member.members],
        "entries": {path: member.identity for path, member in fields if member.identity not in ("", "*")},
        "defaults": {path: member.default for path, member in fields if member.default is not None},
    }
    return {key: value for key, value in behavior.items() if value} | {"deletesFirst": True}


def _groups(spec: "Field") -> dict[str, list[str]]:
    members = (spec.item or spec).members
    return {
        "frozen": [each.name for each in members if each.frozen],
        "sticky": [each.name for each in members if each.sticky],
    }


def _fields(spec: "Field", above: str) -> "Iterator[tuple[str, Field]]":
    for member in (spec.item or spec).members if spec.kind == "list" else spec.members:
        path = f"{above}.{member.name}" if above else member.name
        yield path, member
        yield from _fields(member, path)
