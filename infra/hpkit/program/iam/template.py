"""Data of this package, and how its templates are filled in."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

__all__ = ["Values", "fill", "read"]

# The value of a placeholder: one text, or any number of them if the placeholder is a whole list entry.
Values = Mapping[str, str | Sequence[str]]

# `${aws:PrincipalAccount}` is IAM's own.
_PLACEHOLDER = re.compile(r"(?<!\$)\{(\w+)\}")


@cache
def read(name: str) -> Any:
    """Return the contents of a file in this package's data."""
    text = (files("hpkit.program.iam") / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    # Written in C, the safe loader reads a thousand lines in a tenth of the time.
    return yaml.load(text, Loader=yaml.CSafeLoader)


def fill(template: Any, values: Values) -> Any:
    """Return the template with its placeholders filled in; raises KeyError for one that has no value."""
    if isinstance(template, str):
        return _PLACEHOLDER.sub(lambda found: _text(values, found[1]), template)
    if isinstance(template, list):
        return [filled for each in template for filled in _entries(each, values)]
    if isinstance(template, dict):
        return {fill(key, values): fill(item, values) for key, item in template.items()}
    return template


def _entries(template: Any, values: Values) -> Iterable[Any]:
    whole = _PLACEHOLDER.fullmatch(template) if isinstance(template, str) else None
    if whole is None:
        return [fill(template, values)]
    value = values[whole[1]]
    return [value] if isinstance(value, str) else value


def _text(values: Values, name: str) -> str:
    value = values[name]
    if not isinstance(value, str):
        raise KeyError(f"{name} has no single value: {value}")
    return value
