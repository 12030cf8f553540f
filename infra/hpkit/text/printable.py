"""Escapes external text, so that terminals, logs, tables and workflows display it but don't interpret it.

An escape is a backslash, `u` and four hexadecimal digits, in surrogate pairs above U+FFFF. JSON uses the same form, so
escaped JSON is still JSON with the same value.
"""

import re
from typing import Final

__all__ = ["printable", "printable_lines", "quoted"]

# Characters that are invisible, move the cursor, or change the order of the text: the general categories Cc, Cf, Cs, Zl
# and Zp, all spaces except U+0020, and Default_Ignorable_Code_Point (Unicode 16, DerivedCoreProperties.txt).
_HIDDEN: Final = (
    "\x00-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680\u17b4\u17b5"
    "\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_IN_A_LINE: Final = re.compile(f"[{_HIDDEN}]")
_HIDDEN_IN_LINES: Final = _HIDDEN.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")
_IN_LINES: Final = re.compile(f"[{_HIDDEN_IN_LINES}]")
# The colors that hpkit and Rich use, without black, reverse, concealed, or backgrounds, which could hide text.
_STYLE: Final = r"\x1b\[(?:(?:[0-3]|22|3[1-79]|9[1-7])(?:;(?=[0-9])|(?=m)))*m"
_IN_STYLED_LINES: Final = re.compile(f"{_STYLE}|[{_HIDDEN_IN_LINES}]")
# A workflow command begins a line, after blanks, or is anywhere in it (actions/runner, ActionCommand.cs).
_COMMAND: Final = re.compile(r"^([ \t]*):(?=:)|##(?=\[)", re.MULTILINE)
_MOST_QUOTED: Final = 60


def printable(text: str) -> str:
    """Return text on one line, with every invisible or misleading character escaped."""
    return text if text.isascii() and text.isprintable() else _IN_A_LINE.sub(_escaped, text)


def printable_lines(text: str, *, styled: bool = False) -> str:
    """Return text with its line breaks and tabs, otherwise as `printable`, without workflow commands.

    styled: keep colors, for a terminal.
    """
    shown = (_IN_STYLED_LINES if styled else _IN_LINES).sub(_escaped, text)
    return _COMMAND.sub(lambda found: "#\\u0023" if found[1] is None else f"{found[1]}\\u003a", shown)


def quoted(text: str) -> str:
    """Return a text as messages quote it: on one line, and shortened if it's very long."""
    return f"`{printable(text if len(text) <= _MOST_QUOTED else f'{text[: _MOST_QUOTED - 3]}…')}`"


def _escaped(found: re.Match[str]) -> str:
    """Return a hidden character as escapes, or a style as it is."""
    text = found[0]
    if len(text) > 1:
        return text
    if ord(text) <= 0xFFFF:
        return f"\\u{ord(text):04x}"
    units = text.encode("utf-16-be").hex()
    return f"\\u{units[:4]}\\u{units[4:]}"
