"""Pictures for the pages, from the commands' output: `make pictures`.

Run it manually after changes of what they show. It deploys a stack on the local cloud and deletes it.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from rich.console import Console
from rich.text import Text

from hpkit.project import project_root

__all__ = ["main"]

IMAGES: Final = project_root() / "docs" / "images"
BIN: Final = Path(sys.executable).parent
WIDTH: Final = 80
# The comment of the review, in pixels.
_COMMENT: Final = (940, 642)
# Sections of the comment that the picture shows open.
_OPEN: Final = ("what teams lose", "changed teams")
_STYLE: Final = """
body { margin: 0; font: 13px/1.5 sans-serif; color: #1f2328; }
.box { border: 1px solid #d1d9e0; border-radius: 6px; background: #fff; overflow: hidden; }
.who { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; }
.said { padding: 0 16px 12px; } h2 { font-size: 18px; } summary { margin: 4px 0; font-weight: 600; }
table { margin: 6px 0; border-collapse: collapse; font-size: 12px; }
td, th { border: 1px solid #d1d9e0; padding: 4px 8px; }
code { background: #eff1f3; border-radius: 4px; padding: 1px 4px; } ul { padding-left: 22px; margin: 6px 0; }
"""
# A change with a long review: quota that moves, and one more instance.
CHANGES: Final = (
    ("john: [{instanceType: ml.g5.12xlarge, count: 3}]", "john: [{instanceType: ml.g5.12xlarge, count: 2}]"),
    ("smith: [{instanceType: ml.g5.12xlarge, count: 1}]", "smith: [{instanceType: ml.g5.12xlarge, count: 3}]"),
    ("instanceType: ml.g5.12xlarge, instanceCount: 4", "instanceType: ml.g5.12xlarge, instanceCount: 5"),
)


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    _run("hpkit local reset --name handson-dev --yes", may_fail=True)
    up = f"PATH=${{PATH#*:}}; {BIN.relative_to(project_root())}/hpkit local up --stack handson-dev"
    _terminal("make-up", {"make up": _end(_run(up))})
    local = 'eval "$(hpkit local env --name handson-dev)"; '
    _run(local + _JOBS)
    _terminal("status", {_STATUS: _run(local + _STATUS).partition("node  ")[0]})
    _run("hpkit local down --yes --stack handson-dev")
    with tempfile.TemporaryDirectory() as folder:
        _comment("review", _review(Path(folder)))


# Jobs of which the picture of the status shows one that runs and one that waits.
_JOBS: Final = (
    "kubectl create -f docs/examples/handson/pair.yaml -f docs/examples/handson/huge.yaml; "
    "kubectl wait job/pair -n hyperpod-ns-smith --for=jsonpath='{.status.active}'=2; sleep 5"
)
_STATUS: Final = "hpkit cluster status"


def _run(line: str, folder: Path | None = None, *, may_fail: bool = False) -> str:
    """Return the output of a shell command line."""
    variables = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": str(WIDTH)}
    done = subprocess.run(  # noqa: S603 - our own words
        ["bash", "-c", line],  # noqa: S607 - the one on the PATH
        cwd=folder or project_root(),
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode and not may_fail:
        raise SystemExit(f"{line} failed:\n{done.stdout}")
    return done.stdout


def _end(said: str) -> str:
    """Return the progress lines and the last lines of an `up`, without warnings about this machine."""
    return "".join(f"{line}\n" for line in said.splitlines() if not line.startswith("warning:") and "; " not in line)


def _terminal(name: str, said: dict[str, str]) -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for command, printed in said.items():
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(printed.rstrip()))
    console.save_svg(str(IMAGES / f"{name}.svg"), title="hpkit", unique_id=name)


def _comment(name: str, text: str) -> None:
    """Draw Markdown as a comment on a pull request."""
    html = re.sub(r"<details( open)?>", "<details>", text)
    html = re.sub(rf"<details>(?=[^\n]*(?:{'|'.join(_OPEN)}))", '<details open="open">', html)
    body = MarkdownIt("commonmark", {"html": True, "xhtmlOut": True}).enable("table").render(html)
    width, height = _COMMENT
    (IMAGES / f"{name}.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<foreignObject width="{width}" height="{height}"><body xmlns="http://www.w3.org/1999/xhtml">'
        f'<style>{_STYLE}</style><div class="box"><div class="who"><b>github-actions</b> commented</div>'
        f'<div class="said">\n{body}\n</div></div></body></foreignObject></svg>\n',
        encoding="utf-8",
    )


def _review(folder: Path) -> str:
    """Return the review of CHANGES as Markdown, in a separate repository."""
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
    return _run("hpkit review --base HEAD --format markdown 2> /dev/null", folder, may_fail=True)


if __name__ == "__main__":
    main()
