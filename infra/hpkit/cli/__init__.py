"""The `hpkit` command: one module per subcommand, imported only when it is called."""

from __future__ import annotations

import errno
import importlib
import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hpkit.cli.common.output import printable_output
from hpkit.errors import (
    UNSUPPORTED,
    FindingsError,
    HpkitError,
    InterruptionError,
    MissingClusterError,
    SelectionError,
    ToolError,
)
from hpkit.extensions import optional_command
from hpkit.text.spelling import near

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["SECTIONS", "Command", "command_lines", "commands", "main"]


@dataclass(frozen=True)
class Command:
    """A command, or a group of some: the line that --help shows, and where it is.

    place: `folder.module` of hpkit.cli, or `folder.module:attribute`
    extra: the optional package that adds it, by the same name
    """

    line: str
    place: str = ""
    extra: str = ""
    children: Mapping[str, Command] = field(default_factory=dict)

    def load(self, name: str) -> click.Command:
        """Return the command itself."""
        if self.children:
            return _LazyGroup(name, self.children, help=self.line)
        if self.extra:
            added: click.Command = optional_command(name, self.extra)
            return added
        module, _, attribute = self.place.partition(":")
        found: click.Command = getattr(importlib.import_module(f"hpkit.cli.{module}"), attribute or "command")
        return found


# The lines are here, not in the commands, because printing the list must not import what all commands need.
SECTIONS: Final[Mapping[str, Mapping[str, Command]]] = {
    "Organization file": {
        "init": Command("Write a new project: organization file, program, policies, workflows.", "organization.init"),
        "validate": Command("Check organization files, and report all findings.", "organization.validate"),
        "plan": Command("Show which resources a stack creates.", "organization.plan"),
        "quota": Command("Show capacity and each team's share of it.", "organization.quota"),
        "review": Command("Show what a change does to the stacks that it affects.", "organization.review"),
        "catalog": Command(
            "Explain keys and rules; list instance types; get prices, schemas and the dependencies chart.",
            children={
                "config": Command("Explain a key of the organization file.", "organization.config"),
                "rules": Command("List the validator's rules, or explain one.", "organization.rules"),
                "instances": Command("List instance types and their specifications.", "organization.instances"),
                "refresh": Command("Write the project's prices from the AWS Price List.", "organization.refresh"),
                "schema": Command("Write the JSON Schema for editors.", "organization.schema"),
                "fetch-chart": Command(
                    "Download and verify the pinned dependencies chart.", "organization.chart_fetch"
                ),
            },
        ),
    },
    "AWS account": {
        "aws": Command(
            "Check an account, write IAM policies, mirror images, adopt or delete a platform.",
            children={
                "preflight": Command("Check whether an account has what a stack needs.", "account.preflight"),
                "deployer-policy": Command("Print the IAM policies for deploying a stack.", "account.deployer_policy"),
                "team-policy": Command("Print the IAM policy for a team's data scientists.", "account.team_policy"),
                "steps": Command("Print a preview's steps, or compare them with approved ones.", "account.steps"),
                "images": Command("List or mirror the images that a stack's nodes pull.", "account.images"),
                "adopt": Command("Adopt a running platform without changing it.", "account.adopt"),
                "recover": Command("Repair a stack's state after `up` was killed.", "account.recover"),
                "destroy": Command("Delete an entire stack, including its nodes.", "account.destroy"),
            },
        )
    },
    "Running cluster": {
        "cluster": Command(
            "Show and check a running platform, its costs, and its dashboards.",
            children={
                "status": Command("Show groups, teams and their tasks, and drift from the file.", "cluster.status"),
                "check": Command("Check devices, network, volumes and queues with small jobs.", "cluster.check"),
                "usage": Command("Show instance-hours and their cost by team, project or job.", "cluster.usage"),
                "grafana": Command("Export dashboards and alert rules for Grafana.", "cluster.grafana"),
            },
        ),
        "job": Command(
            "Write and check jobs, and explain why one waits.",
            children={
                "new": Command("Write a job manifest for a team.", "cluster.job:new"),
                "check": Command("Check job manifests, or also when they would start now.", "cluster.job:check"),
                "why": Command("Explain why a job is waiting, and what would let it run.", "cluster.why"),
            },
        ),
    },
    "What-if": {
        "whatif": Command(
            "Simulate, rehearse, optimize and record scenarios.",
            children={
                "simulate": Command("Simulate a scenario's tasks on a stack.", extra="whatif"),
                "rehearse": Command("Run a scenario on a real Kueue in a local cloud.", extra="whatif"),
                "recommend": Command("Find quotas, weights and limits that meet goals.", extra="whatif"),
                "record": Command("Record a cluster's tasks as a scenario.", extra="whatif"),
            },
        )
    },
    "Agents": {"mcp": Command("Serve read-only commands to agents (Model Context Protocol).", "agents.mcp")},
    "Local cloud": {"local": Command("Run a stack on this machine without an AWS account.", extra="local")},
}
# What to do first, below the list of commands; in a clone, each runs from its source.
_FIRST_STEPS = (
    ("hpkit validate", "check the files in stacks/"),
    ("hpkit quota", "show each team's share of each instance type"),
    ("hpkit local up", "run the whole platform on this machine, without an account"),
)


