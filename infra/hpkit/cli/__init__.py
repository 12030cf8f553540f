"""The `hpkit` command: one module per subcommand, imported only when it is called."""

import atexit
import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.output import printable_output
from hpkit.errors import HpkitError, MissingClusterError, SelectionError, ToolError
from hpkit.extensions import optional_command
from hpkit.text.spelling import near

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["main"]

# Module of hpkit.cli that holds `command` → the line that --help shows. The line stands here, not on the command,
# because printing the list must not import what all commands need.
_COMMANDS: dict[str, str] = {
    "access": "Show who may do what on a running platform.",
    "adopt": "Write the organization file of a live cluster, and the import commands.",
    "chart-fetch": "Fetch the pinned dependencies chart, verify and keep it.",
    "chart-hash": "Print the hash of a chart in the repository.",
    "deployer-policy": "Print the IAM policy that deploying a stack needs.",
    "destroy": "Delete a whole stack, nodes and all.",
    "doctor": "Say which tools are here, from where, and how to get the rest.",
    "explain": "Say in words what a team or an instance group has, and why.",
    "grafana": "Bring dashboards and alert rules into a stack's Grafana.",
    "images": "List the images that nodes of a stack pull, and mirror them.",
    "instances": "List instance types with what the catalog knows of them.",
    "job": "Write a job's manifest for a team, or look over those that there are.",
    "jobs": "List the tasks that Kueue knows, by team.",
    "local": "Run the local cloud, and `pulumi up` on it.",
    "nodes": "Show single nodes; replace, reboot, delete or update some.",
    "plan": "Show what will be created for an organization.",
    "preflight": "Say whether an AWS account has what a stack needs.",
    "quota": "Show capacity and every team's share of it.",
    "recommend": "Say which quotas, weights and limits meet goals for a scenario.",
    "record": "Write what a cluster or a public trace ran as a scenario.",
    "review": "Say what a change does to the stacks it touches.",
    "rules": "List the validator's rules, or explain one.",
    "schema": "Write the JSON Schema that editors read.",
    "rehearse": "Let the real Kueue decide a scenario, on a local cloud.",
    "simulate": "Say what becomes of a scenario's tasks on a stack.",
    "status": "Show a running platform: groups, teams, what waits, what fails.",
    "topology": "Show the nodes by the layers of the network, and where tasks sit.",
    "team-policy": "Print the IAM policy that a team's data scientists need.",
    "upgrade": "Plan upgrades: what is behind, in which order, and each step.",
    "validate": "Check organization files; every finding in one run.",
    "why": "Say why a job waits, and what would let it run now.",
}
# Commands that an optional package adds → its extra.
_OPTIONAL: dict[str, str] = {
    "doctor": "local",
    "local": "local",
    "recommend": "whatif",
    "record": "whatif",
    "rehearse": "whatif",
    "simulate": "whatif",
}
_OBJECTS_BETWEEN_SEARCHES = 200_000
# What to do first, below the list of commands; in a clone each runs as it stands.
_FIRST_STEPS = (
    ("hpkit validate", "whether the files in stacks/ hold, and where they do not"),
    ("hpkit quota", "who has what of each instance type, and may borrow what"),
    ("hpkit local up", "the whole platform on this machine, without an account"),
)


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name in _OPTIONAL:
            added: click.Command = optional_command(cmd_name, _OPTIONAL[cmd_name])
            return added
        command: click.Command = importlib.import_module(f"hpkit.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        likely = near(args[0], _COMMANDS) if args and args[0] not in _COMMANDS else None
        if likely:
            ctx.fail(f"No such command '{args[0]}'. Did you mean `{likely}`?")
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            begin = ", ".join(f"`{name}`" for name, _ in _FIRST_STEPS)
            ctx.fail(f"No such command '{args[0]}'. `hpkit` alone lists them; first steps: {begin}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a missing cluster also says where the local cloud has the stack."""
        try:
            return super().invoke(ctx)
        except MissingClusterError as error:
            from hpkit.cli.aws_session import STACK, hint_of_local_cloud

            raise ToolError(f"{error}{hint_of_local_cloud(ctx.meta.get(STACK))}") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("First steps"):
            formatter.write_dl(_FIRST_STEPS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands that begin so, with their lines and without importing them, and the options."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=line) for name, line in sorted(_COMMANDS.items()) if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hpkit")
def _hpkit() -> None:
    """Amazon SageMaker HyperPod on EKS: one typed file per organization."""


def main() -> None:
    """Run the command line; exit 1 on a failure the user can fix, 2 on misuse."""
    # A command lives for seconds. As often as Python looks for garbage by itself, that took a third of
    # `hpkit plan`, and found next to none; at the end there is nothing to look for at all.
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES)
    atexit.register(gc.freeze)
    with printable_output():
        try:
            _hpkit(prog_name="hpkit")
        except HpkitError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2 if isinstance(error, SelectionError) else 1)
