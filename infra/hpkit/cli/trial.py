"""`hpkit aws trial`: test everything on an account with a small platform, and report what differs."""

from __future__ import annotations

import importlib.metadata
import math
import os
import re
import shlex
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.aws_session import aws_session
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, folded, output_options
from hpkit.cli.live_common import profile_option
from hpkit.cli.output import confirm
from hpkit.cli.tools import pulumi_environment
from hpkit.errors import ToolError
from hpkit.project import is_local
from hpkit.text.plural import plural
from hpkit.trial.organization import STACK
from hpkit.trial.report import StepReport, TrialReport, markdown

if TYPE_CHECKING:
    from hpkit.trial.organization import Place
    from hpkit.trial.site import Site

__all__ = ["command"]

_DEFAULT_BUDGET = 10
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# Account numbers, and the name of a user or of a session, which is often an email address.
_ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")
_CALLER = re.compile(r"(:user/|:assumed-role/[^/\s\"]+/)[^\s\"\\,;]+")


@click.command("trial")
@click.option("--region", metavar="REGION", default="us-west-2", show_default=True, help="AWS region.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=_DEFAULT_BUDGET,
    show_default=True,
    metavar="USD",
    help="Delete everything before the estimated cost reaches this.",
)
@click.option("--keep", is_flag=True, help="Keep the platform at the end, also after a failure, whatever it costs.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default="hpkit-trial",
    show_default=True,
    help="Folder of the project, its state, logs and reports.",
)
@click.option("--yes", is_flag=True, help="Skip the confirmation, for automation.")
@profile_option
@output_options("text", "json", documents=("hpkit.trial.report:TrialReport",))
def command(
    region: str,
    budget: int,
    keep: bool,
    directory: Path,
    yes: bool,
    profile: str | None,
) -> Output:
    """Test hpkit on an account: create a small platform without GPUs, use it, and delete it.

    This takes about three hours. The command shows the cost, and asks. If a step fails, and on Ctrl-C, it deletes
    everything. If it was killed, run it again to delete what is left.

    The report lists missing permissions, long waits, and differences from the local cloud. Exits 1 if a step fails or
    something is left.
    """
    from hpkit.clients.processes import Interrupts
    from hpkit.trial.account import place_of, require_no_trial
    from hpkit.trial.run import run_steps, tear_down
    from hpkit.trial.site import Site, now, region_left

    directory = directory.resolve()
    region = region_left(directory) or region
    environment = pulumi_environment()
    if profile:
        # In child processes, keys in the environment would win over a profile in the environment.
        environment = {name: value for name, value in environment.items() if name not in _KEYS}
        environment["AWS_PROFILE"] = profile
    interrupts, version = Interrupts(_say), importlib.metadata.version("hpkit")
    with ExitStack() as stack:
        site = Site(
            directory,
            session=aws_session(profile, region),
            environment=environment,
            interrupts=interrupts,
            version=version,
        )
        stack.enter_context(site.locked())
        # Commands of the trial find their project in the current folder.
        os.chdir(directory)
        begun, steps = now(), list[StepReport]()
        earlier = site.resources()
        if earlier:
            _ask(f"An earlier trial left {plural(len(earlier), 'resource')} in {region}. Delete them?", yes=yes)
            hourly = Decimal(0)
        else:
            require_no_trial(site.session)
            place = place_of(site.session)
            site.prepare(place)
            hourly = _announced(site, place, budget)
            _ask("Create it?", yes=yes)
            site.create_stack()
            begun = now()
            site.budget_until = begun + _seconds(budget, hourly)
        is_kept = keep and not earlier
        with interrupts.counted():
            try:
                if not earlier:
                    steps = run_steps(site, place, keep=keep, say=_say)
            finally:
                left = site.resources() if is_kept else tear_down(site, say=_say)
    is_ok = not any(step["status"] == "failed" for step in steps) and (is_kept or not left)
    report = TrialReport(
        hpkit=version,
        region=region,
        onLocalCloud=is_local(os.environ),
        hourly=f"{hourly:.2f}",
        seconds=round(now() - begun, 1),
        outcome="ok" if is_ok else "failed",
        steps=steps,
        denied=sorted(site.denied),
        left=left,
        ended="" if is_kept or not left else site.stop_reason() or "it failed; logs/teardown.log has the errors",
        commands=_commands(site, profile) if left else [],
    )
    texts = [_anonymous(text) for text in (markdown(report), json_document(TrialReport, **report))]
    for name, text in zip(("report.md", "report.json"), texts, strict=True):
        (directory / name).write_text(text, encoding="utf-8")
        _say(f"wrote {directory / name}")
    return Output(int(not is_ok), text=lambda: texts[0], json=lambda: texts[1])


