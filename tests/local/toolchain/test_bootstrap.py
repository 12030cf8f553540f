"""Concurrent and killed bootstraps: a tool is complete or doesn't exist, and nothing is done twice."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hpkit.cache import cache_root
from hpkit_local.toolchain import get, locate
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool, put_script
from tests.running import HANGS, eventually

ROOT = Path(__file__).parent.parent.parent.parent
ONCE = """
import sys
from pathlib import Path
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, get_all
from tests.local.toolchain.conftest import a_build, a_tool
tool = a_tool(sources=(a_build(Path(sys.argv[1])),))
say = lambda line: print(line, flush=True)
try:
    get_all([tool], say=say) if sys.argv[2:] else get(tool, say=say)
except ToolError as error:
    sys.exit(str(error))
"""
# A Go that writes half an executable, waits for a word if a pipe exists, and writes the other half.
FAKE_GO = """
case "$1" in
version) echo go version go1.26.8 linux/amd64 ;;
list) echo example.com/a; echo example.com/tiny ;;
build)
  echo build >> "$TINY_CALLS"
  echo example.com/a >&2
  while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\\n' > "$2"; chmod +x "$2"
  echo $$ > "$TINY_BUILDER"
  if [ -p "$TINY_GATE" ]; then read word < "$TINY_GATE"; fi
  if [ "$word" = fail ]; then echo "a.go:1: it does not compile" >&2; exit 2; fi
  echo 'echo whole' >> "$2" ;;
esac
"""


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.calls, self.builder, self.gate = folder / "calls", folder / "builder", folder / "gate"
        self.recipe = a_recipe(folder / "recipe")
        self.tool = a_tool(sources=(a_build(self.recipe, seconds=200, download_seconds=47),))

    def builds(self):
        return self.calls.read_text().count("build\n") if self.calls.exists() else 0

    def close_gate(self):
        os.mkfifo(self.gate)

    def open_gate(self, word="on"):
        self.gate.write_text(f"{word}\n")
        self.gate.unlink()

    @contextlib.contextmanager
    def bootstrap(self, *whole):
        """Run a bootstrap in a separate process: of one tool, or `whole` as the commands do."""
        command = [sys.executable, "-c", ONCE, str(self.recipe), *whole]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=300)


@pytest.fixture
def go(path_folder, tmp_path, monkeypatch):
    put_script(path_folder, "go", FAKE_GO)
    made = FakeGo(tmp_path)
    for name, path in (("CALLS", made.calls), ("BUILDER", made.builder), ("GATE", made.gate)):
        monkeypatch.setenv(f"TINY_{name}", str(path))
    return made


def runs(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def staged():
    return list((cache_root() / "tools" / "tiny").glob(".staging-*"))


def test_a_bootstrap_killed_half_way_leaves_nothing_that_is_taken_for_whole(go, messages):
    go.close_gate()
    with go.bootstrap() as killed:
        eventually(go.builder.exists, "half an executable is written")
        builder = int(go.builder.read_text())
        killed.kill()
        killed.wait(HANGS)
        assert [path.name for stage in staged() for path in (stage / "bin").iterdir()] == ["tiny"], (
            "half of it is there"
        )
        assert locate(go.tool).source == "missing"
        if sys.platform == "linux":
            eventually(lambda: not runs(builder), "the build dies with the bootstrap")
    go.gate.unlink()
    path = get(go.tool, say=messages.append)
    assert path.read_text() == "#!/bin/sh\necho whole\n"
    assert staged() == [], "what the killed one left is cleared away"
    assert not any("waiting" in line for line in messages), "a lock dies with its holder"


def test_of_two_bootstraps_at_once_one_builds_and_the_other_waits_and_says_so(go):
    go.close_gate()
    with go.bootstrap() as first:
        eventually(go.builder.exists, "the first is building")
        with go.bootstrap() as second:
            waiting = f"tiny: another bootstrap (process {first.pid}) is installing it; waiting for it\n"
            assert second.stdout.readline() == waiting
            go.open_gate()
            assert second.wait(HANGS) == first.wait(HANGS) == 0
            assert second.stdout.read() == "", "it does nothing itself"
    assert go.builds() == 1
    assert locate(go.tool).source == "cache"


def test_the_one_that_waits_takes_over_when_the_first_is_killed(go):
    go.close_gate()
    with go.bootstrap() as first:
        eventually(go.builder.exists, "the first is building")
        with go.bootstrap() as second:
            assert "waiting for it" in second.stdout.readline()
            go.gate.unlink()
            first.kill()
            assert second.wait(HANGS) == 0
    assert go.builds() == 2
    assert locate(go.tool).source == "cache"


def test_an_interrupted_command_ends_its_builds_and_says_how_to_go_on(go):
    go.close_gate()
    with go.bootstrap("whole") as interrupted:
        eventually(go.builder.exists, "it is building")
        interrupted.send_signal(signal.SIGINT)
        interrupted.wait(HANGS)
        messages = interrupted.stdout.read()
    assert messages.splitlines()[-1].startswith("interrupted. Finished downloads and builds are kept")
    assert "Traceback" not in messages
    assert staged() == []
    eventually(lambda: not runs(int(go.builder.read_text())), "the build has ended")
