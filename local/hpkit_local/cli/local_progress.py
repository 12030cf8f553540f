"""The progress that `hpkit local up` and similar commands show while Pulumi works: few lines, updated in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import folded
from hpkit.cli.common.output import called, own
from hpkit.text.formatting import listing, plural
from hpkit.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from hpkit_local.cloud import EngineEvents, ResourceChange, Work

__all__ = ["Progress"]

_MOST_WORK = 8
# A log gets a line when so much time has passed, then twice as much: few lines, however long a run takes.
_FIRST_LINE_SECONDS = 5.0
_ORDER = ("created", "replaced", "imported", "updated", "deleted", "unchanged")
_ACTIONS = {"deleted": "delete", "replaced": "replace", "updated": "update", "imported": "import", "created": "create"}
# For these verbs, the result is the list of changes, not only their number.
_LISTS = ("preview", "refresh")
# More rows than these are counted by type where the whole of each is new.
_MOST_ROWS = 20
_MOST_NAMES = 10


class Progress:
    """Shows a run of Pulumi on standard error; `with` ends it. `show` is what `Stack.run` takes."""

    def __init__(self, verb: str, stack: str) -> None:
        self._verb, self._stack = verb, stack
        self._begun = time.monotonic()
        self._next_line = self._begun + _FIRST_LINE_SECONDS
        self._live: Live | None = None
        self._warnings = 0
        self._told_of_interruption = False
        self._events: EngineEvents | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=own(sys.stderr), highlight=False), transient=True, auto_refresh=False
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, events: EngineEvents) -> None:
        """Show what was done so far, and each warning once."""
        self._events = events
        for warning in events.warnings[self._warnings :]:
            self._say(f"warning: {warning}")
        self._warnings = len(events.warnings)
        if events.interrupted and not self._told_of_interruption:
            self._told_of_interruption = True
            what = "finishes running operations; press Ctrl-C again to stop immediately" if events.under_way else "ends"
            self._say(f"interrupted: Pulumi {what}")
        if self._live is not None:
            self._live.update(self._picture(events), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line += time.monotonic() - self._begun
            self._say(self._line(events))

    def result(self, *, failed: bool, log: Path) -> list[str]:
        """Return the result of a completed run: its full errors if it failed, and how many resources changed."""
        events = self._events
        if events is None:
            return []
        took = "" if events.seconds is None else f" in {events.seconds} s"
        lines = [f"{self._stack}: {self._changes(events)}{took}"]
        if failed:
            said = events.said() or [log.read_text(encoding="utf-8", errors="replace").strip()]
            # A preview that ends early has compared only some resources.
            ended = f"{self._stack}: nothing was changed" if self._verb == "preview" else lines[0]
            lines = [*(f"error: {each}" for each in said), f"{ended}; {self._verb} failed. Pulumi's output: {log}"]
        return lines

    def record(self) -> None:
        """Add each change to the outcome of the command."""
        for each in self._events.changes if self._events else ():
            resource, properties = f"{each.type} {each.name}", ", ".join(each.properties)
            acted(_ACTIONS[each.change], resource, done=self._verb != "preview", detail=properties or None)

    def rows(self) -> list[str]:
        """Return the changes of a preview or refresh as lines, including a failed one."""
        return self._rows(self._events.changes) if self._events and self._verb in _LISTS else []

    def _rows(self, changes: Sequence[ResourceChange]) -> list[str]:
        """Return one line per change, deletions first; similar changes share one."""
        rows: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for each in sorted(changes, key=lambda each: (list(_ACTIONS).index(each.change), each.type, each.name)):
            rows.setdefault((each.change, each.type, each.properties), []).append(each.name)
        new = {row: names for row, names in rows.items() if row[0] == "created"}
        lines = [
            f"  {_ACTIONS[change] if self._verb == 'preview' else change} {resource_type} {listing(names, _MOST_NAMES)}"
            + (f" ({listing(list(properties), _MOST_NAMES)})" if properties else "")
            for (change, resource_type, properties), names in rows.items()
            if change != "created" or len(new) <= _MOST_ROWS
        ]
        if len(new) > _MOST_ROWS:
            kinds = ", ".join(f"{len(names)} × {row[1]}" if len(names) > 1 else row[1] for row, names in new.items())
            lines += [folded(f"create {kinds}", "    ", "  "), f"  Names: {called()} plan --all --stack {self._stack}"]
        return lines

    def _say(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(printable(line), markup=False)
        else:
            click.echo(line, err=True)

    def _line(self, events: EngineEvents) -> str:
        work = next(iter(events.under_way.values()), None)
        more = f" and {len(events.under_way) - 1} more" if len(events.under_way) > 1 else ""
        doing = f"; {_doing(work)}{more}" if work is not None else ""
        return f"{self._passed()}: {self._so_far(events)}{doing}"

    def _picture(self, events: EngineEvents) -> Group:
        from rich.console import Group
        from rich.text import Text

        now = time.monotonic()
        lines = [f"{self._verb} {self._stack}  {self._passed()}  {self._so_far(events)}"]
        lines += [
            f"  {_doing(work)}  {now - work.since:.0f} s" for work in list(events.under_way.values())[:_MOST_WORK]
        ]
        if len(events.under_way) > _MOST_WORK:
            lines.append(f"  and {len(events.under_way) - _MOST_WORK} more")
        return Group(*(Text(printable(line), no_wrap=True, overflow="ellipsis") for line in lines))

    def _passed(self) -> str:
        return f"{time.monotonic() - self._begun:.0f} s"

    def _so_far(self, events: EngineEvents) -> str:
        if events.done:
            return self._changes(events)
        return "previewing" if events.previewing else "starting Pulumi and the program"

    def _changes(self, events: EngineEvents) -> str:
        """Return what was done, `3 resources created, 95 unchanged`; for a preview, `3 … to create`."""
        counts = sorted(events.done.items(), key=lambda item: _ORDER.index(item[0]))
        if not counts:
            return "nothing to delete" if self._verb == "destroy" else "nothing changed"
        (what, count), *others = [(self._wording(change), count) for change, count in counts]
        return ", ".join([f"{plural(count, 'resource')} {what}", *(f"{count:,} {what}" for what, count in others)])

    def _wording(self, change: str) -> str:
        return f"to {_ACTIONS[change]}" if self._verb == "preview" and change in _ACTIONS else change


def _doing(work: Work) -> str:
    return f"{work.verb} {work.resource}" + (f" ({work.status})" if work.status else "")
