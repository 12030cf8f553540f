"""From a document to the typed organization, with everything that is wrong with its form.

Does not: stop at the first error. Unknown keys are left out and the rest is checked; an environment
with a wrong value is left out and the others are checked.
"""

import difflib
import types
import typing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hpkit.config.document import Document, Path, Problem, format_path
from hpkit.config.organization import Organization

__all__ = ["Parsed", "fields_at", "inner_types", "parse"]

_LENGTHS = {"too_short", "too_long", "string_too_short", "string_too_long"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """An organization as far as it could be read.

    unread holds the paths of parts that were left out because their form is wrong; no other rule has
    looked at them. organization is None when nothing could be read.
    """

    organization: Organization | None
    problems: tuple[Problem, ...]
    unread: tuple[Path, ...] = ()


def parse(document: Document) -> Parsed:
    """Validate a document against the config contract; reports CFG001–CFG005, never raises."""
    if document.data is None or not isinstance(document.data, dict):
        return Parsed(None, document.problems or (_not_a_mapping(document),))
    data = {key: value for key, value in document.data.items() if not key.startswith("x-")}
    organization, problems, unread = _validate(document, data)
    # What the reader says of a value is more precise than what its type says of it.
    said = {problem.path for problem in document.problems}
    problems = [problem for problem in problems if problem.path not in said]
    return Parsed(organization, (*document.problems, *problems), unread)


def fields_at(path: Path) -> tuple[str, ...]:
    """Return the keys that the contract knows at a path, in the order of the contract."""
    current: Any = Organization
    for step in path:
        current = _step(current, step)
    models = [part for part in inner_types(current) if isinstance(part, type) and issubclass(part, BaseModel)]
    return tuple(field.alias or name for model in models for name, field in model.model_fields.items())


def _not_a_mapping(document: Document) -> Problem:
    if document.data is None:
        message = "the file is empty"
    else:
        data = document.data
        kind = "a list" if isinstance(data, tuple) else "text" if isinstance(data, str) else "a single value"
        message = f"the file holds {kind} where a map belongs"
    return Problem("CFG005", (), message, "Begin with `organization: <name>`.", document.locate(()))


def _validate(document: Document, data: dict[str, Any]) -> tuple[Organization | None, list[Problem], tuple[Path, ...]]:
    problems: list[Problem] = []
    unread: list[Path] = []
    while True:
        try:
            return Organization.model_validate(data), problems, tuple(unread)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=True, include_input=True)
            left_out: set[str] = set()
            for detail in _root_errors(details):
                path = _display_path(detail)
                problems.append(_problem(document, detail, path))
                if detail["type"] == "extra_forbidden":
                    data = _without(data, path)
                elif len(path) >= 2 and path[0] == "environments":
                    left_out.add(str(path[1]))
                else:
                    left_out.add("")
            if "" in left_out:
                return None, problems, ((),)
            environments = data.get("environments", {})
            kept = {name: value for name, value in environments.items() if name not in left_out}
            unread.extend(("environments", name) for name in sorted(left_out))
            if not kept:
                return None, problems, tuple(unread)
            data = {**data, "environments": kept}


def _display_path(detail: ErrorDetails) -> Path:
    """Return the path that people know: an error of a key ends in "[key]", unless an unknown key is called so."""
    loc = detail["loc"]
    return loc[:-1] if loc[-1:] == ("[key]",) and detail["type"] != "extra_forbidden" else loc