def _say(line: str) -> None:
    # After a terminal was closed, and in a signal handler during another message, the deletion must go on.
    with suppress(OSError, RuntimeError):
        click.echo(folded(line, "   ", ""), err=True)


def _ask(question: str, *, yes: bool) -> None:
    if not yes:
        confirm(question)


def _announced(site: Site, place: Place, budget: int) -> Decimal:
    """Show what is created and its cost; return US dollars per hour. Raises ToolError if the budget isn't enough."""
    from hpkit.trial.account import hourly_cost
    from hpkit.trial.run import TEARDOWN_SECONDS
    from hpkit.trial.site import StepError

    try:
        site.command("hpkit", "catalog", "refresh")
    except StepError as error:
        _say(f"warning: prices of {place.region} can't be read, so hpkit's own are used: {error}")
    hourly, unknown = hourly_cost(site.plan())
    if unknown:
        raise ToolError(
            f"nothing was created, because these have no known price in {place.region}: {', '.join(unknown)}. Allow "
            "pricing:GetProducts, or choose another --region"
        )
    least = hourly * 2 * Decimal(TEARDOWN_SECONDS) / 3600
    if budget < least:
        raise ToolError(
            f"nothing was created, because --budget {budget} isn't enough: an hour costs {hourly:.2f} USD, and "
            f"deleting everything can take 90 minutes. Use at least --budget {math.ceil(least)}"
        )
    if site.environment.get("AWS_SESSION_TOKEN"):
        _say("warning: AWS_SESSION_TOKEN can't be renewed, so it must last three hours. Otherwise, use --profile")
    specs = [group.spec for group in site.plan().groups if group.spec.instance_count]
    groups = ", ".join(f"{spec.instance_count} × {spec.instance_type}" for spec in specs)
    _say(
        f"This creates in account {place.account}, {place.region}: a VPC, an EKS cluster, and a HyperPod cluster with "
        f"{groups}. An hour costs about {hourly:.2f} USD, without volumes, logs and transferred data. The trial takes "
        f"about three hours, and deletes everything before {budget} USD. This machine must stay awake and online"
    )
    return hourly


def _seconds(budget: int, hourly: Decimal) -> float:
    """Return after how many seconds the teardown must begin, so that the cost stays below the budget."""
    from hpkit.trial.run import TEARDOWN_SECONDS

    return float(budget / hourly * 3600) - TEARDOWN_SECONDS


def _anonymous(text: str) -> str:
    """Return a report that can be shown to others: without account numbers and names of users."""
    return _CALLER.sub(r"\1name", _ACCOUNT.sub("111122223333", text))


def _commands(site: Site, profile: str | None) -> list[str]:
    folder = shlex.quote(str(site.folder))
    names = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE_FILE")
    variables = " ".join(f"{name}={shlex.quote(site.environment[name])}" for name in names)
    option = ""
    if profile:
        option, variables = f" --profile {shlex.quote(profile)}", f"AWS_PROFILE={shlex.quote(profile)} {variables}"
    return [
        f"hpkit aws trial --directory {folder}{option}",
        f"cd {folder} && {variables} hpkit aws destroy --stack {STACK}",
    ]
