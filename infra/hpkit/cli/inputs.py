"""Which files a command means, and what they say."""

import os
from dataclasses import dataclass
from pathlib import Path

import click

from hpkit.config import Document, Parsed, parse, read_file, read_text
from hpkit.config.document import Mark, Problem
from hpkit.errors import InputError

__all__ = ["Loaded", "load", "organization_files", "project_root", "resolve", "split_stack"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """One organization file as it was read; environment narrows it to one stack."""

    file: str
    document: Document
    parsed: Parsed
    environment: str | None = None


def project_root() -> Path:
    """Return the folder that holds Pulumi.yaml, from here upward; here when there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    return here


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


def resolve(files: tuple[str, ...], stacks: tuple[str, ...]) -> list[Loaded]:
    """Return what a command is to look at: the files named, the stacks named, or the whole project.

    Raises click.UsageError (exit 2) when both are named, when a stack has no file, or when there is nothing.
    """
    if files and stacks:
        raise click.UsageError("name files or stacks, not both")
    if stacks:
        return [_stack(name) for name in dict.fromkeys(stacks)]
    found = [Path(file) for file in dict.fromkeys(files)] or organization_files()
    if not found:
        raise click.UsageError(
            f"no organization file in {project_root() / 'stacks'}; name one, or begin with a copy of an example"
        )
    return [load(file) for file in found]


def split_stack(name: str) -> tuple[str, str]:
    """Return organization and environment of a stack by its name, split at the last `-`."""
    organization, dash, environment = name.rpartition("-")
    if not dash or not organization or not environment:
        raise click.UsageError(f"`{name}` is not a stack's name; write <organization>-<environment>")
    return organization, environment


def _stack(name: str) -> Loaded:
    folder = project_root() / "stacks"
    settings = folder / f"Pulumi.{name}.yaml"
    stated = _stated(settings) if settings.is_file() else {}
    by_name = split_stack(name) if not {"organization", "environment"} <= stated.keys() else ("", "")
    organization = stated.get("organization", by_name[0])
    environment = stated.get("environment", by_name[1])
    file = folder / f"{organization}.yaml"
    if not file.is_file():
        known = ", ".join(path.stem for path in organization_files()) or "none"
        raise click.UsageError(f"the stack {name} needs {os.path.relpath(file)}, which is not there (known: {known})")
    loaded = load(file, environment)
    known_environments = _environments(loaded.document)
    if known_environments and environment not in known_environments:
        raise click.UsageError(
            f"{os.path.relpath(file)} has no environment `{environment}` (it has {', '.join(known_environments)})"
        )
    return loaded


def _stated(settings: Path) -> dict[str, str]:
    """Return what a stack's own file says of organization and environment."""
    data = read_text(read_file(settings)).data
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(config, dict):
        return {}
    keys = {"hpkit:organization": "organization", "hpkit:environment": "environment"}
    return {short: config[key] for key, short in keys.items() if isinstance(config.get(key), str)}


def _environments(document: Document) -> list[str]:
    environments = document.data.get("environments") if isinstance(document.data, dict) else None
    return sorted(environments) if isinstance(environments, dict) else []
