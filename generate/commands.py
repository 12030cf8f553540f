"""Generates docs/reference/commands.md from the commands."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final

import click

from hpkit.cli import SECTIONS

__all__ = ["FILE", "commands_page"]

FILE: Final = "docs/reference/commands.md"
# An option that at least this many commands share is described once.
_COMMON: Final = 3
# The page states once that commands have it.
_FORMAT: Final = "--format [text|json]"
_WIDTH: Final = 10_000
# The page states once which variable sets the stack.
_ENVIRONMENT: Final = re.compile(r" Default(?: without files)?: HPKIT_STACK\.")


@dataclass(frozen=True)
class _Entry:
    """A command as users type it, its help, and its options: names and meaning."""

    typed: str
    text: str
    options: list[tuple[str, str]] = field(default_factory=list)


def commands_page() -> str:
    """Return the page: each command with its help and options, by section."""
    hpkit = click.Context(click.Group(), info_name="hpkit")
    sections = {
        title: [
            entry for name, command in commands.items() for entry in _entries(command.load(name), hpkit, command.line)
        ]
        for title, commands in SECTIONS.items()
    }
    counts = Counter(option for entries in sections.values() for entry in entries for option in entry.options)
    # The most frequent meaning of an option.
    meanings = {name: (name, meaning) for (name, meaning), _ in reversed(counts.most_common())}
    common = [option for option in counts if counts[option] >= _COMMON and meanings[option[0]] == option]
    parts = list[str]()
    for title, entries in sections.items():
        parts.append(f"## {title}")
        for entry in entries:
            own = [option for option in entry.options if option not in common]
            shared = ", ".join(f"`{_names(option[0]).split(', ')[-1]}`" for option in entry.options if option in common)
            parts += [f"### `{entry.typed}`", entry.text, _list(own) if own else ""]
            parts.append(f"[Common](#common-options): {shared}." if shared else "")
    template = Template((Path(__file__).parent / "commands.md").read_text(encoding="utf-8"))
    return template.substitute(COMMON=_list(common), COMMANDS="\n\n".join(part for part in parts if part))


def _entries(command: click.Command, parent: click.Context, line: str = "") -> Iterator[_Entry]:
    """Yield a command, then those of a group; a group without options isn't an entry."""
    context = click.Context(command, parent, info_name=command.name, terminal_width=_WIDTH, max_content_width=_WIDTH)
    children = command.list_commands(context) if isinstance(command, click.Group) else []
    options = [
        (record[0], _ENVIRONMENT.sub("", _text(record[1])))
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and "--help" not in parameter.opts
        and (record := parameter.get_help_record(context))
        and record[0] != _FORMAT
    ]
    if not children or options:
        pieces = [] if children else [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        yield _Entry(" ".join([context.command_path, *pieces]), _text(command.help or line), options)
    for name in children:
        child = command.get_command(context, name) if isinstance(command, click.Group) else None
        if child:
            yield from _entries(child, context)


def _names(option: str) -> str:
    """Return an option's names without its value, which the list of common options shows."""
    return re.split(r"(?<![,/]) (?![-/])", option)[0]


def _list(options: list[tuple[str, str]]) -> str:
    return "\n".join(f"- `{names}`: {text}" for names, text in options)


def _text(text: str) -> str:
    """Return help as Markdown; paragraphs that click doesn't wrap are code."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(
        f"```text\n{inspect.cleandoc(part[1:])}\n```" if part.startswith("\b") else " ".join(part.split())
        for part in parts
    )
