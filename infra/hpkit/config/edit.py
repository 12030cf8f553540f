"""Other values in a file's own text. Comments, order, quotes, and layout stay as they were typed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Final

from hpkit.config.document import Document, Mark, Path, format_path
from hpkit.config.load import read_text
from hpkit.errors import InputError

__all__ = ["diff", "edited", "with_values"]

_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"")
# As git counts lines: other breaks are characters of a line.
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def with_values(data: Any, values: Mapping[Path, Any]) -> Any:
    """Copy plain data with other values at some paths; a map that is not there is made."""
    for path, value in values.items():
        data = _with(data, path, value)
    return data


def _with(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, (tuple, list)) and isinstance(step, int):
        return (*data[:step], _with(data[step], rest, value), *data[step + 1 :])
    return {**data, step: _with(data.get(step, {}), rest, value)}


def edited(text: str, document: Document, values: Mapping[Path, Any], *, file: str) -> str:
    """Return the text of a file with other values at some paths, and nothing else changed.

    values: path → a number or a text. InputError where the text cannot say that alone: a value that an anchor or a
    merge gives to more places.
    """
    starts = _line_starts(text)
    # Several keys may be new at one place; an anchor's value stands at one place for several paths.
    edits: dict[tuple[int, int], dict[str, None]] = {}
    for path, value in values.items():
        place, new = _edit(text, starts, document, path, value)
        edits.setdefault(place, {})[new] = None
    after = text
    for (begin, end), news in sorted(edits.items(), reverse=True):
        after = after[:begin] + "".join(news) + after[end:]
    if read_text(after.encode()).data != with_values(document.data, values):
        path = next(iter(values))
        mark = document.locate(path)
        raise InputError(
            f"{file}:{mark.line}:{mark.column}: {format_path(path, document.data)} cannot be changed alone: an anchor "
            f"or a merge gives its value to other places too. What to do: write {values[path]} there by hand"
        )
    return after


def diff(before: str, after: str, file: str) -> str:
    """Return the change as a patch that `git apply` takes in the project's folder; empty where there is none."""
    lines = difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), f"a/{file}", f"b/{file}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\r\n|[\n\r\x85\u2028\u2029]", text))]


def _edit(text: str, starts: list[int], document: Document, path: Path, value: Any) -> tuple[tuple[int, int], str]:
    """Return which part of the text makes way for what."""
    raw = document.raw(path)
    present = _has(document.data, path)
    if present:
        begin = _offset(starts, document.locate(path))
        quoted = _QUOTED.match(text, begin) if raw is None else None
        end = quoted.end() if quoted else begin + len(raw or "")
        quote = text[begin] if quoted and isinstance(value, str) else ""
        return (begin, end), f"{quote}{value}{quote}"
    # A key that is not there stands behind its map's first one, or makes the map where there is none.
    parent, written = path[:-1], f"{path[-1]}: {value}"
    while not _has(document.data, parent):
        parent, written = parent[:-1], f"{parent[-1]}: {{{written}}}"
    mark = document.locate(parent)
    begin = _offset(starts, mark)
    if text[begin : begin + 1] == "{":
        return (begin + 1, begin + 1), f"{written}, "
    first = next(iter(_at(document.data, parent)))
    key = document.locate((*parent, first), key=True)
    begin = _offset(starts, key)
    return (begin, begin), f"{written}\n{' ' * (key.column - 1)}"


def _offset(starts: list[int], mark: Mark) -> int:
    return starts[mark.line - 1] + mark.column - 1


def _has(data: Any, path: Path) -> bool:
    try:
        _at(data, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data
