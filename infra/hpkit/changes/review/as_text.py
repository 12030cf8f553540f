"""The review for a terminal: plain lines with changes only."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from hpkit.changes.review import tables
from hpkit.changes.review.model import FindingChanges, Review, StackReview
from hpkit.text.formatting import aligned
from hpkit.text.printable import printable

__all__ = ["as_text"]

_MOST = 40
_INDENT = "  "


def as_text(review: Review, *, width: int = 100) -> str:
    """Return the review as text; long lists are cut, and state how much is omitted."""
    lines = [tables.headline(review), f"compared with {review.base} ({review.commit[:12]})"]
    for note in review.notes:
        lines += _folded(f"note: {note}", width)
    for file in review.files:
        if tables.finding_groups(file.findings):
            lines += ["", file.file, *_findings(file.findings, width)]
    if review.stacks:
        lines += ["", *_table("summary", tables.SUMMARY_HEAD, tables.summary_rows(review), width)]
    for stack in review.stacks:
        lines += ["", *_stack(stack, width)]
    return "\n".join(lines)


def _stack(stack: StackReview, width: int) -> Iterator[str]:
    yield f"{stack.stack}: {stack.verdict} ({stack.status}; {stack.why})"
    if stack.note:
        yield from _folded(stack.note, width)
    yield from _section("risks", [tables.risk_line(risk) for risk in stack.risks], width)
    yield from _findings(tables.stack_findings(stack), width)
    yield from _section(f"what teams lose{tables.when_lost(stack)}", tables.loss_lines(stack), width)
    yield from _section("preview", list(tables.preview_lines(stack.preview)) if stack.preview else [], width)
    if stack.scenario is not None:
        title = f"scenario {stack.scenario.file}"
        yield from _section(title, list(tables.scenario_lines(stack.scenario)), width)
        yield from _table("waits", tables.WAIT_HEAD, tables.wait_rows(stack.scenario), width)
    if stack.status in ("unchanged", "unreadable"):
        return
    yield from _section("resources", tables.resource_lines(stack), width)
    teams = tables.changed_teams(stack)
    yield from _table("teams", tables.TEAM_HEAD, tables.team_table(stack, teams), width)
    yield from _section("settings", list(tables.setting_lines(teams, stack.losses)), width)
    yield from _section("policy", list(tables.policy_lines(stack)), width)
    yield from _table("capacity, in instances", tables.CAPACITY_HEAD, list(tables.capacity_rows(stack)), width)
    yield from _table("cost a month, on demand", tables.COST_HEAD, list(tables.cost_rows(stack)), width)
    yield from _section("", list(tables.unknown_lines(stack)), width)


def _findings(changes: FindingChanges, width: int) -> Iterator[str]:
    for group in tables.finding_groups(changes):
        is_old = group.title == tables.IN_BASE
        lines = [
            f"{tables.location(finding)} {finding.severity} {tables.rule_and_path(finding)}"
            # For an existing warning, `hpkit validate` shows more.
            + ("" if is_old and finding.severity == "warning" else f": {finding.message}. {finding.fix}")
            + (f" The same rule: {others}" if others else "")
            for finding, others in group.rules
        ]
        yield from _section(
            f"findings {group.title.lower()}" if is_old else f"{group.title.lower()} findings", lines, width
        )


def _section(title: str, lines: Sequence[str], width: int) -> Iterator[str]:
    if not lines:
        return
    if title:
        yield f"{_INDENT}{title}:"
    for line in lines[:_MOST]:
        yield from _folded(line, width, "    ")
    if len(lines) > _MOST:
        yield f"    … {len(lines) - _MOST} more; --format json shows all"


def _table(title: str, head: tables.Row, rows: Sequence[tables.Row], width: int) -> Iterator[str]:
    if not rows:
        return
    shown = [head, *([printable(cell) for cell in row] for row in rows[:_MOST])]
    # A narrow terminal has no column for preemption, the last one of teams, unless it changes.
    if head is tables.TEAM_HEAD and len(max(aligned(shown), key=len)) > width - 4:
        shown = [row if any("→" in row[-1] for row in shown) else row[:-1] for row in shown]
    yield f"{_INDENT}{title}:"
    yield from (f"    {line}" for line in aligned(shown, width=width - 4))
    if len(rows) > _MOST:
        yield f"    … {len(rows) - _MOST} more rows; --format json shows all"


def _folded(line: str, width: int, indent: str = _INDENT) -> Iterable[str]:
    return textwrap.wrap(
        printable(line),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
