"""Common parts of the commands of `hpkit local`: selection of the local cloud, and commands for users to repeat."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.common.output import called
from hpkit.extensions import need

if TYPE_CHECKING:
    from hpkit_local.cloud import LocalCloud

__all__ = [
    "force_option",
    "in_repository",
    "local_cloud_of",
    "root_of",
    "to_start",
    "to_stderr",
    "wait_option",
    "where",
]

_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_NAME = "Name of the local cloud. Default: the stack's name, or the only local cloud."


def in_repository(function: Callable[..., None]) -> Callable[..., None]:
    """Add --dir to a command, and explain missing packages."""

    @wraps(function)
    def checked(**given: Any) -> None:
        need("local", feature="the local cloud")
        # CI images often forbid writing bytecode. Each start of the program and of its plugins would then compile the
        # SDKs again, which takes longer than all the rest.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        function(**given)

    return click.option(
        "--dir", "root", type=_FOLDER, help="Repository. Default: this folder or the nearest one above it."
    )(checked)


def where(function: Callable[..., None], *, name_help: str = _NAME, default: str | None = None) -> Callable[..., None]:
    """Add --name and --dir to a command."""
    option = click.option("--name", metavar="NAME", default=default, show_default=default is not None, help=name_help)
    return option(in_repository(function))


def wait_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add --wait and --no-wait to a command, for when another command uses the local cloud."""
    text = "Wait for other commands on the local cloud, or fail immediately."
    return click.option("--wait/--no-wait", default=True, show_default=True, help=text)(function)


def force_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add --force to a command."""
    text = "Stop other commands on the local cloud instead of waiting for them."
    return click.option("--force", is_flag=True, help=text)(function)


def root_of(root: Path | None) -> Path:
    """Return the project's folder: the given one, or the nearest above this one with Pulumi.yaml."""
    from hpkit_local.cloud import control

    return control.find_root(root or Path.cwd())


def local_cloud_of(name: str | None, root: Path | None, *, command: str) -> LocalCloud:
    """Return the local cloud with a name; without a name, the only one that the command, such as `env`, can use."""
    from hpkit_local.cloud import LocalCloud, the_only

    folder = root_of(root)
    if name is not None:
        return LocalCloud.named(name, root=folder)
    return the_only(folder, command=f"{called()} local {command}")


def to_start(cloud: LocalCloud) -> str:
    """Return the command that starts a local cloud; if it has no stack, the command also deploys one."""
    from hpkit_local.cloud import stacks_of

    if stacks_of(cloud):
        return f"{called()} local start --name {cloud.name}"
    return f"{called()} local up --stack STACK{'' if cloud.name == 'default' else f' --name {cloud.name}'}"


def to_stderr(line: str) -> None:
    """Report progress on standard error, separate from a command's output."""
    click.echo(line, err=True)
