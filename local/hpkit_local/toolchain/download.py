"""Files with a known SHA-256, for this machine, on a host that might be unreachable, and executables of releases.

Extracts an executable from a container image, if its registry is reachable: some projects publish nothing else.
https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md, pulling;
https://github.com/opencontainers/image-spec/blob/v1.1.0/image-index.md, manifest.md and config.md.
"""

import hashlib
import http.client
import json
import platform
import re
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

from hpkit.cache import cache_root
from hpkit_local.toolchain.model import Image, Release, Tool
from hpkit_local.toolchain.steps import EVERY_SECONDS, Say, locked

__all__ = ["Unavailable", "take_image", "take_release"]

BLOCK = 1 << 20
_CONNECT_SECONDS = 4.0
_MEGABYTE = 1_000_000

_Opened = Callable[[str], http.client.HTTPResponse]
_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_MOST_BYTES = 4 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class Unavailable(Exception):  # noqa: N818 - no error: the next source is tried
    """A source that can't provide the tool here; the message has the reason, and the next source is tried.

    `challenge` is what an address requires, if it returned that (RFC 9110, WWW-Authenticate).
    """

    def __init__(self, message: str, *, challenge: str = "") -> None:
        super().__init__(message)
        self.challenge = challenge


def of_this_machine(platforms: Mapping[str, str], *, tool: str) -> str:
    """Return the publisher's name of this machine; Unavailable where it publishes no such thing for it."""
    system = f"{platform.system()} {platform.machine()}"
    if system not in platforms:
        raise Unavailable(f"no {tool} for {system}")
    return platforms[system]


def opened(request: str | urllib.request.Request) -> http.client.HTTPResponse:
    """Request an address. Raises Unavailable without a response, or for an error."""
    address = request if isinstance(request, str) else request.full_url
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(  # noqa: S310 - https addresses of the table
            request, timeout=_CONNECT_SECONDS
        )
    except urllib.error.HTTPError as error:
        with error:
            challenge = error.headers.get("WWW-Authenticate", "")
        raise Unavailable(f"{address} answers {error.code}", challenge=challenge) from None
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{address} can't be reached: {getattr(error, 'reason', error)}") from None
    return answer


def download(address: str, sha256: str, file: Path, *, say: Callable[[str], None], opener: _Opened = opened) -> None:
    """Save an address's response. Raises Unavailable, and keeps no file, if it's incomplete or has another SHA-256."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    try:
        with opener(address) as answer, part.open("wb") as output:
            _copy(answer, output, say=say)
        got = checksum(part)
        if got != sha256:
            raise Unavailable(f"{address} has SHA-256 {got}, its publisher lists {sha256}; the file was deleted")
        part.replace(file)
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{address} broke off: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def checksum(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _copy(answer: http.client.HTTPResponse, output: BinaryIO, *, say: Callable[[str], None]) -> None:
    """Copy a response to a file, and report the progress."""
    whole = f"{answer.length / _MEGABYTE:.0f} MB" if answer.length else "unknown size"
    say(f" ({whole})")
    reported = time.monotonic()
    while block := answer.read(BLOCK):
        output.write(block)
        if time.monotonic() - reported > EVERY_SECONDS:
            reported = time.monotonic()
            say(f": {output.tell() / _MEGABYTE:.0f} of {whole}")


def take_release(tool: Tool, source: Release, *, into: Path, say: Say) -> None:
    """Put the release's executables into a folder. Raises Unavailable if it's unreachable or its checksum is wrong."""
    machine = of_this_machine(source.platforms, tool="release")
    address, sums = (each.format(platform=machine) for each in (source.file, source.sums))
    name = address.rpartition("/")[2]
    sha256 = _published_checksum(sums, name)
    file = cache_root() / "downloads" / f"{sha256}-{name}"
    # One archive can contain several tools, which are downloaded in parallel.
    with locked(f"download-{name}", say):
        if not (file.is_file() and checksum(file) == sha256):
            download(address, sha256, file, say=lambda far: say(f"{tool.name}: downloading {name}{far}"))
    if source.members:
        members = tuple(each.format(platform=machine) for each in source.members)
        _unpack(file, members, into)
    else:
        shutil.copyfile(file, into / tool.executables[0])
        file.unlink()
    for name in tool.executables:
        (into / name).chmod(0o755)


def _published_checksum(address: str, file: str) -> str:
    """Return the SHA-256 of a file from its publisher's list: `<sum>  <file>` lines, or only the sum."""
    with opened(address) as answer:
        try:
            text = answer.read(1 << 20).decode("ascii", errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{address} broke off: {error}") from None
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1 or (len(words) > 1 and words[1].lstrip("*") == file):
            found = words[0].lower()
            if len(found) == hashlib.sha256().digest_size * 2:
                return found
    raise Unavailable(f"{address} contains no SHA-256 for {file}")


def _unpack(archive: Path, members: tuple[str, ...], into: Path) -> None:
    """Write the named members, and nothing else in the archive."""
    try:
        with tarfile.open(archive) as tar:
            for member in members:
                content = tar.extractfile(member)
                if content is None:
                    raise Unavailable(f"{archive.name}: {member} isn't a file")
                with content, (into / Path(member).name).open("wb") as output:
                    shutil.copyfileobj(content, output, BLOCK)
    except (KeyError, tarfile.TarError) as error:
        raise Unavailable(f"{archive.name}: {error}") from None


def take_image(tool: Tool, source: Image, *, into: Path, say: Say) -> None:
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
        except Unavailable as rejection:
            if self._token or not rejection.challenge:
                raise
            self._token = self._token_for(rejection)
            return opened(self._request(address))

    def _request(self, address: str) -> urllib.request.Request:
        request = urllib.request.Request(address, headers={"Accept": ", ".join(_TYPES)})  # noqa: S310 - of the table
        if self._token:
            # A registry redirects to its own store, which rejects a second authorization if the address has one.
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return request

    def _token_for(self, rejection: Unavailable) -> str:
        """Return the registry's anonymous token. Raises Unavailable if it requires other credentials.

        https://distribution.github.io/distribution/spec/auth/token/
        """
        words = dict(re.findall(r'(\w+)="([^"]*)"', rejection.challenge))
        realm = words.pop("realm", "")
        if not realm.startswith(("https://", f"{self._registry}/")):
            raise rejection
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
