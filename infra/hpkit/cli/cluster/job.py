"""`hpkit job`: manifests for a team, written and looked over."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from pydantic import AliasPath, Field

from hpkit.cli.common.aws_session import aws_session
from hpkit.cli.common.completion import complete_teams, stack_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, colored, folded, output_option, output_options
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.live import kubernetes_api, observe, profile_option, rights
from hpkit.cluster.jobs.kinds import KINDS
from hpkit.text.document import Document, TextOrNull
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from hpkit.cluster.jobs.check import JobFinding
    from hpkit.cluster.jobs.forecast import Forecast
    from hpkit.cluster.jobs.server import Server
    from hpkit.plan.model import Plan

__all__ = ["JobCheck", "api_server", "check", "new"]

_FATES = {
    "now": "starts at once",
    "borrowing": "starts by borrowing",
    "unknown": "may start",
    "waits": "waits",
    "never": "never runs",
}
_COLORS = {"error": "red", "warning": "yellow"}


class _Finding(Document):
    file: str
    line: int
    column: int
    severity: Literal["error", "warning"]
    check: str
    message: str
    fix: str


class _Forecast(Document):
    name: str = Field(validation_alias=AliasPath("task", "owner_name"))
    team: str = Field(validation_alias=AliasPath("task", "team"))
    fate: Literal["now", "borrowing", "unknown", "waits", "never"] = Field(
        description="now: on its team's quota; borrowing: now, on lent quota; unknown: it has quota, but whether nodes "
        "have room isn't known."
    )
    reason: str
    borrows_from: list[str] = Field(description="Teams that have what it borrows idle.")
    preempts: list[str] = Field(description="Tasks that it preempts to start.")
    may_be_preempted_by: list[str]
    holders: list[str] = Field(description="Teams that hold the quota for which it waits.")
    would_run_if: list[str] = Field(validation_alias="remedies")
    could_run_at: datetime | None = Field(validation_alias="runs_at")
    when: TextOrNull


class JobCheck(Document):
    """The problems of job manifests, and with --live, what Kueue would do with each job now."""

    findings: list[_Finding]
    fixed: list[_Finding] = Field(description="What --write fixed in the files.")
    forecasts: list[_Forecast] = Field(
        description="One per job; one per pod of a Deployment. Empty without --live. With an error: only never."
    )


@click.command("new")
@stack_option("Stack to run on; required if the project has several")
@click.option(
    "--team", required=True, metavar="T", shell_complete=complete_teams, help="Team whose quota the job uses."
)
@click.option(
    "--kind", type=click.Choice(KINDS), help="Default: job, or deployment for a team that runs only inference."
)
@click.option("--name", default="train", show_default=True, metavar="NAME", help="Name of the job.")
@click.option("--instance-type", required=True, metavar="TYPE", help="Instance type. Each pod gets a whole instance.")
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Number of pods.")
@click.option("--priority", metavar="P", help="Priority class of the cluster policy, such as `training`.")
@click.option(
    "--topology", metavar="MODE:LAYER", help="Place all pods under one network node: `required:3`, `preferred:2`, …."
)
@click.option("--image", default="train", show_default=True, metavar="IMAGE", help="Container image.")
@click.option(
    "--checkpoint", metavar="PATH", help="Folder of checkpoints: `/fsx/…` on fsx-claim, or `s3://BUCKET/PREFIX`."
)
@output_option()
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def new(
    stack: str | None,
    team: str,
    kind: str | None,
    name: str,
    instance_type: str,
    count: int,
    priority: str | None,
    topology: str | None,
    image: str,
    checkpoint: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write a job manifest that task governance admits: queue, priority, topology, and whole instances.

    Reports on standard error whether the job fits the team's own quota, fits only with borrowed capacity, or can never
    run. In the last case it writes nothing and exits 1.

    Pods of a job are named train-0.train and so on: with several, a Service for these names is written too.

    With --checkpoint, CHECKPOINTS is the path in each pod, which has up to two minutes to save after SIGTERM.
    """
    import yaml

    from hpkit.cluster.jobs.checkpoints import Checkpoints
    from hpkit.cluster.jobs.new import manifest, service_of, team_of, verdict
    from hpkit.errors import InputError

    plan = choose_stack(stack)
    team_plan = team_of(plan, team)
    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} already exists; name another file, or add --force")
    kind = kind or ("job" if "training" in team_plan.spec.workloads else "deployment")
    checkpoints = None if checkpoint is None else Checkpoints.at(checkpoint, plan, team_plan)
    document = manifest(
        plan,
        team_plan,
        kind=kind,
        name=_name(name),
        instance_type=instance_type,
        count=count,
        priority=priority,
        topology=_topology(topology),
        image=image,
        checkpoints=checkpoints,
    )
    fit = verdict(plan, team_plan, document)
    if team_plan.spec.activation_state == "Disabled":
        click.echo(
            f"Team {team} is paused (activationState: Disabled), so the job waits until the team isn't.", err=True
        )
    fewer = f" Use `--count {count - fit.surplus}`, or raise the team's quota." if fit.surplus else ""
    click.echo(folded(f"{fit.words[:1].upper()}{fit.words[1:]}.{fewer}", "", ""), err=True)
    if fit.kind == "never":
        sys.exit(1)
    if checkpoints is not None:
        click.echo(folded(f"{checkpoints.words(kind)}.", "", ""), err=True)
    service = service_of(document)
    text = yaml.safe_dump_all([document, *([] if service is None else [service])], sort_keys=False)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"{output} can't be written: {error.strerror}; specify another file with --output"
            ) from None


