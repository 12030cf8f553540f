"""Describes the problem of a value in a file, and the expected value, as text."""

import json
from collections.abc import Callable
from typing import Any

from pydantic_core import ErrorDetails

from hpkit.catalog import limit
from hpkit.config.messages.suggest import written
from hpkit.config.models.base import BUCKET_PATTERN, DNS_LABEL, IMAGE_PATTERN
from hpkit.config.models.observability import IDENTITY_PATTERN
from hpkit.config.models.organization import ENVIRONMENT_PATTERN, REGION_PATTERN, Organization
from hpkit.config.models.storage import FOLDER_PATTERN, PREFIX_PATTERN
from hpkit.config.models.team_limits import LONGEST_GRACE
from hpkit.config.reading.document import Document, Path
from hpkit.config.reading.load import resolve
from hpkit.config.schema.contract import (
    description,
    field_of,
    fields_at,
    inner_types,
    literals_at,
    required_at,
    step_into,
)
from hpkit.text.printable import quoted

__all__ = [
    "EXPRESSIONS",
    "beginning_of",
    "called",
    "example",
    "expected",
    "is_number",
    "key_of",
    "members_of",
    "root_errors",
    "shown",
]

# Texts that a rule reads as expressions; single words aren't valid ones.
EXPRESSIONS = ("scheduleExpression",)
_MOST_KEYS = 3
_NO_MAP = ("model_type", "model_attributes_type")
_LENGTHS = {"too_short", "too_long", "string_too_short", "string_too_long"}


