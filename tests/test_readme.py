"""What the README shows is what the commands print, in the shell of somebody who has just cloned it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from local.supervisor import control
from local.supervisor.instance import Instance
from local.toolchain import TOOLS, get_all
from tests.program.cloud import Repository

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
SHOWN = [block for block in BLOCKS if re.match(r"\$ (sed .*\| )?\.venv/bin/hpkit ", block)]
TRIED = re.findall(r"```console\n(.*?)```", README.partition("## Try it")[2].partition("\n## ")[0], re.DOTALL)
BY_HAND = [line.removeprefix("$ ") for block in TRIED if "make up" in block for line in block.splitlines()]
SECONDS = 600

# In a fresh clone no environment is activated and no `make` runs, which would have the one below it say more.
OF_THIS_RUN = {"VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
NEWCOMER = {
    **{name: value for name, value in os.environ.items() if name not in OF_THIS_RUN},
    "COLUMNS": "80",
    "PATH": os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"]),
}


def test_the_readme_shows_real_output():
    assert len(SHOWN) >= 3


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.splitlines()[0])
def test_a_command_of_the_readme_prints_what_the_readme_shows(block):
    if not (ROOT / ".venv" / "bin" / "hpkit").exists():
        pytest.skip("the README is of a clone with `make install`; here another environment runs")
    first, _, shown = block.partition("\n")
    result = subprocess.run(
        ["bash", "-c", first.removeprefix("$ ")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=NEWCOMER,
        timeout=SECONDS,
    )
    said = "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip()
    assert said == "\n".join(line.rstrip() for line in shown.splitlines()).strip()


@pytest.fixture
def clone(tmp_path):
    """Return a clone after `make install`; what `make` compares is as old as can be, so that it installs nothing."""
    try:
        get_all(list(TOOLS), say=print)
    except ToolError as error:
        pytest.skip(str(error))
    repository = Repository(tmp_path)
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
        os.utime(tmp_path / name, (0, 0))
    if not (tmp_path / ".venv" / ".installed").exists():
        pytest.skip("this environment was not made by `make install`")
    yield repository.folder
    control.reset(Instance.of_stack("handson-dev", root=tmp_path))


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.timeout(SECONDS)
def test_what_the_readme_has_a_newcomer_type_works_from_the_first_line_to_the_last(clone):
    commands = [each for each in BY_HAND if not each.startswith("kubectl ") or shutil.which("kubectl")]
    assert commands[0].startswith("make up ")
    assert commands[-1].startswith("make down ")
    result = subprocess.run(
        ["bash", "-euc", "\n".join([*commands, "echo ${AWS_ENDPOINT_URL-nothing}"])],
        cwd=clone,
        capture_output=True,
        text=True,
        env=NEWCOMER,
        timeout=SECONDS,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stdout.splitlines()
    end = ["Use it: ", "Look at it: ", "Take it down again: "]
    (begin,) = (number for number, line in enumerate(said) if line.startswith(end[0]))
    assert [line.partition(": ")[0] + ": " for line in said[begin : begin + 3]] == end
    assert README.partition(said[begin])[2].splitlines()[1:3] == said[begin + 1 : begin + 3]
    assert any(line.startswith("handson-dev: handson-dev (") for line in said), "status says which stack is up"
    assert said[-2:] == ["handson-dev is gone, and its instance with it", "nothing"]
    assert list((clone / ".local").iterdir()) == []


def test_every_make_target_that_the_readme_names_exists():
    named = {word for words in re.findall(r"`?make ([a-z ]+?)[`\s]{1,}", README) for word in words.split()}
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"up", "test", "check"} <= named
    assert (
        named
        & {"install", "test", "check", "lint", "types", "unit", "generate", "bench", "lock", "up", "down", "pages"}
        <= targets
    )
