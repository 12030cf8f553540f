"""The texts in this repository's code, as Markdown for a prose linter: `python -m tests.prose DIRECTORY`."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hpkit.project import project_root

CODE = ("infra", "policies", "local", "whatif", "generate")
# Code, queries and patterns aren't prose.
NOT_PROSE = re.compile(r"[{}]{2}|[=!]=|::|\\[bdswA-Z]|\bself\.|\$\(| -Name |^\s*[\[{(<#/]")


@cache
def texts(source: str) -> tuple[tuple[int, str], ...]:
    """Return the line and the text of each string of at least four words, each docstring, and each comment."""
    return tuple(_texts(source))


def _texts(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if len(text.split()) >= 4 and not NOT_PROSE.search(text):
            yield node.lineno, text
    yield from _comments(source)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    begin, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != begin + len(lines):
                yield begin, " ".join(lines)
                lines = []
            begin = begin if lines else token.start[0]
            lines.append(token.string.lstrip("#: "))
    if lines:
        yield begin, " ".join(lines)


def markdown(source: str) -> str:
    """Return the texts of a module, each as a paragraph that begins near its line in the module."""
    lines = list[str]()
    for line, text in sorted(texts(source)):
        lines += [""] * max(1, line - 1 - len(lines))
        lines += [part.strip() for part in text.strip().splitlines()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the texts of each module into a file of its name in the directory."""
    for path in sorted(path for folder in CODE for path in (project_root() / folder).rglob("*.py")):
        target = Path(sys.argv[1]) / f"{path.relative_to(project_root())}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(markdown(path.read_text(encoding="utf-8")), encoding="utf-8", errors="replace")


if __name__ == "__main__":
    main()