def _name(name: str) -> str:
    """Return a name that a Service can have (RFC 1035), short enough for what pods add to it."""
    import re

    if len(name) > 50 or not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        raise click.UsageError(
            f"--name {name}: use a lowercase letter, then letters, digits and hyphens (not at the end), at most 50 "
            "characters"
        )
    return name


def _topology(text: str | None) -> tuple[str, str] | None:
    """Return the mode and the node label in `--topology`."""
    if text is None:
        return None
    from hpkit.catalog import NETWORK_LAYERS

    mode, _, layer = text.partition(":")
    layers = {str(number): label for number, label in enumerate(NETWORK_LAYERS, 1)} | {
        each: each for each in NETWORK_LAYERS
    }
    if mode not in ("required", "preferred") or layer not in layers:
        raise click.UsageError(
            f"--topology {text}: use required:LAYER or preferred:LAYER; LAYER is 1 (widest) to 3 (closest)"
        )
    return mode, layers[layer]


@click.command("check", epilog=rights("job check"))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@stack_option("Stack to check against; required if the project has several")
@click.option("--write", is_flag=True, help="Fix errors in the files where possible.")
@click.option("--live", is_flag=True, help="Ask the API server, and show what Kueue would do with the jobs now.")
@profile_option
@output_options("text", "json", documents=("hpkit.cli.cluster.job:JobCheck",))
def check(files: tuple[Path, ...], stack: str | None, write: bool, live: bool, profile: str | None) -> Output:
    """Check job manifests: queue, priority, topology, requests that can never be admitted, and rejected pods.

    With --live, the API server checks each object as if a member of the team created it; it stores nothing. The
    simulator predicts from the running tasks whether each job starts at once, starts by borrowing, waits, or never
    runs. It takes the jobs in the order of the files, so a later job can preempt an earlier one. Exits 1 if an error
    remains or a job never runs.
    """
    from hpkit.cluster.jobs.check import check as findings_of
    from hpkit.cluster.jobs.check import read_manifests, repaired
    from hpkit.config import require_file
    from hpkit.errors import InputError

    plan = choose_stack(stack)
    manifests = []
    for file in files:
        try:
            require_file(file)
            # As bytes: line ends stay what they are.
            manifest = read_manifests(os.fspath(file), file.read_bytes().decode("utf-8"))
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{file}: isn't valid UTF-8") from None
        if not any(isinstance(document, Mapping) and document.get("kind") for document in manifest.documents):
            raise InputError(
                f"{file}: has no Kubernetes manifest, which begins with `apiVersion` and `kind`; `hpkit job new` "
                "writes one for a job"
            )
        manifests.append((file, manifest))
    fixed: list[JobFinding] = []
    checked = []
    for file, manifest in manifests:
        repaired_manifest, done = repaired(manifest, plan) if write else (manifest, [])
        fixed += done
        checked.append(repaired_manifest)
        if done:
            file.write_bytes(repaired_manifest.text.encode("utf-8"))
    documents = [document for manifest in checked for document in manifest.documents]
    findings: list[JobFinding] = []
    sound: list[Any] = []
    rejected: list[Any] = []
    with api_server(plan, profile) if live else nullcontext() as server:
        for manifest in checked:
            for document in manifest.documents:
                found = list(findings_of(replace(manifest, documents=(document,)), plan, documents, server))
                findings += found
                (rejected if any(each.severity == "error" for each in found) else sound).append(document)
    for team in server.unasked() if server is not None else ():
        click.echo(
            f"note: the API server wasn't asked, because only members of {team}, and who can impersonate them, can ask",
            err=True,
        )
    errors = any(finding.severity == "error" for finding in findings)
    forecasts = _forecasts(sound, rejected, plan, profile) if live else []
    summary = [] if errors else [f"{plural(len(files), 'file')}: no errors"]
    predicted = Counter(map(_forecast_text, forecasts))
    summary += [
        each if count == 1 else f"{each}\n  This is so for {count} of its pods." for each, count in predicted.items()
    ]
    return Output(
        errors or any(each.fate == "never" for each in forecasts),
        text=lambda: "\n".join([*_lines(findings, fixed), *summary]),
        json=lambda: json_document(
            JobCheck.model_validate({"findings": findings, "fixed": fixed, "forecasts": forecasts})
        ),
    )


