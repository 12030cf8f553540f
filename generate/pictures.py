"""Pictures for the pages, from the commands' output: `make pictures`.

Run it manually after changes of what they show. It deploys a stack on the local cloud and deletes it.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from hpkit.project import project_root

__all__ = ["main"]

IMAGES: Final = project_root() / "docs" / "images"
BIN: Final = Path(sys.executable).parent
WIDTH: Final = 100
_REVIEW_WIDTH: Final = 140
# A change with a long review: quota that moves, and one more instance.
CHANGES: Final = (
    ("john: [{instanceType: ml.g5.12xlarge, count: 3}]", "john: [{instanceType: ml.g5.12xlarge, count: 2}]"),
    ("smith: [{instanceType: ml.g5.12xlarge, count: 1}]", "smith: [{instanceType: ml.g5.12xlarge, count: 3}]"),
    ("instanceType: ml.g5.12xlarge, instanceCount: 4", "instanceType: ml.g5.12xlarge, instanceCount: 5"),
)


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    _terminal("validate", {_BROKEN: _run(_BROKEN, terminal=True)})
    _run("hpkit local reset --name handson-dev --yes", may_fail=True)
    _terminal(
        "make-up",
        {
            "make up": _end(
                _run(f"PATH=${{PATH#*:}}; {BIN.relative_to(project_root())}/hpkit local up --stack handson-dev")
            ),
            "hpkit cluster status": _run(
                'eval "$(hpkit local env --name handson-dev)"; hpkit cluster status --stack handson-dev'
            ).partition("last events")[0],
        },
    )
    _run("hpkit local down --yes --stack handson-dev")
    with tempfile.TemporaryDirectory() as folder:
        _terminal("review", {"hpkit review": _review(Path(folder))}, width=_REVIEW_WIDTH)


_BROKEN: Final = "sed 's/instanceCount: 15/instanceCount: 14/' stacks/startup.yaml | hpkit validate /dev/stdin"


def _run(line: str, folder: Path | None = None, *, terminal: bool = False, may_fail: bool = False) -> str:
    """Return the output of a shell command line, in color if it runs in a terminal."""
    variables = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": str(WIDTH)}
    command = ["bash", "-c", line]
    if terminal:
        command = ["script", "--quiet", "--return", "--command", f"stty cols {WIDTH}; {line}", "/dev/null"]
    done = subprocess.run(  # noqa: S603 - our own words
        command,
        cwd=folder or project_root(),
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode and not (may_fail or terminal):
        raise SystemExit(f"{line} failed:\n{done.stdout}")
    return done.stdout.replace("\r\n", "\n")


def _end(said: str) -> str:
    """Return the progress lines and the last lines of an `up`, without warnings about this machine."""
    return "".join(f"{line}\n" for line in said.splitlines() if not line.startswith("warning:") and "; " not in line)


def _terminal(name: str, said: dict[str, str], *, width: int = WIDTH) -> None:
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    for command, printed in said.items():
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(printed.rstrip()))
    console.save_svg(str(IMAGES / f"{name}.svg"), title="hpkit", unique_id=name)


def _review(folder: Path) -> str:
    """Return the review of CHANGES, in a separate repository."""
    stacks = folder / "stacks"
    stacks.mkdir()
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    text = (project_root() / "stacks" / "handson.yaml").read_text(encoding="utf-8")
    file = stacks / "handson.yaml"
    file.write_text(text, encoding="utf-8")
    git = "git -c user.name=n -c user.email=n@example.com"
    _run(f"git init -q -b main && git add -A && {git} commit -qm base", folder)
    for before, after in CHANGES:
        if before not in text:
            raise SystemExit(f"stacks/handson.yaml has no {before}")
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")
    return _run("hpkit review --base HEAD", folder, may_fail=True)


if __name__ == "__main__":
    main()
