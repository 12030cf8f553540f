"""Changes of YAML text by path, with ruamel.yaml: comments, order, and quotes stay, other layout can change."""

import difflib
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import ScalarString
from ruamel.yaml.tag import Tag

from hpkit.config.reading.document import Document, Path, find_item, format_path, with_value
from hpkit.config.reading.load import read_text
from hpkit.errors import InputError

__all__ = [
    "diff",
    "dumped",
    "edited_files",
    "loaded",
    "position",
    "remove_value",
    "set_value",
    "steps_of",
    "with_values",
]

_STEPS: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
# Longer than any line, so that none is folded.
_WIDTH: Final = 1_000_000
_NULL: Final = "tag:yaml.org,2002:null"
_DATE: Final = "tag:yaml.org,2002:timestamp"
_TEXT: Final = Tag(suffix="tag:yaml.org,2002:str")
# As git counts lines: other breaks are characters of a line.
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def loaded(text: str) -> list[Any]:
    """Return the documents of a text, for `set_value` and `dumped`. Raises InputError with the position of an error."""
    try:
        return list(_yaml().load_all(text.replace("\r\n", "\n")))
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"{mark.line + 1}:{mark.column + 1}: "
        raise InputError(f"{where}invalid YAML: {getattr(error, 'problem', None) or error}") from None


def dumped(documents: Sequence[Any], before: str) -> str:
    """Return documents as text; before: their text before the changes, whose line breaks and start stay."""
    yaml = _yaml()
    yaml.explicit_start = before.startswith("---")
    text = io.StringIO()
    yaml.dump_all(documents, text)
    after = text.getvalue()
    if before and not before.endswith("\n"):
        after = after.rstrip("\n")
    return after.replace("\n", "\r\n") if "\r\n" in before else after


class _Resolver(VersionedResolver):
    """Reads dates as text, as organization files are read."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        return _TEXT if str(tag) == _DATE else tag


class _Constructor(RoundTripConstructor):
    """Remembers keys without a value: in defaults, `null` turns a key off, and no value keeps it."""

    # The base class of ruamel.yaml's own constructor has no maptyp.
    def construct_mapping(self, node: Any, maptyp: Any, deep: bool = False) -> Any:  # type: ignore[override]
        result = super().construct_mapping(node, maptyp, deep)
        maptyp.empty_keys = {key.value for key, value in node.value if str(value.tag) == _NULL and not value.value}
        return result


class _Representer(RoundTripRepresenter):
    def represent_mapping(self, tag: Any, mapping: Any, flow_style: Any = None) -> Any:
        node = super().represent_mapping(tag, mapping, flow_style)
        for key, value in node.value:
            if str(value.tag) == _NULL and key.value in getattr(mapping, "empty_keys", ()):
                value.value = ""
        return node

    def represent_none(self, _data: None) -> Any:
        return self.represent_scalar(_NULL, "null")


_Representer.add_representer(type(None), _Representer.represent_none)


def _yaml() -> YAML:
    yaml = YAML()
    yaml.Resolver, yaml.Constructor, yaml.Representer = _Resolver, _Constructor, _Representer
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # declared as None
    return yaml


def steps_of(data: Any, path: str) -> Path:
    """Return the path that is written as in findings, with list items by name or number: `teams[john].sharing`.

    Raises InputError if a list lacks an item on the way.
    """
    steps: list[str | int] = []
    for item, key in _STEPS.findall(path):
        name = key or item
        if isinstance(data, list):
            place = find_item(data, name)
            if place is None:
                raise InputError(f"`{path}` doesn't exist: the list has no [{name}]")
            steps.append(place)
            data = data[place]
        else:
            steps.append(name)
            data = data.get(name) if isinstance(data, dict) else None
    return tuple(steps)


def position(data: Any, path: Path) -> tuple[int, int]:
    """Return line and column, from 1, of the last step of a path that a loaded document has."""
    line, column = (data.lc.line, data.lc.col) if isinstance(data, (CommentedMap, CommentedSeq)) else (0, 0)
    for step in path:
        positions = data.lc.data if isinstance(data, (CommentedMap, CommentedSeq)) else None
        if not positions or step not in positions:
            break
        line, column = positions[step][:2]
        data = data[step]
    return line + 1, column + 1


def set_value(data: Any, path: Path, value: Any, *, first: bool = True) -> None:
    """Set a value in a loaded document; missing maps are added, and a new key becomes the first or last of its map.

    Raises InputError where something else is in the place of a map.
    """
    step, rest = path[0], path[1:]
    is_item = isinstance(data, list) and isinstance(step, int)
    if not is_item and not isinstance(data, dict):
        raise InputError(f"{step} can't be set in {data!r}, which isn't a map")
    inner = data[step] if is_item else data.get(step)
    if rest and inner is not None:
        set_value(inner, rest, value, first=first)
        return
    for key in reversed(rest):
        value = {key: value}
    if is_item:
        data[step] = value
    elif step not in data and first and data:
        data.insert(0, step, value)
    else:
        is_quoted = isinstance(inner, ScalarString) and type(value) is str
        data[step] = type(inner)(value) if is_quoted else value


def remove_value(data: Any, path: Path) -> None:
    """Remove a value of a loaded document. Raises InputError if it doesn't exist."""
    try:
        for step in path[:-1]:
            data = data[step]
        del data[path[-1]]
    except (KeyError, IndexError, TypeError):
        raise InputError(f"`{'.'.join(map(str, path))}` doesn't exist") from None


def with_values(data: Any, values: Mapping[Path, Any]) -> Any:
    """Copy plain data with other values at some paths, as `with_value` does for one."""
    for path, value in values.items():
        data = with_value(data, path, value)
    return data


def edited_files(
    texts: Mapping[str, str], document: Document, values: Mapping[Path, Any], *, file: str
) -> dict[str, str]:
    """Return the texts that change for other values at some paths of an organization with several files.

    texts: those that can change, by the name in a Mark. Raises InputError if a text can't express only that change,
    such as for a value that an anchor or a merge shares, or that another file sets.
    """
    homes: dict[str, dict[Path, Any]] = {}
    for path, value in values.items():
        home = document.home(path)
        if home is None or home[0] not in texts:
            mark = document.locate(path)
            raise InputError(
                f"{format_path(path, document.data)} comes from {mark.file or file}:{mark.line}:{mark.column}, where "
                f"it applies to more than this place or belongs to another file. Set {value} there by hand"
            )
        homes.setdefault(home[0], {})[home[1]] = value
    return {
        name: _edited(texts[name], document.parts.get(name, document), inner, file=name or file)
        for name, inner in homes.items()
    }


def _edited(text: str, own: Document, values: Mapping[Path, Any], *, file: str) -> str:
    try:
        documents = loaded(text)
        for path, value in values.items():
            set_value(documents[0], path, value)
        after = dumped(documents, text)
        if read_text(after.encode()).data == with_values(own.data, values):
            return after
    except InputError:
        pass
    path = next(iter(values))
    mark = own.locate(path)
    raise InputError(
        f"{file}:{mark.line}:{mark.column}: {format_path(path, own.data)} can't be changed alone: an anchor "
        f"or a merge also uses its value elsewhere. Set {values[path]} there by hand"
    )


def diff(before: str, after: str, file: str) -> str:
    """Return the change as a patch that `git apply` takes in the project's folder; empty without a change."""
    lines = difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), f"a/{file}", f"b/{file}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
