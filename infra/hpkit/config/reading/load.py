"""Read a YAML file into a Document: the only module that opens the user's files.

It doesn't check meaning. It reads YAML 1.2's core schema, where `on` and `no` are text, and reports them as a problem.
It rejects what would loop or exhaust memory, and never raises for the content of a file.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from hpkit.config.messages.suggest import YAML_1_1_BOOLS, written
from hpkit.config.reading.document import Document, Mark, Problem, YamlNode
from hpkit.config.reading.document import Path as ValuePath
from hpkit.config.reading.syntax import syntax_error
from hpkit.errors import InputError
from hpkit.text.spelling import near

__all__ = ["IN_CURLY_QUOTES", "MAX_BYTES", "MAX_NODES", "read_file", "read_text", "require_file", "resolve", "size"]

MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 64
MAX_NODES: Final = 1_000_000

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_WITH_ZERO = re.compile(r"0[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_BOOLS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_YAML_TAG: Final = "tag:yaml.org,2002:"
_OWN_TAGS: Final = {
    yaml.ScalarEvent: f"{_YAML_TAG}str",
    yaml.MappingStartEvent: f"{_YAML_TAG}map",
    yaml.SequenceStartEvent: f"{_YAML_TAG}seq",
}
_ACCOUNT_DIGITS: Final = 12
# A text in typographic quotes, as word processors and chat programs write them: double ones, single ones.
_CURLY: Final = re.compile("[“”„‟«»]([^“”„‟«»]*)[“”„‟«»\"]\\Z|[‘’‚‛]([^‘’‚‛]*)[‘’‚‛']\\Z")
IN_CURLY_QUOTES: Final = "is in curly quotes, which are letters to YAML"


def read_text(content: bytes) -> Document:
    """Parse a file's bytes into a document.

    The result contains all problems of the text, so that one run reports all of them. CFG004 is a duplicate key, CFG005
    is text that can't be read.
    """
    if len(content) > MAX_BYTES:
        return _unreadable(
            f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB, the limit for an organization file",
            "Name an organization file, and keep generated lists out of it.",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        return _unreadable(
            f"the file isn't valid UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}",
            "Save the file as UTF-8.",
            mark=Mark(line, column),
        )
    return _Composer().compose(text)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return a file's bytes.

    Raises InputError, with a fix, for a file that is missing, a folder, a named pipe, or not readable.
    """
    name = os.fspath(path)
    try:
        require_file(path)
        with Path(name).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{name}: this file doesn't exist") from None
    except IsADirectoryError:
        raise InputError(f"{name}: this is a directory, not a file") from None
    except PermissionError:
        raise InputError(f"{name}: this file can't be read (permission denied); make it readable") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name!r}: {error}") from None


def require_file(path: str | os.PathLike[str]) -> None:
    """Raise InputError for a named pipe or a device, because opening or reading it might never end.

    Standard input and process substitution are the caller's open files, in /dev/stdin and /dev/fd/. Raises OSError for
    a path that doesn't exist.
    """
    name = os.fspath(path)
    if name == "/dev/stdin" or name.startswith(("/dev/fd/", "/proc/self/fd/")):
        return
    mode = Path(name).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{name}: this is a pipe or device, not a file; to read from a pipe, pass /dev/stdin")


def _unreadable(message: str, fix: str, *, mark: Mark | None = None) -> Document:
    return Document(None, (Problem("CFG005", (), message, fix, mark or Mark(1, 1)),), None)


class _RejectedError(Exception):
    def __init__(self, message: str, fix: str, mark: Mark) -> None:
        super().__init__(message)
        self.problem = Problem("CFG005", (), message, fix, mark)


