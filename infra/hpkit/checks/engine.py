"""Run every rule over a document, apply waivers, and place what was found."""

import datetime
from collections.abc import Iterable, Mapping

from hpkit.checks import addons, allowances, capacity, cluster, form, given, governance, karpenter, layout, network
from hpkit.checks.finding import Finding
from hpkit.checks.registry import Context, Issue, Rule
from hpkit.config.document import Document, Path, Problem, format_path
from hpkit.config.organization import Organization, Waiver
from hpkit.config.parse import Parsed
from hpkit.plan.derive import derive_all
from hpkit.plan.model import Plan

__all__ = ["RULES", "check", "rule_by_id"]

_WAIVERS = (
    Rule("WAI001", "error", "A waiver has not expired.", "Config contract", waivable=False),
    Rule("WAI002", "warning", "A waiver waives something.", "Config contract", waivable=False),
    Rule("WAI003", "error", "A waiver names a rule that exists and can be waived.", "Config contract", waivable=False),
)  # fmt: skip

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *form.RULES,
            *capacity.RULES,
            *governance.RULES,
            *karpenter.RULES,
            *cluster.RULES,
            *network.RULES,
            *layout.RULES,
            *addons.RULES,
            *given.RULES,
            *allowances.RULES,
            *_WAIVERS,
        ),
        key=lambda rule: rule.id,
    )
)
_BY_ID = {rule.id: rule for rule in RULES}


def rule_by_id(rule: str) -> Rule | None:
    """Return a rule, or None for an id that no rule has."""
    return _BY_ID.get(rule)


def check(
    document: Document,
    parsed: Parsed,
    plans: Mapping[str, Plan] | None = None,
    *,
    file: str,
    today: datetime.date,
) -> list[Finding]:
    """Return every finding of one file, sorted by place.

    plans: environment → plan of those to look at, absent: all of the file's. file is the name to show; today decides
    which waivers have expired.
    """
    issues = {
        _key(problem.rule, problem.path, problem.message): _Placed.of_problem(problem) for problem in parsed.problems
    }
    if parsed.organization is not None:
        wanted = derive_all(parsed.organization) if plans is None else plans
        for placed in _judge(parsed.organization, wanted, document, today):
            issues.setdefault(_key(placed.rule, placed.issue.path, placed.issue.message), placed)
    findings = [_finding(placed, document, file) for placed in issues.values()]
    return sorted(findings, key=lambda finding: finding.order)


def _key(rule: str, path: Path, message: str) -> tuple[str, Path, str]:
    return rule, path, message


class _Placed:
    """An issue with its rule, and for problems of the text the place that the reader gave."""

    __slots__ = ("issue", "line_and_column", "rule")

    def __init__(self, rule: str, issue: Issue, line_and_column: tuple[int, int] | None = None) -> None:
        self.rule = rule
        self.issue = issue
        self.line_and_column = line_and_column

    @classmethod
    def of_problem(cls, problem: Problem) -> "_Placed":
        place = (problem.mark.line, problem.mark.column) if problem.mark else None
        return cls(problem.rule, Issue(problem.path, problem.message, problem.fix, problem.severity), place)


def _judge(
    organization: Organization, plans: Mapping[str, Plan], document: Document, today: datetime.date
) -> Iterable[_Placed]:
    for environment in sorted(plans):
        context = Context(organization, environment, plans[environment])
        found = [_Placed(rule.id, issue) for rule in RULES if rule.check is not None for issue in rule.check(context)]
        yield from _waive(context, found, document, today)


def _waive(context: Context, found: list[_Placed], document: Document, today: datetime.date) -> Iterable[_Placed]:
    """Leave out what valid waivers cover, and judge the waivers themselves."""
    covered: set[int] = set()
    for index, waiver in enumerate(context.spec.waivers):
        path: Path = (*context.path, "waivers", index)
        rule = _BY_ID.get(waiver.rule)
        if rule is None or not rule.waivable:
            why = "which no rule has" if rule is None else "which cannot be waived"
            yield _Placed(
                "WAI003",
                Issue(
                    (*path, "rule"),
                    f"a waiver of {waiver.rule}, {why}",
                    "Remove the waiver and fix the cause.",
                ),
            )
            continue
        hits = {position for position, placed in enumerate(found) if _covers(waiver, placed, document)}
        if waiver.until < today:
            yield _Placed(
                "WAI001",
                Issue(
                    (*path, "until"),
                    f"the waiver of {waiver.rule} ended on {waiver.until} ({waiver.reason})",
                    "Fix the cause, or set a new date with a reason that still holds.",
                ),
            )
        elif not hits:
            yield _Placed(
                "WAI002",
                Issue(path, f"the waiver of {waiver.rule} at `{waiver.path}` waives nothing", "Remove it."),
            )
        else:
            covered |= hits
    yield from (placed for position, placed in enumerate(found) if position not in covered)


def _covers(waiver: Waiver, placed: _Placed, document: Document) -> bool:
    if placed.rule != waiver.rule:
        return False
    shown = format_path(placed.issue.path, document.data)
    return shown == waiver.path or shown.startswith((f"{waiver.path}.", f"{waiver.path}["))


def _finding(placed: _Placed, document: Document, file: str) -> Finding:
    issue = placed.issue
    if placed.line_and_column is not None:
        line, column = placed.line_and_column
    else:
        mark = document.locate(issue.path)
        line, column = mark.line, mark.column
    return Finding(
        rule=placed.rule,
        severity=issue.severity or _BY_ID[placed.rule].severity,
        path=format_path(issue.path, document.data),
        file=file,
        line=line,
        column=column,
        message=issue.message,
        fix=issue.fix,
    )
