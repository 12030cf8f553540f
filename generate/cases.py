"""The cases of the rules: organizations that break a rule, and organizations that pass it.

To add a case to tests/stacks/rules/RULE.yaml:

1. Name it under `fails` or `passes`. It is tests/stacks/base.yaml with these changes (`{}`: none):
2. `change` maps paths, written as in findings, to values: replaced, or added; `list[+]` contains items to add.
3. `remove` lists paths. `replace` maps text that occurs once in the base to other text, for changes of the text itself.
4. `finds` lists all findings: `severity`, `path`, `at` (the text at its line and column), `message`, `fix`; and `rule`
   if it is another one.
5. `today` is the date of the validation, if it matters.
6. `file` is the name of the file. `stackFiles` maps the names of stack files to their text. `beside` maps the names of
   other organization files to replacements of the base's text. `files` maps the names of files in `include` or
   `defaults` to their text.
7. `make generate` adds the case, with line and column, to the rule's examples.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml.scalarstring import PlainScalarString

from hpkit.checks import Finding
from hpkit.config import parse, read_file, read_text
from hpkit.config.reading.compose import composed
from hpkit.config.reading.edit import dumped, loaded, remove_value, set_value, steps_of
from hpkit.config.reading.folder import Entry
from hpkit.errors import InputError
from hpkit.project import Loaded, cluster_problems, environments_in, project_root, stack_file_problems

__all__ = ["Case", "Expected", "Patch", "TextFolder", "case_file", "cases", "change", "unchanged"]

# The versions in the base are supported on that day, so that cases don't change over time.
_TODAY = datetime.date(2026, 11, 22)


@dataclass(frozen=True, slots=True)
class TextFolder:
    """A folder of the files with these texts."""

    texts: Mapping[str, str]

    def entries(self, under: str) -> Mapping[str, Entry]:
        """Return the direct contents of a folder within this one."""
        start = f"{under}/" if under else ""
        inside = [name.removeprefix(start).partition("/") for name in self.texts if name.startswith(start)]
        return {first: "folder" if slash else "file" for first, slash, _ in inside}

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of each file."""
        return (self.texts[name].encode() for name in names)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expected(_Strict):
    """An expected finding; at is the text at its line and column."""

    rule: str = ""
    severity: str
    path: str
    at: str = Field(min_length=1)
    message: str
    fix: str


class Patch(_Strict):
    """Changes of a YAML text: points 2 and 3 above."""

    change: dict[str, Any] = {}
    remove: tuple[str, ...] = ()
    replace: dict[str, str] = {}

    def applied(self, base: str, table: Any) -> str:
        """Return base's text with these changes, which a loaded table has; InputError if one doesn't apply."""
        text = base
        if self.change or self.remove:
            documents = deepcopy(_loaded(base))
            change(documents[0], table.get("change", {}), self.remove)
            text = dumped(documents, base)
        for old, new in self.replace.items():
            if (count := text.count(old)) != 1:
                raise InputError(f"`{old}` occurs {count} times instead of once")
            text = text.replace(old, new)
        return text


def change(data: Any, values: dict[str, Any], removed: Sequence[str]) -> None:
    """Change a loaded document; `list[+]` adds the items of a list, a path in removed ends with what is removed."""
    # Paths name what the document has before all changes.
    places = {path: steps_of(data, path.removesuffix("[+]")) for path in values}
    for path, value in values.items():
        # As the case writes it: without the quotes of the old value, and a copy, because cases share maps.
        new = PlainScalarString(value) if type(value) is str else deepcopy(value)
        if path.endswith("[+]"):
            reduce(getitem, places[path], data).extend(new)
        else:
            set_value(data, places[path], new, first=False)
    for path in reversed(removed):
        remove_value(data, steps_of(data, path))


class _Passing(Patch):
    today: datetime.date = _TODAY
    file: str = ""
    stack_files: dict[str, str] = Field(default={}, alias="stackFiles")
    beside: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}