class _Composer:
    """Builds nodes from parser events with its own stack, so that nesting can't exhaust Python's.

    Curly quotes are read as straight ones, and reported.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.anchors: dict[str, YamlNode] = {}
        self.open: set[str] = set()
        self.count = 0

    def compose(self, text: str) -> Document:
        try:
            root = self._root(self._events(text))
        except _RejectedError as rejected:
            return Document(None, (*self.problems, rejected.problem), None)
        except yaml.MarkedYAMLError as error:
            mark, message, fix = syntax_error(error, text)
            return _unreadable(message, fix, mark=mark)
        except yaml.reader.ReaderError as error:
            return _control_character(error, text)
        return Document(root.value if root else None, tuple(self.problems), root)

    @staticmethod
    def _events(text: str) -> Iterator[yaml.Event]:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        yield from yaml.parse(text, Loader=loader)

    def _root(self, events: Iterator[yaml.Event]) -> YamlNode | None:
        root: YamlNode | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise _RejectedError(
                    "the file contains more than one YAML document",
                    "Remove this `---`, or keep one organization per file.",
                    _mark(event),
                )
            if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent, yaml.AliasEvent)):
                root = self._node(event, events)
        return root

    def _node(self, first: yaml.Event, events: Iterator[yaml.Event]) -> YamlNode:
        """Compose one node; path-free, because a path is only needed when something is wrong."""
        stack: list[_Frame] = []
        event: yaml.Event = first
        while True:
            done: YamlNode | None = None
            self.count += 1
            if self.count > MAX_NODES:
                raise _RejectedError(
                    "the file contains more than a million values", "Remove repeated aliases.", _mark(event)
                )
            self._check_tag(event, stack)
            if isinstance(event, yaml.AliasEvent):
                done = self._alias(event)
            elif isinstance(event, yaml.ScalarEvent):
                done = self._scalar(event, stack)
            elif isinstance(event, yaml.CollectionStartEvent):
                if len(stack) >= _MAX_DEPTH:
                    raise _RejectedError(
                        f"the value is nested deeper than {_MAX_DEPTH} levels", "Close the brackets.", _mark(event)
                    )
                stack.append(_Frame(event, isinstance(event, yaml.MappingStartEvent)))
                if event.anchor:
                    self.open.add(event.anchor)
            else:  # the end of the innermost collection
                frame = stack.pop()
                done = self._close(frame)
            if done is not None:
                if not stack:
                    return done
                self._add(stack, done)
            event = next(events)

    def _check_tag(self, event: yaml.Event, stack: "list[_Frame]") -> None:
        """Report a tag that sets another type than the value has; `!!str`, `!!map` and `!!seq` can set their own."""
        tag = getattr(event, "tag", None)
        if tag is None or tag == _OWN_TAGS.get(type(event)):
            return
        shown_tag = tag.replace(_YAML_TAG, "!!", 1)
        self.problems.append(
            Problem(
                "CFG005",
                _path(stack, None),
                f"the tag `{shown_tag}` isn't supported in an organization file",
                "Replace it with its value, because hpkit doesn't expand templates."
                if re.match("![A-Z]", tag)
                else "Remove the tag. To make a value a text, quote it.",
                _mark(event),
            )
        )

    def _alias(self, event: yaml.AliasEvent) -> YamlNode:
        mark, name = _mark(event), event.anchor
        if name in self.open:
            raise _RejectedError(
                f"the alias *{name} is inside &{name}, so the value would contain itself",
                f"Move the part that &{name} marks, or write the value in full.",
                mark,
            )
        node = self.anchors.get(name or "")
        if node is None:
            known = ", ".join(f"&{anchor}" for anchor in sorted(self.anchors)) or "none"
            likely = near(name or "", sorted(self.anchors))
            raise _RejectedError(
                f"the alias *{name} has no anchor before it (anchors so far: {known})",
                f"Did you mean `*{likely}`?" if likely else f"Mark the value with &{name} first.",
                mark,
            )
        self.count += size(node)
        return node

    def _scalar(self, event: yaml.ScalarEvent, stack: "list[_Frame]") -> YamlNode:
        mark, text = _mark(event), event.value
        plain = event.implicit[0] and not event.style
        is_key = bool(stack) and stack[-1].mapping and stack[-1].key is None
        value: Any = text
        curly = _CURLY.match(text) if plain else None
        if curly:
            inner = curly[1] or curly[2] or ""
            value = inner if is_key or _needs_quotes(inner) else resolve(inner)
            self._report_curly(text, value, mark, stack, is_key=is_key)
            text = inner
        elif plain and not is_key:
            value = resolve(text)
        has_zero = not is_key and _WITH_ZERO.match(text)
        if plain and not curly and (has_zero or YAML_1_1_BOOLS.match(text)):
            path = _path(stack, text if is_key else None)
            self.problems.append(
                Problem(
                    "CFG002",
                    path,
                    f"without quotes, `{text}` is {'a number in some' if has_zero else 'a boolean in YAML 1.1'} tools "
                    "and text in others",
                    f'Use "{text}", in quotes.',
                    mark,
                )
            )
        node = YamlNode(value, mark, text if plain else None)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _report_curly(self, text: str, value: Any, mark: Mark, stack: "list[_Frame]", *, is_key: bool) -> None:
        straight = written(value, resolve)
        self.problems.append(
            Problem(
                "CFG005",
                _path(stack, value if is_key else None),
                f"{text} {IN_CURLY_QUOTES}",
                f"Rename the key to `{straight}`." if is_key else f"Use `{straight}`.",
                mark,
            )
        )

    def _close(self, frame: "_Frame") -> YamlNode:
        node = frame.node
        node.value = (
            {key: child.value for key, child in node.children.items()}
            if frame.mapping
            else tuple(child.value for child in node.children.values())
        )
        if frame.anchor:
            self.open.discard(frame.anchor)
            self.anchors[frame.anchor] = node
        return node

    def _add(self, stack: "list[_Frame]", node: YamlNode) -> None:
        frame = stack[-1]
        if not frame.mapping:
            frame.node.children[len(frame.node.children)] = node
        elif frame.key is None:
            frame.key = self._key(node, frame, _path(stack, None))
        else:
            self._put(frame, frame.key, node)
            frame.key = None

    def _key(self, node: YamlNode, frame: "_Frame", path: ValuePath) -> tuple[str, Mark]:
        if not isinstance(node.value, str):
            raise _RejectedError(
                "a key must be a plain word, not a list or a map",
                "Use a plain word, or close the map before it with `}`. If this is a template (`{{ … }}`), replace it "
                "with its value, because hpkit doesn't expand templates.",
                node.mark,
            )
        key = node.value
        if key in frame.own:
            first = frame.node.keys[key]
            is_entry = bool(path) and isinstance(path[-1], int) and key == next(iter(frame.node.keys))
            begin = f", or begin another entry of the list here: `- {key}: …`" if is_entry else ""
            self.problems.append(
                Problem(
                    "CFG004",
                    (*path, key),
                    f"the key `{key}` is used twice; the first is on line {first.line}",
                    f"Keep one of the two{begin}.",
                    node.mark,
                )
            )
        return key, node.mark

    @staticmethod
    def _put(frame: "_Frame", key: tuple[str, Mark], node: YamlNode) -> None:
        name, mark = key
        if name != "<<":
            frame.own.add(name)
            frame.node.children[name] = node
            frame.node.keys[name] = mark
            return
        merged = [node] if isinstance(node.value, dict) else list(node.children.values())
        if not merged or not all(isinstance(source.value, dict) for source in merged):
            raise _RejectedError("`<<` requires a map or a list of maps", "Use an anchor of a map.", mark)
        for source in merged:
            for child, value in source.children.items():
                if child not in frame.node.children:
                    frame.node.children[child] = value
                    frame.node.keys[str(child)] = source.keys[str(child)]


class _Frame:
    __slots__ = ("anchor", "key", "mapping", "node", "own")

    def __init__(self, event: yaml.CollectionStartEvent, mapping: bool) -> None:
        self.anchor = event.anchor
        self.mapping = mapping
        self.node = YamlNode(None, _mark(event))
        self.key: tuple[str, Mark] | None = None
        self.own: set[str] = set()


def _mark(event: yaml.Event) -> Mark:
    start = event.start_mark
    return Mark(start.line + 1, start.column + 1) if start else Mark(1, 1)


def _path(stack: list[_Frame], last: str | None) -> ValuePath:
    steps: list[str | int] = []
    for frame in stack:
        if not frame.mapping:
            steps.append(len(frame.node.children))
        elif frame.key is not None:
            steps.append(frame.key[0])
    if last is not None:
        steps.append(last)
    return tuple(steps)


def size(node: YamlNode) -> int:
    """Count the values below a node, so that aliases of aliases can't grow without bound."""
    total, todo = 0, [node]
    while todo:
        total += 1
        if total > MAX_NODES:
            break
        todo.extend(todo.pop().children.values())
    return total


def resolve(text: str) -> Any:
    """Return a plain scalar's value by YAML 1.2's core schema."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.match(text):
        # Python won't convert over 4,300 digits; so long a number is no quantity of anything.
        return int(text) if len(text) <= 40 else float(text)
    if _FLOAT.match(text):
        return float(text)
    if _SPECIAL_FLOAT.match(text):
        return float(text.replace(".", "", 1))
    return text


def _needs_quotes(text: str) -> bool:
    """Return whether a quoted text is text: all but a whole number, which isn't quoted anywhere.

    An account's 12 digits are text.
    """
    return not isinstance(resolve(text), str) and not (_INT.match(text) and len(text) < _ACCOUNT_DIGITS)


def _control_character(error: yaml.reader.ReaderError, text: str) -> Document:
    character = chr(error.character) if isinstance(error.character, int) else str(error.character)
    offset = max(text.find(character), 0)
    mark = Mark(text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)
    return _unreadable(f"the character U+{ord(character):04X} is not allowed in YAML", "Remove it.", mark=mark)
