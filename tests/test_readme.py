"""What the README shows is what the commands print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
SHOWN = [block for block in BLOCKS if re.match(r"\$ (sed .*\| )?hpkit ", block)]


def test_the_readme_shows_real_output():
    assert len(SHOWN) >= 3


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.splitlines()[0])
def test_a_command_of_the_readme_prints_what_the_readme_shows(block):
    first, _, shown = block.partition("\n")
    result = subprocess.run(
        ["bash", "-c", first.removeprefix("$ ")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        timeout=300,
    )
    said = "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip()
    assert said == "\n".join(line.rstrip() for line in shown.splitlines()).strip()


def test_every_make_target_that_the_readme_names_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {word for words in re.findall(r"`?make ([a-z ]+?)[`\s]{1,}", text) for word in words.split()}
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"up", "test", "check"} <= named
    assert (
        named
        & {"install", "test", "check", "lint", "types", "unit", "generate", "bench", "lock", "up", "down", "pages"}
        <= targets
    )
