"""What a file says, with the place of every value, and what is wrong with it."""

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Document", "Mark", "Node", "Path", "Problem", "format_path"]

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with what a person wrote, before it is placed in a file.

    rule is a rule id, path leads to the value, mark overrides the place that path would give.
    """

    rule: str
    path: Path
    message: str
    fix: str
    mark: Mark | None = None
    severity: Literal["error", "warning"] = "error"


@dataclass(slots=True)
class Node:
    """A value, its place, and the nodes below it."""

    value: Any
    mark: Mark
    raw: str | None = None  # the text of a plain scalar
    keys: dict[str, Mark] = field(default_factory=dict)
    children: "dict[str | int, Node]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """What one file says: plain values (maps as dict, lists as tuple) and where each stands."""

    data: Any
    problems: tuple[Problem, ...]
    _root: Node | None

    def locate(self, path: Path, *, key: bool = False) -> Mark:
        """Return the place of the value at path, or of the nearest value above it.

        With key, the place of the last step's key instead of its value.
        """
        node, mark = self._root, Mark(1, 1)
        for position, step in enumerate(path):
            if node is None:
                break
            mark = node.mark
            if key and position == len(path) - 1 and step in node.keys:
                return node.keys[str(step)]
            node = node.children.get(step)
        return node.mark if node is not None else mark

    def renamed(self, path: Path, key: str) -> "Document":
        """Return the document with another key in place of the last one of path, where that stands."""
        root = self._root and _renamed(self._root, path, key)
        return Document(root.value if root else None, self.problems, root)

    def raw(self, path: Path) -> str | None:
        """Return a plain scalar as it was typed (`1.30`, not 1.3), or None for anything else."""
        node = self._root
        for step in path:
            if node is None:
                return None
            node = node.children.get(step)
        return node.raw if node is not None else None


def _renamed(node: Node, path: Path, key: str) -> Node:
    step, rest = path[0], path[1:]
    if rest:
        children = {**node.children, step: _renamed(node.children[step], rest, key)}
        keys = node.keys
    else:
        children = {key if old == step else old: child for old, child in node.children.items()}
        keys = {key if old == step else old: mark for old, mark in node.keys.items()}
    values = [child.value for child in children.values()]
    value = dict(zip(children, values, strict=True)) if isinstance(node.value, dict) else tuple(values)
    return Node(value, node.mark, node.raw, keys, children)


def format_path(path: Path, data: Any = None) -> str:
    """Write a path as users read it: `teams[john].sharing`, items of named lists by name.

    data is the document's root; without it, items are shown by index.
    """
    text, value = "", data
    for step in path:
        if isinstance(step, int):
            item = value[step] if isinstance(value, (tuple, list)) and 0 <= step < len(value) else None
            name = item.get("name") if isinstance(item, dict) else None
            text += f"[{name if isinstance(name, str) and name else step}]"
            value = item
        else:
            text += f".{step}" if text else step
            value = value.get(step) if isinstance(value, dict) else None
    return text
