"""Describes the problem of a text that isn't YAML in terms of the file instead of the parser.

It doesn't parse. It checks the lines around the position at which the parser stopped, often far after the cause.
"""

import re
from collections.abc import Iterator

import yaml

from hpkit.config.reading.document import Mark

__all__ = ["syntax_error"]

_NO_SPACE = re.compile(r"(?P<before>\s*(?:-\s+)?)(?P<key>[A-Za-z][A-Za-z0-9-]*):(?P<value>[^\s/:][^:]*)\Z")
# Spaces from web pages and word processors, where YAML requires a normal space; they look the same.
_OTHER_SPACE = re.compile(r"(?:^|:|-)\s*?([\u00a0\u2000-\u200a\u202f\u205f\u3000])")
_CURLY = re.compile("[\\s{,[:](“[^”]*”|‘[^’]*’)\\s*(?:[,}:#\\]]|$)")
_QUOTE = re.compile(r"(?:(?<=[\s\[{,:])|^)[\"']")
_NEXT_VALUE = re.compile("[\\[{,:]\\s*[\"']\\Z")
_NO_COLON = re.compile(r"\s*(?:-\s+)?([A-Za-z][\w-]*)(?=\s*\Z|\s*=|\s+[\[{&]|\s+(?!.*:(?:\s|\Z))\S)")
_NO_DASH_SPACE = re.compile(r"\s*-(?=[{\[\"']|[A-Za-z][\w.-]*:(?:\s|\Z))")
_KEY = re.compile(r"\s*(?:-\s+)?[A-Za-z][^\s:]*:(?:\s|\Z)")
_WORD, _LAST_WORD = re.compile(r"([\w-]+)"), re.compile(r"\s([\w-]+)\Z")
_NO_VALUE = re.compile(r"\s*(?:-\s+)?[A-Za-z][^\s:]*:\s*(?:#.*)?\Z")
_LAST_KEY = re.compile(r"(?:\A|[{,])\s*([A-Za-z][\w-]*)\s*=?\Z")
_SEMICOLON = re.compile(r";\s*[\w-]*\Z")
_KEY_IN_VALUE = re.compile(r"[{\[,]\s*[^\s{}\[\],:]+:\s+([^\s{}\[\],:\"']+)\Z")
_PLAIN_MAP = re.compile(r"[^\"'\\{\[:]+: [^\"'\\{\[:]+\Z")
_OPENS = {"}": "{", "]": "["}
_BRACKETS = {"flow mapping": ("{", "}"), "flow sequence": ("[", "]")}
_Found = tuple[Mark, str, str]