@contextmanager
def api_server(plan: Plan, profile: str | None) -> Iterator[Server]:
    """Return the API server of a plan's platform, for trials."""
    from hpkit.clients.calls import ApiCall
    from hpkit.cluster.jobs.server import Server
    from hpkit.cluster.live.read import ask

    session = aws_session(profile, plan.spec.region)
    eks = ask(session, ApiCall("eks", "DescribeCluster", {"name": plan.eks_name}))["cluster"]
    with kubernetes_api(session, eks, needs="list resourceflavors.kueue.x-k8s.io") as api:
        yield Server(api)


def _forecasts(sound: list[Any], rejected: list[Any], plan: Plan, profile: str | None) -> list[Forecast]:
    """Return the forecasts of jobs without an error, and of others that never run: the rest isn't created."""
    from hpkit.cluster.jobs.forecast import predict_all, tasks_of, within_plans
    from hpkit.cluster.live.read import plan_ends
    from hpkit.kueue.organization import fair_sharing_of

    observed, strategies = observe(plan, profile, aws=()), fair_sharing_of(plan)
    good, bad = (
        predict_all(observed, tasks_of(each, plan, observed), fair_sharing=strategies) for each in (sound, rejected)
    )
    forecasts = [*good, *(each for each in bad if each.fate == "never")]
    arns = {each.spec.training_plan_arn for each in plan.groups} - {None}
    if not arns or all(each.task.longest is None for each in forecasts):
        return forecasts
    ends = plan_ends(aws_session(profile, plan.spec.region), [str(each) for each in arns])
    return [within_plans(each, plan, ends, observed.time) for each in forecasts]


def _forecast_text(forecast: Forecast) -> str:
    task = forecast.task
    fate = "starts by preemption" if forecast.preempts and forecast.fate == "now" else _FATES[forecast.fate]
    lines = [f"{task.owner_name} ({task.owner_kind} of {task.team}) {fate}: {forecast.reason}."]
    for title, parts in (
        ("Lent by", forecast.borrows_from),
        ("It preempts", forecast.preempts),
        ("It may be preempted by", forecast.may_be_preempted_by),
        ("Quota is held", forecast.holders),
        ("It could run if", forecast.remedies),
    ):
        if parts:
            lines.append(f"{title}: {'; '.join(parts)}.")
    if forecast.when:
        lines.append(f"Estimated start: {forecast.when}.")
    return "\n".join(folded(line, "    ", "  " if number else "") for number, line in enumerate(lines))


def _where(finding: JobFinding) -> str:
    return f"{finding.file}:{finding.line}:{finding.column}"


def _lines(findings: Sequence[JobFinding], fixed: Sequence[JobFinding]) -> Iterator[str]:
    for finding in fixed:
        yield f"{_where(finding)}: fixed: {finding.fix}"
    for finding in findings:
        label = colored(finding.severity, fg=_COLORS[finding.severity], bold=True)
        yield f"{_where(finding)}: {label} {finding.check}"
        yield folded(f"{finding.message}.", "    ")
        yield folded(f"{finding.fix}.", "    ")
