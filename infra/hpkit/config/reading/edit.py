"""Changes of YAML text by path. Comments, order, quotes, and layout stay as they were typed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hpkit.config.reading.document import Document, Path, find_item, format_path
from hpkit.config.reading.load import read_text, resolve
from hpkit.errors import InputError

__all__ = ["Edit", "Layout", "Value", "diff", "edited_files", "patched", "with_value", "with_values"]

_STEPS: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_END: Final = "+"
# An anchor or a tag before a value.
_PROPERTIES: Final[Any] = re.compile(r"(?:[&!]\S*\s+)*")
# As git counts lines: other breaks are characters of a line.
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def with_values(data: Any, values: Mapping[Path, Any]) -> Any:
    """Copy plain data with other values at some paths; missing maps are added.

    Raises InputError where something else is in the place of a map.
    """
    for path, value in values.items():
        data = _with(data, path, value)
    return data


def _with(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, (tuple, list)) and isinstance(step, int):
        return type(data)([*data[:step], _with(data[step], rest, value), *data[step + 1 :]])
    if data is not None and not isinstance(data, Mapping):
        raise InputError(f"{step} can't be set in {data!r}, which isn't a map")
    return {**(data or {}), step: _with((data or {}).get(step), rest, value)}


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
    path = next(iter(values), ())
    after = text
    try:
        for path, value in values.items():
            after = with_value(after, path, value)
        if read_text(after.encode()).data == with_values(own.data, values):
            return after
        path = next(iter(values))
    except InputError:
        pass
    mark = own.locate(path)
    raise InputError(
        f"{file}:{mark.line}:{mark.column}: {format_path(path, own.data)} can't be changed alone: an anchor "
        f"or a merge also uses its value elsewhere. Set {values[path]} there by hand"
    )


def diff(before: str, after: str, file: str) -> str:
    """Return the change as a patch that `git apply` takes in the project's folder; empty without a change."""
    lines = difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), f"a/{file}", f"b/{file}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def with_value(text: str, path: Path, value: Any, *, document: int = 0, first: bool = True) -> str:
    """Return the text with another value at a path of one of its documents.

    A new key is added as the first or the last one of its map. Raises InputError where the path leads through
    something else than maps and lists.
    """
    layout = Layout.of_documents(text)[document]
    while len(path) > 1 and not layout.entries(path[:-1]):
        path, value = path[:-1], {path[-1]: value}
    return patched(text, layout.set(path, layout.fitted(path, value), first=first))


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that replaces the text from start to end; column is its indentation."""

    start: int
    end: int
    text: str
    column: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it is typed in some text."""

    node: yaml.Node
    source: str

    @property
    def is_block(self) -> bool:
        """Return whether the value is a map or a list without brackets."""
        return isinstance(self.node, yaml.CollectionNode) and not self.node.flow_style

    @property
    def items(self) -> list[Value]:
        """Return the items of a list."""
        return [Value(item, self.source) for _, item in _entries(self.node)]

    def lines(self) -> list[str]:
        """Return the value's lines without their indentation."""
        start = self.node.start_mark
        first, *more = self.source[start.index : _end(self.node, self.source)].split("\n")
        return [first, *(line[start.column :] if self.is_block else line.strip() for line in more)]


