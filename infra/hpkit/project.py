"""The project on disk: which files a stack's name means, what is wrong with them, and the plan of each environment."""

import datetime
import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from hpkit.checks import Finding, check
from hpkit.config import Document, Organization, Parsed, parse, read_file, read_text
from hpkit.config.base import is_name
from hpkit.config.chart import chart_problems
from hpkit.config.document import Mark, Problem
from hpkit.errors import InputError, SelectionError
from hpkit.plan.derive import derive, derive_all
from hpkit.plan.model import Plan

__all__ = [
    "Loaded",
    "environments_in",
    "is_local",
    "load",
    "load_stack",
    "organization_files",
    "project_root",
    "require_names",
    "select",
    "split_stack",
    "stack_file_findings",
    "stack_file_problems",
    "today",
]


@dataclass(frozen=True)
class Loaded:
    """One organization file as it was read; environment narrows it to one stack."""

    file: str
    document: Document
    parsed: Parsed
    environment: str | None = None

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        """Environment → its plan, derived once; empty where the file's form is not right."""
        organization = self.parsed.organization
        if organization is None:
            return {}
        if self.environment is None:
            return derive_all(organization)
        there = self.environment in organization.environments
        return {self.environment: derive(organization, self.environment)} if there else {}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding of the file by today's date."""
        return self.findings_on(today())

    def findings_on(self, day: datetime.date) -> tuple[Finding, ...]:
        """Return every finding of the file on a day; for one stack, without those of other environments."""
        parsed = self.parsed
        if parsed.organization is not None:
            charts = chart_problems(project_root(), parsed.organization)
            parsed = replace(parsed, problems=(*parsed.problems, *charts, *self._file_name(parsed.organization)))
        found = check(parsed, self.plans, file=self.file, today=day)
        own = f"environments.{self.environment}"
        return tuple(
            finding
            for finding in found
            if self.environment is None
            or not finding.path.startswith("environments.")
            or f"{finding.path}.".startswith(f"{own}.")
        )

    def _file_name(self, organization: Organization) -> Iterator[Problem]:
        """Compare the name of a file in stacks/, by which stacks find it, with the organization's."""
        file, name = Path(self.file), organization.organization
        if file.stem != name and file.resolve().parent == project_root() / "stacks":
            yield Problem(
                "CFG007",
                ("organization",),
                f"the organization is {name}, and its file {file.name}: the stack {name}-{{environment}} looks for "
                f"stacks/{name}.yaml",
                f"Write `{file.stem}`, or call the file {name}.yaml.",
            )


def today() -> datetime.date:
    """Return the day by which files are judged, in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date()


def project_root() -> Path:
    """Return the folder that holds Pulumi.yaml, from here upward; here when there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    return here


def is_local(environment: Mapping[str, str]) -> bool:
    """Say whether the AWS SDKs are led to an endpoint on this machine: the local cloud, by its variables."""
    host = urlsplit(environment.get("AWS_ENDPOINT_URL", "")).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def organization_files() -> list[Path]:
    """Return all organization files of the project, sorted."""
    folder = project_root() / "stacks"
    return sorted(file for file in folder.glob("*.yaml") if not file.name.startswith("Pulumi."))


def load(file: str | os.PathLike[str], environment: str | None = None) -> Loaded:
    """Read one file; whatever is wrong with it, up to its absence, becomes a problem of the result."""
    # Files of the project are shown as their folder's users would type them, others as they were given.
    inside = Path(file).is_absolute() and Path(file).is_relative_to(Path.cwd())
    shown = os.path.relpath(file) if inside else os.fspath(file)
    try:
        document = read_text(read_file(file))
    except InputError as error:
        what = str(error).removeprefix(f"{os.fspath(file)}: ")
        problem = Problem("CFG005", (), what, "Name a file that can be read.", Mark(1, 1))
        document = Document(None, (problem,), None)
    return Loaded(shown, document, parse(document), environment)


def load_stack(name: str) -> Loaded:
    """Read the file of a stack, narrowed to its environment; raises SelectionError when there is no such stack."""
    folder = project_root() / "stacks"
    settings = folder / f"Pulumi.{name}.yaml"
    stated = _stated(settings) if settings.is_file() else {}
    by_name = split_stack(name) if not {"organization", "environment"} <= stated.keys() else ("", "")
    organization = stated.get("organization", by_name[0])
    environment = stated.get("environment", by_name[1])
    require_names(name, organization, environment)
    file = folder / f"{organization}.yaml"
    if not file.is_file():
        known = ", ".join(path.stem for path in organization_files()) or "none"
        raise SelectionError(f"the stack {name} needs {os.path.relpath(file)}, which is not there (known: {known})")
    loaded = load(file, environment)
    known_environments = environments_in(loaded.document)
    if known_environments and environment not in known_environments:
        raise SelectionError(
            f"{os.path.relpath(file)} has no environment `{environment}` (it has {', '.join(known_environments)})"
        )
    return loaded


