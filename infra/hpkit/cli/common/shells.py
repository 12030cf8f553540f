"""Variables as each shell reads them: set for the local cloud, and as they were before."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["SHELLS", "called", "exports", "line_to_use", "own_shell", "to_use", "undone"]

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
    """Return the line that leads the user's shell to an instance of the local cloud; without a name, the only one."""
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
