"""Classifies findings by what the change did to them: new, fixed, waived, or remaining."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from hpkit.changes.review.model import FindingChanges
from hpkit.checks import Finding
from hpkit.checks.waivers import covers
from hpkit.config.models.organization import Waiver

__all__ = ["compare_findings"]


def compare_findings(
    before: Sequence[Finding], after: Sequence[Finding], waivers: Sequence[Waiver] = ()
) -> FindingChanges:
    """Match findings of two versions of a file; lines are ignored, because they can move.

    waivers: the head's; a finding that disappears because of one is waived, not fixed. Matches by rule, path and
    message, then by rule and path: the same error with other numbers remains.
    """
    old, new = list(before), list(after)
    remaining: list[Finding] = []
    for key in (_exact, _place):
        old, new = _match(old, new, key, remaining)
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


def _exact(finding: Finding) -> tuple[str, ...]:
    return finding.rule, finding.path, finding.message


def _place(finding: Finding) -> tuple[str, ...]:
    return finding.rule, finding.path


def _sorted(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.severity != "error", finding.order))
