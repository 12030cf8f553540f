"""Files with a known SHA-256, for this machine, on a host that might be unreachable, and executables of releases."""

import hashlib
import http.client
import platform
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from hpkit.cache import cache_root
from hpkit_local.toolchain.cache import Say, locked
from hpkit_local.toolchain.model import Release, Tool
from hpkit_local.toolchain.steps import EVERY_SECONDS

__all__ = ["BLOCK", "Unavailable", "checksum", "download", "of_this_machine", "opened", "take_release"]

BLOCK = 1 << 20
_CONNECT_SECONDS = 4.0
_MEGABYTE = 1_000_000

_Opened = Callable[[str], http.client.HTTPResponse]


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
