"""`hpkit local up`, `preview`, `refresh`, `destroy`, `down`: Pulumi on the local cloud, in one command each."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpkit.catalog import PLACEHOLDER_ACCOUNT
from hpkit.checks.cluster import is_same_cluster
from hpkit.cli.common.completion import STACK_VARIABLE, stack_option
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts
from hpkit.cli.common.inputs import plans_of
from hpkit.cli.common.output import called, confirm, line_to_use
from hpkit.errors import SelectionError, ToolError
from hpkit.plan.existing import names_existing
from hpkit.plan.principals import principal_of
from hpkit.project import load_stack, require_environment, stack_names
from hpkit.text.formatting import plural
from hpkit_local.cli.local_common import root_of, to_stderr, wait_option, where
from hpkit_local.cli.local_progress import Progress

if TYPE_CHECKING:
    from hpkit.plan.model import Plan
    from hpkit.program.teardown import Teardown
    from hpkit_local.cloud import LocalCloud, Stack

__all__ = ["COMMANDS"]

# Output that the user's Pulumi options request is printed.
_PRINTS = frozenset({"--diff", "--json", "-j", "--show-sames", "--debug", "-d"})


@dataclass(frozen=True)
class _Target:
    """A stack and its local cloud, and the options of each command; name: the option, if it's given."""

    stack: str
    cloud: LocalCloud
    root: Path
    name: str | None
    wait: bool
    extra: tuple[str, ...]
    verbose: bool

    def command(self, verb: str) -> str:
        return f"hpkit local {verb} --stack {self.stack} --name {self.cloud.name}"

    def down(self, verb: str) -> str:
        """Return the command that deletes the stack, as the user called it."""
        return f"{called()} local {verb} --stack {self.stack}" + (f" --name {self.name}" if self.name else "")


