"""Facts about the `hyperpod` plugin's own types, from its declarations: the data that hpkit.changes reads."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_provider.schema.field_table import Field

__all__ = ["hyperpod_text"]

_SETS = ("immutable", "sets", "present", "undisclosed")


def hyperpod_text() -> str:
    """Return the data file: a type per line."""
    from hpkit_provider.schema.field_table import RESOURCES, table

    types = {each.token: _resource(table(name)) for name, each in RESOURCES.items()}
    # A different region or account always means a different resource.
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
    facts = spec.facts
    behavior: dict[str, Any] = {name: sorted(getattr(facts, name)) for name in _SETS}
    behavior |= {"entries": facts.entries, "defaults": facts.defaults}
    return {key: value for key, value in behavior.items() if value} | {"deletesFirst": True}


def _groups(spec: "Field") -> dict[str, list[str]]:
    members = (spec.item or spec).members
    return {
        "frozen": [each.name for each in members if each.frozen],
        "sticky": [each.name for each in members if each.sticky],
    }
