"""`hpkit node`: single nodes, shown, replaced, rebooted, deleted, and brought to a newer AMI."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import click

from hpkit.cli.completion import complete_groups
from hpkit.cli.documents import acted, json_document
from hpkit.cli.formats import Output, acts, folded, output_options
from hpkit.cli.live_common import choose_file, choose_stack, kubernetes_api, observe, platform_options, rights
from hpkit.cli.output import WholeLines
from hpkit.cli.tables import columns
from hpkit.errors import InputError, ToolError
from hpkit.text.plural import plural

if TYPE_CHECKING:
    from boto3 import Session

    from hpkit.cluster.live.model import Observed
    from hpkit.cluster.live.read import AwsPart
    from hpkit.cluster.nodes.model import Node, Verb
    from hpkit.cluster.nodes.operate import Batch
    from hpkit.plan.model import Plan
    from hpkit.project import Loaded

__all__ = ["NodeList", "command"]


class _Node(TypedDict):
    id: str
    name: str
    group: str
    instanceType: str
    status: Annotated[str, "Status in SageMaker."]
    message: str | None
    registered: Annotated[bool | None, "Whether Kubernetes has the node. null: not read."]
    ready: Annotated[bool | None, "null: not read."]
    cordoned: Annotated[bool | None, "null: not read."]
    release: str | None
    releaseStatus: str | None
    pods: Annotated[int | None, "null: pods of some namespaces weren't read."]
    tasks: Annotated[dict[str, int], "Pods of each task."]


class NodeList(TypedDict):
    """Nodes of a cluster."""

    items: list[_Node]


_NAMED = 5
_WARNINGS: Mapping[str, str] = {
    "replace": "Data on all volumes of a replaced instance is lost.",
    "reboot": "Processes on the nodes end; their volumes are kept.",
    "delete": "The instances and all their volumes are deleted.",
    "update": "The service stops whatever still runs on the nodes, and replaces their root volumes.",
}
# Source: SageMaker developer guide, "Update the SageMaker HyperPod platform software": UpdateClusterSoftware drains
# nothing. Its API reference has a size of a batch, and neither an order of nodes nor a way to hold the next batch.
_IN_BATCHES = (
    "The service updates {size} at a time, in its own order, without draining them; hpkit doesn't drain them "
    "either, because that would close all of them at once. Pods are stopped when their node's turn comes, "
    "regardless of disruption budgets, and restart on other nodes; pods on other nodes continue. Root volumes are "
    "replaced. Without --batch, all nodes are drained first and are unavailable at the same time. To let the "
    "service drain each batch, set `autoPatch` with DrainFirst in the organization file."
)


@click.group("node", cls=WholeLines)
def command() -> None:
    """List, replace, reboot, delete or update nodes."""


@command.command("list", epilog=rights("node list"))
@platform_options
@click.option("--group", metavar="G", shell_complete=complete_groups, help="Only list this instance group.")
@output_options("text", "json", documents=("hpkit.cli.nodes:NodeList",))
def list_nodes(stack: str | None, profile: str | None, group: str | None) -> Output:
    """List the nodes with group, type, status in SageMaker and Kubernetes, AMI release, and pods."""
    from hpkit.cluster.nodes.model import nodes_of

    plan = choose_stack(stack)
    observed = _observe(plan, profile)
    wanted = _groups(observed, () if group is None else (group,))
    nodes = [each for each in nodes_of(observed) if each.instance.group in wanted]
    head = ("node", "group", "type", "status", "release", "tasks")
    return Output(
        text=lambda: columns([head, *(_row(each) for each in nodes)]),
        json=lambda: json_document(NodeList, items=[_as_dict(each) for each in nodes]),
    )


def _observe(plan: Plan, profile: str | None) -> Observed:
    """Return the instances and what runs on them."""
    instances: tuple[AwsPart, ...] = ("nodes",)
    return observe(plan, profile, aws=instances, quotas=False)


def _as_dict(node: Node) -> _Node:
    return {
        "id": node.id,
        "name": node.name,
        "group": node.instance.group,
        "instanceType": node.instance.instance_type,
        "status": node.instance.status,
        "message": node.instance.message or None,
        "registered": node.node is not None if node.registration_read else None,
        "ready": node.ready if node.registration_read else None,
        "cordoned": (node.node is not None and node.node.cordoned) if node.registration_read else None,
        "release": node.instance.release or None,
        "releaseStatus": node.instance.release_status or None,
        "pods": len(node.pods) if node.pods_read else None,
        "tasks": dict(node.tasks),
    }


def _row(node: Node) -> tuple[str, ...]:
    states = [node.instance.status]
    if not node.registration_read:
        states.append("?")
    elif node.node is None:
        states.append("not registered")
    elif not node.node.ready:
        states.append("not ready")
    if node.node is not None and node.node.cordoned:
        states.append("cordoned")
    behind = "" if node.instance.release_status in ("", "UpToDate") else f" ({node.instance.release_status})"
    return (
        node.id,
        node.instance.group,
        node.instance.instance_type,
        ", ".join(states),
        f"{node.instance.release}{behind}",
        _runs(node),
    )


def _runs(node: Node) -> str:
    """Return what runs on a node; `?` if there might be more."""
    runs = sorted(node.tasks) or ([plural(len(node.pods), "pod")] if node.pods else [])
    return ", ".join(runs if node.pods_read else [*runs, "?"])


def _operation_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that every operation has."""
    for option in (
        click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the service is done."),
        click.option(
            "--timeout",
            type=click.FloatRange(1),
            default=900.0,
            show_default=True,
            metavar="SECONDS",
            help="Seconds that pods have to stop. Nodes have twice as long to become ready.",
        ),
        click.option(
            "--force",
            is_flag=True,
            help="Evict pods without a controller too, and ignore disruption budgets after the timeout.",
        ),
        click.option("--grace", type=click.IntRange(0), metavar="SECONDS", help="Override each pod's grace period."),
        click.option("--no-drain", is_flag=True, help="Skip draining, for nodes that don't respond."),
        click.option("--yes", is_flag=True, help="Skip the confirmation, for automation."),
        click.option("--dry-run", is_flag=True, help="Show what would be done, without doing it."),
    ):
        command = option(command)
    return platform_options(acts(command))


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of every operation."""

    stack: str | None
    profile: str | None
    dry_run: bool
    yes: bool
    no_drain: bool
    grace: int | None
    force: bool
    timeout: float
    wait: bool


@command.command("replace", epilog=rights("node replace"))
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@_operation_options
def replace(nodes: tuple[str, ...], **options: Any) -> None:
    """Drain nodes, then replace them with new ones (BatchReplaceClusterNodes).

    NODE is an instance ID or the name of a node. The organization file isn't changed.
    """
    _operate("replace", nodes, _Options(**options))


@command.command("reboot", epilog=rights("node reboot"))
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@_operation_options
def reboot(nodes: tuple[str, ...], **options: Any) -> None:
    """Drain nodes, then reboot them (BatchRebootClusterNodes) and let them accept pods again."""
    _operate("reboot", nodes, _Options(**options))


@command.command("delete", epilog=rights("node delete"))
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@click.option("--write", is_flag=True, help="Lower the groups' instanceCount in the organization file too.")
@_operation_options
def delete(nodes: tuple[str, ...], write: bool, **options: Any) -> None:
    """Drain nodes, then delete them permanently (BatchDeleteClusterNodes).

    Also lower the groups' instanceCount in the organization file, or use --write; otherwise the next `pulumi up`
    creates new nodes. The command refuses if the file would then have errors, such as quotas that no longer fit.
    --force continues anyway.
    """
    _operate("delete", nodes, _Options(**options), write=write)


@command.command("update", epilog=rights("node update"))
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="G",
    shell_complete=complete_groups,
    help="Only update this group. Repeatable.",
)
@click.option("--release", metavar="X.Y.Z", help="AMI release. Default: the newest.")
@click.option(
    "--batch", metavar="N|N%", help="Number or percentage of nodes to update at a time. Default: all at once."
)
@_operation_options
def update(groups: tuple[str, ...], release: str | None, batch: str | None, **options: Any) -> None:
    """Update instance groups to a newer AMI (UpdateClusterSoftware).

    Without --batch, all nodes of the groups are drained first and are unavailable at the same time. With --batch, the
    service updates that many nodes at a time in its own order. Neither the service nor hpkit drains them, so running
    pods are stopped.
    """
    from hpkit.cluster.nodes.model import nodes_of
    from hpkit.cluster.nodes.operate import update_software

    settings, size = _Options(**options), _batch(batch)
    plan = choose_stack(settings.stack)
    observed = _observe(plan, settings.profile)
    names = _groups(observed, groups)
    chosen = [node for node in nodes_of(observed) if node.instance.group in names]
    _announce("update", chosen, f"{', '.join(names)} to {release or 'the newest release'}", _warning(size))
    if settings.dry_run:
        _record("update", chosen, done=False)
        return
    drained = settings if size is None else replace_fields(settings, no_drain=True)
    _require_read(chosen, drained)
    _confirm(settings, "update", len(chosen))
    session = _session(settings, plan)
    with _drained(session, plan, chosen, drained) as stay_closed:
        update_software(session, plan.spec.cluster.name, names, release=release, batch=size)
        _record("update", chosen)
        click.echo("the service has started")
        stay_closed.extend([] if settings.wait else [node.name for node in chosen])
        _follow_update(session, plan, settings)


def _warning(size: Batch | None) -> str:
    if size is None:
        return _WARNINGS["update"]
    if size.type == "CAPACITY_PERCENTAGE":
        return _IN_BATCHES.format(size=f"{size.value}% of the nodes")
    return _IN_BATCHES.format(size=plural(size.value, "node"))


def _batch(text: str | None) -> Batch | None:
    from hpkit.cluster.nodes.operate import Batch

    if text is None:
        return None
    number, percent = text.removesuffix("%"), text.endswith("%")
    if not number.isdigit() or not 1 <= int(number) <= (100 if percent else 10_000):
        raise click.UsageError(
            f"--batch {text}: use a number of nodes, such as 2, or a percentage of the group, such as 25%"
        )
    return Batch("CAPACITY_PERCENTAGE" if percent else "INSTANCE_COUNT", int(number))


def _groups(observed: Observed, requested: Sequence[str]) -> list[str]:
    from hpkit.text.spelling import hint

    group_names = [] if observed.platform is None else [group.name for group in observed.platform.groups]
    for name in requested:
        if name not in group_names:
            raise click.UsageError(f"the cluster has no instance group {name}; {hint(name, group_names)}")
    return list(requested) or group_names


def _operate(verb: Verb, names: Sequence[str], options: _Options, *, write: bool = False) -> None:
    from hpkit.cluster.nodes.model import choose, counts_after, nodes_of, objections
    from hpkit.cluster.nodes.operate import hand_over

    loaded, plan = choose_file(options.stack)
    _require_owner(verb, loaded, plan)
    observed = _observe(plan, options.profile)
    if observed.platform is None:
        raise ToolError("the nodes couldn't be read; see the warnings above")
    chosen = choose(nodes_of(observed), names)
    against = list(objections(observed, plan, verb, chosen))
    if against:
        raise ToolError("nothing was done:\n  " + "\n  ".join(against))
    if verb == "delete":
        counts = counts_after(observed, chosen)
        _require_room(loaded, plan, counts, force=options.force)
        if write:
            # What cannot be written is reported before anything is done.
            _edited(loaded, plan, counts)
    _announce(verb, chosen, plural(len(chosen), "node"), _WARNINGS[verb])
    if options.dry_run:
        _record(verb, chosen, done=False)
        _say_file(loaded, plan, counts_after(observed, chosen) if verb == "delete" else {}, write=False)
        return
    _require_read(chosen, options)
    _confirm(options, verb, len(chosen))
    session = _session(options, plan)
    with _drained(session, plan, chosen, options) as stay_closed:
        outcome = hand_over(session, plan.spec.cluster.name, verb, [node.id for node in chosen])
        for node, reason in outcome.refused.items():
            acted(verb, node, done=False, detail=reason)
            click.echo(folded(f"{node} can't be changed: {reason}", "  ", ""), err=True)
        taken_nodes = [node for node in chosen if node.id in outcome.taken]
        _record(verb, taken_nodes)
        stay_closed.extend([] if options.wait else [node.name for node in taken_nodes])
        if verb == "delete":
            _say_file(loaded, plan, counts_after(observed, taken_nodes), write=write)
        if taken_nodes and options.wait:
            _follow(session, plan, observed, verb, taken_nodes, options)
    click.echo(f"{len(taken_nodes)} of {len(chosen)} {'started' if not options.wait else 'done'}: {verb}")
    if outcome.refused:
        sys.exit(1)


def _record(verb: str, nodes: Sequence[Node], *, done: bool = True) -> None:
    for node in nodes:
        acted(verb, node.id, done=done)


def _announce(verb: str, chosen: Sequence[Node], description: str, warning: str) -> None:
    click.echo(f"{verb} {description}:")
    for node in chosen:
        state = "not ready" if node.registration_read else "?"
        status = node.instance.status if node.ready else f"{node.instance.status}, {state}"
        runs = ", ".join(f"{name} ({plural(count, 'pod')})" for name, count in sorted(node.tasks.items())[:_NAMED])
        more = f" and {len(node.tasks) - _NAMED} more" if len(node.tasks) > _NAMED else ""
        others = len(node.pods) - sum(node.tasks.values())
        beside = plural(others, "other pod") if others else ""
        unread = "" if node.pods_read else "? (not all pods could be read)"
        there = "; ".join(part for part in (runs + more, beside, unread) if part) or "no pods"
        description = f"{node.id}  {node.instance.group} {node.instance.instance_type}, {status}"
        click.echo(folded(f"{description}: {there}", "      ", "  "))
    teams = sorted({team for node in chosen for team in node.teams})
    if teams:
        click.echo(f"teams with tasks on these nodes: {', '.join(teams)}")
    click.echo(folded(warning, "  ", ""))


def _confirm(told: _Options, verb: str, count: int) -> None:
    if told.yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("can't ask for confirmation here; add --yes, or --dry-run to see what would be done")
    try:
        sure = click.confirm(f"{verb} {plural(count, 'node')}?")
    except click.Abort:
        sure = False
    if not sure:
        raise ToolError("nothing was done")


def _require_read(chosen: Sequence[Node], told: _Options) -> None:
    """Raise ToolError if a drain would have to evict pods from nodes that weren't fully read."""
    if not told.no_drain and not all(node.pods_read and node.registration_read for node in chosen):
        raise ToolError(
            "nothing was done: nodes and their pods couldn't be read, so they can't be drained. Use a role that can "
            "list nodes, and pods in all namespaces, such as one in eks.administrators. Add --no-drain only if the "
            "pods may be stopped"
        )


