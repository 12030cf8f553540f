"""Which stacks a change touches: from changed files to stacks, each as it is at the base and at the head."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click

from hpkit.catalog import PLACEHOLDER_ACCOUNTS
from hpkit.catalog.prices import PRICE_FILE
from hpkit.changes.plan_diff import Change
from hpkit.changes.review import FileInput, FileVersion, StackInput, StackVersion
from hpkit.changes.review.build import plan_of
from hpkit.changes.review.setting_risks import StackSettings
from hpkit.checks import Finding
from hpkit.cli.organization.review_git import Base, changed_files, content_at, files_at
from hpkit.config import Document, parse, read_text
from hpkit.config.reading.compose import composed
from hpkit.config.reading.folder import GitFolder
from hpkit.errors import InputError, SelectionError
from hpkit.plan.model import Plan
from hpkit.project import (
    Loaded,
    cluster_problems,
    environments_in,
    load,
    organization_files,
    parts_of_stack,
    policy_file,
    pulumi_project,
    require_names,
    stack_file_problems,
    without_parts,
)

__all__ = ["Scope", "scope_of"]

# A change here, or in the program that Pulumi.yaml names, affects every stack; tests and docs affect none.
_CODE = ("policies/", "Pulumi.yaml", "pyproject.toml", "requirements.")
_NO_CODE = ("tests/", "docs/", ".")
_STACKS = "stacks"


@dataclass(frozen=True, slots=True)
class Scope:
    """What to review: files, stacks, and notes for readers about the selection.

    before, after: each organization file as read at the base and at the head, by its name in the project.
    """

    files: tuple[FileInput, ...]
    stacks: tuple[StackInput, ...]
    notes: tuple[str, ...]
    before: Mapping[str, Loaded]
    after: Mapping[str, Loaded]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a stack is described: organization and environment."""

    organization: str
    environment: str

    @property
    def file(self) -> str:
        return f"{_STACKS}/{self.organization}.yaml"


class _Tree:
    """The project at the base or at the head: its organization files, read once, and its stacks.

    other_files: those that aren't organization files; others: findings in them; settings: the content of stack files,
    by stack.
    """

    def __init__(self, loaded: Sequence[Loaded], other_files: Mapping[str, Document]) -> None:
        self.loaded = {each.file: each for each in loaded}
        self.other_files = other_files
        documents = {each.file: each.document for each in loaded}
        known = {Path(name).stem: environments_in(document) for name, document in documents.items()}
        self._between = findings = [*stack_file_problems(other_files, known), *cluster_problems(loaded)]
        self.others = {file: tuple(each for each in findings if each.file == file) for file in other_files}
        stack_files = {_stack_of(file): document for file, document in other_files.items() if file.endswith(".yaml")}
        self.settings = {name: _settings(document) for name, document in stack_files.items()}
        self.stacks: dict[str, _Place] = {}
        for name, document in stack_files.items():
            place = _stated(name, document)
            if place is not None:
                self.stacks[name] = place
        described = set(self.stacks.values())
        for file, document in documents.items():
            for environment in environments_in(document):
                place = _Place(Path(file).stem, environment)
                if place not in described:
                    self.stacks.setdefault(f"{place.organization}-{environment}", place)
        self._known = {
            (file, environment) for file, document in documents.items() for environment in environments_in(document)
        }

    def file(self, name: str) -> FileVersion | None:
        """Return an organization file's plans and findings. Its rules run here, because most files aren't affected."""
        loaded = self.loaded.get(name)
        if loaded is None:
            return None
        return FileVersion(loaded.plans, (*loaded.findings, *_findings_for(loaded, self._between)))

    def version(self, stack: str) -> StackVersion | None:
        place = self.stacks.get(stack)
        file = self.file(place.file) if place is not None else None
        if place is None or file is None:
            return None
        # A file that cannot be read at all still has its stacks: they must not look removed.
        readable = any(file == place.file for file, _ in self._known)
        if readable and (place.file, place.environment) not in self._known:
            return None
        return StackVersion(file, place.environment)


def scope_of(folder: Path, base: Base, requested: tuple[str, ...]) -> Scope:
    """Return the stacks that differ from base, or the wanted ones.

    Raises click.UsageError for a wanted stack that neither side has.
    """
    changed = changed_files(folder, base)
    after = _here(folder)
    before = _at_base(folder, base, changed, after)
    code = _code(changed, folder)
    why = _touched(changed, code, before, after)
    notes: list[str] = []
    if code:
        shown = f"{code[0]} and {len(code) - 1} more" if len(code) > 1 else code[0]
        notes.append(
            f"code changed ({shown}), which affects every stack. Both sides are planned with the head's code, so "
            "only a preview shows the effect of the code change"
        )
    if requested:
        stack_names = sorted(before.stacks.keys() | after.stacks.keys())
        for name in requested:
            if name not in stack_names:
                raise click.UsageError(f"neither side has the stack {name} (known: {', '.join(stack_names) or 'none'})")
        why = {name: why.get(name, "selected with --stack") for name in requested}
    stacks = tuple(_stack(name, reason, before, after, code=bool(code)) for name, reason in sorted(why.items()))
    names = sorted({each.file for each in stacks} | {name for name in changed if name in before.loaded | after.loaded})
    names = [name for name in names if not requested or any(each.file == name for each in stacks)]
    files = [FileInput(name, before.file(name), after.file(name)) for name in names]
    for name in sorted(before.others.keys() | after.others.keys()):
        was, now = (tree.others.get(name, ()) for tree in (before, after))
        touched = _stack_of(name) in why or (not requested and (name in changed or was != now))
        if touched and (was or now):
            files.append(FileInput(name, *(FileVersion({}, side) if side else None for side in (was, now))))
    return Scope(tuple(files), stacks, tuple(notes), before.loaded, after.loaded)


