"""Builds with a real Go, from a module proxy made of files: pinned, reproducible, and continued after a kill."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, golang, locate
from hpkit_local.toolchain.model import Copy
from hpkit_local.toolchain.steps import Steps
from tests.local.toolchain.conftest import MODULE, a_build, a_recipe, a_tool, put_script

ROOT = Path(__file__).parent.parent.parent.parent
MAIN = 'package main\n\nvar version = "none"\n\nfunc main() { println("tiny", version) }\n'
# fmt imports about fifty packages of the standard library, which an empty build cache doesn't have either.
LARGER = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("tiny") }\n'
ONCE = """
import sys
from pathlib import Path
from hpkit_local.toolchain import get
from tests.local.toolchain.conftest import a_build, a_tool
get(a_tool(sources=(a_build(Path(sys.argv[1])),)), say=print)
"""


def output(path):
    return subprocess.run([path], capture_output=True, text=True, check=True, timeout=300).stderr


def test_a_tool_is_built_from_its_pinned_module_with_its_version_in_it(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    path = get(proxy.tool(linker=("-X main.version=v1.0.0",)), say=messages.append)
    assert output(path) == "tiny v1.0.0\n"
    assert str(cache_root()).encode() not in path.read_bytes(), "-trimpath: the same for everybody"


def test_scripts_of_the_module_are_put_beside_the_executable(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    copy = Copy(proxy.recipe, MODULE, "scripts/helper")
    path = get(proxy.tool(copies=(copy,)), say=messages.append)
    assert os.access(path.with_name("helper"), os.X_OK)


def test_a_text_of_the_program_is_replaced_where_it_stands_once_and_nothing_is_built_where_it_does_not(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    with pytest.raises(ToolError, match=re.escape("has 'version' 2 times, and should have it once")):
        get(proxy.tool(replaced=(("version", "text"),)), say=messages.append)
    with pytest.raises(ToolError, match=re.escape("has 'absent' 0 times")):
        get(proxy.tool(replaced=(("absent", "text"),)), say=messages.append)
    assert output(get(proxy.tool(replaced=(('"none"', '"ours"'),)), say=messages.append)) == "tiny ours\n"


def test_a_module_that_is_not_what_was_pinned_is_refused(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    proxy.publish(MAIN.replace("none", "evil"))
    with pytest.raises(ToolError, match=r"doesn't match its pinned hash\. Check the module proxy in GOPROXY"):
        get(proxy.tool(), say=messages.append)
    assert locate(proxy.tool()).source == "missing"


def test_a_user_cannot_switch_the_verification_off_by_accident(proxy, messages, monkeypatch):
    proxy.publish(MAIN)
    proxy.pin()
    proxy.publish(MAIN.replace("none", "evil"))
    for name, value in (("GOFLAGS", "-mod=mod"), ("GOINSECURE", "*"), ("GONOSUMCHECK", "1"), ("GONOSUMDB", "*")):
        monkeypatch.setenv(name, value)
    with pytest.raises(ToolError, match="doesn't match its pinned hash"):
        get(proxy.tool(), say=messages.append)


def test_a_proxy_out_of_reach_is_said_with_what_to_do(proxy, messages, monkeypatch):
    proxy.publish(MAIN)
    proxy.pin()
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    with pytest.raises(ToolError, match="Set GOPROXY or PIP_INDEX_URL to a reachable one"):
        get(proxy.tool(), say=messages.append)


def packages(log):
    """Return the packages that each `go build -v` lists in a log, in order."""
    commands = f"\n{log}".split("\n$ ")[1:]
    return [line for text in commands if re.match(r"\S+ build ", text) for line in text.splitlines()[1:]]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_killed_build_is_gone_on_with_where_it_was(proxy, messages, monkeypatch, tmp_path):
    monkeypatch.setenv("GOCACHE", str(tmp_path / "go-cache"))
    proxy.publish(LARGER)
    proxy.pin()
    log = cache_root() / "logs" / "tiny.log"
    at_once = os.cpu_count() or 1
    killed = subprocess.Popen([sys.executable, "-c", ONCE, str(proxy.recipe)], cwd=ROOT, stdout=subprocess.DEVNULL)
    before = []
    deadline = time.monotonic() + 600
    while len(before) < at_once + 8 and killed.poll() is None:
        assert time.monotonic() < deadline, "the build did not get going"
        time.sleep(0.02)
        before = packages(log.read_text() if log.exists() else "")
    killed.kill()
    assert killed.wait(30) == -9, "it was killed before it was done"
    steps = Steps("tiny", messages.append)
    tool = proxy.tool()
    into = tmp_path / "out"
    into.mkdir()
    golang.build(tool, tool.sources[0], go=Path("go"), into=into, steps=steps)
    again = set(packages(steps.log.read_text())) & set(before)
    assert len(again) <= at_once, "only what was being compiled at the kill is compiled again"


def test_what_a_build_needs_of_the_standard_library_is_compiled_first(path_folder, tmp_path, messages):
    calls = tmp_path / "calls"
    listed = "internal/abi unsafe net/http crypto/internal/rand vendor/golang.org/x/net/idna example.com/tiny"
    made = 'while [ "$1" != -o ]; do shift; done; : > "$2"; chmod +x "$2"'
    build = f'echo "$*" >> {calls}; case "$*" in *" -o "*) {made};; esac'
    put_script(
        path_folder,
        "go",
        f'case "$1" in version) echo go1.26.8;; list) printf "%s\\n" {listed};; build) {build};; esac',
    )
    get(a_tool(sources=(a_build(a_recipe(tmp_path / "recipe")),)), say=messages.append)
    first, second = calls.read_text(encoding="utf-8").splitlines()
    assert first == "build -v -trimpath -gcflags=all=-dwarf=false unsafe net/http"
    assert "-o" in second.split()