def _session(options: _Options, plan: Plan) -> Session:
    from hpkit.cli.aws_session import aws_session

    return aws_session(options.profile, plan.spec.region)


@contextmanager
def _drained(session: Session, plan: Plan, chosen: Sequence[Node], options: _Options) -> Iterator[list[str]]:
    """Drain nodes, and uncordon those that still exist afterward, whatever happens in between.

    Yields a list for the names of nodes that stay cordoned: those that the command doesn't wait for, and that the
    service changes later.
    """
    from hpkit.cluster.live.read import find
    from hpkit.cluster.nodes.drain import Drain, cordon, drain

    stay_closed: list[str] = []
    registered = [node for node in chosen if node.node is not None]
    if options.no_drain or not registered:
        yield stay_closed
        return
    gone = frozenset(node.name for node in registered if not node.ready)
    how = Drain(options.grace, options.force, options.timeout, gone)
    eks = find(session, plan.spec.cluster.name).eks
    with kubernetes_api(session, eks, needs="patch nodes and create pods/eviction; or add --no-drain") as api:
        done = drain(api, [node.name for node in registered], how, clock=time, say=_progress)
        try:
            yield stay_closed
        finally:
            for name in done.cordoned:
                if name not in stay_closed:
                    cordon(api, name, unschedulable=False)
    closed = [name for name in done.cordoned if name in stay_closed]
    if closed:
        click.echo(f"the remaining nodes stay cordoned; to uncordon them, run: kubectl uncordon {' '.join(closed)}")