def select(files: Iterable[str], stacks: Iterable[str]) -> list[Loaded]:
    """Return the files named, the stacks named, or the whole project.

    Raises SelectionError when both are named, when a stack has no file, or when there is nothing.
    """
    files, stacks = list(dict.fromkeys(files)), list(dict.fromkeys(stacks))
    if files and stacks:
        raise SelectionError("name files or stacks, not both")
    if stacks:
        return [load_stack(name) for name in stacks]
    found = [Path(file) for file in files] or organization_files()
    if not found:
        raise SelectionError(
            f"no organization file in {project_root() / 'stacks'}; name one, or begin with a copy of an example"
        )
    return [load(file) for file in found]


def split_stack(name: str) -> tuple[str, str]:
    """Return organization and environment of a stack by its name, split at the last `-`; raises SelectionError."""
    organization, dash, environment = name.rpartition("-")
    if not dash or not organization or not environment:
        raise SelectionError(f"`{name}` is not a stack's name; write <organization>-<environment>")
    return organization, environment


def require_names(stack: str, organization: str, environment: str) -> None:
    """Raise SelectionError unless a stack's organization and environment are names: a path leads to other files.

    What is reviewed and validated are the files in stacks/; a stack must not be made of another.
    """
    for key, value in (("organization", organization), ("environment", environment)):
        if not is_name(value):
            raise SelectionError(
                f"the stack {stack} has hpkit:{key} `{value}`, which is no name: write small letters, digits and "
                f"hyphens, as in `hpkit:{key}: acme`; the file is stacks/<organization>.yaml"
            )


def stack_file_findings(loaded: Iterable[Loaded]) -> list[Finding]:
    """Return what is wrong with the project's stack files, given all of its organization files."""
    known = {Path(each.file).stem: environments_in(each.document) for each in loaded}
    found = []
    for settings in sorted((project_root() / "stacks").glob("Pulumi.*.yaml")):
        found += stack_file_problems(os.path.relpath(settings), read_text(read_file(settings)), known)
    return found


def stack_file_problems(file: str, document: Document, known: Mapping[str, list[str]]) -> list[Finding]:
    """Return what is wrong with one stack file; known maps each organization to its environments."""
    wrong = _wrong_stack_file(Path(file).name, document, known)
    if wrong is None:
        return []
    mark, message, fix = wrong
    return [Finding("CFG008", "error", "", file, mark.line, mark.column, message, fix)]


def _wrong_stack_file(file: str, document: Document, known: Mapping[str, list[str]]) -> tuple[Mark, str, str] | None:
    if document.problems:
        first = document.problems[0]
        return first.mark or Mark(1, 1), first.message, first.fix
    stated, name = _keys_of(document), file.removeprefix("Pulumi.").removesuffix(".yaml")
    by_name = name.rpartition("-")
    organization = stated.get("organization", by_name[0])
    environment = stated.get("environment", by_name[2])
    key = f"hpkit:{'environment' if organization in known else 'organization'}"
    mark = document.locate(("config", key), key=True)
    if organization not in known:
        said = f"its organization `{organization}`" if organization else "it names no organization, and its name"
        there = ", ".join(f"`{each}`" for each in sorted(known))
        return (
            mark,
            f"{said} is that of no file in stacks/",
            f"Write under config `{key}: …` with one of {there}; or remove the file.",
        )
    if known[organization] and environment not in known[organization]:
        there = ", ".join(f"`{each}`" for each in known[organization])
        message = f"stacks/{organization}.yaml has no environment `{environment}`"
        return mark, message, f"Write under config `{key}: …` with one of {there}; or remove the file."
    return None


def _stated(settings: Path) -> dict[str, str]:
    """Return what a stack's own file says of organization and environment; raises SelectionError if it is broken."""
    document = read_text(read_file(settings))
    if document.problems:
        problem = document.problems[0]
        mark = problem.mark or Mark(1, 1)
        place = f"{os.path.relpath(settings)}:{mark.line}:{mark.column}"
        raise SelectionError(f"{place}: {problem.message}. {problem.fix}")
    return _keys_of(document)


def _keys_of(document: Document) -> dict[str, str]:
    data = document.data
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(config, dict):
        return {}
    keys = {"hpkit:organization": "organization", "hpkit:environment": "environment"}
    return {short: config[key] for key, short in keys.items() if isinstance(config.get(key), str)}


def environments_in(document: Document) -> list[str]:
    """Return the names of the environments that a text has, whatever else is wrong with it."""
    environments = document.data.get("environments") if isinstance(document.data, dict) else None
    return sorted(environments) if isinstance(environments, dict) else []
