"""Changes single values of a file where they stand, so that comments, order and layout stay as somebody wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpkit.config.document import Document, Path, format_path
from hpkit.config.load import read_text
from hpkit.errors import InputError

__all__ = ["replaced", "with_values"]

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'')


def replaced(text: str, document: Document, values: Mapping[Path, str | int], *, file: str) -> str:
    """Return the text of a file with other scalars at some paths; document is what it was read as.

    A text is written in the quotes that stand there. Raises InputError, with the place, where a value cannot be
    changed alone: one that is not written in the file, or one that an anchor shares with others.
    """
    lines = text.split("\n")
    places = sorted(((document.locate(path), path) for path in values), reverse=True)
    for mark, path in places:
        line = lines[mark.line - 1]
        before, after = line[: mark.column - 1], line[mark.column - 1 :]
        old, value = _scalar(document, path, after), values[path]
        if old is None:
            raise _by_hand(document, path, value, file=file)
        quote = old[0] if old[0] in "\"'" else ""
        lines[mark.line - 1] = f"{before}{quote}{value}{quote}{after[len(old) :]}"
    edited = "\n".join(lines)
    if read_text(edited.encode()).data != with_values(document, values).data:
        first = next(iter(values))
        raise _by_hand(document, first, values[first], file=file)
    return edited


def with_values(document: Document, values: Mapping[Path, str | int]) -> Document:
    """Return what a file would say with other values at some paths, whether or not they can be changed alone there."""
    data = document.data
    for path, value in values.items():
        data = _with(data, path, value)
    return replace(document, data=data)


def _scalar(document: Document, path: Path, rest: str) -> str | None:
    """Return the text of the scalar that a line goes on with; None where that is not the value at the path."""
    quoted = _QUOTED.match(rest)
    raw = document.raw(path) if quoted is None else quoted.group()
    return raw if raw and rest.startswith(raw) else None


def _with(data: Any, path: Path, value: str | int) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, dict):
        return {**data, step: _with(data[step], rest, value)}
    return tuple(_with(each, rest, value) if index == step else each for index, each in enumerate(data))


def _by_hand(document: Document, path: Path, value: str | int, *, file: str) -> InputError:
    mark = document.locate(path)
    return InputError(
        f"{file}:{mark.line}:{mark.column}: {format_path(path, document.data)} is not written there alone, or shared "
        f"by an anchor. What to do: write {value} there by hand"
    )
