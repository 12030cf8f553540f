"""The JSON Schema and the reference page of the config contract, both from the models."""

import inspect
import typing
from typing import Any

from pydantic import BaseModel

from hpkit.config.contract import inner_types
from hpkit.config.editor import HINTS, decorated, definitions, optional, title_of, with_markdown
from hpkit.config.organization import Organization
from hpkit.text.compact_json import compact_json

__all__ = ["json_schema", "reference", "schema_text"]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an organization file."""
    schema = Organization.model_json_schema(by_alias=True)
    for model in _models():
        properties = (schema if model is Organization else schema["$defs"][model.__name__])["properties"]
        for name, field in model.model_fields.items():
            key = field.alias or name
            # Beside a $ref pydantic leaves the field's own description out; and its titles are `Fairshareweight`.
            own = optional({**properties[key], "title": key, "description": field.description})
            hint = HINTS.get(model.__name__, {}).get(key)
            properties[key] = with_markdown(own if hint is None else decorated(own, hint))
        (schema if model is Organization else schema["$defs"][model.__name__])["description"] = _about(model)
        if model is not Organization:
            schema["$defs"][model.__name__]["title"] = title_of(model.__name__)
    for model in _models():
        if hasattr(model, "shorthand"):
            schema["$defs"][model.__name__] = {"anyOf": [{"type": "string"}, schema["$defs"][model.__name__]]}
    schema["$defs"] |= definitions()
    # Top-level keys that begin with x- hold anchors, and are not read.
    schema["patternProperties"] = {"^x-": {}}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **schema, "title": "hpkit organization"}


def schema_text() -> str:
    """Return the JSON Schema as its file holds it."""
    return compact_json(json_schema()) + "\n"


def reference() -> str:
    """Return the reference page: every section with its keys, in Markdown."""
    lines = [
        "# Organization file",
        "",
        "One hand-written YAML file an organization, `stacks/<organization>.yaml`. Unknown keys are errors.",
        "Versions are quoted strings. Top-level keys that begin with `x-` hold YAML anchors and are not read.",
        "",
        "This page is generated from the models; `hpkit catalog schema` writes the same as JSON Schema for editors.",
    ]
    for model in _models():
        lines += ["", f"## {model.__name__}", "", _about(model), ""]
        lines += ["| key | takes | default | meaning |", "|---|---|---|---|"]
        for name, field in model.model_fields.items():
            takes, _ = _takes(field.annotation)
            default = "required" if field.is_required() else _default(field.default)
            meaning = (field.description or "").replace("|", "\\|")
            lines.append(f"| `{field.alias or name}` | {takes} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _about(model: type[BaseModel]) -> str:
    """Return what a model's docstring says to users: all but the paragraph that names its source."""
    paragraphs = inspect.getdoc(model) or ""
    return "\n\n".join(each for each in paragraphs.split("\n\n") if not each.startswith("Source: "))


def _models() -> list[type[BaseModel]]:
    """Return every section's model, from the root outward."""
    seen: list[type[BaseModel]] = []
    todo: list[type[BaseModel]] = [Organization]
    while todo:
        model = todo.pop(0)
        if model not in seen:
            seen.append(model)
            todo += [inner for field in model.model_fields.values() for inner in _takes(field.annotation)[1]]
    return seen


def _takes(annotation: Any) -> tuple[str, list[type[BaseModel]]]:
    names: list[str] = []
    models: list[type[BaseModel]] = []
    for part in inner_types(annotation):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if origin is tuple:
            inside, more = _takes(arguments[0])
            names.append(f"list of {inside}")
            models += more
        elif origin is dict:
            inside, more = _takes(arguments[1])
            names.append(f"map to {inside}")
            models += more
        elif origin is typing.Literal:
            names.append(", ".join(f"`{value}`" for value in arguments))
        elif isinstance(part, type) and issubclass(part, BaseModel):
            names.append(f"[{part.__name__}](#{part.__name__.lower()})")
            models.append(part)
        elif part is not type(None):
            names.append({"str": "text", "int": "whole number", "float": "number", "bool": "true, false"}.get(
                part.__name__, part.__name__))  # fmt: skip
    return " or ".join(names), models


def _default(value: Any) -> str:
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, BaseModel):
        return "its defaults"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{value}`"
