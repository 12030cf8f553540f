"""The JSON Schema and the reference page of the config contract, both from the models."""

import inspect
import typing
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from pydantic import BaseModel

from hpkit.config.models.organization import FOR_ENVIRONMENTS, Environment, Organization
from hpkit.config.schema.contract import inner_types
from hpkit.config.schema.editor import decorated, definitions, hint_of, nullable, optional, title_of, with_markdown
from hpkit.text.formatting import compact_json

__all__ = ["json_schema", "reference", "schema_text", "takes"]

# A section of which any part can be stated.
_PARTIAL = "part of an [Environment](#environment)"
# The maximum number of keys of a section without its own table.
_FEW = 4
# What a nested section's keys follow, and its type, for the containers that it can be in.
_NESTED = {
    "": ("", "map"),
    "list of ": ("[]", "list of maps"),
    "map to ": (".<name>", "map of maps"),
    "map to list of ": (".<name>[]", "map of lists of maps"),
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an organization file."""
    schema = Organization.model_json_schema(by_alias=True)
    for model in _models():
        properties = (schema if model is Organization else schema["$defs"][model.__name__])["properties"]
        for name, field in model.model_fields.items():
            key = field.alias or name
            # pydantic omits a field's description next to a $ref. Its titles look like `Fairshareweight`.
            own = optional({**properties[key], "title": key, "description": field.description})
            hint = hint_of(field)
            properties[key] = with_markdown(own if hint is None else decorated(own, hint))
        (schema if model is Organization else schema["$defs"][model.__name__])["description"] = _about(model)
        if model is not Organization:
            schema["$defs"][model.__name__]["title"] = title_of(model.__name__)
    for model in _models():
        if hasattr(model, "shorthand"):
            schema["$defs"][model.__name__] = {"anyOf": [{"type": "string"}, schema["$defs"][model.__name__]]}
    schema["$defs"] |= definitions()
    _with_other_files(schema)
    # Top-level keys that begin with x- contain anchors, and are ignored.
    schema["patternProperties"] = {"^x-": {}}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **schema, "title": "hpkit organization"}


def _with_other_files(schema: dict[str, Any]) -> None:
    """Let defaults set required keys, and `null` turn defaults off; give referenced files the same schema.

    In a file without defaults, editors still require the keys.
    """
    merged = {model.__name__ for model in _models_in_maps(Environment)}
    demanded = _demanded(Environment, merged)
    for name in merged:
        own = schema["$defs"][name]
        own = own["anyOf"][-1] if "anyOf" in own else own
        demands = own.pop("required", ())
        own["properties"] = {key: each if key in demands else nullable(each) for key, each in own["properties"].items()}
    described = {key: schema["properties"][FOR_ENVIRONMENTS][key] for key in ("title", "description", "examples")}
    schema["properties"][FOR_ENVIRONMENTS] = with_markdown({"$ref": "#/$defs/Environment", **described})
    required = schema.pop("required")
    schema["dependentRequired"] = {key: [other for other in required if other != key] for key in required}
    schema["if"] = {"anyOf": [{"required": [key]} for key in ("defaults", FOR_ENVIRONMENTS)]}
    schema["else"] = {"properties": {"environments": {"additionalProperties": demanded}}}


def _models_in_maps(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in the type of a value, except for those of a list's items."""
    for part in inner_types(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield part
            for field in part.model_fields.values():
                yield from _models_in_maps(field.annotation)
        elif typing.get_origin(part) is dict:
            yield from _models_in_maps(typing.get_args(part)[1])


def _demanded(annotation: Any, models: Collection[str]) -> dict[str, Any]:
    """Return a schema that only demands the required keys of some models."""
    for part in inner_types(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            fields = {field.alias or name: field for name, field in part.model_fields.items()}
            required = [key for key, field in fields.items() if field.is_required() and part.__name__ in models]
            inner = {key: _demanded(field.annotation, models) for key, field in fields.items()}
            properties = {key: each for key, each in inner.items() if each}
            return {key: value for key, value in (("required", required), ("properties", properties)) if value}
        arguments, key = (
            typing.get_args(part),
            {dict: "additionalProperties", tuple: "items"}.get(typing.get_origin(part)),
        )
        if key and (inside := _demanded(arguments[-1 if key == "additionalProperties" else 0], models)):
            return {key: inside}
    return {}


def schema_text() -> str:
    """Return the JSON Schema as text for its file."""
    return compact_json(json_schema()) + "\n"


def reference() -> str:
    """Return the reference page: every section with its keys, in Markdown."""
    lines = [
        "# Organization file",
        "",
        "<!-- Generated by `make generate`; do not edit. -->",
        "",
        "This page lists the keys of `stacks/<organization>.yaml`. Unknown keys are errors. Versions are",
        "quoted strings. Defaults are bold. `a.b` is key `b` in the map `a`; `required` then means required with `a`.",
        "Top-level keys that begin with `x-` hold YAML anchors and are ignored.",
        "`hpkit catalog schema --output stacks/schema.json` writes the same as JSON Schema for editors.",
        "In a clone of this repository, `make install` does so.",
    ]
    described: dict[type, type[BaseModel]] = {}
    models = _models()
    nested = _nested(models)
    for model in models:
        if model in nested:
            continue
        lines += ["", f"## {model.__name__}", "", _about(model), ""]
        (base,) = model.__bases__
        twin = described.setdefault(base, model)
        inherited = base.model_fields if twin is not model and issubclass(base, BaseModel) else {}
        unchanged = [name for name, field in inherited.items() if repr(field) == repr(model.model_fields[name])]
        if unchanged:
            keys = ", ".join(f"`{model.model_fields[name].alias or name}`" for name in unchanged)
            lines += [f"As for [{twin.__name__}](#{twin.__name__.lower()}): {keys}.", ""]
        lines += ["| key | takes | meaning |", "|---|---|---|"]
        lines += _rows(model, nested, unchanged)
    return "\n".join(lines) + "\n"


def _nested(models: list[type[BaseModel]]) -> set[type[BaseModel]]:
    """Return the small sections that only one key takes; the table with that key shows their keys.

    A part of an environment that contains other sections keeps its own table.
    """
    inner = {
        model: [part for field in model.model_fields.values() for part in takes(field.annotation)[1]]
        for model in models
    }
    uses = Counter(part for parts in inner.values() for part in parts)
    whole = {part for part in inner[Environment] if inner[part]}
    small = {model for model in models if len(model.model_fields) <= _FEW and uses[model] == 1}
    return {model for model in small - whole if not getattr(model.__bases__[0], "model_fields", None)}


def _rows(
    model: type[BaseModel], nested: Collection[type[BaseModel]], omitted: Collection[str] = (), prefix: str = ""
) -> Iterator[str]:
    """Yield a row for each key, followed by the keys of a nested section."""
    for name, field in model.model_fields.items():
        if name in omitted:
            continue
        shown, models = takes(field.annotation)
        # A section that isn't nested has its own table.
        section = models[0] if models and models[0] in nested else None
        path, shown = _NESTED[shown.partition("[")[0]] if section else ("", shown)
        shown = _PARTIAL if name == "environment_defaults" else shown
        shown = f"{shown}, required" if field.is_required() else _with_default(shown, field.default)
        meaning = (field.description or "").replace("|", "\\|")
        key = f"{prefix}{field.alias or name}"
        yield f"| `{key}` | {shown} | {meaning} |"
        if section:
            yield from _rows(section, nested, prefix=f"{key}{path}.")


def _about(model: type[BaseModel]) -> str:
    """Return a model's docstring for users, without the paragraph with its source."""
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
            todo += [inner for field in model.model_fields.values() for inner in takes(field.annotation)[1]]
    return seen


def takes(annotation: Any) -> tuple[str, list[type[BaseModel]]]:
    """Return what a key takes, in Markdown, and the models of its sections."""
    names: list[str] = []
    models: list[type[BaseModel]] = []
    for part in inner_types(annotation):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if origin is tuple:
            inside, inner_models = takes(arguments[0])
            names.append(f"list of {inside}")
            models += inner_models
        elif origin is dict:
            inside, inner_models = takes(arguments[1])
            names.append(f"map to {inside}")
            models += inner_models
        elif origin is typing.Literal:
            names.append(", ".join(f"`{value}`" for value in arguments))
        elif isinstance(part, type) and issubclass(part, BaseModel):
            names.append(_link(part))
            models.append(part)
        elif part is not type(None):
            names.append({"str": "text", "int": "integer", "float": "number", "bool": "true, false",
                          "AwareDatetime": "date and time", "Any": "any value"}.get(
                part.__name__, part.__name__))  # fmt: skip
    return " or ".join(names), models


def _link(model: type[BaseModel]) -> str:
    return f"[{model.__name__}](#{model.__name__.lower()})"


def _with_default(takes: str, value: Any) -> str:
    """Return a key's type, with its default in bold; missing values and a section's own defaults aren't shown."""
    if value is None or value in ((), {}) or isinstance(value, BaseModel):
        return takes
    if isinstance(value, bool):
        return takes.replace(str(value).lower(), f"**{str(value).lower()}**")
    for each in value if isinstance(value, tuple) else (value,):
        shown = f"`{each}`"
        takes = takes.replace(shown, f"**{shown}**") if shown in takes else f"{takes}, **{shown}**"
    return takes
