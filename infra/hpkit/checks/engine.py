"""Run every rule over a document, apply waivers, and place what was found."""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from hpkit.checks import (
    access,
    addons,
    allowances,
    capacity,
    cluster,
    config_file,
    dependencies,
    eks,
    governance,
    instance_groups,
    karpenter,
    network,
    observability,
    storage,
    teams,
    waivers,
)
from hpkit.checks.rule import OF_SUMS, Context, Finding, Issue, PlacedIssue, Rule
from hpkit.config.models.organization import Organization
from hpkit.config.reading.compose import default_name, is_default
from hpkit.config.reading.document import Document, Mark, Path, format_path
from hpkit.config.reading.parse import Parsed
from hpkit.plan.derive import derive_all
from hpkit.plan.model import Plan
from hpkit.text.formatting import listing, plural

__all__ = ["RULES", "check", "fold", "rule_by_id", "unevaluated"]

_BY_SUBJECT = (
    access, addons, allowances, capacity, cluster, config_file, dependencies, eks, governance, instance_groups,
    karpenter, network, observability, storage, teams, waivers,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(sorted((rule for each in _BY_SUBJECT for rule in each.RULES), key=lambda rule: rule.id))
# Judge how a network, a cluster and what runs on it are created: another stack or tool does that for an existing one.
_OF_CREATION = frozenset(
    rule.id
    for module in (cluster, dependencies, eks, instance_groups, karpenter, network, observability, storage)
    for rule in module.RULES
    if rule.id
    not in (*("CLU003", "CLU006", "CLU024", "CLU048", "CLU050", "EKS002", "EKS004"), *("STO002", "STO005", "STO009"))
)
# Rules that only repeat that HyperPod doesn't offer a Kubernetes version, each with other versions to choose from.
_AFTER_EKS002 = ("EKS004", "STO009")
# Rules that report a missing key of a part; an unknown key in the same part (CFG001) is probably that one.
_AFTER_CFG001 = ("ACC004", "ACC013", "CLU006", "GOV003", "TEA001")
# Rules about the file's format, and about teams, quota and capacity. Their errors make the sums of quota uncertain, so
# that findings about them can be consequences.
_WITH_SUMS = (
    *("CFG001", "CFG002", "CFG003", "CFG004", "CFG005", "CFG014"), *("CAP", "CLU003", "CLU006", "GOV", "KAR"),
)  # fmt: skip
_BY_ID = {rule.id: rule for rule in RULES}


def rule_by_id(rule: str) -> Rule | None:
    """Return a rule, or None for an id that no rule has."""
    return _BY_ID.get(rule)


def check(
    parsed: Parsed,
    plans: Mapping[str, Plan] | None = None,
    *,
    file: str,
    today: datetime.date,
    policies: Mapping[str, Any] | None = None,
    environment: str | None = None,
    by_place: bool = False,
) -> list[Finding]:
    """Return every finding in one file: errors first, then by position.

    plans: environment → plan of those to check, by default all of the file's. file is the displayed name; today decides
    which waivers have expired and which versions are supported. policies: the settings in the organization's policy
    file. environment: omit findings in the others. by_place: return one finding for a value that several environments
    or teams share through environmentDefaults or an alias.
    """
    issues = {_key(placed): placed for placed in map(PlacedIssue.of_problem, parsed.problems)}
    if parsed.organization is not None:
        wanted = derive_all(parsed.organization) if plans is None else plans
        for placed in _found(parsed, parsed.organization, wanted, today, policies or {}):
            issues.setdefault(_key(placed), placed)
    shown = [placed for placed in issues.values() if _is_in(placed.issue.path, environment)]
    document = parsed.document
    findings = _by_place(shown, document, file) if by_place else (_finding(each, document, file) for each in shown)
    return sorted(findings, key=lambda finding: finding.order)


def _key(placed: PlacedIssue) -> tuple[str, Path, str, str]:
    """Return the identity of a finding; one without a path belongs to its whole file."""
    issue, mark = placed.issue, placed.mark
    return placed.rule, issue.path, issue.message, mark.file if mark and not issue.path else ""


def _is_in(path: Path, environment: str | None) -> bool:
    """Return whether a path doesn't lead to another environment."""
    return environment is None or path[:1] != ("environments",) or path[1:2] in ((), (environment,))


def _by_place(issues: Iterable[PlacedIssue], document: Document, file: str) -> Iterable[Finding]:
    """Yield one finding per rule, place and message; a default of environments is named by its own path."""
    issues_by_place: dict[tuple[str, Mark, Path, str], list[PlacedIssue]] = {}
    for placed in issues:
        path = placed.issue.path
        mark = placed.mark or document.locate(path)
        message = _renamed(placed.issue.message, format_path(path[:-1], document.data), "")
        issues_by_place.setdefault((placed.rule, mark, path[-1:], message), []).append(placed)
    for (rule, mark, *_), (first, *others) in issues_by_place.items():
        path, finding = first.issue.path, _finding(first, document, file)
        # A format error in a default is an error in every environment.
        if (others or rule.startswith("CFG")) and is_default(document, path, mark):
            parent = format_path(path[:-1], document.data)
            default = default_name(parent)
            message, fix = (_renamed(text, parent, default) for text in (finding.message, finding.fix))
            finding = replace(finding, path=default_name(finding.path), message=message, fix=fix)
        yield finding


def fold(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Yield one finding, with the number and lines of the others, for a mistake that is made in many places."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in findings:
        alike.setdefault((each.rule, each.severity, each.file, each.message, each.fix), []).append(each)
    for first, *others in alike.values():
        lines = [str(line) for line in dict.fromkeys(each.line for each in others)]
        where = f"{'line' if len(lines) == 1 else 'lines'} {listing(lines)}"
        more = f"; the same in {plural(len(others), 'more place')}, {where}" if others else ""
        yield replace(first, message=first.message + more)


def _renamed(text: str, path: str, other: str) -> str:
    """Return a text with another path in place of one, but not of longer ones that begin with it."""
    return re.sub(rf"\b{re.escape(path)}(?![\w.\[-])", lambda _: other, text) if path else text


def _found(
    parsed: Parsed,
    organization: Organization,
    plans: Mapping[str, Plan],
    today: datetime.date,
    policies: Mapping[str, Any],
) -> Iterable[PlacedIssue]:
    unclear = {each.path[1] for each in parsed.problems if each.rule == "CFG004" and 2 <= len(each.path) <= 3}
    for environment in sorted(plans.keys() - unclear):
        context = Context(organization, environment, plans[environment], today, is_whole=not parsed.unread)
        issues = [
            PlacedIssue(rule.id, issue)
            for rule in RULES
            if not (context.spec.cluster.existing and rule.id in _OF_CREATION)
            for check in rule.checks
            for issue in check(context)
        ]
        found = list(waivers.apply(context, issues, _BY_ID, parsed.document, today, policies))
        issues = [*map(PlacedIssue.of_problem, parsed.problems), *found]
        paths = [format_path(placed.issue.path, parsed.document.data) for placed in issues]
        skips = unevaluated((placed.rule, path, _is_error(placed)) for placed, path in zip(issues, paths, strict=True))
        yield from (
            placed
            for placed, path in zip(found, paths[len(parsed.problems) :], strict=True)
            if not skips(placed.rule, path)
        )


def unevaluated(found: Iterable[tuple[str, str, bool]]) -> Callable[[str, str], bool]:
    """Return the test whether a rule is skipped at a path, because of other findings.

    found: the rule and the path of each finding, and whether it's an error.
    """
    rows = list(found)
    places = {(rule, path) for rule, path, _ in rows}
    rules, errors = {rule for rule, _, _ in rows}, [rule for rule, _, is_error in rows if is_error]
    # An unknown key is probably the missing one of its part.
    around = {path.rpartition(".")[0] for rule, path in places if rule == "CFG001"}
    # Which of two environments with one name, or of two values of a key, is meant is unknown.
    twice = [path for rule, path in places if rule == "CFG004" and path.count(".") in (1, 2) and "[" not in path]
    unclear = tuple(f"{'.'.join(path.split('.')[:2])}." for path in twice)
    # The subject of a waiver might appear once the errors are fixed.
    skipped = {"WAI002"} if errors else set()
    skipped.update(_AFTER_EKS002 if "EKS002" in rules else ())
    if rules & {"CAP004", "CAP011"} or any(rule.startswith(_WITH_SUMS) for rule in errors):
        skipped.update(OF_SUMS)

    def is_skipped(rule: str, path: str) -> bool:
        return (
            rule in skipped
            or (f"{path}.".startswith(unclear) and not rule.startswith("CFG"))
            or (rule in _AFTER_CFG001 and path in around)
            or (rule == "CAP006" and ("GOV002", path) in places)
            or (rule == "ACC004" and ("CFG013", f"{path}.account") in places)
        )

    return is_skipped


def _is_error(placed: PlacedIssue) -> bool:
    return (placed.issue.severity or _BY_ID[placed.rule].severity) == "error"


def _finding(placed: PlacedIssue, document: Document, file: str) -> Finding:
    issue = placed.issue
    mark = placed.mark or document.locate(issue.path)
    message = issue.message
    related = mark if issue.other is None else document.locate(issue.other)
    if related != mark and _is_apart(issue, mark, related, document):
        where = (
            f"on line {related.line}"
            if related.file == mark.file
            else f"at {related.file or file}:{related.line}:{related.column}"
        )
        message += f"; {issue.other_name or 'the first'} is {where}"
    return Finding(
        rule=placed.rule,
        severity=issue.severity or _BY_ID[placed.rule].severity,
        path=format_path(issue.path, document.data),
        file=mark.file or file,
        line=mark.line,
        column=mark.column,
        message=message,
        fix=issue.fix,
    )


def _is_apart(issue: Issue, mark: Mark, related: Mark, document: Document) -> bool:
    """Return whether the other position of an issue is worth showing; the contradicting one might be next to it."""
    if issue.other is None or not issue.other_name or issue.path[:2] != issue.other[:2]:
        return True
    return is_default(document, issue.path, mark) != is_default(document, issue.other, related)
