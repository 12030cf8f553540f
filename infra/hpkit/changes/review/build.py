"""Builds the review from base and head of a change, given the files, findings and previews; no side effects."""

import datetime
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from hpkit.changes import Recorded, StackChange, change, renamed_group, renamed_parts
from hpkit.changes.plan_diff import Change, PlanDiff, diff
from hpkit.changes.review.cost import maximum_cost, minimum_cost, platform_cost
from hpkit.changes.review.losses import losses_of
from hpkit.changes.review.model import (
    Cost,
    FileReview,
    FindingChanges,
    Loss,
    Preview,
    Review,
    Risk,
    ScenarioChange,
    StackReview,
    Status,
    Verdict,
    most_severe_first,
    worst,
)
from hpkit.changes.review.risks import risks_of, with_rename_risks
from hpkit.changes.review.setting_risks import PolicySettings, StackSettings
from hpkit.checks import Finding, unevaluated
from hpkit.checks.waivers import covers
from hpkit.config.models.organization import Waiver
from hpkit.config.reading.document import item_label
from hpkit.plan.model import Plan
from hpkit.text.formatting import listing, plural, span

__all__ = ["FileInput", "FileVersion", "StackInput", "StackVersion", "accounts_of", "plan_of", "review"]


def _compare_findings(
    before: Sequence[Finding],
    after: Sequence[Finding],
    plans: Sequence[tuple[Plan | None, Plan | None]],
    waivers: Sequence[Waiver],
    is_unknown: Callable[[str, str], bool],
) -> FindingChanges:
    """Match findings of two versions of a file; lines are ignored, because they can move.

    waivers: the head's; a finding that disappears because of one is waived, not fixed. is_unknown: whether the head
    leaves open what a rule finds at a path; such a finding is neither waived nor fixed. Matches by rule, path and
    message, then by rule and path: the same error with other numbers remains, and so does one of a renamed part.
    """
    names = {name: new for old_plan, new_plan in plans for name, new in _renames(old_plan, new_plan)}

    def renamed(finding: Finding) -> tuple[str, ...]:
        parts = re.split(r"([\[\].])", finding.path)
        return finding.rule, "".join(names.get(part, part) for part in parts)

    old, new = list(before), list(after)
    remaining: list[Finding] = []
    for key in (attrgetter("rule", "path", "message"), attrgetter("rule", "path"), renamed):
        old, new = _match(old, new, key, remaining)
    old = [each for each in old if not is_unknown(each.rule, each.path)]
    waived = [each for each in old if any(covers(waiver, each.rule, each.path) for waiver in waivers)]
    return FindingChanges(
        new=tuple(_sorted(new)),
        fixed=tuple(_sorted([each for each in old if each not in waived])),
        remaining=tuple(_sorted(remaining)),
        waived=tuple(_sorted(waived)),
    )


def _match(
    old: list[Finding], new: list[Finding], key: Callable[[Finding], tuple[str, ...]], remaining: list[Finding]
) -> tuple[list[Finding], list[Finding]]:
    waiting: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for finding in old:
        waiting[key(finding)].append(finding)
    unmatched = []
    for finding in new:
        if waiting[key(finding)]:
            waiting[key(finding)].pop(0)
            remaining.append(finding)
        else:
            unmatched.append(finding)
    return [finding for findings in waiting.values() for finding in findings], unmatched


def _renames(before: Plan | None, after: Plan | None) -> Iterator[tuple[str, str]]:
    """Yield old and new name of each instance group, team and NodePool that is probably renamed."""
    if before is None or after is None:
        return
    for key in ("teams", "nodePools"):
        yield from ((old, new) for new, old in renamed_parts(key, before, after).items())
    staying = {group.spec.name for group in after.own_groups}
    for group in before.own_groups:
        if group.spec.name not in staying and (renamed := renamed_group(group, before, after)) is not None:
            yield group.spec.name, renamed.spec.name


def _sorted(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.severity != "error", finding.order))


# Returns what a plan registers in a stack with this name and account; "" is an unknown account.
Record = Callable[[Plan, str, str], Recorded]
# A tenth more and a minute: below that, waits differ by chance.
_LONGER, _MINUTE = 1.1, 60
_NOTHING: Change[Any] = Change(None, None)
# The rules that report waivers without an effect.
_WITHOUT_EFFECT = ("WAI001", "WAI002", "WAI003")
_UNCHECKED_BASE = "policies couldn't be checked in the base, because of its errors, so their findings all count as new"
_UNREAD_BASE = "the base couldn't be read, so losses aren't known"


