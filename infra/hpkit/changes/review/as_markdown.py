"""The review as Markdown for a pull request comment: the most important first, the rest folded, within the limit.

It doesn't trust text: everything from files is escaped, so that it can't format, link, mention or load anything.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hpkit.changes.review import tables
from hpkit.changes.review.model import FindingChanges, Review, StackReview, Verdict
from hpkit.text.formatting import plural
from hpkit.text.printable import printable

__all__ = ["LIMIT", "MARKER", "as_markdown", "escape"]

# GitHub rejects comments of more than 65,536 characters; the rest is for what a workflow adds around the text.
LIMIT: Final = 60_000
# A workflow finds its own earlier comment by this line, and edits it.
MARKER: Final = "<!-- hpkit review -->"
_MARKS: Final[dict[Verdict, str]] = {"ok": "✅", "attention": "❗", "blocked": "⛔"}
_MOST: Final = 50
# A message ends with the fix, which has about this many characters.
_ADVICE: Final = 240
# One list must not push everything after it out of the comment.
_ROOM: Final = 8_000
_SPECIAL: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {character: f"&#{ord(character)};" for character in "\\`*_[]|~$"}
)
# Characters that turn the following text into a list, a heading or a rule.
_OPENING: Final = frozenset("-+#=0123456789")
_ELSEWHERE: Final = (
    "`hpkit review --format json --output review.json` contains everything; in CI, it's an artifact of the run"
)


def escape(text: str) -> str:
    """Return text that Markdown displays unchanged, on one line.

    Entities can't be structure; a zero-width space disables mentions, issue numbers and bare links.
    """
    flat = printable(" ".join(text.split()))
    escaped = flat.translate(_SPECIAL).replace("://", "&#58;//").replace("@", "@&#8203;").replace("www.", "www&#46;")
    escaped = re.sub(r"(?<!&)#", "#&#8203;", escaped)
    opening = flat[:1]
    return f"&#{ord(opening)};{escaped[1:]}" if opening in _OPENING else escaped


def as_markdown(review: Review, *, limit: int = LIMIT) -> str:
    """Return the review in at most limit characters (and bytes); omitted parts are counted and named."""
    parts = [MARKER, *_head(review)]
    size = sum(_size(part) for part in parts) + 300
    left_out = 0
    for section in _sections(review):
        if size + _size(section) > limit:
            left_out += 1
            continue
        parts.append(section)
        size += _size(section)
    if left_out:
        parts.append(f"> {plural(left_out, 'section')} left out, because a comment has a size limit: {_ELSEWHERE}.")
    return "\n\n".join(parts)


def _size(text: str) -> int:
    return len(text.encode("utf-8")) + 2


def _head(review: Review) -> Iterator[str]:
    yield f"## {_MARKS[review.verdict]} {escape(tables.headline(review))}"
    yield f"Compared with {escape(review.base)} (<code>{escape(review.commit[:12])}</code>)."
    for note in review.notes:
        yield f"> {escape(note)}"
    reasons = [f"- {escape(_short(reason, end=_ADVICE))}" for reason in review.reasons]
    yield from _list(reasons, 12)
    if review.stacks:
        shown = review.stacks[:_MOST]
        rows = [_overview(stack, row) for stack, row in zip(shown, tables.summary_rows(review), strict=False)]
        yield _table((*tables.SUMMARY_HEAD, "findings"), rows)
        if len(review.stacks) > len(shown):
            yield f"and {plural(len(review.stacks) - len(shown), 'further stack')}."


def _short(text: str, most: int = 400, *, end: int = 0) -> str:
    """Return a text of at most `most` characters, shortened before the last `end`."""
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def _overview(stack: StackReview, row: tables.Row) -> tables.Row:
    comparison = stack.findings
    findings = ", ".join(
        f"{len(group)} {name}"
        for name, group in (
            ("new", comparison.new),
            ("fixed", comparison.fixed),
            ("waived", comparison.waived),
            ("already in the base", comparison.remaining),
        )
        if group
    )
    name, verdict, *rest = row
    return (name, f"{_MARKS[stack.verdict]} {verdict}", *rest, findings or "none")


def _sections(review: Review) -> Iterator[str]:
    """Return the parts below the header.

    The stacks with the worst verdicts first, so that the least important is cut.
    """
    for file in review.files:
        if tables.finding_groups(file.findings):
            yield _findings(f"Findings in {file.file}", file.findings)
    for stack in review.stacks:
        yield from _stack(stack)


def _stack(stack: StackReview) -> Iterator[str]:
    findings = tables.stack_findings(stack)
    if tables.finding_groups(findings):
        yield _findings(f"{stack.stack}: findings", findings)
    if stack.note:
        yield f"**{escape(stack.stack)}**: {escape(stack.note)}."
    if stack.scenario is not None:
        lines = [f"- {escape(_short(line))}" for line in tables.scenario_lines(stack.scenario)]
        rows = tables.wait_rows(stack.scenario)[:_MOST]
        body = ["\n".join(lines), *([_table(tables.WAIT_HEAD, rows)] if rows else [])]
        yield _details(f"{stack.stack}: waits in {stack.scenario.file}", "\n\n".join(body), is_open=True)
    yield from _lists(stack)
    if stack.status in ("unchanged", "unreadable"):
        return
    teams = tables.changed_teams(stack)
    rows = tables.team_table(stack, teams)
    for index in range(0, len(rows), _MOST):
        more = f", {index + 1} to {min(index + _MOST, len(rows))}" if len(rows) > _MOST else ""
        yield _details(
            f"{stack.stack}: teams ({plural(len(teams), 'changed team')}{more})",
            _table(tables.TEAM_HEAD, rows[index : index + _MOST]),
        )
    capacity = list(tables.capacity_rows(stack))
    if capacity:
        table = _table(tables.CAPACITY_HEAD, capacity[:_MOST])
        money = _table(tables.COST_HEAD, list(tables.cost_rows(stack)))
        unknown = "\n".join(f"- {escape(line)}" for line in tables.unknown_lines(stack))
        yield _details(
            f"{stack.stack}: capacity and cost", "\n\n".join(part for part in (table, money, unknown) if part)
        )


def _lists(stack: StackReview) -> Iterator[str]:
    teams = tables.changed_teams(stack)
    lists = {
        "risks": [tables.risk_line(risk) for risk in stack.risks],
        f"what teams lose{tables.when_lost(stack)}": tables.loss_lines(stack),
        "resources": tables.resource_lines(stack),
        "preview": list(tables.preview_lines(stack.preview)) if stack.preview else [],
        "settings": list(tables.setting_lines(teams, stack.losses)),
        "policy": list(tables.policy_lines(stack)),
    }
    for title, lines in lists.items():
        if lines:
            body = "\n\n".join(_list([f"- {escape(_short(line, end=_ADVICE))}" for line in lines], _MOST))
            yield _details(
                f"{stack.stack}: {title} ({len(lines):,})", body, is_open=title.startswith(("risks", "what teams lose"))
            )


def _findings(title: str, changes: FindingChanges) -> str:
    parts = []
    for group in tables.finding_groups(changes):
        lines = [
            f"- <code>{escape(tables.location(finding))}</code> {finding.severity} "
            f"**{escape(tables.rule_and_path(finding))}**: "
            f"{escape(_short(finding.message))}. {escape(_short(finding.fix, end=_ADVICE))}"
            + (f" The same rule: {escape(_short(others))}" if others else "")
            for finding, others in group.rules
        ]
        parts += [f"**{group.title}** ({len(group.findings):,})", *_list(lines, _MOST)]
    return _details(title, "\n\n".join(parts), is_open=bool(changes.new or changes.errors))


def _list(lines: Sequence[str], most: int) -> Iterator[str]:
    """Return the first lines, as many as fit into a section, and the number of the others."""
    count, size = 0, 0
    for line in lines[:most]:
        size += _size(line)
        if count and size > _ROOM:
            break
        count += 1
    if count:
        yield "\n".join(lines[:count])
    if len(lines) > count:
        yield f"and {len(lines) - count:,} more; {_ELSEWHERE}."


def _details(title: str, body: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>\n\n{body}\n\n</details>"


def _table(head: tables.Row, rows: Sequence[tables.Row]) -> str:
    lines = [head, *rows]
    written = [f"| {' | '.join(escape(_short(cell, 80)) for cell in row)} |" for row in lines]
    return "\n".join([written[0], f"|{'---|' * len(head)}", *written[1:]])