def _stack(name: str, why: str, before: _Tree, after: _Tree, *, code: bool) -> StackInput:
    place = after.stacks.get(name) or before.stacks[name]
    settings: Change[StackSettings] = Change(before.settings.get(name), after.settings.get(name))
    was, now = before.version(name), after.version(name)
    if _left_placeholder(plan_of(was), plan_of(now)):
        was, why = None, f"{why}; not deployed yet, since its account was a placeholder"
    return StackInput(name, place.file, why, was, now, settings, code)


def _left_placeholder(before: Plan | None, after: Plan | None) -> bool:
    """Return whether a stack stops using the placeholder account, in which nothing can exist on AWS."""
    accounts = [plan.spec.account if plan is not None else None for plan in (before, after)]
    return accounts[0] in PLACEHOLDER_ACCOUNTS and accounts[1] not in (None, *PLACEHOLDER_ACCOUNTS)


def _code(changed: Sequence[str], folder: Path) -> list[str]:
    """Return the changed files that can affect every stack.

    A program in a folder of its own is that folder. A program in the project's folder, which is what `hpkit init`
    writes, can import any module of the project.
    """
    try:
        program = PurePosixPath(pulumi_project(folder)[1])
    except InputError:
        program = PurePosixPath()
    program = program.parent if program.suffix == ".py" else program

    def is_code(name: str) -> bool:
        if name.startswith(_CODE):
            return True
        if program != PurePosixPath():
            return PurePosixPath(name).is_relative_to(program)
        return name.endswith(".py") and not name.startswith(_NO_CODE)

    return [name for name in changed if is_code(name)]


def _touched(changed: Sequence[str], code: Sequence[str], before: _Tree, after: _Tree) -> dict[str, str]:
    """Return stack → why it is touched; the most specific reason counts."""
    why: dict[str, str] = {}
    everything = before.stacks.keys() | after.stacks.keys()
    if code:
        why = dict.fromkeys(everything, "code changed")
    for name in changed:
        for tree in (before, after):
            for stack, place in tree.stacks.items():
                file = tree.loaded.get(place.file)
                if place.file == name or (file is not None and file.document.is_made_of(name)):
                    why[stack] = f"{name} changed"
                elif policy_file(place.organization) == name:
                    why.setdefault(stack, f"{name} changed")
        stack = name.removeprefix(f"{_STACKS}/Pulumi.").removesuffix(".yaml")
        if name == f"{_STACKS}/Pulumi.{stack}.yaml" and stack in everything:
            why.setdefault(stack, f"{name} changed")
    return dict.fromkeys(everything, f"{PRICE_FILE} changed") | why if PRICE_FILE in changed else why


def _at_base(folder: Path, base: Base, changed: Collection[str], after: _Tree) -> _Tree:
    """Read the project at the base; a file that hasn't changed is the head's, which is read and checked once."""
    loaded, other_files = [], {}
    at_base = GitFolder(folder, base.commit, _STACKS)
    for name in files_at(folder, base, _STACKS):
        same = after.loaded.get(name) if name not in changed else None
        if same is not None and not any(map(same.document.is_made_of, changed)):
            loaded.append(same)
            continue
        if name not in changed and name in after.other_files:
            other_files[name] = after.other_files[name]
            continue
        content = content_at(folder, base, name) if name.endswith((".yaml", ".yml")) else None
        if content is None:
            continue
        document = read_text(content)
        if Path(name).name.startswith("Pulumi.") or name.endswith(".yml"):
            other_files[name] = document
        else:
            document = composed(document, at_base, Path(name).name, f"{_STACKS}/")
            loaded.append(Loaded(name, document, parse(document)))
    return _Tree(without_parts(loaded), other_files)


def _here(folder: Path) -> _Tree:
    loaded = without_parts([load(file, shown_name=f"{_STACKS}/{file.name}") for file in organization_files()])
    stacks = folder / _STACKS
    files = sorted([*stacks.glob("Pulumi.*.yaml"), *stacks.glob("*.yml")])
    return _Tree(loaded, {f"{_STACKS}/{file.name}": load(file).document for file in files})


def _findings_for(loaded: Loaded, found: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(each for each in found if each.file == loaded.file or loaded.document.is_made_of(each.file))


def _stack_of(file: str) -> str:
    """Return the stack that a stack file is of, by its name."""
    return Path(file).stem.removeprefix("Pulumi.")


def _settings(document: Document) -> StackSettings:
    """Return a stack file's content except for the names of organization and environment, which locate the file."""
    data = document.data if isinstance(document.data, dict) else {}
    config = data.get("config")
    config = config if isinstance(config, dict) else {}
    others = {str(key): value for key, value in data.items() if key != "config"}
    return others | {str(key): value for key, value in config.items() if not str(key).startswith("hpkit:")}


def _stated(stack: str, document: Document) -> _Place | None:
    """Return the settings in a stack's own file, completed by the stack's name as the program does.

    Raises InputError for what the program rejects: a path instead of a name.
    """
    data = document.data.get("config") if isinstance(document.data, dict) else None
    config = data if isinstance(data, dict) else {}
    names = parts_of_stack(stack, config)
    if not all(names):
        return None
    try:
        require_names(stack, *names)
    except SelectionError as error:
        raise InputError(str(error)) from None
    return _Place(*names)
