"""The contract of a position in the file: its keys, its allowed types, and its description."""

import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hpkit.config.models.organization import Organization
from hpkit.config.reading.document import Path

__all__ = [
    "ANY",
    "description",
    "field_description",
    "field_of",
    "fields_at",
    "homes_of",
    "inner_types",
    "kinds_at",
    "literals_at",
    "required_at",
    "sections",
    "step_into",
]

# A step into any entry of a map or list.
ANY: Final = "*"


def fields_at(path: Path) -> tuple[str, ...]:
    """Return the keys that are allowed at a path, in the contract's order."""
    current: Any = Organization
    for step in path:
        current = step_into(current, step)
    models = [part for part in inner_types(current) if isinstance(part, type) and issubclass(part, BaseModel)]
    return tuple(field.alias or name for model in models for name, field in model.model_fields.items())


def description(path: Path) -> str:
    """Return the description of the key at a path, or of the nearest one above."""
    current, text = Organization, ""
    for step in path:
        text = next((found for part in inner_types(current) if (found := field_description(part, step))), text)
        current = step_into(current, step)
    return text


def required_at(path: Path) -> list[str]:
    """Return the keys without which there is no map at a path."""
    current: Any = Organization
    for step in path:
        current = step_into(current, step)
    models = [part for part in inner_types(current) if isinstance(part, type) and issubclass(part, BaseModel)]
    return [
        field.alias or name
        for model in models
        for name, field in model.model_fields.items()
        if field.is_required() or (field.alias or name) == getattr(model, "shorthand", None)
    ]


def field_of(part: Any, step: str | int) -> FieldInfo | None:
    """Return a model's field of one of its keys; None if it isn't a model or has no such key."""
    if not (isinstance(part, type) and issubclass(part, BaseModel)):
        return None
    return next((field for name, field in part.model_fields.items() if step in (field.alias, name)), None)


def field_description(part: Any, step: str | int) -> str | None:
    """Return a model's definition of one of its keys; None if it isn't a model or has no such key."""
    field = field_of(part, step)
    return None if field is None else field.description


def step_into(annotation: Any, step: str | int) -> Any:
    """Return the type one step into a value of a type, or None."""
    for part in inner_types(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            for name, field in part.model_fields.items():
                if step in (field.alias, name):
                    return field.annotation
        arguments = typing.get_args(part)
        if typing.get_origin(part) is dict:
            return arguments[1]
        if typing.get_origin(part) is tuple and arguments:
            return arguments[0]
    return None


def kinds_at(path: Path) -> set[str]:
    """Return the allowed types at a path: a map, a list, a single value."""
    annotation: Any = Organization
    for step in path:
        annotation = step_into(annotation, step)
    kinds: set[str] = set()
    for part in inner_types(annotation):
        is_model = isinstance(part, type) and issubclass(part, BaseModel)
        container = {dict: "map", tuple: "list"}.get(typing.get_origin(part))
        kinds.add(container or ("map" if is_model else "value"))
        if hasattr(part, "shorthand"):
            kinds.add("value")
    return kinds


def literals_at(path: Path) -> tuple[Any, ...]:
    """Return the values that are allowed at a path, if only some are."""
    annotation: Any = Organization
    for step in path:
        annotation = step_into(annotation, step)
    parts = [typing.get_args(part) for part in inner_types(annotation) if typing.get_origin(part) is typing.Literal]
    return parts[0] if len(parts) == 1 else ()


def homes_of(key: str) -> tuple[Path, ...]:
    """Return the paths of all sections that have a key; a step into an entry of a map or list is ANY."""
    return _homes().get(key, ())


@cache
def _homes() -> dict[str, tuple[Path, ...]]:
    homes: dict[str, tuple[Path, ...]] = {}
    for path, model in sections(Organization, ()):
        for name, field in model.model_fields.items():
            key = field.alias or name
            homes[key] = (*homes.get(key, ()), path)
    return homes


def sections(annotation: Any, path: Path) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Yield the path and the model of each section of a type; a step into an entry of a map or list is ANY."""
    for part in inner_types(annotation):
        arguments = typing.get_args(part)
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield path, part
            for name, field in part.model_fields.items():
                yield from sections(field.annotation, (*path, field.alias or name))
        elif typing.get_origin(part) is dict:
            yield from sections(arguments[1], (*path, ANY))
        elif typing.get_origin(part) is tuple and arguments:
            yield from sections(arguments[0], (*path, ANY))


def inner_types(annotation: Any) -> list[Any]:
    """Split a type into its alternatives, resolving unions and Annotated."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return [part for argument in typing.get_args(annotation) for part in inner_types(argument)]
    if origin is typing.Annotated:
        return inner_types(typing.get_args(annotation)[0])
    return [annotation]