class Layout:
    """A document of a YAML text, with the position of each value.

    Paths are tuples of keys and indexes, or written as in findings: `teams[john].sharing`, with list items by name or
    by index.
    """

    def __init__(self, text: str, root: yaml.Node | None = None) -> None:
        self.text = text
        root_node = root or next(_composed(text), None)
        if root_node is None:
            raise InputError("there is nothing in it")
        self._root: Any = root_node  # yaml's stubs lack the attributes of collections and scalars

    @classmethod
    def of_documents(cls, text: str) -> tuple[Layout, ...]:
        """Return each document of a text; InputError, with the position, where it isn't YAML."""
        return tuple(cls(text, root) for root in _composed(text))

    @property
    def data(self) -> Any:
        """Return the document as plain data. Raises InputError for a key that a map has twice."""
        return _data(self._root, {})

    def locate(self, path: Path) -> tuple[int, int]:
        """Return line and column, from 1, of the last step of a path that exists."""
        node, mark = self._root, self._root.start_mark
        for step in path:
            place = _index(node, step)
            if place is None:
                break
            key, node = _entries(node)[place]
            mark = key.start_mark
        return mark.line + 1, mark.column + 1

    def entries(self, path: Path) -> int:
        """Return the number of entries in the map or list at a path; 0 if it doesn't exist."""
        node = self._root
        for step in path:
            place = _index(node, step)
            if place is None:
                return 0
            node = _entries(node)[place][1]
        return len(_entries(node))

    def value(self, *steps: str) -> Value:
        """Return the value at the end of the steps, each a key, a name, or a number."""
        return Value(self._node(steps), self.text)

    def fitted(self, path: Path, data: Any) -> Value:
        """Return plain data in the style of its surroundings: brackets within brackets, quotes of the old value."""
        parent = self._node(path[:-1])
        place = _index(parent, path[-1])
        old: Any = None if place is None else _entries(parent)[place][1]
        is_text = isinstance(old, yaml.ScalarNode) and isinstance(data, str)
        quote = old.style if is_text and old.style in ("'", '"') else ""
        is_block = Value(parent, self.text).is_block and isinstance(data, Mapping)
        lines = _block(data) if is_block else [_written(data, quote)]
        return Layout("\n".join(lines)).value()

    def set(self, path: str | Path, value: Value, *, first: bool = False) -> list[Edit]:
        """Set the value at path; a missing key is added, and `list[+]` adds the items of value to the list."""
        *above, last = _steps(path)
        parent = self._node(above)
        parts = value.items if last == _END else [value]
        if not Value(parent, self.text).is_block and any(part.is_block for part in parts):
            raise InputError(f"`{path}` is in brackets; write its value in brackets too")
        if last == _END:
            if not isinstance(parent, yaml.SequenceNode) or not isinstance(value.node, yaml.SequenceNode):
                raise InputError(f"`{path}` adds the items of a list to a list")
            return [self._added(parent, _item(item, parent)) for item in parts]
        place = _index(parent, last)
        if place is None and not isinstance(parent, yaml.MappingNode):
            raise InputError(f"`{path}` doesn't exist; [+] adds to a list")
        if place is None:
            return [self._added(parent, f"{last}{_after_key(value, _column(parent))}", first=first)]
        key, old = _entries(parent)[place]
        if key is old:
            return [Edit(old.start_mark.index, self._end(old), _indented(value, old.start_mark.column))]
        if old.start_mark.index < key.end_mark.index:
            raise InputError(f"`{path}` is an alias")
        if isinstance(old, yaml.ScalarNode) and isinstance(value.node, yaml.ScalarNode) and old.value:
            start = old.start_mark.index
            start += len(_PROPERTIES.match(self.text[start : self._end(old)])[0])
            return [Edit(start, self._end(old), _indented(value, key.start_mark.column + 2))]
        return [Edit(key.end_mark.index, self._end(old), _after_key(value, key.start_mark.column))]

    def remove(self, path: str | Path) -> Edit:
        """Remove the value at path, with its key."""
        *above, last = _steps(path)
        parent = self._node(above)
        place = _index(parent, last)
        if place is None:
            raise InputError(f"`{path}` doesn't exist")
        entries = _entries(parent)
        key, value = entries[place]
        start, end = key.start_mark.index, self._end(value)
        if not Value(parent, self.text).is_block:
            following = entries[place + 1 :]
            if place:
                return Edit(self._end(entries[place - 1][1]), end, "")
            return Edit(start, following[0][0].start_mark.index if following else end, "")
        begin = self.text.rfind("\n", 0, start) + 1
        if self.text[begin:start].strip() != ("-" if key is value else ""):
            raise InputError(f"`{path}` is the first key of a list item; change the item")
        return Edit(begin, self._next_line(end), "")

    def replace(self, old: str, new: str) -> Edit:
        """Replace old, which the text has exactly once, with new."""
        if (count := self.text.count(old)) != 1:
            raise InputError(f"`{old}` occurs {count} times instead of once")
        start = self.text.index(old)
        return Edit(start, start + len(old), new)

    def _node(self, steps: Iterable[str | int]) -> yaml.Node:
        node: yaml.Node = self._root
        for step in steps:
            place = _index(node, step)
            if place is None:
                raise InputError(f"`{step}` of `{'.'.join(map(str, steps))}` doesn't exist")
            node = _entries(node)[place][1]
        return node

    def _added(self, parent: yaml.Node, text: str, *, first: bool = False) -> Edit:
        """Return the edit that puts text before or after all entries of parent."""
        end, column = self._end(parent), _column(parent)
        if not Value(parent, self.text).is_block:
            if first and parent.value:
                begin = _entries(parent)[0][0].start_mark.index
                return Edit(begin, begin, f"{text}, ")
            return Edit(end - 1, end - 1, f", {text}" if parent.value else text, column)
        if first:
            begin = _entries(parent)[0][0].start_mark.index
            return Edit(begin, begin, f"{text}\n{' ' * column}", column)
        below = self._next_line(end)
        is_cut = below == len(self.text) and not self.text.endswith("\n")
        return Edit(below, below, "\n" * is_cut + f"{' ' * column}{text}\n", column)

    def _end(self, node: yaml.Node) -> int:
        return _end(node, self.text)

    def _next_line(self, index: int) -> int:
        return self.text.find("\n", index) + 1 or len(self.text)


