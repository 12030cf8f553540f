"""`hpkit catalog config`: what a key of the organization file means, from the models."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.output import called
from hpkit.config import Path
from hpkit.config.models.organization import FOR_ENVIRONMENTS, Organization
from hpkit.config.schema.contract import ANY, fields_at, sections
from hpkit.config.schema.editor import example_of
from hpkit.config.schema.reference import json_schema, takes
from hpkit.errors import InputError
from hpkit.text.document import Document
from hpkit.text.spelling import alike, near

__all__ = ["KeyList", "command"]

# More keys with one name are only listed.
_MOST: Final = 4
# A section in the reference page, alone or in a list or a map.
_LINK: Final = re.compile(r"(of |to )?\[\w+\]\(#\w+\)")
# JSON Schema's constraints, as people say them.
_LIMITS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
}


class _Key(Document):
    path: str
    meaning: str
    type: str
    required: bool
    default: Any
    limits: list[str]
    example: Any
    keys: list[str]


class KeyList(Document):
    """Keys of the organization file."""

    items: list[_Key]


@click.command("config")
@click.argument("key", metavar="[KEY]", default="")
@output_options("text", "json", documents=("hpkit.cli.organization.config:KeyList",))
def command(key: str) -> Output:
    """Explain a key of the organization file: meaning, type, default, limits, and an example.

    KEY is a name such as `borrowLimit`, or the end of a path such as `cluster.name`. Without it, the keys are listed.
    """
    fields = list(_fields())
    known = {str(step) for path, _, _ in fields for step in path}
    steps = re.sub(r"\[[^\]]*\]", "", key).split(".")
    wanted = [step for step in steps[:-1] if step in known] + steps[-1:]
    found = [each for each in fields if not key or (each[0][-1] == wanted[-1] and _has(each[0], wanted))]
    if not found:
        likely = near(wanted[-1], sorted(known))
        is_likely = likely is not None and alike(wanted[-1], likely)
        hint = f"Did you mean {likely}?" if is_likely else f"`{called()} catalog config` lists all keys."
        raise InputError(f"no key {key} in the organization file. {hint}")
    ends = [each for each in found if key and [step for step in each[0] if step != ANY][-len(wanted) :] == wanted]
    found = ends or found
    schema = json_schema()
    items = [_explained(*each, schema) for each in found]
    return Output(text=lambda: _text(items), json=lambda: json_document(KeyList(items=items)))


def _fields() -> Iterator[tuple[Path, type[BaseModel], FieldInfo]]:
    """Yield path, model and field of every key; the defaults of environments have the keys of environments."""
    for path, model in sections(Organization, ()):
        for name, field in model.model_fields.items():
            if path[:1] != (FOR_ENVIRONMENTS,):
                yield (*path, field.alias or name), model, field


def _has(path: Path, wanted: list[str]) -> bool:
    """Return whether a path has all steps, in this order."""
    steps = iter(path)
    return all(step in steps for step in wanted)


def _explained(path: Path, model: type[BaseModel], field: FieldInfo, schema: Mapping[str, Any]) -> _Key:
    section = schema if model is Organization else schema["$defs"][model.__name__]
    section = section["anyOf"][-1] if "anyOf" in section else section
    own = section["properties"][path[-1]]
    default = None if field.is_required() or isinstance(field.default, BaseModel) else field.default
    default = list(default) if isinstance(default, tuple) else default
    if (example := example_of(field)) is None and (values := list(_values(own))):
        example = next((each for each in values if each not in (None, default)), default)
    return _Key(
        path=".".join("<name>" if step == ANY else str(step) for step in path),
        meaning=field.description or "",
        type=_LINK.sub(lambda link: f"{link[1]}sections" if link[1] else "section", takes(field.annotation)[0]),
        required=field.is_required(),
        default=default,
        limits=list(dict.fromkeys(_limits(own))),
        example=example,
        keys=list(next(filter(None, (fields_at((*path, *[ANY] * depth)) for depth in range(3))), ())),
    )


def _values(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of a key that accepts only some; a list of them for a list."""
    yield from schema.get("enum", [schema["const"]] if "const" in schema else ())
    yield from (True, False) if "boolean" in schema.get("type", ()) else ()
    yield from ([each] for each in _values(schema["items"])) if schema.get("items") else ()
    for inner in schema.get("anyOf", ()):
        yield from _values(inner)


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    for key, words in _LIMITS.items():
        if key in schema:
            is_any = schema[key] == 1 and key in ("minLength", "minItems")
            yield "not empty" if is_any else words.format(schema[key])
    for inner in (*schema.get("anyOf", ()), schema.get("items", {}), schema.get("additionalProperties", {})):
        if isinstance(inner, Mapping) and inner:
            yield from _limits(inner)


def _text(items: list[_Key]) -> str:
    if len(items) > _MOST:
        return "\n".join([f"{len(items)} keys; name one of them:", *(f"  {each.path}" for each in items)])
    return "\n\n".join("\n".join(_lines(each)) for each in items)


def _lines(item: _Key) -> Iterator[str]:
    yield item.path
    yield folded(item.meaning, "  ", "  ")
    is_unset = item.default in (None, [], {})
    is_described = is_unset and "default" in item.meaning.lower()
    rows = {
        "type": f"{item.type.replace('`', '')}{', required' if item.required else ''}",
        "default": "" if item.required or is_described else "none" if is_unset else _yaml(item.default),
        "limits": ", ".join(item.limits),
        "example": "" if item.example is None else _yaml(item.example),
        "keys": ", ".join(item.keys),
    }
    yield from (folded(f"{name}: {text}", "    ", "  ") for name, text in rows.items() if text)


def _yaml(value: Any) -> str:
    """Return a value as the file has it."""
    if isinstance(value, str) and not re.fullmatch(r"[\d.]+", value):
        return value
    return json.dumps(value, ensure_ascii=False)