def _of_stack(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of each command, which gets them as a _Target."""

    @wraps(function)
    def command(**given: Any) -> None:
        place = _place(given.pop("stack"), given["name"], given.pop("root"))
        shared = {option: given.pop(option) for option in ("name", "wait", "extra", "verbose")}
        function(_Target(*place, **shared), **given)

    verbose = click.option("--verbose", is_flag=True, help="Print all of Pulumi's output.")
    extra = click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- PULUMI-OPTIONS]...")
    options = where(wait_option(acts(extra(verbose(command)))))
    return stack_option("Stack. Default: the project's only stack, or the only one that is up")(options)


def _place(stack: str | None, name: str | None, root: Path | None) -> tuple[str, LocalCloud, Path]:
    """Return the stack and its local cloud; report why it was chosen if no option names it."""
    from hpkit_local.cloud import LocalCloud

    folder = root_of(root)
    cloud = None if name is None else LocalCloud.named(name, root=folder)
    chosen, why, its_cloud = (stack, _source(), None) if stack else _only_stack(folder, cloud)
    if why:
        to_stderr(f"stack {chosen}: {why}")
    return chosen, cloud or its_cloud or LocalCloud.of_stack(chosen, root=folder), folder


def _source() -> str:
    source = click.get_current_context().get_parameter_source("stack")
    return f"from {STACK_VARIABLE}" if source is click.core.ParameterSource.ENVIRONMENT else ""


def _only_stack(root: Path, cloud: LocalCloud | None) -> tuple[str, str, LocalCloud | None]:
    """Return the project's only stack, or the only one that is up (with its local cloud), and why it was chosen."""
    from hpkit_local.cloud import candidates

    stacks = stack_names(root)
    if len(stacks) == 1:
        return stacks[0], "the project's only stack", None
    places = [each for each in candidates(root) if cloud in (None, each.cloud)]
    up = [(stack.name, each.cloud) for each in places for stack in each.stacks if stack.resources]
    if len(up) != 1:
        raise SelectionError(f"name the stack with --stack; the project has {', '.join(stacks) or 'none'}")
    return up[0][0], f"the only one that is up, on local cloud {up[0][1].name}", up[0][1]


def _plan(stack: str, root: Path) -> Plan:
    """Return a stack's plan; exit 1 with findings of a malformed file, SelectionError when no file describes it."""
    loaded = load_stack(stack, root=root)
    (plan,) = loaded.plans.values() or plans_of([loaded])
    return plan


def _caller(plan: Plan) -> tuple[str, str | None]:
    """Return a stack's account, or a default one, and its first deployer."""
    account = plan.spec.account or PLACEHOLDER_ACCOUNT
    return account, next((role for role in plan.spec.deployers if principal_of(role)[0] == account), None)


@contextmanager
def _ready(verb: str, target: _Target, plan: Plan | None = None, plugins: str = "") -> Iterator[Stack]:
    """Install the tools, start the local cloud if necessary, and yield exclusive use of the stack on it.

    plan: whose account and deployer the local cloud gets, and whose existing resources are created first; None for the
    local cloud as it is. plugins: value of `--plugins`, "" for the current ones.
    """
    from hpkit_local.cloud import TOOLS, Stack, control, exclusive, get_all, stacks_up

    stack, cloud, root = target.stack, target.cloud, target.root
    require_environment(root)
    get_all([tool for tool in TOOLS if not tool.on_demand], say=to_stderr)
    with exclusive(cloud, target.command(verb), wait=target.wait, say=to_stderr):
        if verb == "up":
            _reject_second(stack, cloud, root)
        if plan is not None:
            _reject_before_creator(plan, cloud, root)
            control.take_caller(cloud, stack, *_caller(plan), say=to_stderr)
            if not stacks_up(cloud):
                # The first resources are created with it; later, it changes after `up`.
                control.take_kubernetes(cloud, plan.spec.eks.version, say=to_stderr)
        if plugins:
            control.take_plugins(cloud, stack, plugins, say=to_stderr)
        starting = control.begin(cloud) if control.running(cloud) is None else None
        if plan is not None and names_existing(plan):
            from hpkit_local.cloud import create_existing

            control.start(cloud, say=lambda _: None)
            if created := create_existing(plan, control.environment(cloud)):
                to_stderr(f"existing resources that the file names: {', '.join(created)}")
        if verb in ("destroy", "down"):
            # Before Pulumi runs, the API server lists the pods that use the stack's claims.
            control.start(cloud, say=lambda _: None)
        # Pulumi starts while the services start: it calls the first one seconds later, and then waits for it.
        yield Stack(cloud, stack, root=root, say=to_stderr, wait=target.wait, starting=starting)


def _reject_second(stack: str, cloud: LocalCloud, root: Path) -> None:
    """Raise ToolError if another stack is there: a local cloud has one API server, and so one EKS cluster."""
    from hpkit_local.cloud import stacks_up

    for other in stacks_up(cloud):
        if other.name != stack and not _uses_existing_eks(stack, root):
            raise ToolError(
                f"stack {other.name} is up on local cloud {cloud.name}, which can hold one stack. Delete it: "
                f"{called()} local down --stack {other.name} --name {cloud.name}. Or use a separate local cloud for "
                f"{stack}: {called()} local up --stack {stack}"
            )


def _reject_before_creator(plan: Plan, cloud: LocalCloud, root: Path) -> None:
    """Raise ToolError if the stack governs a cluster that another stack of its file must create first."""
    from hpkit_local.cloud import stacks_up

    if not plan.spec.cluster.existing:
        return
    organization = load_stack(plan.stack, root=root).parsed.organization
    environments = organization.environments if organization else {}
    creators = [
        f"{plan.organization}-{name}"
        for name, spec in environments.items()
        if not spec.cluster.existing and is_same_cluster(spec, plan.spec)
    ]
    if creators and creators[0] not in {each.name for each in stacks_up(cloud)}:
        raise ToolError(
            f"{plan.stack} governs the cluster of {creators[0]}, which isn't up on local cloud {cloud.name}. Run: "
            f"{called()} local up --stack {creators[0]} --name {cloud.name}"
        )


def _unfinished(stack: str, cloud: LocalCloud) -> int:
    """Return how many resources the state says a run is creating, or was when it was killed."""
    from hpkit_local.cloud import stacks_of

    return sum(existing.unfinished for existing in stacks_of(cloud) if existing.name == stack)


def _reject_unfinished(stack: str, cloud: LocalCloud) -> None:
    """Raise ToolError if the last run was killed, because another one would create some resources twice."""
    if unfinished := _unfinished(stack, cloud):
        raise ToolError(
            f"the last run of {stack} was killed while it created {plural(unfinished, 'resource')}, which another run "
            f"could create twice. Start the local cloud ({called()} local start --name {cloud.name}), "
            f"then run: {line_to_use(cloud.name)} && {called()} aws recover --stack {stack}"
        )


def _uses_existing_eks(stack: str, root: Path) -> bool:
    return any(plan.spec.eks.existing for plan in load_stack(stack, root=root).plans.values())


def _run(ready: Stack, verb: str, target: _Target) -> None:
    """Run Pulumi and show its progress, or print its own lines; raises ToolError if Pulumi failed."""
    stack, extra = target.stack, target.extra
    if target.verbose or _PRINTS.intersection(extra):
        if ready.run(verb, *extra):
            raise ToolError(f"`pulumi {verb}` failed; see its output above")
        acted(verb, stack, done=verb != "preview")
        return
    progress = Progress(verb, stack)
    with progress:
        code = ready.run(verb, *extra, show=progress.show)
    lines = progress.result(failed=code != 0, log=ready.log)
    for line in progress.rows():
        click.echo(line)
    if code:
        if any("ChangeGuard " in line for line in lines):
            # The engine stops at the first resource whose plugin rejects it.
            lines.insert(-1, "There can be more reasons. `hpkit review` lists them all, for the change since its base.")
        raise ToolError("\n".join(lines).removeprefix("error: ") or f"`pulumi {verb}` failed")
    progress.record()
    for line in lines:
        click.echo(line)


@click.command("up")
@_of_stack
@click.option(
    "--plugins",
    type=click.Choice(("auto", "official", "official-kubernetes", "fake")),
    default="auto",
    show_default=True,
    help="Pulumi's `aws` and `kubernetes` plugins, or hpkit's fakes. auto: the fake `aws` plugin, and Pulumi's "
    "`kubernetes` plugin if it's installed.",
)
def _up(target: _Target, plugins: str) -> None:
    """Deploy a stack to the local cloud with `pulumi up`, and start the local cloud if necessary.

    The organization file is used unchanged. The local cloud uses the account in the file. Calls use the first
    role in `deployers`, from an address in publicCidrs.
    """
    from hpkit_local.cloud import control, exclusive, stacks_up

    stack, cloud = target.stack, target.cloud
    _reject_second(stack, cloud, target.root)
    if _unfinished(stack, cloud):
        # A run that hasn't ended has unfinished resources, too.
        with exclusive(cloud, target.command("up"), wait=target.wait, say=to_stderr):
            _reject_unfinished(stack, cloud)
    plan = _plan(stack, target.root)
    to_stderr(f"stack {stack} on the local cloud {cloud.name}")
    with _ready("up", target, plan, plugins) as ready:
        was_up = bool(stacks_up(cloud))
        _run(ready, "up", target)
        if not plan.spec.cluster.existing and not plan.spec.eks.existing and was_up:
            # EKS, too, changes its API server while it updates a cluster.
            control.take_kubernetes(cloud, plan.spec.eks.version, say=to_stderr)
        # Services that the stack doesn't use can still be starting.
        control.start(cloud, say=lambda _: None)
    kubectl = "kubectl get clusterqueues"
    look = kubectl if shutil.which("kubectl") else f"{called()} local status --name {cloud.name}"
    click.echo(f"Use it: {line_to_use(cloud.name)}")
    click.echo(f"Inspect it: {look}")
    # Deleting a protected stack requires a confirmation on a terminal.
    yes = "" if sys.stdin.isatty() else " --yes"
    click.echo(f"Delete it: {target.down('down')}{yes}")


def _looking(verb: str, help_text: str) -> click.Command:
    """Return a command that reads a stack and shows differences."""

    @click.command(verb, help=help_text)
    @_of_stack
    def command(target: _Target) -> None:
        plan = _plan(target.stack, target.root)
        with _ready(verb, target, plan) as ready:
            _run(ready, verb, target)

    return command


_preview = _looking("preview", "Show each resource that `up` would change, and how many are unchanged.")
_refresh = _looking("refresh", "Update the state with manual changes, like `pulumi refresh`, and show them.")


def _delete(verb: str, target: _Target, *, yes: bool) -> None:
    """Delete a whole stack, after a confirmation if it's protected; raises ToolError if that fails."""
    from hpkit_local.cloud import exclusive

    stack, cloud, root = target.stack, target.cloud, target.root
    _reject_unknown(stack, root)
    # An `up` that has just begun doesn't show whether the stack exists, so wait for it.
    with exclusive(cloud, target.command(verb), wait=target.wait, say=to_stderr):
        if not _is_there(stack, cloud, root, verb=verb):
            return
        with _ready(verb, target) as ready:
            if not yes and (ending := ready.ending()).rejection:
                _ask(ending, target.down(verb))
            _run(ready, "destroy", target)
            if verb == "down":
                _end(ready, cloud, stack, root)


def _deleting(verb: str, help_text: str) -> click.Command:
    """Return a command that deletes a stack."""

    @click.command(verb, help=help_text)
    @_of_stack
    @click.option("--yes", is_flag=True, help="Skip the confirmation for a stack with `protect: true`.")
    def command(target: _Target, yes: bool) -> None:
        _delete(verb, target, yes=yes)

    return command


_destroy = _deleting(
    "destroy", "Delete everything that `up` created, even if it's protected, and keep the local cloud running."
)
_down = _deleting(
    "down",
    "Delete everything that `up` created, even if it's protected, then the stack and its local cloud.\n\n"
    "A local cloud that belongs to the stack is deleted; any other local cloud is stopped.",
)


def _end(ready: Stack, cloud: LocalCloud, stack: str, root: Path) -> None:
    """Delete the local cloud that belongs only to a stack, and stop any other without stacks."""
    from hpkit_local.cloud import LocalCloud, control, stacks_up

    acted("delete", stack)
    if not (others := stacks_up(cloud)) and cloud == LocalCloud.of_stack(stack, root=root):
        control.reset(cloud, say=to_stderr)
        click.echo(f"{stack} and its local cloud are deleted")
        return
    ready.remove()
    if others:
        click.echo(f"{stack} is deleted; {cloud.name} keeps running with its other stacks")
    else:
        control.stop(cloud, say=to_stderr)
        click.echo(f"{stack} is deleted, and {cloud.name} is stopped")


def _reject_unknown(stack: str, root: Path) -> None:
    """Raise SelectionError for a stack that no file describes, unless a local cloud has it."""
    from hpkit_local.cloud import local_clouds, stacks_of

    if not any(there.name == stack for cloud in local_clouds(root) for there in stacks_of(cloud)):
        load_stack(stack, root=root)


def _is_there(stack: str, cloud: LocalCloud, root: Path, *, verb: str) -> bool:
    """Return whether Pulumi knows the stack on the local cloud.

    Reports where it is otherwise. Raises ToolError if it's on another local cloud.
    """
    from hpkit_local.cloud import overviews, stacks_of

    if any(each.name == stack for each in stacks_of(cloud)):
        return True
    places = [each.cloud.name for each in overviews(root) if any(there.name == stack for there in each.stacks)]
    if places:
        commands = "\n".join(f"  {called()} local {verb} --stack {stack} --name {place}" for place in places)
        raise ToolError(f"{stack} isn't on local cloud {cloud.name}. To delete it where it is:\n{commands}")
    acted("delete", stack, done=False, detail=f"isn't up on local cloud {cloud.name}")
    click.echo(f"{stack} isn't up on local cloud {cloud.name}, so nothing was deleted")
    return False


def _ask(ending: Teardown, command: str) -> None:
    click.echo(f"{ending.stack} is protected (`protect: true`). This deletes {ending.resources} resources, including")
    for line in ending.goes:
        click.echo(f"  {line}")
    click.echo("All of them are on the local cloud; nothing in AWS is changed.")
    if not sys.stdin.isatty():
        raise ToolError(
            f"nothing was deleted, because no terminal is available for the confirmation. To skip it: {command} --yes"
        )
    confirm("Delete it?")


COMMANDS = (_up, _preview, _refresh, _destroy, _down)
