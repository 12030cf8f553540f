"""Changes of a YAML text by path, which leave the rest of it as it is laid out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hpkit.config.document import find_item
from hpkit.errors import InputError

__all__ = ["Edit", "Layout", "Value", "patched"]

_STEPS = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_END = "+"


@dataclass(frozen=True, slots=True)
class Edit:
    """Text in place of what stands from start to end; column says how deep it is indented."""

    start: int
    end: int
    text: str
    column: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """A value as some text has it."""

    node: yaml.Node
    source: str

    @property
    def is_block(self) -> bool:
        """Tell whether the value stands on lines of its own, without brackets."""
        return isinstance(self.node, yaml.CollectionNode) and not self.node.flow_style

    @property
    def items(self) -> "list[Value]":
        """Return the items of a list."""
        return [Value(item, self.source) for _, item in _entries(self.node)]

    def lines(self) -> list[str]:
        """Return the value's lines, without the indentation that they have in its text."""
        start = self.node.start_mark
        first, *more = self.source[start.index : _end(self.node)].split("\n")
        return [first, *(line[start.column :] if self.is_block else line.strip() for line in more)]


class Layout:
    """A YAML text, and where each of its values stands.

    Paths are written as findings write them: `teams[john].sharing`, items of lists by name or by number.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise InputError("there is nothing in it")
        self._root = root

    def value(self, *steps: str) -> Value:
        """Return what the text says at the end of the steps, each a key, a name or a number."""
        return Value(self._node(steps), self.text)

    def set(self, path: str, value: Value) -> list[Edit]:
        """Put value at path; a key that is not there is added, `list[+]` adds the items of value to the list."""
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
            raise InputError(f"`{path}` is not there; [+] adds to a list")
        if place is None:
            return [self._added(parent, f"{last}{_after_key(value, parent.start_mark.column)}")]
        key, old = _entries(parent)[place]
        if key is old:
            return [Edit(old.start_mark.index, _end(old), _indented(value, old.start_mark.column))]
        return [Edit(key.end_mark.index, _end(old), _after_key(value, key.start_mark.column))]

    def remove(self, path: str) -> Edit:
        """Take out what stands at path, with its key."""
        *above, last = _steps(path)
        parent = self._node(above)
        place = _index(parent, last)
        if place is None:
            raise InputError(f"`{path}` is not there")
        entries = _entries(parent)
        key, value = entries[place]
        start, end = key.start_mark.index, _end(value)
        if not Value(parent, self.text).is_block:
            following = entries[place + 1 :]
            if place:
                return Edit(_end(entries[place - 1][1]), end, "")
            return Edit(start, following[0][0].start_mark.index if following else end, "")
        begin = self.text.rfind("\n", 0, start) + 1
        if self.text[begin:start].strip() != ("-" if key is value else ""):
            raise InputError(f"`{path}` begins a list's item; change the item")
        return Edit(begin, self._next_line(end), "")

    def replace(self, old: str, new: str) -> Edit:
        """Put new in place of old, which stands exactly once in the text."""
        if (count := self.text.count(old)) != 1:
            raise InputError(f"`{old}` stands {count} times, not once")
        start = self.text.index(old)
        return Edit(start, start + len(old), new)

    def _node(self, steps: Sequence[str]) -> yaml.Node:
        node = self._root
        for step in steps:
            place = _index(node, step)
            if place is None:
                raise InputError(f"`{step}` of `{'.'.join(steps)}` is not there")
            node = _entries(node)[place][1]
        return node

    def _added(self, parent: yaml.Node, text: str) -> Edit:
        """Return the edit that puts text behind all that parent holds."""
        end, column = _end(parent), parent.start_mark.column
        if not Value(parent, self.text).is_block:
            return Edit(end - 1, end - 1, f", {text}" if parent.value else text, column)
        below = self._next_line(end)
        return Edit(below, below, f"{' ' * column}{text}\n", column)

    def _next_line(self, index: int) -> int:
        return self.text.index("\n", index) + 1


def patched(text: str, edits: Iterable[Edit]) -> str:
    """Return text with all edits made; each speaks of the text as it was."""
    made, at = "", 0
    # Of two additions at one place, the one to the inner value comes first.
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end, -edit.column)):
        if edit.start < at:
            raise InputError(f"two changes of one place: {text[edit.start : edit.end].strip() or edit.text.strip()}")
        made += text[at : edit.start] + edit.text
        at = edit.end
    return made + text[at:]


def _steps(path: str) -> list[str]:
    return [bracketed or plain for bracketed, plain in _STEPS.findall(path)]


def _entries(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return key and value of each entry of a map; of a list, each item as both."""
    if isinstance(node, yaml.MappingNode):
        return list(node.value)
    return [(item, item) for item in node.value] if isinstance(node, yaml.SequenceNode) else []


def _index(node: yaml.Node, step: str) -> int | None:
    """Return the position of the entry that a step of a path means."""
    if isinstance(node, yaml.SequenceNode):
        return find_item([_scalars(item) for item in node.value], step)
    return next((index for index, (key, _) in enumerate(_entries(node)) if key.value == step), None)


def _scalars(item: yaml.Node) -> Any:
    """Return what an item can be called by: its own text, or the texts in its map."""
    if isinstance(item, yaml.MappingNode):
        return {key.value: value.value for key, value in item.value if isinstance(value, yaml.ScalarNode)}
    return item.value if isinstance(item, yaml.ScalarNode) else None


def _end(node: yaml.Node) -> int:
    """Return where a value ends; the parser's own mark of a block is where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        return _end(_entries(node)[-1][1])
    return int(node.end_mark.index)


def _indented(value: Value, column: int) -> str:
    return f"\n{' ' * column}".join(value.lines())


def _after_key(value: Value, column: int) -> str:
    """Return what stands after a key that begins at column."""
    gap = f"\n{' ' * (column + 2)}" if value.is_block else " "
    return f":{gap}{_indented(value, column + 2)}"


def _item(value: Value, parent: yaml.Node) -> str:
    dash = "" if isinstance(parent, yaml.CollectionNode) and parent.flow_style else "- "
    return f"{dash}{_indented(value, parent.start_mark.column + 2)}"
