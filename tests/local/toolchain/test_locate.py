"""A tool is taken from PATH if its version fits, otherwise from the cache."""

import subprocess
import sys
from pathlib import Path

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import emulated_version, locate, search_path, tool_path
from hpkit_local.toolchain.table import GO, TOOLS, tool_named
from tests.local.toolchain.conftest import a_tool, put_in_cache, put_script
from tests.running import tools_or_skip


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


def test_a_version_printed_to_stderr_is_read_too(path_folder):
    put_script(path_folder, "tiny", "echo v1.2.3 >&2")
    assert locate(a_tool()).version == "1.2.3"


def test_a_tool_that_cannot_be_asked_is_never_taken_from_path(path_folder):
    put_script(path_folder, "tiny", "echo v1.2.3")
    assert locate(a_tool(ask=())).source == "missing"


def test_the_language_host_is_judged_by_the_cli_beside_it(path_folder):
    host = tool_named("pulumi-language-python")
    for name in host.executables:
        put_script(path_folder, name, "exit 1")
    put_script(path_folder, "pulumi", "echo v3.230.0")
    assert (locate(host).source, locate(host).version) == ("PATH", "3.230.0")
    put_script(path_folder, "pulumi", "echo v3.99.0")
    assert "3.99.0" in locate(host).passed_over


def test_a_host_without_its_scripts_is_not_whole(path_folder):
    put_script(path_folder, "pulumi-language-python", "exit 1")
    put_script(path_folder, "pulumi", "echo v3.230.0")
    assert "has no pulumi-language-python-exec next to it" in locate(tool_named("pulumi-language-python")).passed_over


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


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"HPKIT_CACHE": "/one", "XDG_CACHE_HOME": "/two", "HOME": "/three"}, "/one"),
        ({"HPKIT_CACHE": "", "XDG_CACHE_HOME": "/two", "HOME": "/three"}, "/two/hpkit"),
        ({"HPKIT_CACHE": "", "XDG_CACHE_HOME": "relative", "HOME": "/three"}, "/three/.cache/hpkit"),
        ({"HPKIT_CACHE": "~/mine", "XDG_CACHE_HOME": "", "HOME": "/three"}, "/three/mine"),
    ],
)
def test_the_cache_is_where_the_user_wants_it(monkeypatch, variables, place):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_root() == Path(place)


def test_every_build_recipe_is_pinned_with_sums():
    for tool in (GO, *TOOLS):
        for source in tool.sources:
            for recipe in [getattr(source, "recipe", None), *(each.recipe for each in getattr(source, "copies", ()))]:
                if recipe is not None:
                    assert (recipe / "go.mod").is_file(), f"{tool.name}: {recipe} has no go.mod"
                    assert "h1:" in (recipe / "go.sum").read_text(), f"{tool.name}: {recipe} pins nothing"


def test_kube_apiserver_emulates_the_versions_of_the_table(monkeypatch):
    monkeypatch.undo()
    tools_or_skip("kube-apiserver")
    text = subprocess.run([tool_path("kube-apiserver"), "--help"], capture_output=True, text=True, check=True).stdout
    assert f"kube={emulated_version('1.0')}..{emulated_version('1.99')}(" in text


def test_importing_the_toolchain_needs_no_cloud_library():
    code = "import sys, hpkit_local.toolchain; print(*{'pulumi', 'boto3', 'kubernetes', 'pydantic'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout.strip()) == (0, "")