def root_errors(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out the length of a list that is only too short because its items are wrong, and repeated mistakes.

    If several items of a list are texts instead of maps, only the first is reported.
    """
    texts = [each for each in details if each["type"] in _NO_MAP and isinstance(each["input"], str)]
    of_lists = [each for each in texts if isinstance(each["loc"][-1], int)]
    firsts = {each["loc"][:-1]: each["loc"] for each in reversed(of_lists)}
    repeated = [each["loc"] for each in of_lists if firsts[each["loc"][:-1]] != each["loc"]]
    return [
        detail
        for detail in details
        if detail["loc"] not in repeated
        and (
            detail["type"] != "too_short"
            or not any(
                len(other["loc"]) > len(detail["loc"]) and other["loc"][: len(detail["loc"])] == detail["loc"]
                for other in details
            )
        )
    ]


def called(path: Path) -> str:
    """Return a value's name: its key, or the list that contains it."""
    name = key_of(path) or "the file"
    return f"an entry of {name}" if path and isinstance(path[-1], int) else name


def shown(document: Document, path: Path, value: Any) -> str:
    """Return a value as a message has it: as it was written, in short."""
    raw = document.raw(path)
    # Values that are only tried in place of the file's value weren't written by anyone.
    if raw is not None and resolve(raw) in (value, raw):
        text = raw
    elif isinstance(value, dict):
        return "a map"
    elif isinstance(value, (tuple, list)):
        return "a list"
    else:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    return quoted(text) if text else "nothing"


_EXPECTED = {
    "control_character": "a single line of visible characters",
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
    "date_type": "a date",
    **dict.fromkeys(
        ("date_and_time", "datetime_from_date_parsing", "timezone_aware"),
        "a date and time with its zone, such as `2027-01-31T02:00:00Z`",
    ),
    "bucket_name": "a name that S3 allows: no IP address, and without the beginnings and endings that S3 reserves",
    "max_run_time": "at most the limit: a longer run time would be rejected",
    "grace_period": f"at most {LONGEST_GRACE}: other teams get the quota at once, and wait for the instances",
}


def _api(shape: str) -> str:
    """Return the pattern of a shape as pydantic's errors name it."""
    return f"^(?:{limit(shape).pattern})$"


_LOWERCASE = "lowercase letters and digits, with hyphens between them, such as `team-a1`"
_LETTERS = "letters and digits, with hyphens between them, such as `Team-a1`"
_LABEL = "letters and digits, with `-`, `_` and `.` between them, such as `team_a.1`"
_TAG = "letters, digits, spaces and `_ . : / = + - @`, such as `cost-center`"
# The pattern of a name → its allowed characters.
_NAMES = {
    DNS_LABEL: _LOWERCASE,
    _api("ClusterSchedulerPriorityClassName"): _LOWERCASE,
    ENVIRONMENT_PATTERN: "lowercase letters and digits, such as `dev2`",
    BUCKET_PATTERN: "3–63 lowercase letters and digits, with hyphens or single dots between them, such as `my-bucket`",
    **dict.fromkeys(map(_api, ("ClusterName", "ClusterInstanceGroupName", "EntityName")), _LETTERS),
    **dict.fromkeys(map(_api, ("ClusterKubernetesLabelValue", "ClusterKubernetesTaintValue")), _LABEL),
    **dict.fromkeys(map(_api, ("TagKey", "TagValue")), _TAG),
}

_FORMS = {pattern: f"; it must consist of {name}" for pattern, name in _NAMES.items()} | {
    IDENTITY_PATTERN: "; it must be an ID of IAM Identity Center, not a name",
    IMAGE_PATTERN: ", which isn't a valid image name: it has lowercase letters and no spaces",
    REGION_PATTERN: ", which isn't the name of an AWS region",
    PREFIX_PATTERN: "; it must end but not begin with `/`, and consist of letters, digits and `/ _ . = -`",
    FOLDER_PATTERN: "; it must begin but not end with `/`, and consist of letters, digits and `/ _ . -`",
}


def expected(detail: ErrorDetails) -> str:
    """Describe the problem of a value, as the end of a sentence that has named it."""
    error_type, context = detail["type"], detail.get("ctx", {})
    if (form := _FORMS.get(context.get("pattern", ""))) is not None:
        return form
    if error_type in _EXPECTED:
        return f"; it must be {_EXPECTED[error_type]}"
    if error_type == "literal_error":
        return f"; it must be one of {members_of(detail)}"
    if error_type == "version_float":
        return "; without quotes, 1.30 is the number 1.3"
    if error_type in ("greater_than_equal", "less_than_equal"):
        limit = context.get("ge", context.get("le"))
        return f"; the {'minimum' if error_type == 'greater_than_equal' else 'maximum'} is {limit}"
    if error_type == "greater_than":
        return f"; it must be more than {context.get('gt')}"
    if error_type == "string_too_short" and context.get("min_length", 0) > 1:
        return ", which isn't a valid value"
    if error_type in _LENGTHS and context.get("min_length") == 1:
        return "; it must not be empty"
    if error_type in _LENGTHS:
        bound = context.get("min_length", context.get("max_length"))
        unit = "characters" if error_type.startswith("string") else "entries"
        return f"; it must have at {'least' if error_type.endswith('short') else 'most'} {bound} {unit}"
    return ", which isn't a valid value"


def members_of(detail: ErrorDetails) -> str:
    """Return the members of an enumeration that a value doesn't match, with commas."""
    expected = str(detail.get("ctx", {}).get("expected", ""))
    return ", ".join(part.strip("' ") for part in expected.replace(" or ", ", ").split(", "))


def beginning_of(detail: ErrorDetails, path: Path, takes: Callable[[Any], bool]) -> str:
    """Return the beginning of the map or list that a position accepts; "" for other positions.

    takes: whether the contract accepts a value there.
    """
    value, error_type = detail["input"], detail["type"]
    if error_type in ("model_type", "model_attributes_type"):
        required = required_at(path)
        is_name = isinstance(value, str) and "name" in required[:-1]
        is_taken = is_name or (len(required) == 1 and takes({required[0]: value}))
        return f"Use a map: {keys_of_map(path, value if is_taken else None)}."
    if error_type == "dict_type" and isinstance(value, tuple) and fields_at((*path, "")):
        names = (each.get("name") or next(iter(each), None) if isinstance(each, dict) else each for each in value)
        name = next((each for each in names if isinstance(each, str) and each), "name")
        return f"Use a map: {{{written(name, resolve)}: {keys_of_map((*path, ''), None)}}}."
    if error_type == "tuple_type" and fields_at((*path, 0)):
        is_named = isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())
        first = next(iter(value), None) if is_named else value
        return f"Use a list of maps: [{keys_of_map((*path, 0), first if isinstance(first, str) else None)}]."
    if error_type == "tuple_type" and (members := literals_at((*path, 0))):
        return f"Use `{written(members, resolve)}`, or some of them."
    return ""


def keys_of_map(path: Path, value: Any) -> str:
    """Return the beginning of a map at a path. A single value probably belongs to the one required key."""
    required, key_names = required_at(path), fields_at(path)
    keys = (required or list(key_names))[:_MOST_KEYS]
    single = len(required) == 1 and required[0] not in EXPRESSIONS and (isinstance(value, str) or is_number(value))
    given = keys[:1] if single else ["name"] if isinstance(value, str) else []
    entries = [f"{key}: {written(value, resolve) if key in given else '…'}" for key in keys]
    return f"{{{', '.join(entries + (['…'] if len(key_names) > len(keys) else []))}}}"


def example(path: Path) -> str:
    """Return an example value at a path, as an addition to the contract's description; nothing if that has one."""
    from hpkit.config.schema.editor import example_of

    current: Any = Organization
    shown: Any = None
    for step in path:
        for part in inner_types(current):
            if (field := field_of(part, step)) is not None:
                shown = example_of(field)
        current = step_into(current, step)
    if isinstance(shown, list) and isinstance(path[-1], int):
        (shown,) = shown
    text = f"[{shown[0]}]" if isinstance(shown, list) and isinstance(shown[0], str) else shown
    if not isinstance(text, str) or "such as" in description(path):
        return ""
    return f" Such as `{json.dumps(text) if text.isdigit() else text}`."


def is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false aren't."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def key_of(path: Path) -> str:
    """Return the key of a value, or of the list or map around it."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")
