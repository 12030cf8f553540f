"""A separate cache per test, fake executables, a Go module proxy made of files, and a release host on loopback."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hpkit_local.toolchain.model import GoBuild, GoFiles, Range, Release, Tool
from hpkit_local.toolchain.steps import tool_folder
from tests.running import unavailable

MODULE = "example.com/tiny"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HPKIT_CACHE", str(folder))
    return folder


@pytest.fixture
def path_folder(tmp_path, monkeypatch):
    """Return a folder that is first on PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def messages():
    return []


def a_tool(name="tiny", version="1.0.0", **changes):
    fields = {
        "fits": Range("1.0", "2.0"),
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


def a_recipe(folder: Path) -> Path:
    """Return a recipe for a Go that checks nothing; test_builds tests the checks of a real Go."""
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text(f"module recipe\n\ngo 1.21\n\nrequire {MODULE} v1.0.0\n")
    (folder / "go.sum").write_text("")
    return folder


def a_build(recipe: Path, **changes) -> GoBuild:
    return GoBuild(recipe=recipe, **{"package": f"{MODULE}/cmd/tiny", **changes})


class Proxy:
    """A Go module proxy in a folder, with one module that has one command, and its recipe."""

    def __init__(self, root: Path) -> None:
        self.versions = root / "proxy" / MODULE / "@v"
        self.versions.mkdir(parents=True)
        self.recipe = root / "recipe"
        self.recipe.mkdir()

    def publish(self, main: str, *, go: str = "1.21") -> None:
        mod = f"module {MODULE}\n\ngo {go}\n"
        (self.versions / "v1.0.0.mod").write_text(mod)
        (self.versions / "v1.0.0.info").write_text('{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}')
        with zipfile.ZipFile(self.versions / "v1.0.0.zip", "w") as archive:
            crds = {f"crds/{name}": f"kind: {name}\n" for name in ("a_one.yaml", "a_two.yaml", "old/a_zero.yaml")}
            files = {"go.mod": mod, "cmd/tiny/main.go": main, "scripts/helper": "#!/bin/sh\n", **crds}
            for name, content in files.items():
                archive.writestr(f"{MODULE}@v1.0.0/{name}", content)

    def pin(self) -> None:
        """Write the recipe's go.sum from the published module, as the maintainer of a recipe does."""
        (self.recipe / "go.mod").write_text(f"module recipe\n\ngo 1.21\n\nrequire {MODULE} v1.0.0\n")
        download, environment = ["go", "mod", "download", "-json", MODULE], {**os.environ, "GOSUMDB": "off"}
        answer = subprocess.run(download, cwd=self.recipe, env=environment, capture_output=True, text=True)
        # Go fails for a module that requires a newer Go, but only after downloading it.
        assert answer.stdout, answer.stderr
        told = json.loads(answer.stdout)
        sums = f"{MODULE} v1.0.0 {told['Sum']}\n{MODULE} v1.0.0/go.mod {told['GoModSum']}\n"
        (self.recipe / "go.sum").write_text(sums)
        subprocess.run(["go", "clean", "-modcache"], check=True)

    def tool(self, **changes):
        return a_tool(sources=(a_build(self.recipe, **changes),))

    def files(self, *patterns: str):
        return a_tool("tiny-files", executables=(), ask=(), sources=(GoFiles(self.recipe, MODULE, patterns),))


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    if shutil.which("go") is None:
        unavailable("builds a tiny Go module; `go` is not on PATH (any Go from 1.26 will do)")
    made = Proxy(tmp_path)
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path / 'proxy'}")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOFLAGS", "")
    yield made
    # Go makes module folders read-only; only Go's own command deletes them.
    subprocess.run(["go", "clean", "-modcache"], check=True)


class ReleaseHost:
    """Serves files over HTTP on loopback; `breaks_off` names files of which only half is sent.

    Files under v2/ are a registry's. With a `token`, the registry requires it. `elsewhere` names files that it serves
    as redirects.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.breaks_off: set[str] = set()
        self.holds: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        self.elsewhere: dict[str, str] = {}
        self.token = ""
        self.brought: dict[str, str | None] = {}
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.answer(self)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name = request.path.removeprefix("/")
        self.asked.append(name)
        self.brought[name] = request.headers.get("Authorization")
        if self.token and name.startswith("v2/") and self.brought[name] != f"Bearer {self.token}":
            request.send_response(401)
            asks = f'Bearer realm="{self.address}/token",service="here",scope="repository:tiny:pull"'
            request.send_header("WWW-Authenticate", asks)
            request.end_headers()
            return
        if name in self.elsewhere:
            request.send_response(307)
            request.send_header("Location", f"{self.address}/{self.elsewhere[name]}")
            request.end_headers()
            return
        if name not in self.files:
            request.send_error(404)
            return
        content = self.files[name]
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        half = len(content) // 2
        request.wfile.write(content[:half])
        if name in self.holds:
            self.holds[name].wait(60)
        if name not in self.breaks_off:
            request.wfile.write(content[half:])

    def publish(self, name: str, content: bytes) -> Release:
        """Serve a file with its checksum, and return its release."""
        self.files[name] = content
        self.files["sums"] = f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()
        return self.release(name)

    def release(self, name: str, **changes) -> Release:
        here = {f"{platform.system()} {platform.machine()}": "here"}
        addresses = {"file": f"{self.address}/{name}", "sums": f"{self.address}/sums"}
        return Release(**{**addresses, "platforms": here, **changes})


@pytest.fixture
def release_host():
    host = ReleaseHost()
    thread = threading.Thread(target=host.server.serve_forever, args=(0.02,))
    thread.start()
    yield host
    for hold in host.holds.values():
        hold.set()
    host.server.shutdown()
    thread.join()
    host.server.server_close()
