"""Concurrent and killed bootstraps: a tool is complete or doesn't exist, and nothing is done twice."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, get_all, locate
from hpkit_local.toolchain.cache import tool_folder
from hpkit_local.toolchain.steps import Steps
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool, put_in_cache, put_script
from tests.running import eventually

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
        killed.wait(30)
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
            assert second.wait(30) == first.wait(30) == 0
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
            assert second.wait(30) == 0
    assert go.builds() == 2
    assert locate(go.tool).source == "cache"


def test_an_interrupt_leaves_nothing_staged_and_no_build_running(go):
    go.close_gate()
    with go.bootstrap() as interrupted:
        eventually(go.builder.exists, "it is building")
        interrupted.send_signal(signal.SIGINT)
        interrupted.wait(30)
    assert staged() == []
    eventually(lambda: not runs(int(go.builder.read_text())), "the build has ended")
    assert locate(go.tool).source == "missing"


def test_an_interrupted_command_ends_its_builds_and_says_how_to_go_on(go):
    go.close_gate()
    with go.bootstrap("whole") as interrupted:
        eventually(go.builder.exists, "it is building")
        interrupted.send_signal(signal.SIGINT)
        interrupted.wait(10)
        messages = interrupted.stdout.read()
    assert messages.splitlines()[-1].startswith("interrupted. Finished downloads and builds are kept")
    assert "Traceback" not in messages
    assert staged() == []
    eventually(lambda: not runs(int(go.builder.read_text())), "the build has ended")


def test_progress_names_what_is_done_and_how_long_it_usually_takes(go, messages):
    get(go.tool, say=messages.append)
    assert messages == [
        "tiny: downloading modules (usually 47 s)",
        "tiny: building 1.0.0 (usually 3 min 20 s)",
        "tiny: 1.0.0 is in the cache",
    ]


def test_a_long_build_says_how_many_packages_of_how_many_it_has_reached(go, messages, monkeypatch):
    monkeypatch.setattr("hpkit_local.toolchain.bootstrap.Steps", functools.partial(Steps, every=0.1))
    go.close_gate()
    reported = threading.Event()

    def say(line):
        messages.append(line)
        if "1 of at most 2 packages" in line:
            reported.set()

    opener = threading.Thread(target=lambda: (reported.wait(30), go.open_gate()))
    opener.start()
    get(go.tool, say=say)
    opener.join()
    assert any(
        line.startswith("tiny: building 1.0.0: 1 of at most 2 packages, 0 s of usually 3 min") for line in messages
    )


def test_a_failed_build_keeps_its_log_and_names_it_and_the_next_try_begins_a_new_one(go, messages):
    go.close_gate()
    opener = threading.Thread(target=go.open_gate, args=("fail",))
    opener.start()
    with pytest.raises(ToolError) as raised:
        get(go.tool, say=messages.append)
    opener.join()
    log = cache_root() / "logs" / "tiny.log"
    assert f"building 1.0.0 failed with exit code 2. Whole log: {log}\n" in str(raised.value)
    assert "a.go:1: it does not compile" in str(raised.value)
    assert "it does not compile" in log.read_text()
    assert (staged(), locate(go.tool).source) == ([], "missing")
    get(go.tool, say=messages.append)
    assert not log.exists()


def test_one_tool_that_cannot_be_had_does_not_keep_the_others_from_coming(go, messages):
    bad = a_tool("bad", sources=(a_build(go.recipe / "nowhere"),))
    worse = a_tool("worse", sources=())
    with pytest.raises(ToolError) as raised:
        get_all([bad, go.tool, worse], say=messages.append)
    first, *rest = str(raised.value).splitlines()
    assert first == "2 of 3 tools couldn't be installed:"
    assert [line.split()[0] for line in rest] == ["bad:", "worse"]
    assert locate(go.tool).source == "cache"


def test_two_tools_are_built_side_by_side_where_there_are_two_cores(go, messages, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    both = threading.Barrier(2, timeout=300)

    def say(line):
        messages.append(line)
        if "downloading modules" in line:
            both.wait()

    other = shutil.copytree(go.recipe, go.recipe.with_name("other"))
    tools = [a_tool("one", sources=(a_build(go.recipe),)), a_tool("two", sources=(a_build(other),))]
    assert [each.source for each in get_all(tools, say=say)] == ["cache", "cache"]


def test_tools_of_one_recipe_are_built_one_after_the_other(go, messages, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    sources = (a_build(go.recipe),)
    get_all([a_tool("one", sources=sources), a_tool("two", sources=sources)], say=messages.append)
    assert [line.partition(":")[0] for line in messages] == sorted(line.partition(":")[0] for line in messages)


def test_what_takes_longest_to_build_is_begun_first(go, messages, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    other = shutil.copytree(go.recipe, go.recipe.with_name("other"))
    tools = [a_tool("short", sources=(a_build(go.recipe),)), a_tool("long", sources=(a_build(other, seconds=900),))]
    get_all(tools, say=messages.append)
    assert messages[0].startswith("long:")


def test_a_version_on_path_that_fits_is_taken_and_nothing_is_got(go, path_folder, messages):
    script = put_script(path_folder, "tiny", "echo v1.2.3")
    assert get(go.tool, say=messages.append) == script
    assert (messages, go.builds()) == ([], 0)


def test_a_version_on_path_that_does_not_fit_is_left_alone_and_another_is_got(go, path_folder, messages):
    script = put_script(path_folder, "tiny", "echo v2.0.0")
    path = get(go.tool, say=messages.append)
    assert path.is_relative_to(tool_folder(go.tool))
    assert script.read_text() == "#!/bin/sh\necho v2.0.0\n"
    assert locate(go.tool).passed_over.endswith("is 2.0.0, wanted 1.0 or newer, below 2.0")


def test_an_older_version_in_the_cache_stays_beside_the_new_one(go, messages):
    older = put_in_cache(a_tool(version="0.9.0"))
    get(go.tool, say=messages.append)
    assert older.exists()
    assert locate(a_tool(version="0.9.0")).path == older


def test_an_install_that_lost_a_file_is_replaced_whole(go, messages):
    path = get(go.tool, say=messages.append)
    path.unlink()
    (path.parent / "stray").touch()
    assert get(go.tool, say=messages.append) == path
    assert [file.name for file in path.parent.iterdir()] == ["tiny"]


def test_a_cache_below_a_file_names_the_variable_that_moves_it(go, tmp_path, monkeypatch, messages):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ToolError, match="Set HPKIT_CACHE to a writable folder"):
        get(go.tool, say=messages.append)
