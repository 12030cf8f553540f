"""Opens text files of tasks: UTF-8, or an error with the line that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from hpkit.config import require_file
from hpkit.errors import InputError

__all__ = ["lines", "opened"]

# Python's replacement of bytes that aren't UTF-8, with the error handler surrogateescape.
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")
_LONGEST: Final = 1_000_000


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file for `lines`; InputError where it cannot be opened."""
    try:
        require_file(path)
        # Python decodes in blocks, and its error wouldn't state the line.
        file = path.open("r", encoding="utf-8-sig", errors="surrogateescape", newline="")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        raise InputError(f"{path}: {(said or str(error)).lower()}") from None
    with file:
        yield file


def lines(path: Path, file: TextIO) -> Iterator[str]:
    """Return an opened file's lines one by one; InputError for the first that is no UTF-8 or too long."""
    # A file that is no text may have no end of a line, and is never read whole.
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST + 1), ""), 1):
        if len(line) > _LONGEST:
            raise InputError(
                f"{path}:{number}: the line is longer than {_LONGEST:,} characters; each task must be on its own line"
            )
        if not line.isascii():
            _refuse_no_utf8(path, number, line)
        yield line


def _refuse_no_utf8(path: Path, line: int, text: str) -> None:
    """Raise InputError if a byte of a text, which begins in that line of the file, was not UTF-8."""
    match = _NO_UTF8.search(text)
    if match is not None:
        line += text.count("\n", 0, match.start())
        raise InputError(f"{path}:{line}: byte 0x{ord(match[0]) - 0xDC00:02x} is not UTF-8; save the file as UTF-8")