@dataclass(frozen=True, slots=True)
class FileVersion:
    """An organization file at the base or at the head: each environment's plan, and everything found in it.

    plans is empty where the file could not be read.
    """

    plans: Mapping[str, Plan]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class StackVersion:
    """A stack at the base or at the head: the file that describes it, and which environment of it."""

    file: FileVersion
    environment: str


@dataclass(frozen=True, slots=True)
class StackInput:
    """A stack that the change affects, and why; None on a side without it.

    settings: the contents of its own file. code: whether the program changes too, which only a preview shows.
    """

    stack: str
    file: str
    why: str
    before: StackVersion | None
    after: StackVersion | None
    settings: Change[StackSettings] = _NOTHING
    code: bool = False


@dataclass(frozen=True, slots=True)
class FileInput:
    """An organization file that the change affects, or another one in the project; None on a side without it.

    Only findings are reviewed in other files; those without findings are ignored.
    """

    file: str
    before: FileVersion | None
    after: FileVersion | None


def review(
    files: Sequence[FileInput],
    stacks: Sequence[StackInput],
    *,
    record: Record,
    base: str,
    commit: str,
    notes: Sequence[str] = (),
    previews: Mapping[str, Preview] | None = None,
    scenarios: Mapping[str, ScenarioChange] | None = None,
    policies: Mapping[str, Change[PolicySettings]] | None = None,
    violations: Mapping[str, Change[Sequence[Finding]]] | None = None,
    today: datetime.date | None = None,
) -> Review:
    """Return the review of a change.

    - record: returns what a plan registers in a stack.
    - base, commit: the names of the base.
    - previews: the engine's reports, by stack.
    - scenarios: the change's effect on each scenario's tasks.
    - policies: the settings in each organization's policy file.
    - violations: the policy pack's reports before and after, by stack; None is a base that couldn't be checked.
    - today: decides whether a Kubernetes version is in extended support; without it, none is.
    """
    reviewed_files = tuple(FileReview(each.file, _findings_of_file(each)) for each in files)
    previews, scenarios, policies = previews or {}, scenarios or {}, policies or {}
    violations = violations or {}
    reviewed = with_rename_risks(
        [
            _stack(
                stack,
                record,
                preview=previews.get(stack.stack),
                scenario=scenarios.get(stack.stack),
                policies=policies.get(stack.file, _NOTHING),
                violations=violations.get(stack.stack, _NOTHING),
                today=today,
            )
            for stack in stacks
        ]
    )
    reviewed = tuple(most_severe_first(reviewed))
    of_files: list[tuple[Verdict, str]] = [
        (verdict, f"{reviewed_file.file}: {reason}")
        for reviewed_file in reviewed_files
        for verdict, reason in _verdicts_of_findings(reviewed_file.findings)
    ]
    return Review(
        base=base,
        commit=commit,
        verdict=worst([*(verdict for verdict, _ in of_files), *(each.verdict for each in reviewed)]),
        reasons=(
            *(reason for _, reason in _gravest_reasons_first(of_files)),
            *(f"{each.stack}: {reason}" for each in reviewed for reason in each.reasons),
        ),
        notes=tuple(notes),
        files=reviewed_files,
        stacks=reviewed,
    )


def _findings_of_file(file: FileInput) -> FindingChanges:
    was, now = (side.plans if side is not None else {} for side in (file.before, file.after))
    after = file.after
    waivers = [waiver for name in now if after is not None for waiver in _waivers(StackVersion(after, name))]
    plans = [(was.get(name), plan) for name, plan in now.items()]
    return _compare_findings(_shared(file.before), _shared(after), plans, waivers, _unknown(after))


def _unknown(file: FileVersion | None, environment: str = "") -> Callable[[str, str], bool]:
    """Return the test whether a file leaves open what a rule finds at a path; by default, in all environments."""
    if file is None:
        return lambda *_: False
    if environment and file.plans and environment not in file.plans:
        return lambda rule, _: not rule.startswith("CFG")
    if not file.plans:
        return lambda *_: True
    others = tuple(f"environments.{name}." for name in file.plans if environment and name != environment)
    findings = [each for each in file.findings if each.rule.startswith("CFG") or not each.path.startswith(others)]
    return unevaluated((each.rule, each.path, each.severity == "error") for each in findings)


