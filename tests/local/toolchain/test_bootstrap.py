"""Concurrent and killed bootstraps: a tool is complete or doesn't exist; and tools that PATH already has."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import emulated_version, get, locate, search_path, tool_path
from hpkit_local.toolchain.table import GO, TOOLS, tool_named
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool, put_in_cache, put_script
from tests.running import HANGS, eventually, get_tools

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


def test_a_fitting_version_on_path_wins_over_the_cache(path_folder):
    put_in_cache(a_tool())
    script = put_script(path_folder, "tiny", "echo tiny v1.4.2")
    found = locate(a_tool())
    assert (found.source, found.path, found.version) == ("PATH", script, "1.4.2")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo v0.9.1", "is 0.9.1, wanted 1.0 or newer, below 2.0"),
        ("echo v2.0.0", "is 2.0.0, wanted 1.0 or newer, below 2.0"),
        ("echo no idea", "doesn't print its version"),
        ("echo v1.4.2; exit 3", "doesn't print its version"),
    ],
)
def test_one_on_path_that_does_not_fit_is_passed_over_with_a_reason(path_folder, body, reason):
    script = put_script(path_folder, "tiny", body)
    assert locate(a_tool()).source == "missing"
    cached = put_in_cache(a_tool())
    found = locate(a_tool())
    assert (found.source, found.path) == ("cache", cached)
    assert found.passed_over == f"{script} {reason}"


def test_a_tool_that_cannot_be_asked_is_never_taken_from_path(path_folder):
    put_script(path_folder, "tiny", "echo v1.2.3")
    assert locate(a_tool(ask=())).source == "missing"


def test_a_cached_tool_that_lost_an_executable_is_missing():
    tool = a_tool(executables=("tiny", "helper"))
    put_in_cache(tool)
    assert locate(tool).source == "cache"
    (cache_root() / "tools" / "tiny" / "1.0.0" / "bin" / "helper").unlink()
    assert locate(tool).source == "missing"


def test_a_missing_tool_names_the_command_that_gets_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"^kueue 0\.19\.2 isn't installed\. To install it: hpkit local doctor --fix$"):
        tool_path("kueue")


def test_the_search_path_puts_the_tools_first_and_names_no_folder_twice(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    folder = put_in_cache(tool_named("kueue")).parent
    assert search_path("kueue", "kueue") == f"{folder}:/usr/bin"


def test_every_build_recipe_is_pinned_with_sums():
    for tool in (GO, *TOOLS):
        for source in tool.sources:
            for recipe in [getattr(source, "recipe", None), *(each.recipe for each in getattr(source, "copies", ()))]:
                if recipe is not None:
                    assert (recipe / "go.mod").is_file(), f"{tool.name}: {recipe} has no go.mod"
                    assert "h1:" in (recipe / "go.sum").read_text(), f"{tool.name}: {recipe} pins nothing"


def test_kube_apiserver_emulates_the_versions_of_the_table(monkeypatch):
    monkeypatch.undo()
    get_tools("kube-apiserver")
    text = subprocess.run([tool_path("kube-apiserver"), "--help"], capture_output=True, text=True, check=True).stdout
    assert f"kube={emulated_version('1.0')}..{emulated_version('1.99')}(" in text
