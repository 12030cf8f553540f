"""`hpkit review`: what a change does, stack by stack, before it lands."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.changes.plan_diff import Change
from hpkit.changes.review import review
from hpkit.changes.review.model import Preview, ScenarioChange
from hpkit.changes.review.setting_risks import PolicySettings
from hpkit.cli.common.completion import stacks_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options, width
from hpkit.cli.organization.review_git import Base, content_at, find_base
from hpkit.cli.organization.review_policies import violations_of
from hpkit.cli.organization.review_scope import Scope, scope_of
from hpkit.errors import InputError, ToolError
from hpkit.extensions import extension, is_installed
from hpkit.plan.model import Plan
from hpkit.project import is_local, policy_file, policy_settings, project_root, read_settings

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = ["command"]


@click.command("review")
@click.option(
    "--base", "ref", metavar="REF", help="Compare with the merge base of HEAD and REF.  [default: origin/main or main]"
)
@stacks_option("Only this stack, whether affected or not", variable=False)
@output_options(
    "text",
    "markdown",
    "json",
    documents=("hpkit.changes.review.as_json:ChangeReview",),
    help="markdown: a comment for a pull request.",
)
@click.option("--scenario", metavar="FILE", help="Also simulate this scenario's tasks before and after the change.")
@click.option("--preview", is_flag=True, help="Run `pulumi preview` for each affected stack too.")
def command(ref: str | None, stacks: tuple[str, ...], scenario: str | None, preview: bool) -> Output:
    """Show how the changes in the working tree affect stacks.

    Shows losses (worst first) with affected teams and cost, new and fixed findings, each team's quota before and after,
    and capacity. Exit codes: 0, can be deployed; 1, blocked by errors or a replacement that isn't allowed; 2, usage
    error.
    """
    from hpkit.changes.review.as_json import ChangeReview
    from hpkit.changes.review.as_markdown import as_markdown
    from hpkit.changes.review.as_text import as_text
    from hpkit.project import today

    folder = project_root()
    base = find_base(folder, ref)
    scope = scope_of(folder, base, stacks)
    previews = _previews(folder, scope) if preview else {}
    policies = {file: _policies(folder, base, file) for file in {each.file for each in scope.stacks}}
    recordings = _Recordings()
    violations = {each.stack: violations_of(folder, base, scope, each, recordings.record) for each in scope.stacks}
    result = review(
        scope.files,
        scope.stacks,
        record=recordings.record,
        base=base.ref,
        commit=base.commit,
        notes=scope.notes,
        previews=previews,
        scenarios=_scenarios(scope, scenario) if scenario else {},
        policies=policies,
        violations=violations,
        today=today(),
    )
    if click.get_current_context().params["output"]:
        click.echo(f"verdict: {result.verdict}", err=True)
    return Output(
        result.verdict == "blocked",
        text=lambda: as_text(result, width=width()),
        markdown=lambda: as_markdown(result),
        json=lambda: json_document(ChangeReview.model_validate(result)),
    )


class _Recordings:
    """Recordings of plans, one for equal plans; Pulumi is loaded only with the first of them."""

    def __init__(self) -> None:
        self._recordings: dict[tuple[str, str], list[Recording]] = {}

    def record(self, plan: Plan, stack: str, account: str) -> "Recording":
        """Return what a plan registers in a stack of an account, "" for any."""
        from hpkit.program.recording import Answers, record

        recordings = self._recordings.setdefault((stack, account), [])
        recording = next((recording for recording in recordings if recording.plan == plan), None)
        if recording is None:
            recordings.append(recording := record(plan, Answers(account=account) if account else None, stack=stack))
        return recording


def _policies(folder: Path, base: Base, file: str) -> Change[PolicySettings]:
    """Return the policy file of an organization file; nothing for a base with errors."""
    name = policy_file(Path(file).stem)
    head_settings, base_content = policy_settings(Path(file).stem), content_at(folder, base, name)
    before = None
    if base_content is not None:
        with suppress(InputError):
            before = read_settings(name, base_content)
    return Change(before, None if head_settings is None else read_settings(*head_settings))


def _scenarios(scope: Scope, file: str) -> dict[str, ScenarioChange]:
    changes: dict[str, ScenarioChange] = extension("scenario-changes")(scope.stacks, file)
    return changes


def _previews(folder: Path, scope: Scope) -> dict[str, Preview]:
    from hpkit.cli.common.output import pulumi_environment
    from hpkit.cli.organization.review_preview import run_preview

    environment = pulumi_environment()
    previews = {}
    for name in (each.stack for each in scope.stacks if each.after is not None):
        try:
            own = _environment_of(name, folder, environment)
        except ToolError as error:
            previews[name] = Preview((), 0, (str(error),), ran=False)
        else:
            previews[name] = run_preview(name, folder, own)
    return previews


def _environment_of(stack: str, folder: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment for a stack: each has its own local cloud."""
    if is_local(environment) and is_installed("stack-environment"):
        own: Mapping[str, str] = extension("stack-environment")(folder, stack, environment)
        return own
    return environment
