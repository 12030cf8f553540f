"""The page that stays open: teams as a table that is sorted, filtered and opened by keys.

Only cells that changed are written again, so that it works over a slow line; what was seen is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from hpkit.errors import HpkitError
from hpkit.live.status import Status, TeamStatus
from hpkit.live.waiting import amount

__all__ = ["Page", "Watch"]

_COLUMNS: Final = ("team", "of", "quota", "used", "borrowed", "lent", "runs", "waits")
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Page:
    """What one look gave: the status, and what differs from the stack file."""

    title: str
    status: Status
    differences: tuple[str, ...]


class _Team(Screen[None]):
    """One team: each of its shares, and each task that waits with its reason."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "app.pop_screen", "back")]

    def __init__(self, team: TeamStatus) -> None:
        super().__init__()
        self._team = team

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static("\n".join(_team_lines(self._team)), markup=False)
        yield Footer()


class Watch(App[None]):
    """Shows a platform, and looks again every so many seconds."""

    CSS = "DataTable { height: 1fr; } Input { display: none; } Input.open { display: block; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "sort", "sort by the next column"),
        Binding("slash", "filter", "filter"),
        Binding("r", "look", "look now"),
        Binding("escape", "unfilter", "no filter", show=False),
    ]

    def __init__(self, look: Callable[[], Page], *, seconds: float) -> None:
        """Take what looks at the platform; it is called every so many seconds, in a thread, never twice at once."""
        super().__init__()
        self._look = look
        self._seconds = seconds
        self._page: Page | None = None
        self._sorted_by = 0
        self._needle = ""

    def compose(self) -> ComposeResult:
        """Return the widgets: what is wrong above, teams below."""
        yield Static("looking …", id="head", markup=False)
        table: DataTable[str] = DataTable(cursor_type="row", zebra_stripes=True)
        yield table
        yield Input(placeholder="part of a team's name or of an instance type", id="needle")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        for name in _COLUMNS:
            self._table.add_column(name, key=name)
        self._table.focus()
        self.set_interval(self._seconds, self.action_look)
        self.action_look()

    @property
    def _table(self) -> DataTable[str]:
        table: DataTable[str] = self.query_one(DataTable)
        return table

    @work(thread=True, exclusive=True)
    def action_look(self) -> None:
        """Look at the platform again; a failure is shown, and the last page stays."""
        try:
            page = self._look()
        except HpkitError as error:
            self.call_from_thread(self._say, f"not read: {error}")
        else:
            self.call_from_thread(self._show, page)

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._sorted_by = (self._sorted_by + 1) % len(_COLUMNS)
        self._refill()

    def action_filter(self) -> None:
        """Ask for what a row must contain."""
        needle = self.query_one(Input)
        needle.add_class("open")
        needle.focus()

    def action_unfilter(self) -> None:
        """Show all rows again."""
        self.query_one(Input).value = ""
        self.query_one(Input).remove_class("open")
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep the rows that contain what was typed."""
        self._needle = event.value.casefold()
        self._refill()

    def on_input_submitted(self) -> None:
        """Go back to the rows."""
        self._table.focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the team of the row."""
        name = str(event.row_key.value).partition("\n")[0]
        team = (
            None if self._page is None else next((each for each in self._page.status.teams if each.team == name), None)
        )
        if team is not None:
            self.push_screen(_Team(team))

    def _say(self, text: str) -> None:
        self.query_one("#head", Static).update(text)

    def _show(self, page: Page) -> None:
        self._page = page
        self._say("\n".join(_head(page)))
        self._refill()

    def _refill(self) -> None:
        """Bring the table to what the page says, cell by cell."""
        if self._page is None:
            return
        wanted = {
            key: cells for key, cells in _rows(self._page.status.teams) if self._needle in " ".join(cells).casefold()
        }
        table = self._table
        for key in [key for key in map(_value, table.rows) if key not in wanted]:
            table.remove_row(key)
        there = set(map(_value, table.rows))
        for key, cells in wanted.items():
            if key not in there:
                table.add_row(*cells, key=key)
                continue
            for column, cell in zip(_COLUMNS, cells, strict=True):
                if table.get_cell(key, column) != cell:
                    table.update_cell(key, column, cell)
        table.sort(_COLUMNS[self._sorted_by], key=_sort_key, reverse=self._sorted_by > 1)


def _value(key: Any) -> str:
    return str(key.value)


def _sort_key(cell: str) -> tuple[float, str]:
    """Sort numbers as numbers; what is no number by its text."""
    first = cell.split(" ", 1)[0]
    try:
        return float(first), cell
    except ValueError:
        return 0.0, cell


def _head(page: Page) -> Iterable[str]:
    observed = page.status.observed
    yield f"{page.title}  {observed.time:%H:%M:%S} UTC  (Enter opens a team)"
    lines = [*page.status.problems, *(f"differs: {each}" for each in page.differences)]
    lines += [f"not read: {each}" for each in observed.unknown]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"… and {len(lines) - _SHOWN} more: hpkit status"


def _rows(teams: Iterable[TeamStatus]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for team in teams:
        for share in team.shares:
            yield (
                f"{team.team}\n{share.flavor}",
                (
                    team.team,
                    f"{share.flavor} {share.resource.rpartition('/')[2]}",
                    amount(share.quota),
                    amount(share.used),
                    amount(share.borrowed),
                    share.lent_words,
                    str(team.running),
                    str(len(team.waiting)),
                ),
            )


def _team_lines(team: TeamStatus) -> Iterable[str]:
    yield f"team {team.team}: {team.running} running, {len(team.waiting)} waiting"
    if team.problem:
        yield team.problem
    for share in team.shares:
        yield (
            f"  {share.flavor}: uses {amount(share.used)} of {amount(share.quota)} {share.resource}, "
            f"borrows {share.borrowed_words}, lends {share.lent_words}"
        )
    for task in team.waiting:
        yield f"  {task.name} ({task.kind}, priority {task.priority}, {task.seconds // 60} min): {task.reason}"
