"""The page of the rules, and the examples that `hpkit rules` shows: both from the rules and their cases."""

import difflib
import json
from functools import cache
from typing import Any

from hpkit.checks import RULES
from hpkit.checks.rule import Rule
from hpkit.generate.cases import Case, cases, file_of

__all__ = ["examples_text", "rules_page"]

_CONTEXT_LINES = 2


def _example(case: Case, other: Case) -> dict[str, Any]:
    """Return one case with the lines in which it differs from its counterpart, and what the rule finds in it."""
    return {
        "file": file_of(case.rule),
        "case": case.name,
        "happy": case.passes,
        "shown": _differing_lines(case.text, other.text),
        "findings": [finding.as_dict() for finding in case.findings() if finding.rule == case.rule],
    }


def _differing_lines(text: str, other: str) -> list[str]:
    """Return the lines around every difference, `…` where lines are left out."""
    own = text.splitlines()
    matcher = difflib.SequenceMatcher(a=other.splitlines(), b=own, autojunk=False)
    keep: set[int] = set()
    for tag, _, _, first, last in matcher.get_opcodes():
        if tag != "equal":
            keep.update(range(max(0, first - _CONTEXT_LINES), min(len(own), last + _CONTEXT_LINES)))
    shown: list[str] = []
    previous = -1
    for number in sorted(keep):
        if number > previous + 1:
            shown.append("…")
        shown.append(own[number])
        previous = number
    return shown


@cache
def _examples() -> dict[str, list[dict[str, Any]]]:
    """Return rule id → examples, from the cases; the first that passes is the counterpart of those that fail."""
    found: dict[str, list[dict[str, Any]]] = {}
    for rule in RULES:
        given = cases(rule.id)
        first, passing = given[0], next(case for case in given if case.passes)
        found[rule.id] = [_example(case, first if case.passes else passing) for case in given]
    return found


def examples_text() -> str:
    """Return the file that `hpkit rules` reads."""
    return json.dumps(_examples(), indent=1, ensure_ascii=False) + "\n"


def rules_page() -> str:
    """Return docs/reference/rules.md."""
    lines = [
        "# Rules of `hpkit validate`",
        "",
        "This page is generated from the rules and their cases. `hpkit rules <id>` shows the same. Lines are those of",
        "[the organization that all cases change](../../tests/stacks/base.yaml), changed as the case says.",
        "",
        "| rule | severity | demands |",
        "|---|---|---|",
    ]
    lines += [f"| [{rule.id}](#{rule.id.lower()}) | {rule.severity} | {rule.title} |" for rule in RULES]
    shown = _examples()
    for rule in RULES:
        lines += ["", *_rule_section(rule, shown[rule.id])]
    return "\n".join(lines) + "\n"


def _rule_section(rule: Rule, shown: list[dict[str, Any]]) -> list[str]:
    waiver = "Can be waived, with reason and end date." if rule.waivable else "Cannot be waived."
    lines = [f"## {rule.id}", "", f"{rule.title} ({rule.severity}) {waiver} Source: {rule.source}."]
    for example in shown:
        lines += [
            "",
            f"{'Passes' if example['happy'] else 'Fails'}: {example['case']}, `{example['file']}`",
            "",
            "```yaml",
        ]
        lines += [*example["shown"], "```"]
        lines += [
            f"\n> line {finding['line']}, `{finding['path']}`: {finding['message']}. {finding['fix']}"
            for finding in example["findings"]
        ]
    return lines
