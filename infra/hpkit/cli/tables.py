"""What commands about scenarios share: the plan of a stack, and tables with many columns."""

from typing import TYPE_CHECKING

from hpkit.cli.formats import width
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit.project import load_stack

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["grid", "paper", "plan_of", "text_of"]

# Beyond a terminal's 80: a table is read by its columns, and these are many.
_WIDTH = 120


def plan_of(stack: str) -> Plan:
    """Return the plan of a stack; InputError where its file has errors of form."""
    loaded = load_stack(stack)
    for plan in loaded.plans.values():
        return plan
    raise InputError(f"{loaded.file} cannot be read as it is: fix what `hpkit validate --stack {stack}` shows")


def paper() -> "Console":
    """Return what a table is printed on, wide enough for many columns; `text_of` returns it."""
    from io import StringIO

    from rich.console import Console

    return Console(
        file=StringIO(), width=max(width(), _WIDTH), highlight=False, markup=False, emoji=False, color_system=None
    )


def text_of(console: "Console") -> str:
    """Return what was printed, without blanks at the ends of lines."""
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # paper's file is a StringIO
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def grid(title: str, *columns: str) -> "Table":
    """Return an empty table with a column of names first, and of figures then."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return table