def patched(text: str, edits: Iterable[Edit]) -> str:
    """Return text with all edits applied; their positions are those in the original text."""
    result, position, line_end = "", 0, "\r\n" if "\r\n" in text else "\n"
    # Of two additions at the same position, the one to the inner value comes first.
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end, -edit.column)):
        if edit.start < position:
            raise InputError(f"two edits of one place: {text[edit.start : edit.end].strip() or edit.text.strip()}")
        result += text[position : edit.start] + edit.text.replace("\n", line_end)
        position = edit.end
    return result + text[position:]


_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _composed(text: str) -> Iterator[yaml.Node]:
    try:
        yield from yaml.compose_all(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"{mark.line + 1}:{mark.column + 1}: "
        raise InputError(f"{where}invalid YAML: {getattr(error, 'problem', None) or error}") from None


def _steps(path: str | Path) -> list[str | int]:
    return [key or item for item, key in _STEPS.findall(path)] if isinstance(path, str) else list(path)


def _entries(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return key and value of each entry of a map; of a list, each item as both."""
    if isinstance(node, yaml.MappingNode):
        return list(node.value)
    return [(item, item) for item in node.value] if isinstance(node, yaml.SequenceNode) else []


def _index(node: yaml.Node, step: str | int) -> int | None:
    """Return the position of the entry that a step of a path refers to."""
    entries = _entries(node)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return step if step < len(entries) else None
    if isinstance(node, yaml.SequenceNode):
        return find_item([_scalars(item) for item in node.value], str(step))
    return next((index for index, (key, _) in enumerate(entries) if key.value == str(step)), None)


def _scalars(item: yaml.Node) -> Any:
    """Return the texts that can identify an item: its own text, or the texts in its map."""
    if isinstance(item, yaml.MappingNode):
        return {key.value: value.value for key, value in item.value if isinstance(value, yaml.ScalarNode)}
    return item.value if isinstance(item, yaml.ScalarNode) else None


def _column(node: yaml.Node) -> int:
    """Return the column of a map's keys or a list's items; an anchor may be before them."""
    is_map = isinstance(node, yaml.MappingNode) and node.value
    return int((node.value[0][0] if is_map else node).start_mark.column)


def _end(node: yaml.Node, text: str) -> int:
    """Return where a value ends; the parser's own mark of a block is where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        return _end(_entries(node)[-1][1], text)
    end = int(node.end_mark.index)
    return len(text[:end].rstrip()) if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">") else end


def _data(node: yaml.Node, built: dict[int, Any]) -> Any:
    """Return a node's plain data, read like an organization file's; data that aliases share is created once."""
    if isinstance(node, yaml.ScalarNode):
        return resolve(node.value) if node.style in (None, "") else node.value
    if id(node) not in built:
        built[id(node)] = None  # for an alias within itself
        built[id(node)] = (
            dict(_pairs(node, built))
            if isinstance(node, yaml.MappingNode)
            else [_data(item, built) for item in node.value]
        )
    return built[id(node)]


def _pairs(node: yaml.MappingNode, built: dict[int, Any]) -> Iterator[tuple[Any, Any]]:
    seen_names: set[Any] = set()
    merges = [value for key, value in node.value if key.tag == "tag:yaml.org,2002:merge"]
    for merge in merges:
        for each in reversed(merge.value if isinstance(merge, yaml.SequenceNode) else [merge]):
            yield from (_data(each, built) or {}).items()
    for key, value in node.value:
        if value in merges:
            continue
        name = _data(key, built)
        if isinstance(name, (dict, list)):
            raise InputError(f"{_place(key)}: a key is a map or a list, which isn't supported")
        if name in seen_names:
            raise InputError(f"{_place(key)}: invalid YAML: found duplicate key {name}")
        seen_names.add(name)
        yield name, _data(value, built)


def _place(node: yaml.Node) -> str:
    return f"{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def _block(data: Any) -> list[str]:
    """Return the lines of a map, as a block."""
    lines = []
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{_written(key)}:", *(f"  {line}" for line in _block(value))]
        else:
            lines.append(f"{_written(key)}: {_written(value)}")
    return lines


def _written(data: Any, quote: str = "") -> str:
    if isinstance(data, Mapping):
        return f"{{{', '.join(f'{_written(key)}: {_written(value)}' for key, value in data.items())}}}"
    if not isinstance(data, str):
        return json.dumps(data)
    plain = f"{quote}{data}{quote}"
    try:
        is_same = read_text(f"[{plain}]".encode()).data == (data,)
    except yaml.YAMLError:
        is_same = False
    return plain if is_same else json.dumps(data, ensure_ascii=False)


def _indented(value: Value, column: int) -> str:
    return f"\n{' ' * column}".join(value.lines())


def _after_key(value: Value, column: int) -> str:
    """Return what follows a key that begins at column."""
    gap = f"\n{' ' * (column + 2)}" if value.is_block else " "
    return f":{gap}{_indented(value, column + 2)}"


def _item(value: Value, parent: yaml.Node) -> str:
    dash = "" if isinstance(parent, yaml.CollectionNode) and parent.flow_style else "- "
    return f"{dash}{_indented(value, parent.start_mark.column + 2)}"
