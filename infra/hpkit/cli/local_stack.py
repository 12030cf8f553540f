"""`hpkit local up`, `preview`, `refresh`, `destroy`, `down`: Pulumi on the local cloud, in one command each."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hpkit.cli.extras import need
from hpkit.errors import ToolError

__all__ = ["COMMANDS"]

_DEFAULT_STACK = "handson-dev"


def _of_stack(function: Callable[..., None]) -> Callable[..., None]:
    folder = click.Path(file_okay=False, exists=True, path_type=Path)
    options = (
        click.option("--stack", default=_DEFAULT_STACK, show_default=True, help="Which stack of stacks/."),
        click.option("--name", default="default", show_default=True, help="Which instance; several can run."),
        click.option("--dir", "root", type=folder, help="The repository, if not this folder or above it."),
        click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- PULUMI-OPTIONS]..."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _ready(stack: str, name: str, root: Path | None) -> Any:
    """Get the tools, start the instance where it is not, and return the stack on it."""
    need("local", what="the local cloud")
    from local.cloud import TOOLS, Instance, Stack, control, get_all

    here = control.find_root(root or Path.cwd())
    instance = Instance.named(name, root=here)
    get_all(list(TOOLS), say=_to_stderr)
    if control.running(instance) is None:
        try:
            control.start(instance, say=_to_stderr)
        except KeyboardInterrupt:
            raise ToolError(
                "interrupted. The local cloud goes on starting: run it again, or end it with "
                f"`hpkit local stop --name {name}`"
            ) from None
    return Stack(instance, stack, root=here)


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


@click.command("up")
@_of_stack
def _up(stack: str, name: str, root: Path | None, extra: tuple[str, ...]) -> None:
    """Start the local cloud where it is not, and `pulumi up` a stack on it."""
    code = _ready(stack, name, root).run("up", *extra)
    if code == 0:
        option = "" if name == "default" else f" --name {name}"
        click.echo(f'Look at it: eval "$(hpkit local env{option})" && kubectl get clusterqueues')
        click.echo(f"Take it down again: hpkit local down --stack {stack}{option}")
    sys.exit(code)


@click.command("preview")
@_of_stack
def _preview(stack: str, name: str, root: Path | None, extra: tuple[str, ...]) -> None:
    """Show what `up` would change."""
    sys.exit(_ready(stack, name, root).run("preview", *extra))


@click.command("refresh")
@_of_stack
def _refresh(stack: str, name: str, root: Path | None, extra: tuple[str, ...]) -> None:
    """Take over what was changed by hand, as `pulumi refresh` does."""
    sys.exit(_ready(stack, name, root).run("refresh", *extra))


@click.command("destroy")
@_of_stack
def _destroy(stack: str, name: str, root: Path | None, extra: tuple[str, ...]) -> None:
    """Delete everything that `up` made; the local cloud goes on running."""
    sys.exit(_ready(stack, name, root).run("destroy", *extra))


@click.command("down")
@_of_stack
def _down(stack: str, name: str, root: Path | None, extra: tuple[str, ...]) -> None:
    """Delete everything that `up` made, forget the stack, and stop the local cloud."""
    from local.cloud import Instance, control

    ready = _ready(stack, name, root)
    code = ready.run("destroy", *extra)
    if code != 0:
        sys.exit(code)
    ready.remove()
    control.stop(Instance.named(name, root=control.find_root(root or Path.cwd())))
    click.echo(f"{stack} is gone, and {name} is stopped")


COMMANDS = (_up, _preview, _refresh, _destroy, _down)
