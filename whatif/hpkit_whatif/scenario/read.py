"""Reads a scenario: YAML with a position for every error, or CSV, row by row.

It doesn't hold a CSV in memory. Rows are read when needed, so tasks must be in the order of `submit`.
"""

import csv
import heapq
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hpkit.config import require_file
from hpkit.config.messages.suggest import nearest
from hpkit.config.messages.wording import expected, root_errors, shown
from hpkit.config.reading.document import Document, Mark, format_path
from hpkit.config.reading.document import Path as ValuePath
from hpkit.config.reading.load import MAX_BYTES, read_file, read_text
from hpkit.config.schema.contract import inner_types
from hpkit.errors import InputError
from hpkit.text.printable import quoted
from hpkit_whatif.scenario.model import Scenario, TaskSpec, generated

__all__ = ["Located", "Source", "open_scenario"]

_FIRST = 1024
_ALL = (1 << 64) - 1
# Python's replacement of bytes that aren't UTF-8, with the error handler surrogateescape.
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")
_LONGEST: Final = 1_000_000
COLUMNS = tuple(field.alias or name for name, field in TaskSpec.model_fields.items() if name != "placement")
_NEEDED = ("name", "team", "submit", "run")
_WHOLE = ("count", "accelerators", "pods")
_FRACTIONS = ("vCpu", "memoryInGiB")
_FIELD_LIMIT = 100_000
_WEIGHT = re.compile(r"-?[0-9]{1,9}\Z", re.ASCII)


class Names:
    """A set of names that stores 64 bits of each.

    Among a million names, a collision happens in one of 37 million runs.
    """

    __slots__ = ("_count", "_slots")

    def __init__(self) -> None:
        self._slots = array("Q", [0]) * _FIRST
        self._count = 0

    def add(self, name: str) -> bool:
        """Add a name; return whether it's new."""
        key = hash(name) & _ALL or 1
        if not self._put(key):
            return False
        self._count += 1
        if 4 * self._count > 3 * len(self._slots):
            old = self._slots
            self._slots = array("Q", [0]) * (2 * len(old))
            for each in old:
                if each:
                    self._put(each)
        return True

    def _put(self, key: int) -> bool:
        slots = self._slots
        most = len(slots) - 1
        slot = key & most
        while slots[slot]:
            if slots[slot] == key:
                return False
            slot = (slot + 1) & most
        slots[slot] = key
        return True


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file for `lines`; InputError where it cannot be opened."""
    try:
        require_file(path)
        # Python decodes in blocks, and its error wouldn't state the line.
        file = path.open("r", encoding="utf-8-sig", errors="surrogateescape", newline="")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        raise InputError(f"{path}: {(said or str(error)).lower()}") from None
    with file:
        yield file


def lines(path: Path, file: TextIO) -> Iterator[str]:
    """Return an opened file's lines one by one; InputError for the first that is no UTF-8 or too long."""
    # A file that is no text may have no end of a line, and is never read whole.
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST + 1), ""), 1):
        if len(line) > _LONGEST:
            raise InputError(
                f"{path}:{number}: the line is longer than {_LONGEST:,} characters; each task must be on its own line"
            )
        if not line.isascii():
            _reject_no_utf8(path, number, line)
        yield line


def _reject_no_utf8(path: Path, line: int, text: str) -> None:
    """Raise InputError if a byte of a text, which begins in that line of the file, was not UTF-8."""
    match = _NO_UTF8.search(text)
    if match is not None:
        line += text.count("\n", 0, match.start())
        raise InputError(f"{path}:{line}: byte 0x{ord(match[0]) - 0xDC00:02x} is not UTF-8; save the file as UTF-8")


@dataclass(frozen=True, slots=True)
class Located:
    """A task as it was written, and where."""

    spec: TaskSpec
    place: str


@dataclass(frozen=True, slots=True)
class Source:
    """An opened scenario: its contents, and the position of its tasks."""

    file: str
    scenario: Scenario
    document: Document | None

    def place(self, path: ValuePath) -> str:
        """Return the position of a value in the scenario, as file, line and column."""
        mark = self.document.locate(path) if self.document is not None else Mark(1, 1)
        return f"{self.file}:{mark.line}:{mark.column}"

    def tasks(self, *, seed: int | None = None) -> Iterator[Located]:
        """Return all tasks in the order of submission; files are read only as far as needed.

        seed: replaces the generators' own seed, for another draw of the same kind. Raises InputError for an invalid row
        or a duplicate name.
        """
        own = [Located(spec, self.place(("tasks", index))) for index, spec in enumerate(self.scenario.tasks)]
        own.sort(key=_when)
        parts: list[Iterable[Located]] = [own]
        for index, generator in enumerate(self.scenario.generators):
            place = self.place(("generators", index))
            drawn = generated(generator, seed=seed)
            parts.append(Located(spec, place) for spec in drawn)
        folder = Path(self.file).parent
        parts += [read_csv(folder / name) for name in self.scenario.files]
        task_names = Names()
        for located in heapq.merge(*parts, key=_when):
            name = located.spec.name
            if not task_names.add(name):
                raise InputError(f"{located.place}: task {quoted(name)} already exists; names must be unique")
            yield located


