"""The cases of the rules: organizations that break one, and organizations that do not.

How to add a case to tests/stacks/rules/RULE.yaml:

1. Name it under `fails` or `passes`. It is tests/stacks/base.yaml with these changes (`{}`: none):
2. `change` maps paths, written as findings write them, to values: replaced, or added; `list[+]` takes items to add.
3. `remove` lists paths. `replace` maps text that the base has once to other text, for what is no matter of values.
4. `finds` lists all that is found: `severity`, `path`, `at` (the text at its line and column), `message`, `fix`; and
   `rule` where it is another one.
5. `today` is the day on which it is looked at, where it matters.
6. `file` is the name of the file, and `stackFiles` are stack files beside it, name → text, where those matter; `beside`
   are organization files beside it, name → what they have in place of which text of the base; `files` are those that it
   names in `include` or `defaults`, name → text.
7. `make generate` puts the case, with line and column, among the rule's examples.
"""

import datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hpkit.checks import Finding
from hpkit.config import parse, read_file, read_text
from hpkit.config.compose import composed
from hpkit.config.edit import Layout, patched
from hpkit.config.folder import ChangedFolder
from hpkit.errors import InputError
from hpkit.project import Loaded, cluster_problems, environments_in, project_root, stack_file_problems

__all__ = ["Case", "Expected", "Patch", "case_file", "cases", "unchanged"]

# What the base names is supported on that day, so that no case changes as time goes by.
_TODAY = datetime.date(2026, 11, 22)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expected(_Strict):
    """One finding that a case is to have; at is the text that its line and column point to."""

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

    def applied(self, base: Layout, table: Layout, *place: str) -> str:
        """Return base's text with these changes, which a table has at a place; InputError where one doesn't fit."""
        edits = [base.remove(path) for path in self.remove]
        edits += [base.replace(old, new) for old, new in self.replace.items()]
        for path in self.change:
            edits += base.set(path, table.value(*place, "change", path))
        return patched(base.text, edits)


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


class Case(_Strict):
    """One organization, and the expected findings."""

    rule: str
    name: str
    passes: bool
    text: str
    expected: tuple[Expected, ...]
    today: datetime.date
    file: str
    stack_files: dict[str, str]
    beside: dict[str, str]
    files: dict[str, str]

    def findings(self) -> list[Finding]:
        """Return what `hpkit validate` finds."""
        document = composed(read_text(self.text.encode()), ChangedFolder(self.files), self.file)
        reported = list(Loaded(self.file, document, parse(document)).findings_on(self.today))
        environments = {"acme": environments_in(document)}
        reported += stack_file_problems(
            {file: read_text(text.encode()) for file, text in self.stack_files.items()}, environments
        )
        files = {**self.beside, self.file: self.text}
        documents = {file: read_text(text.encode()) for file, text in files.items()}
        return reported + cluster_problems(
            [Loaded(file, stack_document, parse(stack_document)) for file, stack_document in documents.items()]
        )


def case_file(rule: str) -> str:
    """Return the file that holds a rule's cases, as people of this repository name it."""
    return f"tests/stacks/rules/{rule}.yaml"


@cache
def _base(root: Path) -> Layout:
    return Layout(read_file(root / "tests/stacks/base.yaml").decode())


def cases(rule: str) -> list[Case]:
    """Return the cases of a rule, those that fail first, at least one of each kind.

    Raises InputError for a file that is missing, or in which something cannot be understood.
    """
    content = read_file(project_root() / case_file(rule))
    try:
        return _read(rule, content)
    except (InputError, ValidationError) as error:
        raise InputError(f"{case_file(rule)}: {error}") from None


def unchanged(rule: str) -> Case:
    """Return the organization that all cases change, as a case of a rule."""
    return _case(rule, "unchanged", _Passing(), _base(project_root()))


def _read(rule: str, content: bytes) -> list[Case]:
    document = read_text(content)
    if document.problems:
        raise InputError(document.problems[0].message)
    declared = _File.model_validate(document.data)
    layout = Layout(content.decode())
    failing = [_case(rule, name, case, layout, case.finds) for name, case in declared.fails.items()]
    return failing + [_case(rule, name, case, layout) for name, case in declared.passes.items()]


def _case(rule: str, name: str, fragment: _Passing, layout: Layout, finds: tuple[Expected, ...] = ()) -> Case:
    section, base = "fails" if finds else "passes", _base(project_root())
    try:
        text = fragment.applied(base, layout, section, name)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    expected = tuple(each.model_copy(update={"rule": each.rule or rule}) for each in finds)
    return Case(
        rule=rule,
        name=name,
        passes=not finds,
        text=text,
        expected=expected,
        today=fragment.today,
        file=fragment.file or f"{rule}.{name}.yaml",
        stack_files=fragment.stack_files,
        files=fragment.files,
        beside={name: _replaced(base.text, texts) for name, texts in fragment.beside.items()},
    )


def _replaced(text: str, texts: dict[str, str]) -> str:
    for old, new in texts.items():
        text = text.replace(old, new)
    return text
