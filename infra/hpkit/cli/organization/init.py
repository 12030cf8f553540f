"""`hpkit init`: a project of one's own, written from an example."""

import difflib
import json
import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts
from hpkit.cli.common.tables import console
from hpkit.config.models.base import is_name
from hpkit.errors import SelectionError, ToolError
from hpkit.project import load, pulumi_project
from hpkit.scaffold import EXAMPLES, PIPELINES, Choice, accounts_of, first_environment, project_files
from hpkit.text.formatting import plural

__all__ = ["command"]

_ACCOUNT = re.compile(r"\d{12}")
_OWNER = re.compile(r"^/\*[ \t]+(\S+)", re.MULTILINE)
_DEFAULT_EXAMPLE = "startup"


@click.command("init")
@click.argument("name", required=False)
@click.option("--from", "example", type=click.Choice(EXAMPLES), help="Begin with this example.  [default: startup]")
@click.option("--region", metavar="REGION", help="AWS region.  [default: the example's]")
@click.option(
    "--account",
    "accounts",
    metavar="ID",
    multiple=True,
    help="AWS account, 12 digits; once per account of the example.  [default: placeholders]",
)
@click.option("--public-cidr", metavar="CIDR", help="IP address range from which you connect to the Kubernetes API.")
@click.option("--ci", "pipeline", type=click.Choice(PIPELINES), help="Write this pipeline.  [default: github]")
@click.option("--owner", metavar="TEAM", help="Team that reviews changes, for CODEOWNERS, such as @acme/platform.")
@click.option(
    "--directory", type=click.Path(file_okay=False, path_type=Path), default=".", help="Write to this folder."
)
@click.option("--dry-run", is_flag=True, help="Show the files as a tree, and write nothing.")
@click.option("--diff", "differences", is_flag=True, help="Show what this version would write to an existing project.")
@acts
def command(
    name: str | None,
    example: str | None,
    region: str | None,
    accounts: tuple[str, ...],
    public_cidr: str | None,
    pipeline: str | None,
    owner: str | None,
    directory: Path,
    dry_run: bool,
    differences: bool,
) -> None:
    """Write a new project: organization file, program, policies, workflows.

    NAME is the name of the organization: lowercase letters, digits and hyphens, such as acme. The project passes
    `hpkit validate` and runs on the local cloud without changes. Existing files are never overwritten. On a terminal,
    the command asks for values that no option sets.
    """
    if differences:
        if not name and not (directory / "Pulumi.yaml").is_file():
            raise SelectionError("no project is here. Run this in the project's folder, or name it with --directory")
        name = name or pulumi_project(directory)[0]
        pipeline = pipeline or _pipeline_in(directory)
        owner = owner or _owner_in(directory)
    elif sys.stdin.isatty():
        name = name or click.prompt("Name of the organization")
        example = example or click.prompt("Begin with", type=click.Choice(EXAMPLES), default=_DEFAULT_EXAMPLE)
        accounts = accounts or tuple(filter(None, [_asked("AWS account, 12 digits (Enter: later)")]))
        public_cidr = public_cidr if public_cidr is not None else _asked("CIDR from which you connect (Enter: later)")
    if not name:
        raise SelectionError("name the organization: `hpkit init acme`")
    if not is_name(name):
        raise SelectionError(
            f"`{name}` isn't a valid name. Use lowercase letters, digits and hyphens, starting with a letter, such "
            f"as acme"
        )
    _check_accounts(accounts, example or _DEFAULT_EXAMPLE)
    if owner and "@" not in owner:
        raise SelectionError(f"--owner {owner} isn't an owner. Write it as in CODEOWNERS, such as @acme/platform")
    if (directory / "Pulumi.yaml").is_file() and pulumi_project(directory)[0] != name:
        raise ToolError(
            f"{directory / 'Pulumi.yaml'} is another project ({pulumi_project(directory)[0]}). To add an organization "
            f"to it, write stacks/{name}.yaml. To create a project, name an empty folder with --directory"
        )
    choice = Choice(
        name,
        example or _DEFAULT_EXAMPLE,
        pipeline or "github",
        _version(),
        region=region or "",
        accounts=accounts,
        public_cidr=public_cidr or "",
        owner=owner or "",
        environment=_environment_in(directory, name) if differences else "",
    )
    files = project_files(choice)
    if differences:
        _show_differences(directory, files, name)
        return
    _check(choice, files)
    _write(directory, files, dry_run=dry_run)


def _check_accounts(accounts: Sequence[str], example: str) -> None:
    """Raise SelectionError for what isn't an account, or has no environment in the example."""
    if wrong := [each for each in accounts if each and not _ACCOUNT.fullmatch(each)]:
        raise SelectionError(f"--account {wrong[0]} isn't an AWS account ID. Write its 12 digits, such as 123456789012")
    if surplus := accounts[accounts_of(example) :]:
        raise SelectionError(
            f"--account {surplus[0]} has no environment: the example `{example}` uses "
            f"{plural(accounts_of(example), 'account')}. For two accounts, use --from enterprise, "
            "or edit the file as the guide `Use several accounts` describes"
        )


def _asked(question: str) -> str:
    answer: str = click.prompt(question, default="", show_default=False)
    return answer