def _shared(file: FileVersion | None) -> list[Finding]:
    """Return the findings that all environments share."""
    return [] if file is None else [each for each in file.findings if not each.path.startswith("environments.")]


def _own(version: StackVersion | None) -> list[Finding]:
    if version is None:
        return []
    own = f"environments.{version.environment}."
    return [each for each in version.file.findings if f"{each.path}.".startswith(own)]


def _waivers(version: StackVersion | None) -> tuple[Waiver, ...]:
    """Return the waivers with an effect: no finding says that one has expired, or is for nothing."""
    plan = plan_of(version)
    if version is None or plan is None:
        return ()
    waivers = plan.spec.waivers
    items = [{"rule": each.rule} for each in waivers]
    start = f"environments.{version.environment}.waivers["
    paths = [each.path for each in version.file.findings if each.rule in _WITHOUT_EFFECT]
    unused = {path.removeprefix(start).partition("]")[0] for path in paths if path.startswith(start)}
    return tuple(each for index, each in enumerate(waivers) if item_label(items, index) not in unused)


def plan_of(version: StackVersion | None) -> Plan | None:
    """Return the plan of a side; None when the environment is not there or could not be read."""
    return version.file.plans.get(version.environment) if version is not None else None


def _stack(
    stack_input: StackInput,
    record: Record,
    *,
    preview: Preview | None,
    scenario: ScenarioChange | None,
    policies: Change[PolicySettings],
    violations: Change[Sequence[Finding]],
    today: datetime.date | None,
) -> StackReview:
    before, after = plan_of(stack_input.before), plan_of(stack_input.after)
    unread = [
        name
        for name, version, plan in (("base", stack_input.before, before), ("head", stack_input.after, after))
        if version is not None and plan is None
    ]
    difference = None if unread else diff(before, after, stack=stack_input.stack)
    priced = (None, None) if unread else (before, after)
    waivers = (_waivers(stack_input.before), _waivers(stack_input.after))
    was = [*_own(stack_input.before), *(violations.before or ())]
    now = [*_own(stack_input.after), *(violations.after or ())]
    head = stack_input.after
    is_unknown = _unknown(head.file, head.environment) if head is not None else _unknown(None)
    findings = _compare_findings(was, now, [(before, after)], waivers[1], is_unknown)
    settings = stack_input.settings
    changed, unrecorded = _compared(stack_input, before, after, record)
    losses = losses_of(difference) if difference else ()
    risks = risks_of(difference, changed, losses, policies, settings, waivers) if difference else ()
    may_differ = _status(difference) != "unchanged" or stack_input.code or settings.before != settings.after
    verdicts = [
        *_verdicts_of_findings(findings),
        *_verdicts_of_plan(risks, losses),
        *_verdicts_of_preview(preview, may_differ=may_differ),
        *_verdicts_of_scenario(scenario),
    ]
    if unread:
        verdicts.append(("blocked", "the head can't be read") if "head" in unread else ("attention", _UNREAD_BASE))
    elif unrecorded:
        verdicts.append(("attention", unrecorded))
    verdicts = _gravest_reasons_first(verdicts)
    note = f"the {' and the '.join(unread)} could not be read, so nothing is compared" if unread else unrecorded
    if violations.after and violations.before is None and not unread:
        note = f"{note}; {_UNCHECKED_BASE}" if note else _UNCHECKED_BASE
    return StackReview(
        stack=stack_input.stack,
        file=stack_input.file,
        why=stack_input.why,
        status=_status(difference),
        verdict=worst(verdict for verdict, _ in verdicts),
        reasons=tuple(reason for _, reason in verdicts),
        note=note,
        diff=difference,
        change=changed,
        minimum_cost=_costs(*priced, minimum_cost),
        maximum_cost=_costs(*priced, maximum_cost),
        platform_cost=_costs(*priced, lambda plan: platform_cost(plan, today)),
        findings=findings,
        risks=risks,
        losses=losses,
        preview=preview,
        scenario=scenario,
    )