def _when(located: Located) -> float:
    return located.spec.submit


def open_scenario(file: str | os.PathLike[str]) -> Source:
    """Open a scenario: a YAML file, or a CSV of tasks.

    Raises InputError for a file that can't be read, with all its errors.
    """
    name = os.fspath(file)
    if name.lower().endswith(".csv"):
        with opened(Path(name)):
            pass
        return Source(name, Scenario(files=(Path(name).name,)), None)
    if Path(name).is_dir():
        raise InputError(f"{name}: a directory; use a scenario in it")
    content = read_file(name)
    if len(content) > MAX_BYTES:
        raise InputError(
            f"{name}: larger than the {MAX_BYTES // 2**20} MiB limit for YAML; write the tasks as CSV, and pass that "
            "file alone or under `files`"
        )
    document = read_text(content)
    problems = [
        _line(name, each.mark or document.locate(each.path), each.message, each.fix) for each in document.problems
    ]
    if not problems and not isinstance(document.data, dict):
        said = "is empty" if document.data is None else "doesn't contain a map"
        problems = [_line(name, document.locate(()), f"the file {said}", "Start the file with `tasks:` and a list.")]
    if problems:
        raise InputError("\n".join(problems))
    if "organization" in document.data:
        raise InputError(f"{name}: an organization file; pass a scenario, and the organization's stack with --stack")
    data = {key: value for key, value in document.data.items() if not key.startswith("x-")}
    try:
        scenario = Scenario.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InputError("\n".join(_problems(name, document, error))) from None
    source = Source(name, scenario, document)
    _reject_nothing(source)
    for index, path in enumerate(scenario.files):
        if not (Path(name).parent / path).is_file():
            raise InputError(f"{source.place(('files', index))}: {path}: no such file next to the scenario")
    return source


def _reject_nothing(source: Source) -> None:
    scenario = source.scenario
    if scenario.until == 0:
        raise InputError(
            f"{source.place(('until',))}: until is 0, so nothing would happen. Omit it, or set a duration."
        )
    if not (scenario.tasks or scenario.generators or scenario.files):
        raise InputError(f"{source.place(())}: the scenario has no task. Add `tasks`, `generators` or `files`.")
    for index, generator in enumerate(scenario.generators):
        if not generator.last:
            place = source.place(("generators", index, "last"))
            raise InputError(f"{place}: last is 0, so no task would be submitted. Set a duration.")
        if not any(hour * day for hour in generator.pattern.hours for day in generator.pattern.days):
            place = source.place(("generators", index, "pattern"))
            raise InputError(
                f"{place}: all hours or all days have weight 0, so no task would be submitted. Set at least one weight."
            )


def _line(file: str, mark: Mark, message: str, fix: str) -> str:
    return f"{file}:{mark.line}:{mark.column}: {message}. {fix}".rstrip()


def _problems(file: str, document: Document, error: ValidationError) -> Iterator[str]:
    details: dict[ValuePath, list[ErrorDetails]] = {}
    for detail in root_errors(error.errors(include_url=False, include_context=True)):
        details.setdefault(tuple(step for step in detail["loc"] if not _is_branch(step)), []).append(detail)
    for path, found in details.items():
        yield _message(file, document, path, found)


def _message(file: str, document: Document, path: ValuePath, details: list[ErrorDetails]) -> str:
    """Describe the problem of a value; details: one, or for a union, one per alternative."""
    parent = format_path(path[:-1], document.data) or "the file"
    error_type = details[0]["type"]
    if error_type == "extra_forbidden":
        known_keys = _field_names(path[:-1])
        near = nearest(str(path[-1]), known_keys)
        fix = f"Did you mean `{near}`?" if near else f"Known keys: {', '.join(known_keys)}."
        return _line(file, document.locate(path, key=True), f"unknown key `{path[-1]}` in {parent}", fix)
    if error_type == "missing":
        return _line(file, document.locate(path[:-1]), f"`{path[-1]}` is missing in {parent}", f"Add `{path[-1]}: …`.")
    if error_type == "duration":
        return _line(file, document.locate(path), f"{path[-1]}: {details[0]['msg']}", "")
    value = shown(document, path, details[0]["input"])
    return _line(file, document.locate(path), f"{format_path(path, document.data)} is {value}{_wants(details)}", "")