def command_lines() -> dict[str, str]:
    """Return each command, as it is typed after `hpkit`, and its line; groups have those of their commands."""
    lines: dict[str, str] = {}
    for section in SECTIONS.values():
        for name, command in section.items():
            lines |= {f"{name} {child}": each.line for child, each in command.children.items()} or {name: command.line}
    return lines


def commands(command: click.Command | None = None, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command and group of the installed packages, with what is typed after `hpkit`."""
    command = command or _hpkit
    if name:
        yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            with suppress(ToolError):  # its package isn't installed
                inner = command.get_command(context, child)
                assert inner is not None  # noqa: S101 - the group has just listed it
                yield from commands(inner, f"{name} {child}".strip())


def _documentation() -> list[str]:
    """Return the first page of the documentation, if it's installed. The wheel contains the pages of the clone."""
    folders = (Path(__file__).parents[number] / "docs" for number in (1, 3))
    return [str(each / "index.md") for each in folders if each.is_dir()][:1]


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def __init__(self, name: str, lazy: Mapping[str, Command], **given: Any) -> None:
        given.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(name, **given)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._lazy[cmd_name].load(cmd_name) if cmd_name in self._lazy else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'. {self._hint(args[0], ctx)}")
        return super().resolve_command(ctx, args)

    def _hint(self, name: str, ctx: click.Context) -> str:
        inside = next((each for each in command_lines() if each.endswith(f" {name}")), None)
        meant = inside or near(name, self._lazy)
        if meant:
            return f"Did you mean `hpkit {meant}`?" if meant not in self._lazy else f"Did you mean `{meant}`?"
        if ctx.parent is not None:
            return f"Run `{ctx.command_path}` for a list."
        begin = ", ".join(f"`{each}`" for each, _ in _FIRST_STEPS)
        pages = "".join(f" Documentation: {page}" for page in _documentation())
        return f"Run `hpkit` for a list. To get started, try {begin}.{pages}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.line) for name, each in self._lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands with this prefix, with their lines and without importing them, and the options."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=each.line) for name, each in self._lazy.items() if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


class _Sections(_LazyGroup):
    """The command itself: its commands by section, and what to do first."""

    def __init__(self, **given: Any) -> None:
        commands = {name: each for section in SECTIONS.values() for name, each in section.items()}
        super().__init__(lazy=commands, **given)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report an error: as JSON if the command prints JSON.

        An error about a missing cluster also says where the local cloud has the stack.
        """
        try:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise InterruptionError("interrupted") from None
            except click.Abort:
                # Commands ask before they change anything. Ctrl-C leaves the cursor behind the question.
                click.echo(err=True)
                raise InterruptionError("interrupted, so nothing was changed") from None
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise ToolError(_full(error)) from None
            except MissingClusterError as error:
                from hpkit.cli.common.aws_session import STACK, hint_of_local_cloud

                raise ToolError(f"{error}{hint_of_local_cloud(ctx.meta.get(STACK))}") from None
        except (HpkitError, click.ClickException) as error:
            if not _asks_for_json():
                raise
            from hpkit.cli.common.documents import error_document

            code = _exit_code(error)
            click.echo(error_document(error, code), err=True)
            ctx.exit(code)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, each.line) for name, each in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("First steps"):
            formatter.write_dl(_FIRST_STEPS)
        with formatter.section("Documentation"):
            rows = [("hpkit catalog config KEY", "explain a key of the organization file")]
            formatter.write_dl([*rows, *((page, "all pages of this version") for page in _documentation())])


@click.group(cls=_Sections)
@click.version_option(package_name="hpkit")
def _hpkit() -> None:
    """Run Amazon SageMaker HyperPod on EKS from one typed file per organization."""


def main() -> None:
    """Run the command line; exit 1 on a failure the user can fix, 2 on misuse."""
    if str(sys.platform) == "win32":
        sys.exit(f"error: {UNSUPPORTED}")
    with printable_output():
        try:
            _hpkit(prog_name="hpkit")
        except HpkitError as error:
            click.echo(str(error) if isinstance(error, FindingsError) else f"error: {error}", err=True)
            sys.exit(_exit_code(error))


def _full(error: OSError) -> str:
    """Return an error about a full disk. A failed write has no file name, so full disks that hpkit uses are named."""
    import shutil
    import tempfile

    folders = {
        str(each): shutil.disk_usage(each).free for each in (Path.cwd(), Path(tempfile.gettempdir()), Path.home())
    }
    full = [folder for folder, free in folders.items() if free < 1_000_000]
    return (
        f"no space left on the disk of {error.filename or ', '.join(full) or 'a file'}. Delete files there, and retry"
    )


def _exit_code(error: HpkitError | click.ClickException) -> int:
    """Return 1 for a failure that the user can fix, 2 for misuse, 130 for Ctrl-C."""
    if isinstance(error, InterruptionError):
        return 130
    return 2 if isinstance(error, SelectionError | click.UsageError) else 1


def _asks_for_json() -> bool:
    words = sys.argv[1:]
    return "--format=json" in words or ("--format", "json") in itertools.pairwise(words)
