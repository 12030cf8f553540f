"""A cache of its own for every test, fake executables, and a Go module proxy made of files."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from local.toolchain.cache import tool_folder
from local.toolchain.model import GoBuild, Tool
from local.toolchain.versions import Range

MODULE = "example.com/tiny"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HPKIT_CACHE", str(folder))
    return folder


@pytest.fixture
def path_folder(tmp_path, monkeypatch):
    """Return a folder that comes first on PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def said():
    return []


def a_tool(name="tiny", version="1.0.0", **changes):
    fields = {
        "fits": Range((1, 0, 0), (2, 0, 0)),
        "executables": (name,),
        "sources": (),
        "purpose": "is tried in tests",
        "ask": ("version",),
    }
    return Tool(name=name, version=version, **{**fields, **changes})


def put_script(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / name
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


def put_in_cache(tool: Tool) -> Path:
    for name in tool.executables:
        put_script(tool_folder(tool) / "bin", name, "exit 0")
    return tool_folder(tool) / "bin" / tool.executables[0]


class Proxy:
    """A Go module proxy in a folder, holding one module with one command, and its recipe."""

    def __init__(self, root: Path) -> None:
        self.versions = root / "proxy" / MODULE / "@v"
        self.versions.mkdir(parents=True)
        self.recipe = root / "recipe"
        self.recipe.mkdir()

    def publish(self, main: str) -> None:
        mod = f"module {MODULE}\n\ngo 1.21\n"
        (self.versions / "v1.0.0.mod").write_text(mod)
        (self.versions / "v1.0.0.info").write_text('{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}')
        with zipfile.ZipFile(self.versions / "v1.0.0.zip", "w") as archive:
            for name, content in (("go.mod", mod), ("cmd/tiny/main.go", main), ("scripts/helper", "#!/bin/sh\n")):
                archive.writestr(f"{MODULE}@v1.0.0/{name}", content)

    def pin(self) -> None:
        """Write the recipe's go.sum from what is published now, as the maintainer of a recipe does."""
        (self.recipe / "go.mod").write_text(f"module recipe\n\ngo 1.21\n\nrequire {MODULE} v1.0.0\n")
        answer = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            cwd=self.recipe,
            env={**os.environ, "GOSUMDB": "off"},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stderr
        told = json.loads(answer.stdout)
        sums = f"{MODULE} v1.0.0 {told['Sum']}\n{MODULE} v1.0.0/go.mod {told['GoModSum']}\n"
        (self.recipe / "go.sum").write_text(sums)
        subprocess.run(["go", "clean", "-modcache"], check=True)

    def tool(self, **changes):
        return a_tool(sources=(GoBuild(recipe=self.recipe, package=f"{MODULE}/cmd/tiny", **changes),))


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    if shutil.which("go") is None:
        pytest.skip("builds a tiny Go module; `go` is not on PATH (any Go from 1.26 will do)")
    made = Proxy(tmp_path)
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path / 'proxy'}")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    yield made
    # Go makes module folders read-only; only Go's own command deletes them.
    subprocess.run(["go", "clean", "-modcache"], check=True)
