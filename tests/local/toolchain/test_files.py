"""Files from a Go module, with a real Go and a module proxy made of files: verified like builds, or rejected."""

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, get_all, locate
from tests.local.toolchain.conftest import put_in_cache

MAIN = "package main\n\nfunc main() {}\n"


@pytest.fixture
def published(proxy):
    proxy.publish(MAIN)
    proxy.pin()
    return proxy


def test_files_are_kept_in_a_folder_of_their_version(published, messages):
    folder = get(published.files("crds/*.yaml", "scripts/helper"), say=messages.append)
    assert folder == cache_root() / "tools" / "tiny-files" / "1.0.0" / "files"
    assert sorted(file.name for file in folder.iterdir()) == ["a_one.yaml", "a_two.yaml", "helper"]
    assert (folder / "a_one.yaml").read_text() == "kind: a_one.yaml\n"


def test_a_cache_that_has_the_executable_gets_the_files_without_a_build(published, messages):
    executable = put_in_cache(published.tool())
    made = executable.stat().st_mtime_ns
    found = get_all([published.tool(), published.files("crds/*.yaml")], say=messages.append)
    assert [each.source for each in found] == ["cache", "cache"]
    assert executable.stat().st_mtime_ns == made
    assert not [line for line in messages if "building" in line]


def test_files_that_are_there_are_not_fetched_again(published, messages):
    first = get(published.files("crds/*.yaml"), say=messages.append)
    del messages[:]
    assert get(published.files("crds/*.yaml"), say=messages.append) == first
    assert messages == []


def test_files_need_no_go_that_could_build_their_module(proxy, messages):
    proxy.publish(MAIN, go="1.999.0")
    proxy.pin()
    folder = get(proxy.files("crds/a_one.yaml"), say=messages.append)
    assert [file.name for file in folder.iterdir()] == ["a_one.yaml"]


@pytest.mark.parametrize("go", ["1.21", "1.999.0"])
def test_a_module_that_is_not_what_was_pinned_gives_no_files(proxy, messages, go):
    proxy.publish(MAIN, go=go)
    proxy.pin()
    proxy.publish(f"{MAIN}// changed", go=go)
    with pytest.raises(ToolError, match=r"doesn't match its pinned hash\. Check the module proxy in GOPROXY"):
        get(proxy.files("crds/*.yaml"), say=messages.append)
    assert locate(proxy.files()).source == "missing"


def test_a_module_that_lost_a_file_leaves_nothing_in_the_cache(published, messages):
    with pytest.raises(ToolError, match=r"^tiny-files: example\.com/tiny@v1\.0\.0/none/\*\.yaml isn't in the module$"):
        get(published.files("crds/*.yaml", "none/*.yaml"), say=messages.append)
    assert locate(published.files()).source == "missing"
    assert not list((cache_root() / "tools" / "tiny-files").iterdir())


def test_a_proxy_out_of_reach_is_said_with_what_to_do(published, messages, monkeypatch):
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    with pytest.raises(ToolError, match="Set GOPROXY or PIP_INDEX_URL to a reachable one"):
        get(published.files("crds/*.yaml"), say=messages.append)
