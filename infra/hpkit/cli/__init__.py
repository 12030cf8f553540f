"""The `hpkit` command: one module a subcommand, imported only when it is called."""

import importlib.util
import sys

import click

from hpkit.errors import HpkitError

__all__ = ["main"]

# name → (module of hpkit.cli that holds `command`, the line that --help shows). The line stands here, not
# on the command, because printing the list must not import what all commands need.
_COMMANDS: dict[str, tuple[str, str]] = {
    "adopt": ("adopt", "Write the organization file of a live cluster, and the import commands."),
    "doctor": ("doctor", "Say which tools are here, from where, and how to get the rest."),
    "generate": ("generate", "Write the generated files of this repository, or check them."),
    "instances": ("instances", "List instance types with what the catalog knows of them."),
    "local": ("local", "Start, stop and look at the local cloud."),
    "plan": ("plan", "Show what will be created for an organization."),
    "quota": ("quota", "Show capacity and every team's share of it."),
    "rules": ("rules", "List the validator's rules, or explain one."),
    "schema": ("schema", "Write the JSON Schema that editors read."),
    "validate": ("validate", "Check organization files; every finding in one run."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in sorted(_COMMANDS) if importlib.util.find_spec(f"hpkit.cli.{_module(name)}")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"hpkit.cli.{_module(cmd_name)}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _module(name: str) -> str:
    return _COMMANDS[name][0]


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hpkit")
def _hpkit() -> None:
    """Amazon SageMaker HyperPod on EKS: one typed file per organization."""


def main() -> None:
    """Run the command line; exit 1 on a failure the user can mend, 2 on misuse."""
    try:
        _hpkit(prog_name="hpkit")
    except HpkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