def syntax_error(error: yaml.MarkedYAMLError, text: str) -> _Found:
    """Return where a text stops being YAML, the problem there, and the fix."""
    place = error.problem_mark or error.context_mark
    mark = Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)
    begun = error.context_mark.line + 1 if error.context_mark else mark.line
    lines = text.splitlines()
    line_numbers = (begun, mark.line - 1, mark.line)
    explanations = (
        _conflict(lines),
        _tab(lines, mark),
        _curly_quotes(lines, line_numbers),
        _other_space(lines, line_numbers),
        _open_quote(lines, mark),
        _no_space_after_dash(lines, line_numbers),
        _no_space(lines, line_numbers),
        _open_bracket(error, lines, mark),
        _no_colon(error, lines, mark),
        _no_dash(lines, line_numbers),
        _list_and_map(error, lines, mark),
        _of_the_line(error.problem or "", lines, mark),
    )
    return next((found for found in explanations if found is not None), None) or (
        mark,
        f"the file isn't valid YAML: {error.problem or 'it ends too early'}",
        "Fix the line, or quote the value.",
    )


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _conflict(lines: list[str]) -> _Found | None:
    for number, line in enumerate(lines, 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            return (
                Mark(number, 1),
                "this line has an unresolved merge conflict",
                "Keep one of the two sides, and remove the conflict markers.",
            )
    return None


def _tab(lines: list[str], mark: Mark) -> _Found | None:
    typed = _line(lines, mark.line)
    if "\t" not in typed[: len(typed) - len(typed.lstrip())]:
        return None
    return mark, "this line is indented with a tab; YAML allows only spaces there", "Replace the tab with spaces."


def _curly_quotes(lines: list[str], numbers: tuple[int, ...]) -> _Found | None:
    for number in numbers:
        if found := _CURLY.search(_line(lines, number)):
            problem = f"{found[1]} is in curly quotes, which are letters to YAML"
            return Mark(number, found.start(1) + 1), problem, "Use straight quotes."
    return None


def _other_space(lines: list[str], numbers: tuple[int, ...]) -> _Found | None:
    for number in numbers:
        if found := _OTHER_SPACE.search(_line(lines, number)):
            mark = Mark(number, found.start(1) + 1)
            problem = "this line contains a special space (such as a no-break space from a web page), a letter to YAML"
            return mark, problem, "Replace it with an ordinary space."
    return None


def _open_quote(lines: list[str], mark: Mark) -> _Found | None:
    """Find the first quote that opens a value and is not closed in its line; values of several lines have no place."""
    for number, line in enumerate(lines[: mark.line], 1):
        position = next(_unclosed(line), None)
        if position is not None:
            return (
                Mark(number, position + 1),
                f"the quote on line {number} isn't closed",
                f"Add {line[position]} after the value.",
            )
    return None


def _unclosed(line: str) -> Iterator[int]:
    """Yield where a quote opens that its line does not close."""
    position = 0
    while position < len(line):
        if line[position] == "#" and (position == 0 or line[position - 1] == " "):
            return
        if not _QUOTE.match(line, position):
            position += 1
            continue
        closed = re.compile(r'"(?:[^"\\]|\\.)*"' if line[position] == '"' else r"'(?:[^']|'')*'").match(line, position)
        # A quote that follows a comma and begins a word opens the next value.
        if closed is None or (_NEXT_VALUE.search(closed[0]) and re.match(r"[\w*&-]", line[closed.end() :])):
            yield position
            return
        position = closed.end()


def _no_space_after_dash(lines: list[str], numbers: tuple[int, ...]) -> _Found | None:
    for number in numbers:
        if found := _NO_DASH_SPACE.match(_line(lines, number)):
            return Mark(number, found.end()), "a space is missing after the hyphen", "Add a space after the `-`."
    return None


def _no_space(lines: list[str], numbers: tuple[int, ...]) -> _Found | None:
    for number in numbers:
        if found := _NO_SPACE.match(_line(lines, number)):
            key, value = found["key"], found["value"].strip()
            mark = Mark(number, len(found["before"]) + 1)
            return mark, f"a space is missing after the colon of `{key}`", f"Set `{key}: {value}`."
    return None


def _list_and_map(error: yaml.MarkedYAMLError, lines: list[str], mark: Mark) -> _Found | None:
    begun = error.context_mark
    is_list = begun is not None and _line(lines, begun.line + 1)[begun.column :].startswith("- ")
    if begun is None or not is_list or begun.column != mark.column - 1 or not _KEY.match(_line(lines, mark.line)):
        return None
    dashes = [line for line in lines[begun.line : mark.line] if line[begun.column :].startswith("- ")]
    if len(dashes) > 1 or dashes[0].rstrip().endswith("}"):
        key = _line(lines, mark.line).strip().partition(":")[0]
        message = f"`{key}` is indented like the entries of the list above it"
        return mark, message, "Indent it and the lines below it by less: like the other keys of its section."
    return (
        Mark(begun.line + 1, begun.column + 1),
        f"this line begins a list with `- `, but line {mark.line} continues it as a map",
        "Remove the `- `, and indent the lines below it as those of the other entries.",
    )


def _no_dash(lines: list[str], numbers: tuple[int, ...]) -> _Found | None:
    for number in numbers:
        line, above = _line(lines, number), _line(lines, number - 1)
        if line.lstrip().startswith("{") and above[: _indent(line) + 2] == f"{' ' * _indent(line)}- ":
            return Mark(number, _indent(line) + 1), "`- ` is missing before this entry of a list", "Add `- ` before it."
    return None


def _open_bracket(error: yaml.MarkedYAMLError, lines: list[str], mark: Mark) -> _Found | None:
    context = error.context or ""
    opens, closes = next((each for name, each in _BRACKETS.items() if name in context), ("", ""))
    if not opens or error.context_mark is None:
        return None
    begun = error.context_mark
    # The parser stops at the colon of a key that it read as part of the value before it.
    line, stop = _line(lines, mark.line), mark.column - 1
    before, first = line[:stop].rstrip(), line[stop : stop + 1]
    unclosed = f"the `{opens}` on line {begun.line + 1} isn't closed"
    if first in ("{", "[", '"', "'") and before[-1:] in ("}", "]", '"', "'"):
        return mark, f"a comma is missing before `{first}`", f"Add a comma after `{before[-1]}`."
    word = _LAST_KEY.search(before)
    if first in ("{", "[", '"', "'") and word and opens == "{":
        return Mark(mark.line, word.start(1) + 1), *_colon_after(word[1], before[word.end(1) :])
    read = "\n".join([*lines[begun.line : mark.line - 1], before + (first if first == ";" else "")])
    if semicolon := _SEMICOLON.search(read):
        number = begun.line + 1 + read.count("\n", 0, semicolon.start())
        end = Mark(number, semicolon.start() - read.rfind("\n", 0, semicolon.start()))
        return end, "a `;` is not a separator in YAML", "Replace each `;` between entries with a comma."
    if first == ":" and (inner := _KEY_IN_VALUE.search(read)):
        start = Mark(mark.line, len(before) - len(inner[1]) + 1)
        return start, *_colon_in_value(inner[1] + re.split(r"[,}\]]| #", line[stop:])[0].rstrip())
    if first and first in "]}":
        outer = "\n".join([*_flow_before(lines, begun.line), *lines[begun.line : mark.line - 1], before])
        if outer.count(_OPENS[first]) > outer.count(first):
            return mark, f"{unclosed} before this `{first}`", f"Add `{closes}` before `{first}`."
        return mark, *_opens_nothing(first)
    after = _LAST_WORD.search(line[:stop]) if first == ":" else _WORD.match(line, stop)
    if after and (mark.line == begun.line + 1 or after.start(1) > _indent(line)):
        start = Mark(mark.line, after.start(1) + 1)
        return start, f"a comma is missing before `{after[1]}`", f"Add a comma before `{after[1]}`."
    last = next((each for each in range(mark.line - 1, begun.line, -1) if _line(lines, each).strip()), begun.line + 1)
    if _indent(line) > _indent(_line(lines, begun.line + 1)) and not line.lstrip().startswith("- "):
        end = Mark(last, len(_line(lines, last).rstrip()) + 1)
        return end, "a comma is missing at the end of this line", f"Add a comma at the end of line {last}."
    return Mark(begun.line + 1, begun.column + 1), unclosed, f"Add `{closes}` at the end of line {last}."


def _flow_before(lines: list[str], number: int) -> list[str]:
    """Return the lines before one that are part of the same bracketed value."""
    first = number
    while first > 0 and lines[first - 1].rstrip().endswith((",", "{", "[")):
        first -= 1
    return lines[first:number]


def _opens_nothing(closing: str) -> tuple[str, str]:
    opening, what = _OPENS[closing], "map" if closing == "}" else "list"
    return f"a `{closing}` on this line has no `{opening}`", f"Add `{opening}` where the {what} begins, or remove it."


def _colon_in_value(value: str) -> tuple[str, str]:
    shown = (f' (`"{value}"`)', f" (`{{{value}}}`)") if _PLAIN_MAP.match(value) else ("", "")
    return "a value contains a colon", f"Quote the whole text{shown[0]}, or enclose a map in braces{shown[1]}."


def _colon_after(word: str, after: str = "") -> tuple[str, str]:
    replace = "Replace the `=` after it with a colon and a space." if after.lstrip()[:1] == "=" else ""
    return f"a colon is missing after `{word}`", replace or f"Add a colon after `{word}`."


def _no_colon(error: yaml.MarkedYAMLError, lines: list[str], mark: Mark) -> _Found | None:
    """Find the line of a key without its colon: the parser stops on it, or on the next line with one."""
    problem = error.problem or ""
    above = next((each for each in range(mark.line - 1, 0, -1) if _is_content(_line(lines, each))), 0)
    if problem.startswith("could not find expected ':'") and error.context_mark:
        numbers: tuple[int, ...] = (error.context_mark.line + 1,)
    elif problem.startswith("mapping values are not allowed"):
        numbers = (mark.line, above)
    elif problem.startswith("did not find expected key"):
        begins = mark.column - 1 == _indent(_line(lines, mark.line))
        numbers = (mark.line, above) if begins else (mark.line,)
    else:
        return None
    for number in numbers:
        line = _line(lines, number).partition(" #")[0]
        if (found := _NO_COLON.match(line)) and (
            number != mark.line or line[found.end() :].lstrip()[:1] in ("[", "{", "&", "=")
        ):
            return Mark(number, found.start(1) + 1), *_colon_after(found[1], line[found.end() :])
    return None


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _of_the_line(problem: str, lines: list[str], mark: Mark) -> _Found | None:
    line = _line(lines, mark.line)
    begins = mark.column - 1 == _indent(line)
    first = line[mark.column - 1 : mark.column]
    code = line.partition(" #")[0]
    closed = next((each for each in "}]" if code.count(each) > code.count(_OPENS[each])), "")
    if closed and problem.startswith(("mapping values", "did not find expected key")):
        return Mark(mark.line, code.rfind(closed) + 1), *_opens_nothing(closed)
    if problem.startswith("mapping values are not allowed"):
        if _KEY.match(line) and ": " in line[: mark.column - 1]:
            return mark, "the line has a second colon", "Quote the value, or start a map on the next line."
        return _indented_further(lines, mark)
    if problem.startswith("found character that cannot start") and first:
        shown = "a backtick" if first == "`" else f"`{first}`"
        return mark, f"a value can't start with {shown}", "Quote the value."
    if "alphabetic or numeric character" in problem:
        return mark, f"a value can't start with `{line[mark.column - 2 : mark.column - 1]}`", "Quote the value."
    if problem.startswith("did not find expected") and begins and line.strip():
        return _indented(lines, mark)
    if problem.startswith("did not find expected node content") and first.strip():
        return mark, f"a value starts with `{first}`, or is missing here", "Quote the value, or add one."
    if problem.startswith("did not find expected key"):
        return mark, "there's text after the end of the value", "Quote the whole value, or remove the text after it."
    return None


def _indented_further(lines: list[str], mark: Mark) -> _Found:
    line, above, before = (_line(lines, mark.line - each) for each in range(3))
    if _NO_VALUE.match(before) and _indent(before) == _indent(above):
        return _of_the_line_above(mark, above, "less", "below it, but the line above it has no value")
    return (
        Mark(mark.line, _indent(line) + 1),
        "this line is indented further than the one above, which already has a value",
        "Align it with the first letter of the line above.",
    )


_EN_DASH, _EM_DASH = "\u2013", "\u2014"


def _indented(lines: list[str], mark: Mark) -> _Found:
    line, above, before = (_line(lines, mark.line - each) for each in range(3))
    if (dash := line.strip()[:2]) in (f"{_EN_DASH} ", f"{_EM_DASH} "):
        return mark, f"this line begins with the dash `{dash[0]}`, which is a letter to YAML", "Use the hyphen `-`."
    alone = _NO_VALUE.match(before) and _indent(before) < _indent(line) < _indent(above)
    # A list's entries are indented further than its key.
    below = next((each for each in lines[mark.line :] if each.strip() and _indent(each) <= _indent(line)), "")
    if alone and _indent(below) == _indent(line):
        return _of_the_line_above(mark, above, "further", "below it")
    return _key_indented_less(lines, mark) or (
        mark,
        "the indentation of this line matches none of the lines around it",
        "Align it with the line that it belongs to.",
    )


def _key_indented_less(lines: list[str], mark: Mark) -> _Found | None:
    """Return the key above that left its map: other keys of the map are above it, and at the marked line."""
    indent = _indent(_line(lines, mark.line))
    numbers = [each for each in range(mark.line - 1, 0, -1) if _line(lines, each).strip(" #")]
    number = next((each for each in numbers if _indent(_line(lines, each)) < indent), 0)
    above = next((each for each in numbers if each < number and _indent(_line(lines, each)) <= indent), 0)
    key, child = _line(lines, number), _line(lines, number + 1)
    if not (number and above and _NO_VALUE.match(key) and _indent(_line(lines, above)) == indent < _indent(child)):
        return None
    return (
        Mark(number, _indent(key) + 1),
        "this line is indented less than the other keys of its map",
        f"Indent it by {indent - _indent(key)} more spaces, like lines {above} and {mark.line}.",
    )


def _of_the_line_above(mark: Mark, above: str, how: str, of: str) -> _Found:
    return (
        Mark(mark.line - 1, _indent(above) + 1),
        f"this line is indented {how} than the lines {of}",
        f"Align it with line {mark.line}.",
    )
