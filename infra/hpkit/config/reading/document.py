"""The content of a file, with the place of every value, and the file's problems."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hpkit.errors import InputError

__all__ = [
    "Document",
    "Mark",
    "Path",
    "Problem",
    "YamlNode",
    "find_item",
    "format_path",
    "is_named",
    "item_label",
    "value_at",
    "with_value",
]

Path = tuple[str | int, ...]

# Keys that identify an item of a list, and can be in brackets.
_TELLING = ("instanceType", "availabilityZone", "key", "rule")
_LABEL = re.compile(r"[A-Za-z][\w.:/@+-]{0,47}|[0-9][0-9.]*/[0-9]+")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file; line and column count from 1. file: "" for the file that was read itself."""

    line: int
    column: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the text, before it gets a position in a file.

    rule is a rule ID, path is the value's path, and mark overrides the position that path has.
    """

    rule: str
    path: Path
    message: str
    fix: str
    mark: Mark | None = None
    severity: Literal["error", "warning"] = "error"


@dataclass(slots=True)
class YamlNode:
    """A value, its place, and the nodes below it."""

    value: Any
    mark: Mark
    raw: str | None = None  # the text of a plain scalar
    keys: dict[str, Mark] = field(default_factory=dict)
    children: "dict[str | int, YamlNode]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A file's contents: plain values (maps as dict, lists as tuple) and their positions.

    An organization file can consist of several files:

    - parts: the contents of each, by the name in a Mark.
    - first_teams: the index of the first team of each.
    - reads: the names of the others, as patterns: `stacks/teams/*.yaml`.
    - defaults: the file that others can share.
    - is_whole: False if one couldn't be read.
    - untaken: paths of defaults that everything overrides, in the document `with_untaken`, which has them.
    """

    data: Any
    problems: tuple[Problem, ...]
    root: YamlNode | None
    parts: Mapping[str, "Document"] = field(default_factory=dict)
    first_teams: Mapping[str, int] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    defaults: str = ""
    is_whole: bool = True
    untaken: tuple[Path, ...] = ()
    with_untaken: "Document | None" = None

    def locate(self, path: Path, *, key: bool = False) -> Mark:
        """Return the place of the value at path, or of the nearest value above it.

        With key, the place of the last step's key instead of its value.
        """
        node, mark = self.root, Mark(1, 1)
        for position, step in enumerate(path):
            if node is None:
                break
            mark = node.mark
            if key and position == len(path) - 1 and step in node.keys:
                return node.keys[str(step)]
            node = node.children.get(step)
        return node.mark if node is not None else mark

    def renamed(self, path: Path, key: str) -> "Document":
        """Return the document with another key in place of the last one of path, if that exists."""
        root = self.root and _renamed(self.root, path, key)
        return replace(self, data=root.value if root else None, root=root)

    def moved(self, path: Path, home: Path) -> "Document":
        """Return the document with the last key of path, and what is below it, in the map at home."""
        around: YamlNode | None = self.root
        for step in path[:-1]:
            around = around and around.children.get(step)
        key = str(path[-1])
        if self.root is None or around is None or key not in around.children:
            return self
        root = _with_child(_without_child(self.root, path), home, key, around.children[key], around.keys[key])
        return replace(self, data=root.value, root=root)

    def raw(self, path: Path) -> str | None:
        """Return a plain scalar as it was typed (`1.30`, not 1.3), or None for anything else."""
        node = self.root
        for step in path:
            if node is None:
                return None
            node = node.children.get(step)
        return node.raw if node is not None else None

    def is_made_of(self, file: str) -> bool:
        """Return whether a name is that of another file that this one reads, or would read if it existed."""
        return any(is_named(pattern, file) for pattern in self.reads)

    def home(self, path: Path) -> tuple[str, Path] | None:
        """Return the file that sets the value at path, or would take it, and the path there.

        None where the value is stated for more than this path: in defaults for all environments or organizations.
        """
        mark = self.locate(path)
        if mark.file and mark.file == self.defaults:
            return None
        if mark.file not in self.parts:
            return ("", path) if not self.parts else None
        part, inner = self.parts[mark.file], path
        if path[:1] == ("teams",) and len(path) > 1 and isinstance(path[1], int):
            inner = ("teams", path[1] - self.first_teams.get(mark.file, 0), *path[2:])
        return (mark.file, inner) if part.locate(inner) == mark else None


def is_named(pattern: str, name: str) -> bool:
    """Return whether a file's name matches a pattern, whose one `*` matches any part of a name that isn't hidden."""
    before, star, after = pattern.partition("*")
    middle = name[len(before) : len(name) - len(after)]
    is_hidden = middle.startswith(".") and (not before or before.endswith("/"))
    if not star or len(name) < len(before) + len(after):
        return name == pattern
    return name.startswith(before) and name.endswith(after) and "/" not in middle and not is_hidden


