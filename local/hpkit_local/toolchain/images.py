"""Extracts an executable from a container image, if its registry is reachable: some projects publish nothing else.

https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md, pulling;
https://github.com/opencontainers/image-spec/blob/v1.1.0/image-index.md, manifest.md and config.md.
"""

import hashlib
import http.client
import json
import re
import shutil
import tarfile
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from hpkit.cache import cache_root
from hpkit_local.toolchain.cache import Say
from hpkit_local.toolchain.download import BLOCK, Unavailable, download, of_this_machine, opened
from hpkit_local.toolchain.model import Image, Tool

__all__ = ["take"]

_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_MOST_BYTES = 4 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def take(tool: Tool, source: Image, *, into: Path, say: Say) -> None:
    """Put the image's entrypoint into a folder, under the tool's name.

    Raises Unavailable if the registry is unreachable, has no image for this machine, or sends content that doesn't
    match its digests.
    """
    machine = of_this_machine(source.platforms, tool="image")
    repository = _Repository(source)
    manifest = repository.manifest(machine)
    name = f"{source.repository}:{source.tag}"
    entrypoint = _entrypoint(repository.document(_digest_of(manifest.get("config"))), name)
    # The last layers contain the program.
    for layer in reversed(manifest.get("layers", [])):
        digest = _digest_of(layer)
        file = cache_root() / "downloads" / f"{digest}-{tool.name}.layer"
        try:
            download(
                repository.blob(digest),
                digest,
                file,
                say=lambda far: say(f"{tool.name}: downloading {name}{far}"),
                opener=repository.opened,
            )
            if _unpacked(file, entrypoint, into / tool.executables[0]):
                return
        finally:
            file.unlink(missing_ok=True)
    raise Unavailable(f"{name} holds no {entrypoint}")


class _Repository:
    """One repository of a registry; an anonymous token is requested if the registry requires one."""

    def __init__(self, source: Image) -> None:
        self._registry = source.registry
        self._address = f"{source.registry}/v2/{source.repository}"
        self._tag = source.tag
        self._token: str | None = None

    def manifest(self, architecture: str) -> dict[str, Any]:
        """Return the manifest of the image for Linux on an architecture, by Go's name of it."""
        index = self._read(f"{self._address}/manifests/{self._tag}")
        if "manifests" not in index:
            return index
        for entry in index["manifests"]:
            of = entry.get("platform", {})
            if (of.get("os"), of.get("architecture")) == ("linux", architecture):
                digest = _digest_of(entry)
                return self._read(f"{self._address}/manifests/sha256:{digest}", digest)
        raise Unavailable(f"{self._address}: no image of {self._tag} for linux/{architecture}")

    def document(self, digest: str) -> dict[str, Any]:
        """Return a blob that is a JSON document."""
        return self._read(self.blob(digest), digest)

    def blob(self, digest: str) -> str:
        """Return where a blob is."""
        return f"{self._address}/blobs/sha256:{digest}"

    def opened(self, address: str) -> http.client.HTTPResponse:
        """Request something from the repository. Raises Unavailable without a response, or for an error."""
        try:
            return opened(self._request(address))
        except Unavailable as refusal:
            if self._token or not refusal.challenge:
                raise
            self._token = self._token_for(refusal)
            return opened(self._request(address))

    def _request(self, address: str) -> urllib.request.Request:
        request = urllib.request.Request(address, headers={"Accept": ", ".join(_TYPES)})  # noqa: S310 - of the table
        if self._token:
            # A registry redirects to its own store, which rejects a second authorization next to that of the address.
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return request

    def _token_for(self, refusal: Unavailable) -> str:
        """Return the registry's anonymous token. Raises Unavailable if it requires other credentials.

        https://distribution.github.io/distribution/spec/auth/token/
        """
        words = dict(re.findall(r'(\w+)="([^"]*)"', refusal.challenge))
        realm = words.pop("realm", "")
        if not realm.startswith(("https://", f"{self._registry}/")):
            raise refusal
        return str(_json_of(opened(f"{realm}?{urlencode(words)}"), realm).get("token", ""))

    def _read(self, address: str, digest: str = "") -> dict[str, Any]:
        return _json_of(self.opened(address), address, digest)


def _json_of(answer: http.client.HTTPResponse, address: str, digest: str = "") -> dict[str, Any]:
    """Return the JSON object in a response. Raises Unavailable for other contents, or another digest."""
    with answer:
        try:
            content = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{address} broke off: {error}") from None
    got = hashlib.sha256(content).hexdigest()
    if digest and got != digest:
        raise Unavailable(f"{address} has SHA-256 {got} instead of the expected one; the file was deleted")
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unavailable(f"{address} isn't a JSON object")
    return document


def _digest_of(descriptor: Any) -> str:
    """Return the SHA-256 by which a manifest names something; Unavailable if it names none."""
    match = _DIGEST.fullmatch(str(descriptor.get("digest"))) if isinstance(descriptor, dict) else None
    if match is None:
        raise Unavailable("the image's manifest refers to content without a SHA-256")
    return match[1]


def _entrypoint(config: dict[str, Any], name: str) -> str:
    """Return the path of an image's entrypoint, without the leading slash."""
    words = config.get("config", {}).get("Entrypoint") or [""]
    path = str(words[0]).lstrip("/")
    if not path:
        raise Unavailable(f"{name} doesn't contain an entrypoint")
    return path


def _unpacked(layer: Path, path: str, to: Path) -> bool:
    """Write one file of a layer as an executable, and return whether the layer has it."""
    try:
        with tarfile.open(layer) as tar:
            for member in tar:
                found = member.isfile() and member.name.removeprefix("./") == path
                content = tar.extractfile(member) if found else None
                if content is not None:
                    with content, to.open("wb") as output:
                        shutil.copyfileobj(content, output, BLOCK)
                    to.chmod(0o755)
                    return True
    except (tarfile.TarError, OSError, EOFError) as error:
        raise Unavailable(f"a layer can't be read: {error}") from None
    return False
