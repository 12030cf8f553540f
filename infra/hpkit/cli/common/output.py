"""A command's output, in which everything is made printable; the user's shell; and the environment of Pulumi."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import click

from hpkit.errors import InputError, ToolError
from hpkit.extensions import extension, is_installed
from hpkit.text.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "SHELLS",
    "WholeLines",
    "called",
    "confirm",
    "exports",
    "line_to_use",
    "output_to",
    "own",
    "own_shell",
    "printable_output",
    "pulumi_environment",
    "stdout_to_stderr",
    "to_use",
    "undone",
]

_LONGEST_LINE = 10_000


class WholeLines(click.Group):
    """A group whose help has the whole first sentence of each command, where click's own cuts it after a line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with its sentence on as many lines as it takes."""
        with formatter.section("Commands"):
            found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
            formatter.write_dl([(name, each.get_short_help_str(_LONGEST_LINE)) for name, each in found if each])


class _Printable:
    """A text stream that writes to another what is printable of a text; all else is the other stream's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; colors pass to a terminal alone. click writes an empty one as a test, and ignores errors."""
        if text != "":
            with _reported(self.stream):
                self.stream.write(printable_lines(text, styled=self.stream.isatty()))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with _reported(self.stream):
            self.stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _PrintableBytes:
        """Return where click writes bytes: scripts for completion, and all text where the encoding is ASCII."""
        return _PrintableBytes(self.stream.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _PrintableBytes:
    """A stream of bytes, in UTF-8, that writes to another what is printable of them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        """Write bytes."""
        text = bytes(content).decode("utf-8", "surrogateescape")
        with _reported(self._stream):
            self._stream.write(printable_lines(text, styled=self._stream.isatty()).encode())
            self._stream.flush()
        return len(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _reported(stream: TextIO | BinaryIO) -> Iterator[None]:
    """Raise ToolError if a write fails, such as on a full disk; click handles a pipe whose reader has ended."""
    try:
        yield
    except OSError as error:
        # Python would write the rest of the buffer when it ends, and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ToolError(f"the output can't be written: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def printable_output() -> Iterator[None]:
    """Make everything printable that is printed in the block.

    By click, by Rich, and by other writers to sys.stdout or stderr.
    """
    out, err = _Printable(sys.stdout), _Printable(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        yield


@contextmanager
def output_to(file: Path | None) -> Iterator[None]:
    """Write what is printed inside to a file, unless it ends with an error; without a file, print it.

    Raises InputError where the file can't be written.
    """
    if file is None:
        yield
        return
    text = StringIO()
    status: SystemExit | None = None
    with redirect_stdout(cast("TextIO", _Printable(text))):
        try:
            yield
        except SystemExit as exit_:
            status = exit_
    try:
        file.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{file} can't be written: {reason}; specify another file with --output") from None
    sys.stderr.write(f"wrote {file}\n")
    if status is not None:
        raise status


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Write what is printed inside to standard error, including the output of child processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def own(stream: TextIO) -> TextIO:
    """Return the stream below a printable one, for hpkit's own workflow commands and cursor movements.

    Callers must escape text from outside before they write it.
    """
    below: object = stream
    return below.stream if isinstance(below, _Printable) else stream


def confirm(question: str, otherwise: str = "nothing was deleted") -> None:
    """Ask a question; raise ToolError with what is otherwise on a no, and where no terminal exists."""
    if not sys.stdin.isatty():
        raise ToolError(f"{question} No terminal is available for the confirmation; to skip it, add --yes")
    if not click.confirm(question):
        raise ToolError(f"not confirmed, so {otherwise}")


SHELLS = ("bash", "zsh", "fish")
# Kept by the shell itself, not exported and not printed: what was set before may be the keys of an account.
_KEPT = "_hpkit_before_"


def own_shell() -> str:
    """Return the user's shell, by SHELL; any shell that isn't one of SHELLS is assumed to read bash."""
    name = Path(os.environ.get("SHELL", "")).name
    return name if name in SHELLS else "bash"


def to_use(shell: str, command: str) -> str:
    """Return the line that makes a shell take over what `command` prints."""
    if shell == "fish":
        return f"{command} | source"
    return f'eval "$({command})"'


def line_to_use(name: str = "") -> str:
    """Return the line that leads the user's shell to a local cloud; without a name, the only one."""
    return to_use(own_shell(), f"{called()} local env{f' --name {name}' if name else ''}")


def called() -> str:
    """Return the command for hpkit in this shell: its name if it's on PATH, otherwise its path."""
    script = Path(sys.argv[0])
    on_path = shutil.which("hpkit")
    if script.name != "hpkit" or not script.exists() or (on_path and Path(on_path).samefile(script)):
        return "hpkit"
    near = os.path.relpath(script)
    return shlex.quote(str(script.absolute()) if near.startswith(os.pardir) else near)


def exports(shell: str, variables: Mapping[str, str]) -> str:
    """Return the lines that set variables, and keep what was set before."""
    keep, write = (_keep_in_fish, _set_in_fish) if shell == "fish" else (_keep, _set)
    return "\n".join([*map(keep, variables), *(write(name, value) for name, value in variables.items())])


def undone(shell: str, names: list[str]) -> str:
    """Return the lines that set variables back; a PATH of which nothing was kept stays."""
    return "\n".join((_undo_in_fish if shell == "fish" else _undo)(name) for name in names)


def _keep(name: str) -> str:
    # Set to an empty value if there was none: a second call must not keep the local cloud's value.
    return f'[ -n "${{{_KEPT}{name}+x}}" ] || {_KEPT}{name}="${{{name}-}}"'


def _set(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _undo(name: str) -> str:
    kept = f"{_KEPT}{name}"
    otherwise = ":" if name == "PATH" else f"unset {name}"
    return f'if [ -n "${{{kept}-}}" ]; then export {name}="${kept}"; else {otherwise}; fi; unset {kept}'


def _quoted_in_fish(value: str) -> str:
    r"""Quote: inside '…' fish reads \\ and \' (https://fishshell.com/docs/current/language.html#quotes)."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _keep_in_fish(name: str) -> str:
    return f"set -q {_KEPT}{name}; or set -g {_KEPT}{name} ${name}"


def _set_in_fish(name: str, value: str) -> str:
    # PATH is a list there.
    values = value.split(os.pathsep) if name == "PATH" else [value]
    return f"set -gx {name} {' '.join(map(_quoted_in_fish, values))}"


def _undo_in_fish(name: str) -> str:
    kept = f"{_KEPT}{name}"
    otherwise = "true" if name == "PATH" else f"set -e {name}"
    return f"if set -q {kept}[1]; set -gx {name} ${kept}; else; {otherwise}; end; set -e {kept}"


def pulumi_environment() -> dict[str, str]:
    """Return an environment whose `pulumi` and language host are those that `hpkit local doctor` shows.

    Without the local cloud's package, they are those on PATH. The engine also finds its `hyperpod` plugin there, next
    to this Python. Raises ToolError, with how to install it, for a missing tool.
    """
    found = is_installed("search-path")
    path = extension("search-path")("pulumi", "pulumi-language-python") if found else os.environ.get("PATH", "")
    path = os.pathsep.join([str(Path(sys.executable).parent), path])
    if shutil.which("pulumi", path=path) is None:
        raise ToolError("Pulumi isn't on PATH. Install it: https://www.pulumi.com/docs/install/")
    return {**os.environ, "PATH": path}
