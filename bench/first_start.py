"""How long a machine with an empty cache takes to get the tools for `up` if every release can be downloaded.

The releases and images are built from this machine's tools, and served on loopback at a chosen rate. Packages from Go's
and Python's registries come from those registries. Go counts as missing.
"""

import argparse
import hashlib
import io
import json
import os
import platform
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hpkit_local.cloud import TOOLS, get_all, locate
from hpkit_local.toolchain.model import Image, Release, Tool

_BLOCK = 1 << 16
_SYSTEM = f"{platform.system()} {platform.machine()}"


class Host:
    """All publishers as one server that sends a fixed number of bytes per second, anyone who requests them."""

    def __init__(self, rate: float) -> None:
        self.files: dict[str, bytes] = {}
        self._rate, self._lock, self._free = rate, threading.Lock(), time.monotonic()
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = host.files.get(self.path)
                self.send_response(200 if content is not None else 404)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                for start in range(0, len(content or b""), _BLOCK):
                    host.wait(_BLOCK)
                    self.wfile.write((content or b"")[start : start + _BLOCK])

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, size: int) -> None:
        with self._lock:
            self._free = max(self._free, time.monotonic()) + size / self._rate
            until = self._free
        time.sleep(max(0.0, until - time.monotonic()))

    def here(self, address: str) -> str:
        return address.replace("https://", f"{self.address}/")

    def serve(self, address: str, content: bytes) -> str:
        self.files[address.replace("https://", "/")] = content
        return hashlib.sha256(content).hexdigest()


def _archive(files: dict[str, Path]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=6) as tar:
        for name, file in files.items():
            tar.add(file, name)
    return content.getvalue()


def _published(tool: Tool, host: Host) -> Tool:
    """Serve what a tool's first source would, and return the tool with that source."""
    source, path = tool.sources[0], locate(tool).path
    if isinstance(source, Release) and path is not None:
        there = source.platforms[_SYSTEM]
        address, sums = (each.format(platform=there) for each in (source.file, source.sums))
        members = [each.format(platform=there) for each in source.members]
        whole = _archive({each: path.parent / Path(each).name for each in members}) if members else path.read_bytes()
        # Tools that share an archive each add their own members to it: at most those of the real archive.
        name = address.rpartition("/")[2]
        extra = f"{tool.name}-" if members else ""
        address = address.removesuffix(name) + extra + name
        listed = host.files.get(sums.replace("https://", "/"), b"").decode()
        host.serve(sums, f"{listed}{host.serve(address, whole)}  {extra}{name}\n".encode())
        local_source = replace(source, file=host.here(address), sums=host.here(sums))
    elif isinstance(source, Image) and path is not None:
        folder = f"{source.registry}/v2/{source.repository}"

        def put(content: bytes) -> dict[str, str]:
            digest = hashlib.sha256(content).hexdigest()
            host.serve(f"{folder}/blobs/sha256:{digest}", content)
            return {"digest": f"sha256:{digest}"}

        config = put(json.dumps({"config": {"Entrypoint": ["/manager"]}}).encode())
        manifest = {"config": config, "layers": [put(_archive({"manager": path}))]}
        host.serve(f"{folder}/manifests/{source.tag}", json.dumps(manifest).encode())
        local_source = replace(source, registry=host.here(source.registry))
    else:
        return tool
    return replace(tool, sources=(local_source,))


def _timed(said: list[str], began: float) -> Callable[[str], None]:
    def say(line: str) -> None:
        said.append(line)
        print(f"{time.monotonic() - began:6.1f} s  {line}")

    return say


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=12.5, help="a second, of all downloads from the host")
    host = Host(parser.parse_args().megabytes * 1e6)
    tools = [_published(tool, host) for tool in TOOLS if not tool.on_demand]
    size = sum(map(len, host.files.values())) / 1e6
    without_go = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "go").exists()]
    os.environ["PATH"] = os.pathsep.join(without_go)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HPKIT_CACHE"] = folder
        os.environ["GOMODCACHE"] = f"{folder}/modules"
        os.environ["GOFLAGS"] = "-modcacherw"
        began, lines = time.monotonic(), []
        get_all(tools, say=_timed(lines, began))
        print(f"{time.monotonic() - began:6.1f} s  {len(tools)} tools, {size:.0f} MB of releases and images")
        built = [line for line in lines if ": building " in line or "no release" in line]
        print("\n".join(["built nevertheless:", *built]) if built else "nothing was built")


if __name__ == "__main__":
    main()