def _progress(line: str) -> None:
    click.echo(folded(line, "    ", "  "), err=True)


def _follow(
    session: Session, plan: Plan, observed: Observed, verb: Verb, taken_nodes: Sequence[Node], options: _Options
) -> None:
    from hpkit.cluster.nodes.operate import follow, statuses

    groups = {node.instance.group for node in taken_nodes}
    targets = {} if observed.platform is None else {group.name: group.target for group in observed.platform.groups}
    expected_counts = {name: targets[name] for name in groups} if verb == "replace" else {}
    follow(
        lambda: statuses(session, plan.spec.cluster.name),
        verb,
        [node.id for node in taken_nodes],
        expected_counts,
        clock=time,
        timeout=2 * options.timeout,
        say=_progress,
    )


def _follow_update(session: Session, plan: Plan, options: _Options) -> None:
    """Wait until the cluster is InService again; raises ToolError where it fails or takes too long."""
    from hpkit.cluster.live.read import find

    until = time.monotonic() + 2 * options.timeout
    while options.wait:
        described = find(session, plan.spec.cluster.name).hyperpod
        status = described["ClusterStatus"]
        if status == "InService":
            click.echo("done: update")
            return
        if status == "Failed":
            raise ToolError(f"the update failed: {described.get('FailureMessage') or 'see `hpkit cluster status`'}")
        if time.monotonic() >= until:
            raise ToolError(
                "the update isn't finished; the service continues with it. To see its progress, run `hpkit cluster "
                "status`"
            )
        _progress(f"the cluster is {status}")
        time.sleep(min(15.0, max(0.0, until - time.monotonic())))