def _compared(
    stack_input: StackInput, before: Plan | None, after: Plan | None, record: Record
) -> tuple[StackChange | None, str]:
    """Return the changes and a note on what is unknown; None if nothing changes.

    Stacks that are no longer described aren't deployed, so nothing changes there.
    """
    if after is None or before == after:
        return None, ""
    old, new = accounts_of(before, after)
    try:
        return change(
            record(before, stack_input.stack, old) if before else None, record(after, stack_input.stack, new)
        ), ""
    except Exception:
        # The program might not be able to build a plan with errors, regardless of its message.
        versions = [version for version in (stack_input.before, stack_input.after) if version is not None]
        if not any(each.severity == "error" for version in versions for each in version.file.findings):
            raise
        return None, "errors prevent one side from being recorded, so changes of its resources aren't known"


def accounts_of(before: Plan | None, after: Plan | None) -> tuple[str, str]:
    """Return the account that each side is recorded in, empty if it's unknown.

    A side without an account uses the other side's: adding or removing `account` moves nothing.
    """
    was, now = (plan.spec.account if plan is not None else None for plan in (before, after))
    return was or now or "", now or was or ""


def _gravest_reasons_first(reasons: Sequence[tuple[Verdict, str]]) -> list[tuple[Verdict, str]]:
    """Return blocking reasons before reasons for attention."""
    return sorted(reasons, key=lambda reason: reason[0] != "blocked")


def _costs(before: Plan | None, after: Plan | None, cost: Callable[[Plan], Cost]) -> Change[Cost]:
    return Change(None if before is None else cost(before), None if after is None else cost(after))


def _status(difference: PlanDiff | None) -> Status:
    if difference is None:
        return "unreadable"
    if difference.before is None:
        return "added"
    if difference.after is None:
        return "removed"
    return "changed" if difference.changed else "unchanged"


def _verdicts_of_findings(findings: FindingChanges) -> list[tuple[Verdict, str]]:
    verdicts: list[tuple[Verdict, str]] = []
    if errors := sum(each.severity == "error" for each in findings.new):
        verdicts.append(("blocked", plural(errors, "new error")))
    if old := [each.rule for each in findings.remaining if each.severity == "error"]:
        rules = listing([*dict.fromkeys(old)])
        verdicts.append(("blocked", f"{plural(len(old), 'error')} that the base already has: {rules}"))
    warnings = sum(each.severity == "warning" for each in findings.new)
    if warnings:
        verdicts.append(("attention", plural(warnings, "new warning")))
    return verdicts


def _verdicts_of_plan(risks: Sequence[Risk], losses: Sequence[Loss]) -> list[tuple[Verdict, str]]:
    verdicts: list[tuple[Verdict, str]] = [(risk.verdict, risk.message) for risk in risks]
    quotas = {loss.team for loss in losses if loss.what == "quota"}
    if quotas:
        verdicts.append(("attention", f"{plural(len(quotas), 'team')} with a lower quota"))
    others = {loss.team for loss in losses} - quotas
    if others:
        verdicts.append(("attention", f"{plural(len(others), 'team')} with less to borrow, less weight or less access"))
    return verdicts


def _verdicts_of_scenario(scenario: ScenarioChange | None) -> list[tuple[Verdict, str]]:
    """Return whose tasks wait much longer in the scenario, or can never run any more."""
    verdicts: list[tuple[Verdict, str]] = []
    for team in scenario.teams if scenario else ():
        before, after = team.wait_p95.before, team.wait_p95.after
        if before is not None and after is not None and after > before * _LONGER + _MINUTE:
            verdicts.append(
                ("attention", f"95 of 100 tasks of {team.team} wait up to {span(after)}, not {span(before)}")
            )
        more = (team.never.after or 0) - (team.never.before or 0)
        if more > 0:
            verdicts.append(("attention", f"{plural(more, 'task')} of {team.team} can no longer run at all"))
    return verdicts


def _verdicts_of_preview(preview: Preview | None, *, may_differ: bool) -> list[tuple[Verdict, str]]:
    if preview is None:
        return []
    verdicts: list[tuple[Verdict, str]] = []
    if preview.problems and not preview.ran:
        # Where nothing changes, the review needs no preview.
        verdicts.append(("attention" if may_differ else "ok", f"not previewed: {preview.problems[0]}"))
    elif preview.problems:
        verdicts.append(("blocked", f"the preview fails: {preview.problems[0]}"))
    for action in ("replace", "delete"):
        steps = preview.of(action)
        if steps:
            verdicts.append(("attention", f"the preview {action}s {plural(len(steps), 'resource')}"))
    return verdicts
