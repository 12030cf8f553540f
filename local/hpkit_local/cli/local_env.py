"""`hpkit local env`: the variables that lead a shell to a local cloud, and back."""

import os
from collections.abc import Mapping
from pathlib import Path

import click
from pydantic import Field

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options
from hpkit.cli.common.output import SHELLS, called, exports, own_shell, undone
from hpkit.errors import ToolError
from hpkit.text.document import Document
from hpkit_local.cli.local_common import local_cloud_of, to_start, to_stderr, where

__all__ = ["Environment", "env", "stack_environment"]


class Environment(Document):
    """Variables that point AWS, Kubernetes and Pulumi at a local cloud."""

    variables: dict[str, str | None] = Field(description="null: unset the variable.")


@click.command("env")
@where
@click.option("--shell", type=click.Choice(SHELLS), help="Shell to print for. Default: the shell in SHELL.")
@output_options("text", "json", documents=("hpkit_local.cli.local_env:Environment",))
@click.option("--unset", is_flag=True, help="Print commands that restore the previous environment.")
def env(name: str | None, root: Path | None, shell: str | None, unset: bool) -> Output:
    """Print shell commands that point AWS, Kubernetes and Pulumi at a local cloud.

    bash, zsh: eval "$(hpkit local env)". fish: hpkit local env | source.
    """
    from hpkit_local.cloud import VARIABLES, control

    shell = shell or own_shell()
    if unset:
        names = [*VARIABLES, *control.service_endpoints(os.environ)]
        unset_all: dict[str, str | None] = dict.fromkeys(names)
        return Output(text=lambda: undone(shell, names), json=lambda: json_document(Environment(variables=unset_all)))
    cloud = local_cloud_of(name, root, command="env")
    if not cloud.ports():
        problem = f"{name} was never started. To start it" if name else "no local cloud is running. To start one"
        raise ToolError(f"{problem}: {to_start(cloud)}")
    variables = control.shell_environment(cloud)
    if control.running(cloud) is None:
        to_stderr(f"{cloud.name} isn't running. To start it: {to_start(cloud)}")
    return Output(
        text=lambda: exports(shell, variables), json=lambda: json_document(Environment(variables={**variables}))
    )


def stack_environment(root: Path, stack: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that leads to the running local cloud that has a stack.

    An environment that leads to none of the repository's local clouds stays as it is. Raises ToolError when no running
    local cloud has the stack.
    """
    from hpkit_local.cloud import control, overviews, stacks_of, stacks_up

    local_clouds = overviews(root)
    backend = environment.get("PULUMI_BACKEND_URL")
    if backend not in {each.cloud.state_folder.as_uri() for each in local_clouds}:
        return dict(environment)
    running = [each.cloud for each in local_clouds if each.state is not None]
    having = [each for each in running if any(known.name == stack for known in stacks_of(each))]
    # A preview leaves an empty stack on the local cloud that it ran on.
    having = [each for each in having if any(known.name == stack for known in stacks_up(each))] or having
    if not having:
        raise ToolError(
            f"no running local cloud has the stack {stack}. To create or start it: {called()} local up --stack {stack}"
        )
    if backend in {each.state_folder.as_uri() for each in having}:
        return dict(environment)
    # Its tools are already on PATH, in the order that the caller wants.
    return {**environment, **control.shell_environment(having[0]), "PATH": environment["PATH"]}