class _Failing(_Passing):
    finds: tuple[Expected, ...] = Field(min_length=1)


class _File(_Strict):
    fails: dict[str, _Failing] = Field(min_length=1)
    passes: dict[str, _Passing] = Field(min_length=1)


@dataclass(frozen=True)
class Case:
    """One organization, and the expected findings. Its texts are made when they are read: there are 1,000 cases."""

    rule: str
    name: str
    patch: _Passing
    expected: tuple[Expected, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether validation must find nothing."""
        return not self.expected

    @property
    def today(self) -> datetime.date:
        """The date of the validation."""
        return self.patch.today

    @property
    def file(self) -> str:
        """The name of the organization file."""
        return self.patch.file or f"{self.rule}.{self.name}.yaml"

    @property
    def stack_files(self) -> dict[str, str]:
        """The texts of stack files, by name."""
        return self.patch.stack_files

    @property
    def files(self) -> dict[str, str]:
        """The texts of included files, by name."""
        return self.patch.files

    @cached_property
    def beside(self) -> dict[str, str]:
        """The texts of other organization files, by name."""
        return {name: _replaced(_base(project_root()), texts) for name, texts in self.patch.beside.items()}

    @cached_property
    def text(self) -> str:
        """The text of the organization file. Raises InputError if a change doesn't apply."""
        if not self.patch.model_fields_set:
            return _base(project_root())
        (table,) = _loaded(_content(self.rule))
        try:
            return self.patch.applied(_base(project_root()), table["passes" if self.passes else "fails"][self.name])
        except InputError as error:
            raise InputError(f"{case_file(self.rule)}: {self.name}: {error}") from None

    def findings(self) -> list[Finding]:
        """Return what `hpkit validate` finds."""
        document = composed(read_text(self.text.encode()), TextFolder(self.files), self.file)
        own = Loaded(self.file, document, parse(document))
        reported = list(own.findings_on(self.today))
        environments = {"acme": environments_in(document)}
        reported += stack_file_problems(
            {file: read_text(text.encode()) for file, text in self.stack_files.items()}, environments
        )
        documents = {file: read_text(text.encode()) for file, text in self.beside.items()}
        others = [Loaded(file, beside, parse(beside)) for file, beside in documents.items()]
        return reported + cluster_problems([*others, own])


def case_file(rule: str) -> str:
    """Return the file with a rule's cases, as contributors name it."""
    return f"tests/stacks/rules/{rule}.yaml"


@lru_cache(maxsize=8)
def _loaded(text: str) -> list[Any]:
    """Return a document to copy, which takes a fifth of the time of loading it."""
    return loaded(text)


@cache
def _base(root: Path) -> str:
    return read_file(root / "tests/stacks/base.yaml").decode()


@cache
def _content(rule: str) -> str:
    return read_file(project_root() / case_file(rule)).decode()


def cases(rule: str) -> list[Case]:
    """Return the cases of a rule, failing ones first, at least one of each type.

    Raises InputError if the file is missing or invalid.
    """
    document = read_text(_content(rule).encode())
    if document.problems:
        raise InputError(f"{case_file(rule)}: {document.problems[0].message}")
    try:
        declared = _File.model_validate(document.data)
    except ValidationError as error:
        raise InputError(f"{case_file(rule)}: {error}") from None
    failing = [
        Case(rule, name, case, tuple(each.model_copy(update={"rule": each.rule or rule}) for each in case.finds))
        for name, case in declared.fails.items()
    ]
    return failing + [Case(rule, name, case) for name, case in declared.passes.items()]


def unchanged(rule: str) -> Case:
    """Return the unchanged base organization, as a case of a rule."""
    return Case(rule, "unchanged", _Passing())


def _replaced(text: str, texts: dict[str, str]) -> str:
    for old, new in texts.items():
        text = text.replace(old, new)
    return text
