"""The `hpkit` command: one module per subcommand, imported only when it is called."""

import difflib
import importlib
import sys

import click

from hpkit.errors import HpkitError, SelectionError

__all__ = ["main"]

# Module of hpkit.cli that holds `command` → the line that --help shows. The line stands here, not on the command,
# because printing the list must not import what all commands need.
_COMMANDS: dict[str, str] = {
    "adopt": "Write the organization file of a live cluster, and the import commands.",
    "catalog": "Ask an account what EKS offers, and write it into the catalog.",
    "chart-fetch": "Fetch the pinned dependencies chart, verify and keep it.",
    "chart-hash": "Print the hash of a chart in the repository.",
    "deployer-policy": "Print the IAM policy that deploying a stack needs.",
    "destroy": "Delete a whole stack, nodes and all.",
    "doctor": "Say which tools are here, from where, and how to get the rest.",
    "generate": "Write the generated files of this repository, or check them.",
    "images": "List the images that nodes of a stack pull, and mirror them.",
    "instances": "List instance types with what the catalog knows of them.",
    "local": "Run the local cloud, and `pulumi up` on it.",
    "plan": "Show what will be created for an organization.",
    "preflight": "Say whether an AWS account has what a stack needs.",
    "quota": "Show capacity and every team's share of it.",
    "review": "Say what a change does to the stacks it touches.",
    "rules": "List the validator's rules, or explain one.",
    "schema": "Write the JSON Schema that editors read.",
    "validate": "Check organization files; every finding in one run.",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hpkit.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], _COMMANDS, n=1) if args and args[0] not in _COMMANDS else []
        if near:
            ctx.fail(f"No such command '{args[0]}'. Did you mean `{near[0]}`?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hpkit")
def _hpkit() -> None:
    """Amazon SageMaker HyperPod on EKS: one typed file per organization."""


def main() -> None:
    """Run the command line; exit 1 on a failure the user can fix, 2 on misuse."""
    try:
        _hpkit(prog_name="hpkit")
    except HpkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2 if isinstance(error, SelectionError) else 1)
