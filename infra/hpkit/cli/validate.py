"""`hpkit validate`: every finding of the named organizations, in one run."""

import datetime
import sys
from dataclasses import replace

import click

from hpkit.checks import Finding, check, summarize
from hpkit.cli.formats import WRITERS
from hpkit.cli.inputs import Loaded, project_root, resolve
from hpkit.config.chart import chart_problems

__all__ = ["command", "findings_of"]


def findings_of(loaded: Loaded) -> list[Finding]:
    """Return a file's findings; for one stack, without those of other environments."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    parsed = loaded.parsed
    if parsed.organization is not None:
        charts = chart_problems(project_root(), parsed.organization)
        parsed = replace(parsed, problems=(*parsed.problems, *charts))
    findings = check(loaded.document, parsed, file=loaded.file, today=today)
    if loaded.environment is None:
        return findings
    own = f"environments.{loaded.environment}"
    return [
        finding
        for finding in findings
        if not finding.path.startswith("environments.") or f"{finding.path}.".startswith(f"{own}.")
    ]


@click.command("validate")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--stack", "stacks", multiple=True, metavar="S", help="Only this stack; may be repeated.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="github: annotations of a workflow; sarif: for code scanning.",
)
def command(files: tuple[str, ...], stacks: tuple[str, ...], form: str) -> None:
    """Check organization files; every finding in one run.

    Without FILE or --stack, all of stacks/*.yaml. Exit 0: no error; 1: errors found; 2: misuse.
    """
    loaded = resolve(files, stacks)
    findings = [finding for each in loaded for finding in findings_of(each)]
    click.echo(WRITERS[form](findings, loaded), nl=form != "github" or bool(findings))
    sys.exit(1 if summarize(findings).errors else 0)
