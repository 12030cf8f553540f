"""A tool that is only published in an image is extracted from it, if its digests match; else the next source."""

import hashlib
import io
import json
import platform
import stat
import tarfile

import pytest

from hpkit.cache import cache_root
from hpkit_local.toolchain import get
from hpkit_local.toolchain.model import Image
from tests.local.toolchain.conftest import a_tool

PROGRAM = b"#!/bin/sh\necho tiny v1.0.0\n"
EVERYBODYS = "of-everybody"
SYSTEM = f"{platform.system()} {platform.machine()}"


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
    registry.push(layer(etc__os=b"base"), layer(usr__bin__tiny=PROGRAM, usr__bin__more=b"x"), index=index)
    path = taken(registry, messages)
    assert (path.name, path.read_bytes()) == ("tiny", PROGRAM)
    assert path.stat().st_mode & stat.S_IXUSR
    assert [file.name for file in path.parent.iterdir()] == ["tiny"]
    assert len(registry.host.asked) == len(set(registry.host.asked))
    assert messages == ["tiny: downloading tiny:v1 (0 MB)", "tiny: 1.0.0 is in the cache"]
    assert not list((cache_root() / "downloads").iterdir())


def test_everybodys_token_is_asked_for_once_and_brought_to_the_registry_alone(registry, release_host, messages):
    registry.push(layer(usr__bin__tiny=PROGRAM))
    release_host.token = EVERYBODYS
    query = "token?service=here&scope=repository%3Atiny%3Apull"
    release_host.files[query] = json.dumps({"token": EVERYBODYS}).encode()
    for number, name in enumerate(registry.blobs()):
        release_host.elsewhere[name] = f"store/{number}"
        release_host.files[f"store/{number}"] = release_host.files.pop(name)
    assert taken(registry, messages).read_bytes() == PROGRAM
    assert release_host.asked.count(query) == 1
    assert release_host.asked.count("v2/tiny/manifests/v1") == 2
    assert [release_host.brought[f"store/{number}"] for number in range(2)] == [None, None]


def test_a_token_is_fetched_from_nobody_who_could_be_listened_to(registry, release_host, messages):
    registry.push(layer(usr__bin__tiny=PROGRAM))
    release_host.token = EVERYBODYS
    release_host.address = "http://elsewhere.invalid"
    assert "/v2/tiny/manifests/v1 answers 401" in refused(registry, messages)


@pytest.mark.parametrize("part", ["blobs", "manifests/sha256"])
def test_what_differs_from_its_digest_is_thrown_away(registry, release_host, messages, part):
    registry.push(layer(usr__bin__tiny=PROGRAM))
    for name in list(release_host.files):
        if name.startswith(f"v2/tiny/{part}"):
            release_host.files[name] = release_host.files[name].replace(b"a", b"b") + b" "
    assert "the file was deleted" in refused(registry, messages)
