"""A tool is taken from PATH if its version fits, otherwise from the cache."""

import subprocess

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import emulated_version, locate, search_path, tool_path
from hpkit_local.toolchain.table import GO, TOOLS, tool_named
from tests.local.toolchain.conftest import a_tool, put_in_cache, put_script
from tests.running import get_tools


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
