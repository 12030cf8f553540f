"""The tables that commands print, and the plan of a stack for commands about scenarios."""

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from hpkit.cli.common.formats import folded, width
from hpkit.text.formatting import aligned
from hpkit.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["columns", "console", "grid", "lines_of", "paper", "text_of"]

# Beyond a terminal's 80: a table is read by its columns, and these are many.
_WIDTH = 120


def paper() -> "Console":
    """Return a console for tables, wide enough for many columns; `text_of` returns its text."""
    from io import StringIO

    from rich.console import Console

    return Console(
        file=StringIO(), width=max(width(), _WIDTH), highlight=False, markup=False, emoji=False, color_system=None
    )


def text_of(console: "Console") -> str:
    """Return the printed text, without blanks at the ends of lines."""
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # paper's file is a StringIO
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def console(**style: Any) -> "Console":
    """Return a console for reports: standard output, with the width of text."""
    from rich.console import Console

    return Console(width=width(), highlight=False, **style)


def grid(*columns: str, names: Collection[str] | None = None, title: str | None = None, **style: Any) -> "Table":
    """Return an empty table; names: the columns that hold no values, by default the first one."""
    from rich import box
    from rich.table import Table

    style = {"pad_edge": title is None, "title_style": "bold", **style}
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", **style)
    for column in columns:
        is_name = column in names if names is not None else column == columns[0]
        table.add_column(column, justify="left" if is_name else "right", overflow="fold")
    return table


def lines_of(table: "Table") -> list[str]:
    """Return the lines of a table, as `console` prints it."""
    paper = console(markup=False)
    with paper.capture() as captured:
        paper.print(table)
    return [line.rstrip() for line in captured.get().rstrip().splitlines()]


def columns(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()) -> str:
    """Return rows, the first one with their headers, in columns as wide as necessary: a broken name can't be copied.

    If they don't fit a terminal, each row is a block with a line per cell; piped output keeps its lines.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    lines = aligned(rows, numbers=numbers)
    if max(map(len, lines)) <= width() or not sys.stdout.isatty() or len(rows) == 1:
        return "\n".join(lines)
    head, *others = rows
    blocks = (
        "\n".join(
            folded(cell if not index else f"{name}: {cell}", "    ", "" if not index else "  ")
            for index, (name, cell) in enumerate(zip(head, row, strict=True))
            if cell
        )
        for row in others
    )
    return "\n".join(blocks)