def _require_owner(verb: Verb, loaded: Loaded, plan: Plan) -> None:
    """Raise ToolError if another stack of the file creates the cluster whose nodes the command would delete."""
    from hpkit.checks.cluster import is_same_cluster

    organization, cluster = loaded.parsed.organization, plan.spec.cluster
    if verb != "delete" or not cluster.existing or organization is None:
        return
    for name, other in organization.environments.items():
        if not other.cluster.existing and is_same_cluster(plan.spec, other):
            owner = f"{plan.organization}-{name}"
            raise ToolError(
                f"nothing was done: {plan.stack} only governs the cluster {cluster.name}, and {owner} sets the counts "
                f"of its groups. Run `hpkit node delete --stack {owner}`"
            )


def _require_room(loaded: Loaded, plan: Plan, counts: Mapping[str, int], *, force: bool) -> None:
    """Raise ToolError where the organization file with fewer nodes has errors that it does not have now."""
    from hpkit.cluster.nodes.stack_file import counted
    from hpkit.config import parse
    from hpkit.project import Loaded

    document = counted(loaded.document, plan.environment, counts)
    lowered = Loaded(loaded.file, document, parse(document), loaded.environment)
    known = {(each.rule, each.path) for each in loaded.findings}
    new = [each for each in lowered.findings if each.severity == "error" and (each.rule, each.path) not in known]
    if new and not force:
        said = "\n  ".join(f"{each.rule} {each.path}: {each.message}" for each in new)
        raise ToolError(
            f"with fewer nodes, the organization file would have errors:\n  {said}\n"
            "Change the file first, or add --force"
        )