def _version() -> str:
    try:
        return distribution("hpkit").version
    except PackageNotFoundError:
        raise ToolError("hpkit isn't installed as a package. Install it: `pip install hpkit`") from None


def _pipeline_in(directory: Path) -> str:
    """Return the pipeline that a project has."""
    if (directory / ".gitlab-ci.yml").is_file():
        return "gitlab"
    return "github" if (directory / ".github" / "workflows").is_dir() else "none"


def _owner_in(directory: Path) -> str | None:
    """Return the first owner of everything in a project's CODEOWNERS, if that states one."""
    for folder in (".github", ".gitlab"):
        file = directory / folder / "CODEOWNERS"
        if file.is_file() and (found := _OWNER.search(file.read_text(encoding="utf-8"))):
            return found[1]
    return None


def _environment_in(directory: Path, name: str) -> str:
    """Return the first environment of a project's organization, or ""."""
    file = directory / "stacks" / f"{name}.yaml"
    return first_environment(file.read_text(encoding="utf-8")) if file.is_file() else ""


def _check(choice: Choice, files: Mapping[str, str]) -> None:
    """Raise ToolError when the organization file has errors, such as for a region that lacks the instance types."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{choice.name}.yaml"
        file.write_text(files[f"stacks/{choice.name}.yaml"], encoding="utf-8")
        errors = [each for each in load(file).findings if each.severity == "error"]
    if errors:
        found = "\n".join(f"  {each.rule} {each.path}: {each.message}. {each.fix}" for each in errors)
        raise ToolError(f"the example {choice.example} doesn't validate with these options:\n{found}")


def _write(directory: Path, files: Mapping[str, str], *, dry_run: bool) -> None:
    """Write the files that don't exist yet, and list all of them."""
    contents = {path: text.encode() for path, text in files.items()}
    if wheel := _wheel():
        contents[f"wheels/{wheel.name}"] = wheel.read_bytes()
    paths = sorted(contents)
    missing = [path for path in paths if not (directory / path).exists()]
    for path in paths:
        detail = None if path in missing else f"kept, because it exists{_to_ignore(directory, path, files)}"
        acted("write", path, done=path in missing and not dry_run, detail=detail)
    if dry_run:
        _show_tree(directory, paths, missing)
        return
    # First .gitignore: after a failure, `git add` must not add the virtual environment.
    for path in sorted(paths, key=lambda path: path != ".gitignore"):
        try:
            if path in missing:
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_bytes(contents[path])
        except OSError as error:
            raise ToolError(f"{error.filename}: {error.strerror}. Correct this, and run the command again") from None
        note = "" if path in missing else _to_ignore(directory, path, files)
        click.echo(f"{'wrote' if path in missing else 'kept'} {path}{note}")
    click.echo(f"The next steps are in {directory / 'README.md'}")


def _to_ignore(directory: Path, path: str, files: Mapping[str, str]) -> str:
    """Return the lines of a project that its existing .gitignore lacks, if path is this file."""
    if path != ".gitignore" or not (directory / path).is_file():
        return ""
    existing = (directory / path).read_text(encoding="utf-8", errors="replace")
    ignored = {line.strip().strip("/") for line in existing.splitlines()}
    lacking = [line for line in files[path].splitlines() if line[:1] != "#" and line.strip("/") not in ignored]
    return f"; add these lines to it: {', '.join(lacking)}" if lacking else ""


def _show_tree(directory: Path, paths: Sequence[str], missing: Collection[str]) -> None:
    """Print the project's files as a tree, with a note at existing ones, which would be kept."""
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text(str(directory)))
    branches = {"": root}
    for path in paths:
        folder = ""
        for part in path.split("/")[:-1]:
            above, folder = folder, f"{folder}{part}/"
            if folder not in branches:
                branches[folder] = branches[above].add(Text(f"{part}/"))
        name = path.rpartition("/")[2]
        branches[folder].add(Text(name if path in missing else f"{name} (kept)"))
    console().print(root)
    click.echo(f"{len(missing)} of {plural(len(paths), 'file')} would be written")


def _wheel() -> Path | None:
    """Return the wheel from which this package was installed, None if that was no file (PEP 610)."""
    origin = json.loads(distribution("hpkit").read_text("direct_url.json") or "{}")
    url = urlsplit(str(origin.get("url", "")))
    file = Path(unquote(url.path))
    return file if url.scheme == "file" and file.suffix == ".whl" and file.is_file() else None


def _show_differences(directory: Path, files: Mapping[str, str], name: str) -> None:
    """Print what this version would write otherwise; the organization's own files are left out."""
    differs = False
    for path in sorted(set(files) - {f"stacks/{name}.yaml", f"stacks/{name}.policy.json"}):
        lines = list(_difference(directory / path, path, files[path]))
        if lines:
            acted("write", path, done=False, detail="".join(lines))
        click.echo("".join(lines), nl=False)
        differs = differs or bool(lines)
    if not differs:
        click.echo(f"hpkit {_version()} would write the same files.")


def _difference(file: Path, path: str, text: str) -> Iterator[str]:
    existing = file.read_text(encoding="utf-8") if file.is_file() else ""
    yield from difflib.unified_diff(
        existing.splitlines(keepends=True),
        text.splitlines(keepends=True),
        fromfile=path if existing else "/dev/null",
        tofile=path,
    )