def _wants(details: list[ErrorDetails]) -> str:
    begin = "; it must be "
    each = [expected(detail) for detail in details]
    return begin + " or ".join(dict.fromkeys(one.removeprefix(begin) for one in each)) if each[1:] else each[0]


def _is_branch(step: str | int) -> bool:
    """Return whether a path step isn't in the file but a branch of a union, which pydantic names by its type."""
    return step in ("str", "int")


def _field_names(path: ValuePath) -> tuple[str, ...]:
    current: Any = Scenario
    for step in path:
        parts = inner_types(current)
        models = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
        if models:
            fields = models[0].model_fields.items()
            current = next((field.annotation for name, field in fields if step in (field.alias, name)), None)
        else:
            current = next((part.__args__[0] for part in parts if getattr(part, "__args__", None)), None)
    models_there = [part for part in inner_types(current) if isinstance(part, type) and issubclass(part, BaseModel)]
    return tuple(field.alias or name for model in models_there for name, field in model.model_fields.items())


# CSV


def read_csv(path: Path) -> Iterator[Located]:
    """Return the tasks of a CSV file one by one; InputError with the line of the first that is wrong."""
    csv.field_size_limit(_FIELD_LIMIT)
    with opened(path) as file:
        rows = csv.reader(lines(path, file), strict=True)
        columns = _header(path, rows)
        before, line_before = 0.0, 1
        while True:
            line = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(f"{path}:{line}: {error}") from None
            if not row:
                continue
            spec = _row(f"{path}:{line}", columns, row)
            if spec.submit < before:
                raise InputError(
                    f"{path}:{line}: submit {spec.submit:g}s comes before that of line {line_before}, {before:g}s; "
                    "sort the file by submit"
                )
            before, line_before = spec.submit, line
            yield Located(spec, f"{path}:{line}")


def _header(path: Path, rows: Iterator[list[str]]) -> list[str]:
    try:
        columns = [column.strip() for column in next(rows)]
    except StopIteration:
        raise InputError(f"{path}:1: the file is empty; its first line is {','.join(COLUMNS)}") from None
    except csv.Error as error:
        raise InputError(f"{path}:1: {error}") from None
    for column in columns:
        if column not in COLUMNS:
            near = nearest(column, COLUMNS) if column else None
            fix = f"did you mean {near}?" if near else f"known: {', '.join(COLUMNS)}"
            raise InputError(f"{path}:1: unknown column `{column}`; {fix}")
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        raise InputError(f"{path}:1: column {missing[0]} is missing; there are {', '.join(columns)}")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputError(f"{path}:1: column {twice[0]} exists twice")
    return columns


def _row(place: str, columns: list[str], row: list[str]) -> TaskSpec:
    if len(row) != len(columns):
        raise InputError(f"{place}: {len(row)} values for {len(columns)} columns")
    data: dict[str, Any] = {column: value for column, text in zip(columns, row, strict=True) if (value := text.strip())}
    for column in _NEEDED:
        if column not in data:
            more = "; write `forever` for a task that never ends" if column == "run" else ""
            raise InputError(f"{place}: {column} is empty: every row needs a value{more}")
    if data["run"] == "forever":
        del data["run"]
    _to_numbers(place, data)
    if _WEIGHT.match(data.get("priority", "")):
        data["priority"] = int(data["priority"])
    try:
        return TaskSpec.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_context=True)[0]
        column = str(detail["loc"][0])
        problem = (
            f": {detail['msg']}"
            if detail["type"] == "duration"
            else f" is {quoted(str(data[column]))}{expected(detail)}"
        )
        raise InputError(f"{place}: {column}{problem}") from None


def _to_numbers(place: str, data: dict[str, Any]) -> None:
    for columns, number_type, type_name in ((_WHOLE, int, "a whole number"), (_FRACTIONS, float, "a number")):
        for column in columns:
            if column in data:
                try:
                    data[column] = number_type(data[column])
                except ValueError:
                    raise InputError(f"{place}: {column} is {quoted(data[column])} and must be {type_name}") from None
