"""Standard output and standard error of a command: whatever it prints is made printable here, once for all commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO, cast

from hpkit.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["own", "printable_output"]


class _Printable:
    """A text stream that writes to another what is printable of a text; all else is the other stream's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; colors pass to a terminal alone."""
        self.stream.write(printable_lines(text, styled=self.stream.isatty()))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        # click would write to the bytes below a text stream whose encoding is ASCII.
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.stream, name)


@contextmanager
def printable_output() -> Iterator[None]:
    """Make printable what is printed inside: by click, by Rich, and by whatever else writes to sys.stdout or stderr."""
    out, err = _Printable(sys.stdout), _Printable(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        yield


def own(stream: TextIO) -> TextIO:
    """Return the stream below a printable one, for the kit's own workflow commands and cursor movements.

    Whoever writes to it escapes the texts of others himself.
    """
    return stream.stream if isinstance(stream, _Printable) else stream
