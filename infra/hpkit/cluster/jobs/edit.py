"""Changes single keys of a manifest where they stand: comments, layout and line ends stay as somebody wrote them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

__all__ = ["Edit", "edited", "read_documents"]

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """A key to be written into the mapping at a path, with those above it that are missing.

    document: which of the file's. moved_from: a key that goes in its place, with the path of its mapping.
    """

    document: int
    path: Path
    key: str
    value: str | Mapping[str, str]
    moved_from: tuple[Path, str] | None = None


def read_documents(text: str) -> tuple[Any, ...]:
    """Return the documents of a file, each value with its place; YAMLError where it is no YAML."""
    return tuple(YAML().load_all(text))


def edited(text: str, edit: Edit) -> str | None:
    """Return the text with one edit made; None where it cannot be made without writing other lines anew."""
    before = read_documents(text)
    expected = _plain(before)
    if not _apply(expected[edit.document], edit):
        return None
    after = text
    if edit.moved_from is not None:
        path, key = edit.moved_from
        taken = _without(text, before[edit.document], path, key)
        if taken is None:
            return None
        after = taken
    try:
        documents = read_documents(after)
        written = _with(after, documents[edit.document], edit)
        found = None if written is None else _plain(read_documents(written))
    except YAMLError:
        return None
    # A key that was the only one leaves an empty mapping behind, or none.
    return written if found is not None and _bare(found) == _bare(expected) else None


def _plain(documents: Any) -> Any:
    if isinstance(documents, Mapping):
        return {key: _plain(each) for key, each in documents.items()}
    return [_plain(each) for each in documents] if isinstance(documents, list | tuple) else copy.copy(documents)


def _bare(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _bare(each) for key, each in data.items() if each not in ({}, None)}
    return [_bare(each) for each in data] if isinstance(data, list) else data


def _apply(document: Any, edit: Edit) -> bool:
    """Make the edit in plain data; return whether it can be."""
    if edit.moved_from is not None:
        path, key = edit.moved_from
        source = _at(document, path)
        if not isinstance(source, MutableMapping) or source.pop(key, None) is None:
            return False
    here = document
    for step in edit.path:
        if isinstance(here, MutableMapping) and here.get(step) is None:
            here[step] = {}
        here = _at(here, (step,))
    if not isinstance(here, MutableMapping):
        return False
    here[edit.key] = _plain(edit.value)
    return True


def _at(data: Any, path: Path) -> Any:
    for step in path:
        known: Any = data if isinstance(data, Mapping) else range(len(data)) if isinstance(data, list) else ()
        if step not in known:
            return None
        data = data[step]
    return data


def _with(text: str, document: Any, edit: Edit) -> str | None:
    """Return the text with the key written: over a value that is there, or before the first key of its mapping."""
    depth = len(edit.path)
    while depth and not _at(document, edit.path[:depth]):
        depth -= 1
    here = _at(document, edit.path[:depth])
    if not isinstance(here, Mapping) or not here:
        return None
    missing: list[str | int] = [*edit.path[depth:], edit.key]
    if depth < len(edit.path) and missing[0] in here:
        # An empty mapping stands there, `{}` or nothing: one line for it, and for what it is to hold.
        taken = _without(text, document, edit.path[:depth], str(missing[0]))
        return None if taken is None else _with(taken, read_documents(taken)[edit.document], edit)
    if depth == len(edit.path) and edit.key in here:
        return _over(text, here, edit)
    return _before(text, here, [str(each) for each in missing], _text(edit.value))


def _over(text: str, here: Any, edit: Edit) -> str | None:
    place = _offset(text, *here.lc.value(edit.key))
    old, rest = str(here[edit.key]), text[place:]
    for quote in ("", '"', "'"):
        if rest.startswith(f"{quote}{old}{quote}"):
            return f"{text[:place]}{quote}{_text(edit.value)}{quote}{rest[len(old) + 2 * len(quote) :]}"
    return None


def _text(value: str | Mapping[str, str]) -> str:
    return value if isinstance(value, str) else f"{{{', '.join(f'{key}: {each}' for key, each in value.items())}}}"


def _before(text: str, here: Any, keys: list[str], value: str) -> str:
    line, column = here.lc.key(next(iter(here)))
    place = _offset(text, line, column)
    if here.fa.flow_style():
        inside = f"{keys[-1]}: {value}"
        for key in reversed(keys[:-1]):
            inside = f"{key}: {{{inside}}}"
        return f"{text[:place]}{inside}, {text[place:]}"
    end = "\r\n" if "\r\n" in text else "\n"
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    lines[-1] += f" {value}"
    return text[:place] + "".join(f"{each}{end}{' ' * column}" for each in lines) + text[place:]


def _without(text: str, document: Any, path: Path, key: str) -> str | None:
    """Return the text without a key that has its own line, and without the keys above that hold nothing else."""
    here: Any = _at(document, path)
    while path and len(here) == 1:
        path, key = path[:-1], str(path[-1])
        here = _at(document, path)
    first = _offset(text, *here.lc.key(key))
    start = text.rfind("\n", 0, first) + 1
    last = _end(here[key], here.lc.value(key)[0])
    end = _offset(text, last + 1, 0)
    if here.fa.flow_style() or text[start:first].strip():
        return None
    return text[:start] + text[end:]


def _end(value: Any, line: int) -> int:
    """Return the line on which a value ends, if its scalars have one each."""
    if not isinstance(value, Mapping) or not value:
        return line
    marks: Any = value
    return max(_end(each, marks.lc.value(key)[0]) for key, each in value.items())


def _offset(text: str, line: int, column: int) -> int:
    place = 0
    for _ in range(line):
        place = text.find("\n", place) + 1
        if not place:
            return len(text)
    return place + column
