"""Facts about the `hyperpod` plugin's own types, from its declarations: the data that hpkit.changes reads."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_provider.schema.field_table import Field

__all__ = ["hyperpod_text", "service_model_text"]

# Everything that these refer to is kept, and the fields that select events: what users of hpkit can set.
_OPERATIONS = ("CreateCluster", "UpdateCluster", "CreateComputeQuota", "CreateClusterSchedulerConfig")
_OF_EVENTS = ("ClusterEventLevel", "ClusterStatus")
_KEPT = ("min", "max", "pattern", "enum")
_SETS = ("immutable", "sets", "present", "undisclosed")


def hyperpod_text() -> str:
    """Return the data file: a type per line."""
    from hpkit_provider.schema.field_table import RESOURCES, table

    types = {each.token: _resource(table(name)) for name, each in RESOURCES.items()}
    # A different region or account always means a different resource.
    types["pulumi:providers:hyperpod"] = {"immutable": ["region"]}
    parts = {
        "source": json.dumps("hpkit_provider.schema.declarations"),
        "types": _table(types),
        "groups": json.dumps(_groups(table("Cluster").by_name["instanceGroups"])),
    }
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {text}" for key, text in parts.items()) + "\n}\n"


def _table(data: dict[str, Any]) -> str:
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


def service_model_text() -> str:
    """Return the data file: a shape per line, with type, enum, range, length and pattern."""
    import botocore
    from botocore.loaders import Loader

    model = Loader().load_service_model("sagemaker", "service-2")
    shapes: dict[str, Any] = model["shapes"]
    inputs = [model["operations"][name]["input"]["shape"] for name in _OPERATIONS]
    shape_names = _reachable(shapes, [*inputs, *_OF_EVENTS])
    lines = [
        f"    {json.dumps(name)}: {json.dumps(_limits(shapes[name]), ensure_ascii=False)}"
        for name in sorted(shape_names)
        if _limits(shapes[name]).keys() - {"type"}
    ]
    return (
        "{\n"
        f'  "source": "botocore {botocore.__version__}, sagemaker {model["metadata"]["apiVersion"]}",\n'
        '  "shapes": {\n' + ",\n".join(lines) + "\n  }\n}\n"
    )


def _limits(shape: dict[str, Any]) -> dict[str, Any]:
    return {"type": shape["type"], **{key: shape[key] for key in _KEPT if key in shape}}


def _reachable(shapes: dict[str, Any], roots: list[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        shape = shapes[name]
        inner = [*shape.get("members", {}).values()]
        inner += [shape[key] for key in ("member", "key", "value") if key in shape]
        todo += [each["shape"] for each in inner]
    return seen
