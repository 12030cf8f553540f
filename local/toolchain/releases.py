"""Takes an executable from its official release, if that is within reach and its checksum is right."""

import hashlib
import http.client
import platform
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO

from hpkit.cache import cache_root
from local.toolchain.cache import Say, locked
from local.toolchain.model import Release, Tool
from local.toolchain.steps import EVERY_SECONDS

__all__ = ["NotToBeHad", "take"]

_CONNECT_SECONDS = 4.0
_BLOCK = 1 << 20
_MEGABYTE = 1_000_000


class NotToBeHad(Exception):  # noqa: N818 - no error: the next source is tried
    """A source that cannot give the tool here; the message says why, the next one is tried."""


def take(tool: Tool, source: Release, *, into: Path, say: Say) -> None:
    """Put the release's executables into a folder; NotToBeHad if it is out of reach or its checksum is wrong."""
    system = f"{platform.system()} {platform.machine()}"
    if system not in source.platforms:
        raise NotToBeHad(f"no release for {system}")
    address, sums = (each.format(platform=source.platforms[system]) for each in (source.file, source.sums))
    name = address.rpartition("/")[2]
    wanted = _published_checksum(sums, name)
    file = cache_root() / "downloads" / f"{wanted}-{name}"
    # One archive may hold several tools, which are fetched side by side.
    with locked(f"download-{name}", say):
        if not (file.is_file() and _checksum(file) == wanted):
            _download(address, wanted, file, say=lambda far: say(f"{tool.name}: downloading {name}{far}"))
    if source.members:
        members = tuple(each.format(platform=source.platforms[system]) for each in source.members)
        _unpack(file, members, into)
    else:
        shutil.copyfile(file, into / tool.executables[0])
        file.unlink()
    for name in tool.executables:
        (into / name).chmod(0o755)


def _published_checksum(address: str, file: str) -> str:
    """Return the SHA-256 of a file out of its publisher's list: `<sum>  <file>` lines, or the sum alone."""
    with _opened(address) as answer:
        try:
            text = answer.read(1 << 20).decode("ascii", errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise NotToBeHad(f"{address} broke off: {error}") from None
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1 or (len(words) > 1 and words[1].lstrip("*") == file):
            found = words[0].lower()
            if len(found) == hashlib.sha256().digest_size * 2:
                return found
    raise NotToBeHad(f"{address} holds no SHA-256 of {file}")


def _download(address: str, wanted: str, file: Path, *, say: Say) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    try:
        with _opened(address) as answer, part.open("wb") as output:
            _copy(answer, output, say=say)
        got = _checksum(part)
        if got != wanted:
            raise NotToBeHad(f"{address} has SHA-256 {got}, its publisher says {wanted}; thrown away")
        part.replace(file)
    except (OSError, http.client.HTTPException) as error:
        raise NotToBeHad(f"{address} broke off: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def _copy(answer: http.client.HTTPResponse, output: BinaryIO, *, say: Say) -> None:
    """Copy an answer to a file, and say how far it is."""
    whole = f"{answer.length / _MEGABYTE:.0f} MB" if answer.length else "unknown size"
    say(f" ({whole})")
    said = time.monotonic()
    while block := answer.read(_BLOCK):
        output.write(block)
        if time.monotonic() - said > EVERY_SECONDS:
            said = time.monotonic()
            say(f": {output.tell() / _MEGABYTE:.0f} of {whole}")


def _opened(address: str) -> http.client.HTTPResponse:
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(  # noqa: S310 - https addresses of the table
            address, timeout=_CONNECT_SECONDS
        )
    except urllib.error.HTTPError as error:
        error.close()
        raise NotToBeHad(f"{address} answers {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        raise NotToBeHad(f"{address} is out of reach: {getattr(error, 'reason', error)}") from None
    return answer


def _unpack(archive: Path, members: tuple[str, ...], into: Path) -> None:
    """Write the named members, and nothing else that the archive may hold."""
    try:
        with tarfile.open(archive) as tar:
            for member in members:
                content = tar.extractfile(member)
                if content is None:
                    raise NotToBeHad(f"{archive.name}: {member} is no file")
                with content, (into / Path(member).name).open("wb") as output:
                    shutil.copyfileobj(content, output, _BLOCK)
    except (KeyError, tarfile.TarError) as error:
        raise NotToBeHad(f"{archive.name}: {error}") from None


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
