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
