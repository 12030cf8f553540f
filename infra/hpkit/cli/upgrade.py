"""`hpkit cluster upgrade`: outdated versions, the order of upgrades, and each step's effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import click

from hpkit.cli.aws_session import aws_session
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, folded, output_options
from hpkit.cli.inputs import choose_file
from hpkit.cli.live_common import observe, platform_options, rights
from hpkit.errors import InputError, ToolError

if TYPE_CHECKING:
    from hpkit.changes import Recorded
    from hpkit.cluster.upgrade.model import Running, UpgradePlan
    from hpkit.cluster.upgrade.patches import PatchedStep
    from hpkit.plan.model import Plan

__all__ = ["Upgrade", "command"]


class _Step(TypedDict):
    title: str
    why: str
    read: Annotated[list[str], "Links."]
    run: Annotated[list[str], "Commands."]
    patch: Annotated[str, "Change of the organization file."]
    effects: list[str]
    problem: str | None


class Upgrade(TypedDict):
    """Outdated versions, and the steps of an upgrade."""

    stack: str
    kubernetes: str
    asked: Annotated[bool, "Whether the versions come from AWS; otherwise, from the organization file."]
    behind: list[str]
    blocked: list[str]
    notes: list[str]
    steps: list[_Step]


@click.command("upgrade", epilog=rights("cluster upgrade"))
@platform_options
@click.option(
    "--kubernetes", "target", metavar="VERSION", help="Target Kubernetes version. Default: the newest offered."
)
@click.option("--offline", is_flag=True, help="Use the file's versions as the running ones, without calling AWS.")
@click.option("--quick", is_flag=True, help="Skip computing what each step replaces; faster.")
@click.option(
    "--patches", type=click.Path(file_okay=False, path_type=Path), help="Write each step's patch to this folder."
)
@output_options("text", "json", documents=("hpkit.cli.upgrade:Upgrade",))
def command(
    stack: str | None,
    profile: str | None,
    target: str | None,
    offline: bool,
    quick: bool,
    patches: Path | None,
) -> Output:
    """Show which Kubernetes version, add-ons and AMIs are out of date, and the steps of an upgrade.

    For each step: the patch of the organization file, what it replaces, deletes and updates, what to read first, and
    what to run. Nothing is changed.
    """
    from hpkit.cluster.upgrade.patches import patched
    from hpkit.cluster.upgrade.steps import plan_upgrade, versions_between
    from hpkit.config import read_file
    from hpkit.project import today

    loaded, plan = choose_file(stack)
    running = _running(plan, profile, target, offline=offline)
    upgrade = plan_upgrade(plan, running, versions_between(running.kubernetes, target, today()), today())
    text = read_file(loaded.file).decode("utf-8")
    record = None if quick else _record
    steps = list(patched(text, plan, upgrade.steps, file=loaded.file, record=record, read=loaded.with_text))
    if patches is not None:
        _write(patches, steps)
    return Output(
        text=lambda: _print(plan, running, upgrade, steps),
        json=lambda: json_document(Upgrade, **_as_dict(plan, running, upgrade, steps)),
    )


def _record(plan: Plan) -> Recorded:
    from hpkit.program.recording import record

    return record(plan)


def _running(plan: Plan, profile: str | None, target: str | None, *, offline: bool) -> Running:
    from hpkit.cluster.upgrade.model import Running
    from hpkit.cluster.upgrade.read import offered_addons, running_of
    from hpkit.cluster.upgrade.steps import versions_between
    from hpkit.project import today

    if offline:
        return Running(plan.spec.eks.version, {each.name: each.version for each in plan.addons if each.version})
    observed = observe(plan, profile, aws=("nodes", "addons"), inside=False)
    if observed.platform is None:
        raise ToolError("the running versions couldn't be read; see the warnings above, or add --offline")
    current = observed.platform.kubernetes
    versions = (current, *versions_between(current, target, today()))
    names = sorted({addon.name for addon in observed.platform.addons} | set(plan.spec.addons))
    offered, failed = offered_addons(aws_session(profile, plan.spec.region), names, versions)
    for each in failed:
        click.echo(f"warning: not read: {each}", err=True)
    return running_of(observed, offered)


def _write(folder: Path, steps: Sequence[PatchedStep]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, step in enumerate(steps, 1):
            if step.patch:
                file = folder / f"{number:02}.patch"
                file.write_text(step.patch, encoding="utf-8")
                click.echo(f"wrote {file}", err=True)
    except OSError as error:
        raise InputError(f"{folder} can't be written: {error.strerror}; name another folder with --patches") from None


def _effects(patched_step: PatchedStep) -> Iterator[str]:
    """Yield a step's effects on existing resources: the most severe first, each once."""
    if patched_step.change is None:
        return
    lost = [f"{step.action}s {step.name} ({step.type.rpartition(':')[2]})" for step in patched_step.change.lost]
    yield from lost
    yield from (decision.message for decision in patched_step.change.decisions if decision.refused)
    updates = [step for step in patched_step.change.of("update") if step.holds]
    if updates:
        names = ", ".join(f"{step.type.rpartition(':')[2]} {step.name}" for step in updates)
        yield f"updates in place: {names}"
    if not lost:
        yield "no resource is replaced or deleted"


def _as_dict(plan: Plan, running: Running, upgrade: UpgradePlan, steps: Sequence[PatchedStep]) -> Upgrade:
    return {
        "stack": plan.stack,
        "kubernetes": running.kubernetes,
        "asked": running.known,
        "behind": list(upgrade.behind),
        "blocked": list(upgrade.blocked),
        "notes": list(upgrade.notes),
        "steps": [
            {
                "title": patched.step.title,
                "why": patched.step.why,
                "read": list(patched.step.reads),
                "run": list(patched.step.commands),
                "patch": patched.patch,
                "effects": list(_effects(patched)),
                "problem": patched.problem or None,
            }
            for patched in steps
        ],
    }


def _print(plan: Plan, running: Running, upgrade: UpgradePlan, steps: Sequence[PatchedStep]) -> None:
    source = "running platform" if running.known else "from the file, without calling AWS"
    click.echo(f"{plan.stack}: Kubernetes {running.kubernetes} ({source})")
    for title, lines in (("first", upgrade.blocked), ("behind", upgrade.behind), ("soon", upgrade.notes)):
        for number, line in enumerate(lines):
            if not number:
                click.echo(title)
            click.echo(folded(line, "    ", "  "))
    if not steps:
        click.echo("no steps: nothing in the organization file has to change" if upgrade.behind else "nothing to do")
    for number, step in enumerate(steps, 1):
        _print_step(number, step)


def _print_step(number: int, step: PatchedStep) -> None:
    click.echo(f"\n{number}. {step.step.title}")
    click.echo(folded(step.step.why, "   "))
    if step.problem:
        click.echo(folded(f"no patch: {step.problem}", "   "))
    for line in _effects(step):
        click.echo(folded(line, "     ", "   "))
    for link in step.step.reads:
        click.echo(f"   read {link}")
    for line in step.patch.splitlines():
        click.echo(f"   {line}")
    for line in step.step.commands:
        click.echo(f"   run  {line}")