def _renamed(node: YamlNode, path: Path, key: str) -> YamlNode:
    step, rest = path[0], path[1:]
    if step not in node.children:
        # The path leads to a value that another file declares.
        return node
    if rest:
        children = {**node.children, step: _renamed(node.children[step], rest, key)}
        keys = node.keys
    else:
        children = {key if old == step else old: child for old, child in node.children.items()}
        keys = {key if old == step else old: mark for old, mark in node.keys.items()}
    return _of_children(node, children, keys)


def _without_child(node: YamlNode, path: Path) -> YamlNode:
    step, rest = path[0], path[1:]
    children = {**node.children, step: _without_child(node.children[step], rest)} if rest else dict(node.children)
    keys = dict(node.keys)
    if not rest:
        del children[step], keys[str(step)]
    return _of_children(node, children, keys)


def _with_child(node: YamlNode, home: Path, key: str, child: YamlNode, mark: Mark) -> YamlNode:
    if not home:
        base = node if isinstance(node.value, dict) else YamlNode({}, node.mark)
        return _of_children(base, {**node.children, key: child}, {**node.keys, key: mark})
    step, rest = home[0], home[1:]
    inner = _with_child(node.children.get(step) or YamlNode({}, mark), rest, key, child, mark)
    keys = {str(step): mark, **node.keys} if isinstance(step, str) else node.keys
    return _of_children(node, {**node.children, step: inner}, keys)


def _of_children(node: YamlNode, children: dict[str | int, YamlNode], keys: dict[str, Mark]) -> YamlNode:
    values = [child.value for child in children.values()]
    value = dict(zip(children, values, strict=True)) if isinstance(node.value, dict) else tuple(values)
    return YamlNode(value, node.mark, node.raw, keys, children)


def value_at(data: Any, path: Path) -> Any:
    """Return the value at a path, or None if nothing is there."""
    for step in path:
        exists = step in data if isinstance(data, dict) else isinstance(data, tuple) and step in range(len(data))
        data = data[step] if exists else None
    return data


def format_path(path: Path, data: Any = None, *, numbered: bool = False) -> str:
    """Format a path for users: `teams[john].sharing`, list items by the key that identifies them.

    data is the document's root; without it, items are shown by index. numbered: show items without a name by index.
    """
    text, value = "", data
    for step in path:
        if isinstance(step, int):
            known = isinstance(value, (tuple, list)) and 0 <= step < len(value)
            item = value[step] if known else None
            text += f"[{item_label(value, step) if known and (_name(item) or not numbered) else step}]"
            value = item
        else:
            text += f".{step}" if text else step
            value = value.get(step) if isinstance(value, dict) else None
    return text


def item_label(items: Sequence[Any], index: int) -> str:
    """Return the name of a list item in a path.

    This is its name; or its type, zone, key, rule or own short value if it's unique; or its position: `2nd`.
    """
    item = items[index]
    if name := _name(item):
        return name
    label = _label(item)
    return label if label and Counter(map(_label, items))[label] == 1 else _ordinal(index + 1)


def find_item(items: Sequence[Any], label: str) -> int | None:
    """Return the index of the one item with a name in a path, or with an index; None if no such item exists."""
    named_items = [each for each, item in enumerate(items) if _name(item) == label]
    alike = named_items or [each for each, item in enumerate(items) if _label(item) == label]
    if alike:
        return alike[0] if named_items or len(alike) == 1 else None
    place = re.fullmatch(r"([0-9]+)(st|nd|rd|th)?", label)
    if place is None:
        return None
    index = int(place[1]) - bool(place[2])
    return index if 0 <= index < len(items) else None


def _name(item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""


def _label(item: Any) -> str:
    """Return a value that identifies an unnamed item, or nothing."""
    if isinstance(item, dict):
        item = next((item[key] for key in _TELLING if isinstance(item.get(key), str)), "")
    if not isinstance(item, str):
        return ""
    text = item.rpartition("/")[2] if item.startswith("arn:") else item
    return text if _LABEL.fullmatch(text) else ""


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def with_value(data: Any, path: Path, value: Any) -> Any:
    """Copy plain data with another value at a path; missing maps are added, and only the way to it is copied.

    Raises InputError where something else is in the place of a map.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, (tuple, list)) and isinstance(step, int):
        return type(data)([*data[:step], with_value(data[step], rest, value), *data[step + 1 :]])
    if data is not None and not isinstance(data, Mapping):
        raise InputError(f"{step} can't be set in {data!r}, which isn't a map")
    return {**(data or {}), step: with_value((data or {}).get(step), rest, value)}
