"""The options for a command's output format and file, and the four formats of findings."""

import functools
import os
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hpkit.checks import RULES, Finding, Summary, summarize
from hpkit.cli.common.documents import FormatOption, outcome_document
from hpkit.cli.common.output import output_to, stdout_to_stderr
from hpkit.config import Mark, format_path
from hpkit.project import Loaded
from hpkit.text.document import Document
from hpkit.text.formatting import json_text, listing, plural
from hpkit.text.printable import printable, printable_lines

__all__ = [
    "Output",
    "Validation",
    "acts",
    "colored",
    "findings_github",
    "findings_sarif",
    "findings_text",
    "folded",
    "output_option",
    "output_options",
    "width",
]


_COLORS = {"error": "red", "warning": "yellow"}


class Output:
    """What a command prints: for each format, a function that returns the text, or prints it; and the exit code."""

    def __init__(self, code: int = 0, **formats: Callable[[], str | None]) -> None:
        self.code, self.formats = code, formats

    def show(self, form: str) -> None:
        """Print one format, and exit unless the code is 0."""
        text = self.formats[form]()
        if text:
            click.echo(text, nl=not text.endswith("\n"))
        if self.code:
            sys.exit(self.code)


Command = TypeVar("Command", bound=Callable[..., None])


class Validation(Document):
    """All findings of the files, errors first."""

    findings: list[Finding]
    summary: Summary


def output_option(help_text: str = "Write it to this file", *, required: bool = False) -> Callable[[Command], Command]:
    """Return the option that names a file, as the parameter `output`, for a command that writes the file itself."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option("-o", "--output", type=path, metavar="FILE", required=required, help=f"{help_text}.")


def output_options(
    *formats: str,
    documents: tuple[str, ...] = (),
    help: str | None = None,  # noqa: A002 - as click's
) -> Callable[[Callable[..., Output | None]], Callable[..., None]]:
    """Return the options for a command's output: its format, and a file. The command returns its Output.

    formats: the first is the default; without formats, only the file. documents: the kinds of JSON documents that it
    prints, each as `module:class`. help: explanations of formats.
    """

    def decorate(command: Callable[..., Output | None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*args: Any, output: Path | None, form: str = "", **options: Any) -> None:
            with output_to(output):
                result = command(*args, **options)
                if result is not None:
                    result.show(form)

        written = output_option("Write to this file instead of to standard output")(run)
        if not formats:
            return written
        return _format_option(formats, documents, help)(written)

    return decorate


def _format_option(
    formats: tuple[str, ...], documents: tuple[str, ...], help_text: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for a command's format, as the parameter `form`, for a command that prints to no file."""
    return click.option(
        *("--format", "form"),
        cls=FormatOption,
        documents=documents,
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=help_text,
    )


def acts(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that acts with `--format`: its JSON is an Outcome, and all that it prints is then progress."""

    @functools.wraps(command)
    def run(*args: Any, form: str, **options: Any) -> None:
        if form == "text" or click.get_current_context().invoked_subcommand:
            command(*args, **options)
            return
        code: str | int | None = None
        with stdout_to_stderr():
            try:
                command(*args, **options)
            except SystemExit as ended:
                code = ended.code
        click.echo(outcome_document())
        sys.exit(code)

    return _format_option(("text", "json"), ("hpkit.cli.common.documents:Outcome",))(run)


def width() -> int:
    """Return the width of text: the terminal's width, at most 100, and 80 elsewhere."""
    return min(shutil.get_terminal_size((80, 24)).columns, 100) if sys.stdout.isatty() else 80


def colored(text: str, **style: str | bool) -> str:
    """Return text in a style, on a terminal that has not rejected it with NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, **style)  # type: ignore[arg-type]  # click's own keyword names


def folded(text: str, indent: str, first: str | None = None) -> str:
    """Return text folded to the width, indented; paths and ids stay whole, since a broken one cannot be copied."""
    return textwrap.fill(
        text,
        width(),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def findings_text(findings: list[Finding], loaded: list[Loaded]) -> str:
    """Return findings for people, and their numbers."""
    lines: list[str] = []
    # What is wrong with the whole file, such as that it doesn't exist, has no position in it.
    whole = {each.file for each in loaded if any(problem.mark == Mark(1, 1) for problem in each.document.problems)}
    whole -= {each.file for each in loaded if each.document.root is not None}
    for finding in findings:
        place = finding.file if finding.file in whole else f"{finding.file}:{finding.line}:{finding.column}"
        label = colored(finding.severity, fg=_COLORS[finding.severity], bold=True)
        lines.append(f"{place}: {label} {colored(finding.rule, bold=True)} {finding.path}".rstrip())
        for sentence in (finding.message, finding.fix):
            ended = sentence if sentence.endswith((".", "?", ")", "…")) else f"{sentence}."
            shown = ended[:1].upper() + ended[1:] if sentence is finding.fix else ended
            lines.append(folded(shown, "    "))
    for file in loaded:
        unread = [
            "the whole file" if not path else format_path(path, file.document.data)
            for path in file.parsed.unread
            if not path or file.environment in (None, path[1])
        ]
        if unread:
            lines.append(f"{file.file}: other rules are skipped until this can be read: {', '.join(unread)}")
    waivable = {rule.id for rule in RULES if rule.waivable}
    ids = {each.rule for each in findings if each.severity == "warning" or "waive" in each.fix.lower()} & waivable
    if ids:
        lines.append(folded(f"`hpkit catalog rules RULE` shows how to waive {listing(sorted(ids), 4)}.", ""))
    summary = summarize(findings)
    counts = f"{plural(summary.errors, 'error')}, {plural(summary.warnings, 'warning')}"
    lines.append(f"{counts} in {plural(len(loaded), 'file')}")
    return "\n".join(lines)


def findings_github(findings: list[Finding]) -> str:
    """Return workflow commands, each on its line; GitHub shows them on the lines of the pull request.

    A line that begins with a command can't contain another (actions/runner, ActionCommand.cs).
    """
    return "\n".join(
        f"::{finding.severity} file={_property(finding.file)},line={finding.line},col={finding.column},"
        f"title={_property(f'{finding.rule} {finding.path}'.strip())}::{_data(f'{finding.message}. {finding.fix}')}"
        for finding in findings
    )


def _data(text: str) -> str:
    return printable_lines(printable(text)).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def findings_sarif(findings: list[Finding]) -> str:
    """Return findings in SARIF, for code scanning."""
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "help": {"text": f"For examples, run `hpkit catalog rules {rule.id}`. Source: {rule.source}."},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in RULES
    ]
    # Policies aren't rules of the validator, so their own messages describe them.
    known = {rule.id for rule in RULES}
    others = sorted({finding.rule for finding in findings} - known)
    rules += [
        {"id": name, "help": {"text": f"For its parameters, run `hpkit catalog rules {name}`."}} for name in others
    ]
    index = {str(rule["id"]): position for position, rule in enumerate(rules)}
    results = [
        {
            "ruleId": finding.rule,
            "ruleIndex": index[finding.rule],
            "level": finding.severity,
            "message": {"text": f"{finding.path}: {finding.message}. {finding.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": finding.file.replace(os.sep, "/")},
                        "region": {"startLine": finding.line, "startColumn": finding.column},
                    }
                }
            ],
        }
        for finding in findings
    ]
    run = {"tool": {"driver": {"name": "hpkit", "rules": rules}}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json_text(log)
