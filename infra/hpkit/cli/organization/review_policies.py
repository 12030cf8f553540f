"""The policy pack's reports about the stacks that a change affects, at the base and at the head."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpkit.changes.plan_diff import Change
from hpkit.changes.review.build import StackInput, StackVersion, accounts_of, plan_of
from hpkit.checks import Finding
from hpkit.cli.organization.review_git import Base, content_at
from hpkit.cli.organization.review_scope import Scope
from hpkit.cli.organization.validate_policies import checked_settings, stack_findings
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit.project import Loaded, policy_file, policy_settings

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = ["violations_of"]

# Returns what a plan registers in a stack with this name and account; "" is an unknown account.
Record = Callable[[Plan, str, str], "Recording"]


def violations_of(
    folder: Path, base: Base, scope: Scope, stack: StackInput, record: Record
) -> Change[Sequence[Finding]]:
    """Return the policy pack's reports about each side of a stack, including advisory policies.

    None is a base that errors keep from being checked; a head with errors isn't checked either, and has none. The base
    is checked only if the head violates a policy, to distinguish new violations from old ones, because a recording
    takes about half a second. Raises InputError for an invalid policy file at the head.
    """
    was, now = accounts_of(plan_of(stack.before), plan_of(stack.after))
    name = policy_file(Path(stack.file).stem)
    settings = policy_settings(Path(stack.file).stem)
    if _has_errors(stack.after):
        return Change((), ())
    head_findings = _violations(
        scope.after.get(stack.file), stack.after, settings, lambda plan: record(plan, stack.stack, now)
    )
    if not head_findings:
        return Change((), ())
    content = content_at(folder, base, name)
    base_settings = None if content is None else (name, content.decode("utf-8", "replace"))
    loaded = scope.before.get(stack.file)
    try:
        base_findings = _violations(loaded, stack.before, base_settings, lambda plan: record(plan, stack.stack, was))
    except Exception as error:
        # The program might not be able to build a plan with errors, regardless of its message.
        if not isinstance(error, InputError) and not _has_errors(stack.before):
            raise
        return Change(None, head_findings)
    return Change(base_findings, head_findings)


def _has_errors(version: StackVersion | None) -> bool:
    return version is not None and any(finding.severity == "error" for finding in version.file.findings)


def _violations(
    loaded: Loaded | None,
    version: StackVersion | None,
    settings: tuple[str, str] | None,
    record: "Callable[[Plan], Recording]",
) -> Sequence[Finding] | None:
    """Return the violations of one side; None if it couldn't be read, and none without a side."""
    if version is None:
        return ()
    plan = plan_of(version)
    if loaded is None or plan is None:
        return None
    given = checked_settings(settings)
    return stack_findings(loaded.file, loaded.document, record(plan), given)
