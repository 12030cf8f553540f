"""What an editor shows for each key in addition to its type: an example, the unit, and values from the catalog.

The models state them: `examples`, and in `json_schema_extra` what Hint describes. Values are suggestions: if the
validator accepts others, so does the schema.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin

from pydantic.fields import FieldInfo

from hpkit.catalog import (
    ACCELERATOR_RESOURCES,
    EFA,
    addons,
    instance_types,
    kubernetes_versions,
    operator_charts,
    regions,
    vpc_endpoints,
)

__all__ = [
    "VALUES",
    "Hint",
    "decorated",
    "definitions",
    "example_of",
    "hint_of",
    "nullable",
    "optional",
    "title_of",
    "with_markdown",
]


@dataclass(frozen=True, slots=True)
class Hint:
    """What an editor shows for one key.

    - example: a valid value; for a list, one of its entries.
    - unit: the number's unit.
    - values: which of VALUES complete it.
    - only: no other value is valid.
    - keys: which of VALUES complete the keys of a map.
    """

    example: Any
    unit: str = ""
    values: str = ""
    only: bool = False
    keys: str = ""


# Names for completion; each is in the schema once.
VALUES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "addonNames": lambda: (each.name for each in addons()),
    "addonsAndCharts": lambda: (*(each.name for each in addons()), *(each.name for each in operator_charts()), "keda"),
    "instanceTypeNames": lambda: (each.name for each in instance_types()),
    "kubernetesVersions": kubernetes_versions,
    "limitResources": lambda: (*ACCELERATOR_RESOURCES.values(), "cpu", "memory", "nodes"),
    "migProfiles": lambda: sorted({profile.name for each in instance_types() for profile in each.mig_profiles or ()}),
    "operators": lambda: ("In", "Exists"),
    "podResources": lambda: (*ACCELERATOR_RESOURCES.values(), "cpu", "memory", EFA),
    "regionNames": lambda: (each.name for each in regions()),
    "requirementKeys": lambda: (
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "kubernetes.io/arch",
    ),
    "vpcEndpointServices": vpc_endpoints,
}
_STATED: Final = ("unit", "values", "only", "keys")
# JSON Schema's constraints on a text.
_FORM: Final = ("type", "pattern", "minLength", "maxLength")
# Names that are written as one word.
_ONE_WORD: Final = {"NodePool": "NodePool", "NodeClass": "NodeClass", "Eks": "EKS", "Keda": "KEDA"}


def title_of(model: str) -> str:
    """Return a section's name for people: `Instance group` for `InstanceGroup`."""
    if model in _ONE_WORD:
        return _ONE_WORD[model]
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in model).strip()
    return words[:1].upper() + words[1:]


def hint_of(field: FieldInfo) -> Hint | None:
    """Return what a model's field states for editors; None without an example."""
    if not field.examples:
        return None
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return Hint(field.examples[0], **{name: extra[name] for name in _STATED if name in extra})  # type: ignore[arg-type]


def example_of(field: FieldInfo) -> Any:
    """Return the example value of a model's field as the file has it: a list of one for a list; None without one."""
    hint = hint_of(field)
    is_list = any(get_origin(each) is tuple for each in (field.annotation, *get_args(field.annotation)))
    return [hint.example] if hint is not None and is_list else hint and hint.example


def decorated(schema: Mapping[str, Any], hint: Hint) -> dict[str, Any]:
    """Return the JSON Schema of a key with its example, its unit, and the values and keys that may be completed."""
    result = {key: value for key, value in schema.items() if key not in ("examples", *_STATED)}
    is_list = "array" in result.get("type", "")
    if hint.keys:
        # Other keys remain valid: with additionalProperties, properties only name some.
        result["properties"] = dict.fromkeys(VALUES[hint.keys](), result["additionalProperties"])
    if hint.values:
        result = {**result, "items": _offering(result["items"], hint)} if is_list else _offering(result, hint)
    if hint.values or _reads_as_number(hint.example):
        # With names to complete, the example comes last, below all of them. A text of digits would be completed
        # without its quotes.
        shown = f"`{hint.example}`"
        result["description"] += "" if str(hint.example) in result["description"] else f" Example: {shown}."
    else:
        result["examples"] = [[hint.example] if is_list else hint.example]
    if hint.unit:
        result["description"] += f" Unit: {hint.unit}."
    return result


def with_markdown(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key whose code spans an editor shows as such, and not as the marks around them."""
    text = schema.get("description") or ""
    return {**schema, "markdownDescription": text} if "`" in text else dict(schema)


def optional(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key that may be empty, without an offer to write `null`, and without a second branch."""
    result = {key: value for key, value in schema.items() if key != "default" or value is not None}
    branches = result.get("anyOf", [])
    if len(branches) != 2 or branches[1] != {"type": "null"} or not isinstance(branches[0].get("type"), str):
        return result
    del result["anyOf"]
    form = {**branches[0], "type": [branches[0]["type"], "null"]}
    if "enum" in form:
        form["enum"] = [*form["enum"], None]
    return {**result, **form}


def nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key whose default, and each entry of whose default, `null` turns off."""
    result = dict(schema)
    if isinstance(result.get("additionalProperties"), dict):
        result["additionalProperties"] = nullable(result["additionalProperties"])
        if "properties" in result:
            result["properties"] = dict.fromkeys(result["properties"], result["additionalProperties"])
    if "$ref" in result:
        result["anyOf"] = [{"$ref": result.pop("$ref")}]
    if "anyOf" in result:
        is_offered = any("null" in each.get("type", ()) for each in result["anyOf"])
        return result if is_offered else {**result, "anyOf": [*result["anyOf"], {"type": "null"}]}
    if isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
        result |= {"enum": [*result["enum"], None]} if "enum" in result else {}
    return result


def _reads_as_number(example: Any) -> bool:
    return isinstance(example, str) and example.replace(".", "", 1).isdigit()


def _offering(schema: Mapping[str, Any], hint: Hint) -> dict[str, Any]:
    """Return the schema of a text with names to complete, which still takes any other text."""
    form = {key: schema[key] for key in _FORM if key in schema}
    if hint.only:
        form = {"type": "null"} if isinstance(form["type"], list) else {}
    branches = [form] if form else []
    kept = {key: value for key, value in schema.items() if key not in _FORM}
    return {**kept, "anyOf": [{"$ref": f"#/$defs/{hint.values}"}, *branches]}


def definitions() -> dict[str, Any]:
    """Return the lists of names that the schema refers to."""
    return {name: {"type": "string", "enum": list(values())} for name, values in sorted(VALUES.items())}
