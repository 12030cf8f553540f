"""The page that stays open: teams as a table that is sorted, filtered and opened by keys.

Only cells that changed are written again, so that it works over a slow line; what was seen is not kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from hpkit.errors import HpkitError
from hpkit.live.status import Status, TeamStatus, policy_words
from hpkit.live.waiting import amount
from hpkit.printable import printable, printable_lines

__all__ = ["Page", "Watch"]

_COLUMNS: Final = ("team", "of", "quota", "used", "borrowed", "lent", "runs", "waits")
_SHOWN: Final = 4
_GROUPS: Final = 8
_OF_TABLE: Final = ("sort", "filter", "unfilter")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Page:
    """What one look gave: the status, and what differs from the stack file."""

    title: str
    status: Status
    differences: tuple[str, ...]


class _Team(Screen[None]):
    """One team: each of its shares, and each task that waits with its reason; as of the last look."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "app.pop_screen", "back")]

    def __init__(self, team: str, page: Page) -> None:
        super().__init__()
        self._team = team
        self._page = page

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text(), id="team", markup=False)
        yield Footer()

    def show(self, page: Page) -> None:
        """Show what another look gave."""
        self._page = page
        self.say(self._text())

    def say(self, text: str) -> None:
        """Show a text in place of the team."""
        self.query_one("#team", Static).update(text)

    def _text(self) -> str:
        found = next((each for each in self._page.status.teams if each.team == self._team), None)
        lines = [f"team {self._team} has no queue any more"] if found is None else _team_lines(found)
        return printable_lines("\n".join((_time_of(self._page), *lines)))


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
        self._is_looking = False

    @property
    def is_looking(self) -> bool:
        """Return whether a look is under way, which outlives the app."""
        return self._is_looking

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys are there: those of the table are not while a team is open."""
        del parameters
        return action not in _OF_TABLE or len(self.screen_stack) <= 1

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

    @work
    async def action_look(self) -> None:
        """Look at the platform again, unless a look is under way; a failure is shown, and the last page stays."""
        if self._is_looking:
            return
        self._is_looking = True
        try:
            page = await _in_thread(self._look)
        except HpkitError as error:
            self._is_looking = False
            self._say(f"not read: {error}")
        else:
            self._is_looking = False
            self._show(page)

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._sorted_by = (self._sorted_by + 1) % len(_COLUMNS)
        self._show_table()

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
        if self._page is not None:
            self.push_screen(_Team(str(event.row_key.value).partition("\n")[0], self._page))

    def _say(self, text: str) -> None:
        text = printable_lines(text)
        self.query_one("#head", Static).update(text)
        if isinstance(self.screen, _Team):
            self.screen.say(text)

    def _show(self, page: Page) -> None:
        self._page = page
        self._show_table()
        if isinstance(self.screen, _Team):
            self.screen.show(page)

    def _show_table(self) -> None:
        if self._page is not None:
            head = "\n".join(_head(self._page, _COLUMNS[self._sorted_by]))
            self.query_one("#head", Static).update(printable_lines(head))
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


async def _in_thread(look: Callable[[], Answer]) -> Answer:
    """Return what a call in a thread returns; who leaves the app waits for none, as the loop would for its own."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def hand_over(give: Callable[[Any], None], what: object) -> None:
        # Nobody takes it any more where the app was left meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if answer.done() else give(what))

    def run() -> None:
        try:
            found = look()
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
            hand_over(answer.set_exception, error)
        else:
            hand_over(answer.set_result, found)

    threading.Thread(target=run, name="look", daemon=True).start()
    return await answer


def _value(key: Any) -> str:
    return str(key.value)


def _sort_key(cell: str) -> tuple[float, str]:
    """Sort numbers as numbers; what is no number by its text."""
    first = cell.split(" ", 1)[0]
    try:
        return float(first), cell
    except ValueError:
        return 0.0, cell


def _time_of(page: Page) -> str:
    return f"{page.title}  {page.status.observed.time:%H:%M:%S} UTC"


def _head(page: Page, sorted_by: str) -> Iterable[str]:
    observed = page.status.observed
    yield f"{_time_of(page)}  (by {sorted_by}; Enter opens a team)"
    yield from _platform(page.status)
    lines = [*page.status.problems, *(f"differs: {each}" for each in page.differences)]
    lines += [f"not read: {each}" for each in observed.unknown]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"… and {len(lines) - _SHOWN} more: hpkit status"


def _platform(status: Status) -> Iterable[str]:
    """Yield a line for instance groups, one for add-ons and the policy, one for the last event."""
    platform = status.observed.platform
    if platform is None:
        return
    groups = [f"{each.group.name} {each.running}/{each.group.target}" for each in status.groups]
    more = [f"{len(groups) - _GROUPS} more"] if len(groups) > _GROUPS else []
    yield f"running: {', '.join((*groups[:_GROUPS], *more)) or 'no group'}"
    active = sum(addon.status == "ACTIVE" for addon in platform.addons)
    yield f"add-ons: {active} of {len(platform.addons)} active; cluster policy: {policy_words(platform)}"
    for event in platform.events[:1]:
        yield f"last event: {event.time:%H:%M}, {event.about}: {event.description}"


def _rows(teams: Iterable[TeamStatus]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for team in teams:
        for share in team.shares:
            yield (
                f"{team.team}\n{share.flavor}",
                (
                    printable(team.team),
                    f"{printable(share.flavor)} {share.resource.rpartition('/')[2]}",
                    amount(share.quota),
                    amount(share.used),
                    amount(share.borrowed),
                    share.lent_words,
                    team.runs_words,
                    team.waits_words,
                ),
            )


def _team_lines(team: TeamStatus) -> Iterable[str]:
    yield f"team {team.team}: {team.runs_words} running, {team.waits_words} waiting"
    if team.problem:
        yield team.problem
    for share in team.shares:
        yield (
            f"  {share.flavor}: uses {amount(share.used)} of {amount(share.quota)} {share.resource}, "
            f"borrows {share.borrowed_words}, lends {share.lent_words}"
        )
    for task in team.waiting:
        yield f"  {task.name} ({task.kind}, priority {task.priority}, {task.seconds // 60} min): {task.reason}"