def _root_errors(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out the length of a list that is only too short because its items are wrong."""
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(
            len(other["loc"]) > len(detail["loc"]) and other["loc"][: len(detail["loc"])] == detail["loc"]
            for other in details
        )
    ]


def _without(data: Any, path: Path) -> Any:
    """Copy data without the value at path; only the way to it is copied."""
    step, rest = path[0], path[1:]
    if isinstance(data, tuple) and isinstance(step, int):
        return (*data[:step], _without(data[step], rest), *data[step + 1 :])
    if not rest:
        return {key: value for key, value in data.items() if key != step}
    return {**data, step: _without(data[step], rest)}


def _problem(document: Document, detail: ErrorDetails, path: Path) -> Problem:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return _unknown_key(document, path)
    if kind == "missing":
        here = format_path(path[:-1], document.data) or "the file"
        return Problem(
            "CFG003",
            path,
            f"`{path[-1]}` is missing in {here}",
            _missing_fix(path),
            document.locate(path[:-1]),
        )
    shown = _shown(document, path, detail["input"])
    message, fix = _wrong(detail, shown, str(path[-1]) if path else "the file")
    return Problem("CFG002", path, message, fix, document.locate(path))


def _unknown_key(document: Document, path: Path) -> Problem:
    key, known = str(path[-1]), fields_at(path[:-1])
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in known], n=1, cutoff=0.6)
    here = format_path(path[:-1], document.data) or "the file"
    nearest = next((name for name in known if near and name.lower() == near[0]), None)
    fix = f"Did you mean `{nearest}`?" if nearest else f"Known here: {', '.join(known) or 'no key at all'}."
    return Problem("CFG001", path, f"unknown key `{key}` in {here}", fix, document.locate(path, key=True))


def _missing_fix(path: Path) -> str:
    return f"Add `{path[-1]}: …`; hpkit schema and docs/reference/config.md say what it takes."


def _shown(document: Document, path: Path, value: Any) -> str:
    raw = document.raw(path)
    if raw is not None:
        text = raw
    elif isinstance(value, dict):
        return "a map"
    elif isinstance(value, (tuple, list)):
        return "a list"
    else:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    return f"`{text if len(text) <= 60 else text[:57] + '…'}`" if text else "nothing"


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a map",
    "tuple_type": "a list",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "finite_number": "a finite number",
}


def _wrong(detail: ErrorDetails, shown: str, field: str) -> tuple[str, str]:
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind in _EXPECTED:
        fix = f"Write {_EXPECTED[kind]}."
        if kind == "string_type" and isinstance(value, (int, float, bool)):
            fix = "Put the value in quotes."
        elif kind == "int_type" and isinstance(value, str) and value.isdecimal():
            leading = len(value) > 1 and value.startswith("0")
            fix = "Write it without leading zeros." if leading else "Write it without quotes."
        return f"{field} is {shown}, and must be {_EXPECTED[kind]}", fix
    if kind == "literal_error":
        return _not_a_member(str(context.get("expected", "")), shown, field, value)
    if kind == "version_float":
        return (
            f"{field} is {shown}: a version without quotes is a number, and 1.30 as a number is 1.3",
            f'Write it in quotes: "{shown.strip("`")}".',
        )
    if kind in ("greater_than_equal", "less_than_equal"):
        limit = context.get("ge", context.get("le"))
        side = "at least" if kind == "greater_than_equal" else "at most"
        return f"{field} is {shown}, and must be {side} {limit}", f"Write {side} {limit}."
    if kind == "string_pattern_mismatch":
        pattern = context.get("pattern", "")
        return f"{field} is {shown}, which does not match {pattern}", "Write it in that form."
    if kind in _LENGTHS:
        bound = context.get("min_length", context.get("max_length"))
        side = "at least" if kind.endswith("short") else "at most"
        unit = "characters" if kind.startswith("string") else "items"
        return (
            f"{field} has a length that is not allowed: {side} {bound} {unit}",
            f"Write {side} {bound} {unit}.",
        )
    message = detail["msg"]
    return f"{field} is {shown}: {message[:1].lower()}{message[1:]}", "Fix the value."


def _not_a_member(expected: str, shown: str, field: str, value: Any) -> tuple[str, str]:
    members = [part.strip("' ") for part in expected.replace(" or ", ", ").split(",")]
    lowered = {member.lower(): member for member in members}
    near = difflib.get_close_matches(str(value).lower(), list(lowered), n=1, cutoff=0.6)
    fix = f"Did you mean {lowered[near[0]]}?" if near else f"Write one of {', '.join(members)}."
    return f"{field} is {shown}, and must be one of {', '.join(members)}", fix


def _step(annotation: Any, step: str | int) -> Any:
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


def inner_types(annotation: Any) -> list[Any]:
    """Take a type apart into what it may be; unions and Annotated are seen through."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return [part for argument in typing.get_args(annotation) for part in inner_types(argument)]
    if origin is typing.Annotated:
        return inner_types(typing.get_args(annotation)[0])
    return [annotation]
