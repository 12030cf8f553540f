"""`hpkit job`: manifests for a team, written and looked over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import click

from hpkit.cli.completion import complete_teams, stack_option
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, colored, folded, output_option, output_options
from hpkit.cli.live_common import choose_stack
from hpkit.cluster.jobs.kinds import KINDS
from hpkit.text.plural import plural

if TYPE_CHECKING:
    from hpkit.cluster.jobs.lint import JobFinding

__all__ = ["JobLint", "lint", "new"]

_COLORS = {"error": "red", "warning": "yellow"}


class _Finding(TypedDict):
    file: str
    line: int
    column: int
    severity: Literal["error", "warning"]
    check: str
    message: str
    fix: str


class JobLint(TypedDict):
    """The problems of job manifests."""

    findings: list[_Finding]
    fixed: Annotated[list[_Finding], "What --write fixed in the files."]


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
    output: Path | None,
    force: bool,
) -> None:
    """Write a job manifest that task governance admits: queue, priority, topology, and whole instances.

    Reports on standard error whether the job fits the team's own quota, fits only with borrowed capacity, or can never
    run. In the last case it writes nothing and exits 1.
    """
    import yaml

    from hpkit.cluster.jobs.new import manifest, team_of, verdict

    plan = choose_stack(stack)
    team_plan = team_of(plan, team)
    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} already exists; name another file, or add --force")
    document = manifest(
        plan,
        team_plan,
        kind=kind or ("job" if "training" in team_plan.spec.workloads else "deployment"),
        name=_name(name),
        instance_type=instance_type,
        count=count,
        priority=priority,
        topology=_topology(topology),
        image=image,
    )
    fit = verdict(plan, team_plan, document)
    click.echo(folded(f"{fit.words[:1].upper()}{fit.words[1:]}.", "", ""), err=True)
    if fit.kind == "never":
        sys.exit(1)
    text = yaml.safe_dump(document, sort_keys=False)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


def _name(name: str) -> str:
    """Return a name that an object of Kubernetes can have (RFC 1123, and short enough for what pods add to it)."""
    import re

    if len(name) > 50 or not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise click.UsageError(
            f"--name {name}: use lowercase letters, digits and hyphens (not at the ends), at most 50 characters"
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


@click.command("lint")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@stack_option("Stack to check against; required if the project has several")
@click.option("--write", is_flag=True, help="Fix errors in the files where possible.")
@output_options("text", "json", documents=("hpkit.cli.job:JobLint",))
def lint(files: tuple[Path, ...], stack: str | None, write: bool) -> Output:
    """Check job manifests: queue, priority, topology, requests that can never be admitted, and rejected pods.

    Exits 1 if an error remains. Documents that Kueue doesn't queue are skipped.
    """
    from hpkit.cluster.jobs.lint import lint as findings_of
    from hpkit.cluster.jobs.lint import read_manifests, repaired
    from hpkit.errors import InputError

    plan = choose_stack(stack)
    manifests = []
    for file in files:
        try:
            # As bytes: line ends stay what they are.
            manifests.append((file, read_manifests(os.fspath(file), file.read_bytes().decode("utf-8"))))
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{file}: isn't valid UTF-8") from None
    findings: list[JobFinding] = []
    fixed: list[JobFinding] = []
    for file, manifest in manifests:
        repaired_manifest, done = repaired(manifest, plan) if write else (manifest, [])
        fixed += done
        findings += findings_of(repaired_manifest, plan)
        if done:
            file.write_bytes(repaired_manifest.text.encode("utf-8"))
    errors = any(finding.severity == "error" for finding in findings)
    summary = [] if errors else [f"{plural(len(files), 'file')}: no errors"]
    return Output(
        errors,
        text=lambda: "\n".join([*_lines(findings, fixed), *summary]),
        json=lambda: json_document(JobLint, findings=[*map(_as_dict, findings)], fixed=[*map(_as_dict, fixed)]),
    )


def _as_dict(finding: JobFinding) -> _Finding:
    return {
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "severity": finding.severity,
        "check": finding.check,
        "message": finding.message,
        "fix": finding.fix,
    }


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
