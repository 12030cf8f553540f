"""`hpkit validate`: every finding of the named organizations, in one run."""

import sys

import click

from hpkit.checks import Finding, summarize
from hpkit.cli.common.completion import stacks_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, Validation, findings_github, findings_sarif, findings_text, output_options
from hpkit.cli.common.output import own
from hpkit.project import cluster_problems, listed_findings, policy_file, policy_settings, project_findings, select
from hpkit.text.formatting import listing

__all__ = ["command"]


@click.command("validate")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@stacks_option(variable=False)
@output_options(
    "text",
    "json",
    "github",
    "sarif",
    documents=("hpkit.cli.common.formats:Validation",),
    help="github: workflow annotations; sarif: for code scanning.",
)
@click.option(
    "--policies", is_flag=True, help="Apply the policy pack to the program's resources too; takes about a second."
)
def command(files: tuple[str, ...], stacks: tuple[str, ...], *, policies: bool) -> Output:
    """Check organization files, and report all findings in one run.

    Without FILE or --stack, checks all of stacks/*.yaml. Exit codes: 0, no errors; 1, errors; 2, usage error.
    """
    loaded = select(files, stacks)
    others = cluster_problems(loaded) if files or stacks else project_findings(loaded)
    findings = [*listed_findings(loaded), *others]
    if policies and summarize(findings).errors:
        click.echo("policies are skipped until these errors are fixed", err=True)
    elif policies:
        from hpkit.cli.organization.validate_policies import policy_findings

        others += [finding for each in loaded for finding in policy_findings(each)]
        findings = [*listed_findings(loaded), *others]
    else:
        organizations = [each.parsed.organization.organization for each in loaded if each.parsed.organization]
        if settings := [policy_file(name) for name in organizations if policy_settings(name)]:
            click.echo(f"not applied: {listing(settings)}; to apply: hpkit validate --policies", err=True)
    summary = summarize(findings)

    def in_every_place() -> list[Finding]:
        return [*listed_findings(loaded, every_place=True), *others]

    return Output(
        summary.errors > 0,
        text=lambda: findings_text(findings, loaded),
        json=lambda: json_document(Validation(findings=findings, summary=summary)),
        sarif=lambda: findings_sarif(in_every_place()),
        github=lambda: click.echo(findings_github(in_every_place()), file=own(sys.stdout), nl=bool(findings)),
    )
