"""WAI: waivers, and the findings that they waive."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.checks.rule import Context, Issue, PlacedIssue, Rule
from hpkit.config.models.organization import Waiver
from hpkit.config.reading.compose import default_name, is_default
from hpkit.config.reading.document import Document, Path, format_path
from hpkit.plan.waiver_length import LONGEST_DAYS, is_too_long
from hpkit.text.spelling import near

__all__ = ["RULES", "apply", "covers"]

RULES = (
    Rule(
        "WAI001",
        "error",
        "Waivers end in the future, and within a year.",
        "hpkit configuration reference",
        waivable=False,
    ),
    Rule("WAI002", "warning", "Waivers have an effect.", "hpkit configuration reference", waivable=False),
    Rule(
        "WAI003",
        "error",
        "Waivers name an existing rule that can be waived.",
        "hpkit configuration reference",
        waivable=False,
    ),
    Rule(
        "WAI005",
        "warning",
        "If a rule is waived, policies that check the same are waived too.",
        "hpkit, policies: waivers",
        waivable=False,
    ),
)

# Levels at which a policy ends no preview.
_LENIENT: Final = ("advisory", "disabled")


def apply(
    context: Context,
    placed_issues: Sequence[PlacedIssue],
    rules: Mapping[str, Rule],
    document: Document,
    today: datetime.date,
    policies: Mapping[str, Any],
) -> Iterator[PlacedIssue]:
    """Yield issues without a valid waiver, and problems of the waivers themselves.

    policies: the settings in the organization's policy file, by policy.
    """
    covered: set[int] = set()
    for index, waiver in enumerate(context.spec.waivers):
        path: Path = (*context.path, "waivers", index)
        rule = rules.get(waiver.rule)
        if rule is None or not rule.waivable:
            why = "which doesn't exist" if rule is None else "which can't be waived"
            message = f"the waiver is for {waiver.rule}, {why}"
            likely = near(waiver.rule, rules) if rule is None else None
            fix = f"Did you mean `{likely}`?" if likely else "Remove the waiver and fix the cause."
            yield PlacedIssue("WAI003", Issue((*path, "rule"), message, fix))
            continue
        hits = {position for position, placed in enumerate(placed_issues) if _covers(waiver, placed, document)}
        if waiver.until < today:
            message = f"the waiver of {waiver.rule} expired on {waiver.until} ({waiver.reason})"
            fix = "Fix the cause, or set a new date and a reason that still applies."
            yield PlacedIssue("WAI001", Issue((*path, "until"), message, fix))
        elif is_too_long(waiver.until, today):
            message = f"the waiver of {waiver.rule} lasts until {waiver.until}; the limit is {LONGEST_DAYS} days"
            fix = (
                f"Set `until` to {today + datetime.timedelta(days=LONGEST_DAYS)} or earlier, and review the waiver "
                "then."
            )
            yield PlacedIssue("WAI001", Issue((*path, "until"), message, fix))
        elif not hits:
            message = f"the waiver of {waiver.rule} at `{waiver.path}` matches no finding"
            # A waiver in environmentDefaults needs a path that is true in each environment.
            of_all = is_default(document, path, document.locate(path))
            finding_paths = {
                _name(placed, document, of_all=of_all) for placed in placed_issues if placed.rule == waiver.rule
            }
            likely = near(waiver.path, finding_paths) or (min(finding_paths) if len(finding_paths) == 1 else None)
            fix = f"Remove it, or set its path to that of the finding: {likely}." if likely else "Remove it."
            yield PlacedIssue("WAI002", Issue(path, message, fix))
        else:
            covered |= hits
            judged = {placed_issues[position].issue.policy for position in hits} - {""}
            for policy in sorted(policy for policy in judged if not _lets_pass(policies, policy)):
                yield PlacedIssue("WAI005", _not_waived_there(waiver, policy, path, context.organization.organization))
    yield from (placed for position, placed in enumerate(placed_issues) if position not in covered)


def _lets_pass(policies: Mapping[str, Any], policy: str) -> bool:
    """Return whether a policy file waives violations of a policy, or lowers its level; a level alone is a text."""
    entries = [
        {"enforcementLevel": each} if isinstance(each, str) else each for each in map(policies.get, ("all", policy))
    ]
    settings = [each for each in entries if isinstance(each, Mapping)]
    levels = [each["enforcementLevel"] for each in settings if "enforcementLevel" in each]
    is_lenient = bool(levels) and levels[-1] in _LENIENT
    return is_lenient or any(each.get("waivers") for each in settings)


def _not_waived_there(waiver: Waiver, policy: str, path: Path, organization: str) -> Issue:
    return Issue(
        path,
        f"the waiver of {waiver.rule} at `{waiver.path}` doesn't waive the policy {policy}, which fails the preview",
        f"Add a waiver of {policy} to stacks/{organization}.policy.json (`hpkit validate --policies` prints the "
        "resource). Or remove this one, and fix the cause.",
    )


def _name(placed: PlacedIssue, document: Document, *, of_all: bool) -> str:
    shown = format_path(placed.issue.path, document.data)
    return default_name(shown) if of_all and _is_inherited(placed, document) else shown


def _is_inherited(placed: PlacedIssue, document: Document) -> bool:
    """Return whether an issue is about a value from environmentDefaults."""
    path = placed.issue.path
    return is_default(document, path, placed.mark or document.locate(path))


def _covers(waiver: Waiver, placed: PlacedIssue, document: Document) -> bool:
    if placed.rule != waiver.rule:
        return False
    # By index was how findings named items without a name once; waivers that do are as good as before.
    path_forms = [format_path(placed.issue.path, document.data, numbered=numbered) for numbered in (False, True)]
    if _is_inherited(placed, document):
        path_forms += [default_name(way) for way in path_forms]
    return any(covers(waiver, waiver.rule, shown) for shown in path_forms)


def covers(waiver: Waiver, rule: str, path: str) -> bool:
    """Return whether a waiver covers a finding: of its rule, at its path or below it."""
    return rule == waiver.rule and (path == waiver.path or path.startswith((f"{waiver.path}.", f"{waiver.path}[")))