def _edited(loaded: Loaded, plan: Plan, counts: Mapping[str, int]) -> str:
    from hpkit.cluster.nodes.stack_file import with_counts

    text = _text(loaded)
    return with_counts(text, loaded.document, plan.environment, counts, file=loaded.file)


def _text(loaded: Loaded) -> str:
    from hpkit.config import read_file

    return read_file(loaded.file).decode("utf-8")


def _say_file(loaded: Loaded, plan: Plan, counts: Mapping[str, int], *, write: bool) -> None:
    """Write the groups' new counts into the organization file, or say which they are."""
    from hpkit.cluster.nodes.stack_file import count_paths

    if not counts:
        return
    if write:
        try:
            Path(loaded.file).write_text(_edited(loaded, plan, counts), encoding="utf-8")
            acted("write", loaded.file)
        except OSError as error:
            raise InputError(f"{loaded.file} can't be written: {error.strerror}; lower the counts by hand") from None
    paths = count_paths(loaded.document, plan.environment)
    for group, count in counts.items():
        if group in paths:
            mark = loaded.document.locate(paths[group])
            verb = "is now" if write else "must become"
            click.echo(f"{mark.file or loaded.file}:{mark.line}:{mark.column}: instanceCount of {group} {verb} {count}")
    if write:
        next_step = (
            "lower the counts where the cluster is managed too, or its stack or tool creates new nodes"
            if plan.spec.cluster.existing
            else f"`pulumi up --stack {plan.stack}`, which has nothing to change in the groups"
        )
        click.echo(f"next: {next_step}")
