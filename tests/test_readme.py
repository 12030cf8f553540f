"""The README's examples match the commands' output, in the shell of a user who has just cloned the repository."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.examples import copy_project

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
PARTS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
SHOWN = [block for block in BLOCKS if re.match(r"\$ (sed .*\| )?\.venv/bin/hpkit ", block)]
PROJECT = re.findall(
    r"```console\n(.*?)```", README.partition("## Start your own project")[2].partition("\n## ")[0], re.DOTALL
)
TRIED = re.findall(r"```console\n(.*?)```", README.partition("## Try it")[2].partition("\n## ")[0], re.DOTALL)
# Tests have a clone.
BY_HAND = [line.removeprefix("$ ") for block in TRIED for line in block.splitlines() if "git clone" not in line]
SECONDS = 600

# In a fresh clone, no environment is activated, and no parent `make` runs, which would change the output.
OF_THIS_RUN = {"VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "HPKIT_SUBSTITUTE_CHART"}
NEWCOMER = {
    **{name: value for name, value in os.environ.items() if name not in OF_THIS_RUN},
    "COLUMNS": "80",
    "PATH": os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"]),
}


@pytest.fixture
def clone(tmp_path):
    """Return a project as in a fresh clone: only the examples, without this repository's other organizations."""
    if not (ROOT / ".venv" / "bin" / "hpkit").exists():
        pytest.skip("the README is of a clone with `make install`; here another environment runs")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return copy_project(tmp_path)


def test_every_block_of_the_readme_is_run():
    assert len(SHOWN) >= 2
    assert README.count("```") == 2 * (len(SHOWN) + len(TRIED) + len(PROJECT) + len(PARTS))


def test_the_file_of_the_readme_is_a_part_of_the_example():
    (part,) = map(yaml.safe_load, PARTS)
    whole = yaml.safe_load((ROOT / "stacks" / "startup.yaml").read_text(encoding="utf-8"))

    def within(part, whole):
        if isinstance(part, dict):
            return all(key in whole and within(value, whole[key]) for key, value in part.items())
        if isinstance(part, list):
            return all(any(within(each, other) for other in whole) for each in part)
        return part == whole

    assert within(part, whole)


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.splitlines()[0])
def test_a_command_of_the_readme_prints_what_the_readme_shows(block, clone):
    first, _, shown = block.partition("\n")
    typed = ["bash", "-c", first.removeprefix("$ ")]
    result = subprocess.run(typed, cwd=clone, capture_output=True, text=True, env=NEWCOMER, timeout=SECONDS)
    said = "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip()
    assert said == "\n".join(line.rstrip() for line in shown.splitlines()).strip()


def test_every_make_target_that_the_readme_names_exists():
    named = {word for words in re.findall(r"`?make ([a-z ]+?)[`\s]{1,}", README) for word in words.split()}
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"up", "test"} <= named
    assert (
        named
        & {"install", "test", "check", "lint", "types", "unit", "generate", "bench", "lock", "up", "down", "pages"}
        <= targets
    )
