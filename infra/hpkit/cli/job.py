"""`hpkit job`: manifests for a team, written and looked over."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.completion import complete_teams, stack_option
from hpkit.cli.formats import colored, folded, output_option
from hpkit.cli.live_common import choose_stack
from hpkit.cluster.jobs.kinds import KINDS
from hpkit.text.plural import plural

if TYPE_CHECKING:
    from hpkit.cluster.jobs.lint import JobFinding

__all__ = ["lint", "new"]

_COLORS = {"error": "red", "warning": "yellow"}


@click.command("new")
@stack_option("The stack that it is for; needed where the project has several")
@click.option("--team", required=True, metavar="T", shell_complete=complete_teams, help="Whose quota it takes.")
@click.option("--kind", type=click.Choice(KINDS), default="job", show_default=True)
@click.option("--name", default="train", show_default=True, metavar="NAME", help="Name of the job.")
@click.option("--instance-type", required=True, metavar="TYPE", help="Each pod has an instance of it to itself.")
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="How many pods.")
@click.option("--priority", metavar="P", help="A priority class of the cluster policy, such as `training`.")
@click.option("--topology", metavar="MODE:LAYER", help="`required:3`, `preferred:2`, …: pods under one network node.")
@click.option("--image", default="train", show_default=True, metavar="IMAGE", help="Image of the container.")
@output_option()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def new(
    stack: str | None,
    team: str,
    kind: str,
    name: str,
    instance_type: str,
    count: int,
    priority: str | None,
    topology: str | None,
    image: str,
    output: Path | None,
    force: bool,
) -> None:
    """Write a manifest that task governance admits: namespace, queue, priority, topology, and whole instances.

    Says on standard error whether it fits the team's own quota, only with what others lend, or never; then it exits 1.
    """
    import yaml

    from hpkit.cluster.jobs.new import manifest, team_of, verdict

    plan = choose_stack(stack)
    whose = team_of(plan, team)
    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} is there already; name another file, or add --force")
    document = manifest(
        plan,
        whose,
        kind=kind,
        name=_name(name),
        instance_type=instance_type,
        count=count,
        priority=priority,
        topology=_topology(topology),
        image=image,
    )
    found = verdict(plan, whose, document)
    text = yaml.safe_dump(document, sort_keys=False)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
    click.echo(folded(f"{found.words[:1].upper()}{found.words[1:]}.", "", ""), err=True)
    if found.kind == "never":
        sys.exit(1)


def _name(name: str) -> str:
    """Return a name that an object of Kubernetes can have (RFC 1123, and short enough for what pods add to it)."""
    import re

    if len(name) > 50 or not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise click.UsageError(f"--name {name}: lower-case letters, digits and hyphens inside, at most 50")
    return name


def _topology(text: str | None) -> tuple[str, str] | None:
    """Return the mode and the node label of what `--topology` says."""
    if text is None:
        return None
    from hpkit.catalog import NETWORK_LAYERS

    mode, _, layer = text.partition(":")
    layers = {str(number): label for number, label in enumerate(NETWORK_LAYERS, 1)} | {
        each: each for each in NETWORK_LAYERS
    }
    if mode not in ("required", "preferred") or layer not in layers:
        raise click.UsageError(
            f"--topology {text}: write required:LAYER or preferred:LAYER, with LAYER 1 (wide) to 3 (near)"
        )
    return mode, layers[layer]


@click.command("lint")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@stack_option("The stack that they are for; needed where the project has several")
@click.option("--write", is_flag=True, help="Fix what can be fixed, in the files.")
def lint(files: tuple[Path, ...], stack: str | None, write: bool) -> None:
    """Check manifests: queue, priority, topology, requests that can never be admitted, pods that are refused.

    Exit 1 if a job has an error that stays. Documents that Kueue does not queue are passed over.
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
            raise InputError(f"{file}: is no UTF-8") from None
    errors = 0
    for file, given in manifests:
        found, done = repaired(given, plan) if write else (given, [])
        for finding in done:
            click.echo(f"{_where(finding)}: fixed: {finding.fix}")
        for finding in findings_of(found, plan):
            errors += finding.severity == "error"
            _print(finding)
        if done:
            file.write_bytes(found.text.encode("utf-8"))
    if not errors:
        click.echo(f"{plural(len(files), 'file')}: no error")
        return
    sys.exit(1)


def _where(finding: JobFinding) -> str:
    return f"{finding.file}:{finding.line}:{finding.column}"


def _print(finding: JobFinding) -> None:
    label = colored(finding.severity, fg=_COLORS[finding.severity], bold=True)
    click.echo(f"{_where(finding)}: {label} {finding.check}")
    click.echo(folded(f"{finding.message}.", "    "))
    click.echo(folded(f"{finding.fix}.", "    "))
