"""Takes an executable from its official release, if that is within reach and its checksum is right."""

import hashlib
import http.client
import platform
import shutil
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from local.toolchain.cache import Say, cache_root
from local.toolchain.model import Release, Tool

__all__ = ["NotToBeHad", "take"]

_CONNECT_SECONDS = 4.0
_BLOCK = 1 << 20


class NotToBeHad(Exception):  # noqa: N818 - no error: the next source is tried
    """A source that cannot give the tool here; the message says why, the next one is tried."""


def take(tool: Tool, source: Release, *, into: Path, say: Say) -> None:
    """Put the release's executables into a folder; NotToBeHad if it is out of reach or its checksum is wrong."""
    system = f"{platform.system()} {platform.machine()}"
    if system not in source.platforms:
        raise NotToBeHad(f"no release for {system}")
    address, sums = (each.format(platform=source.platforms[system]) for each in (source.file, source.sums))
    wanted = _published_checksum(sums, address.rpartition("/")[2])
    file = cache_root() / "downloads" / f"{wanted}-{address.rpartition('/')[2]}"
    if not (file.is_file() and _checksum(file) == wanted):
        say(f"{tool.name}: downloading the release {tool.version}")
        _download(address, wanted, file)
    if source.members:
        _unpack(file, source.members, into)
    else:
        shutil.copyfile(file, into / tool.executables[0])
        file.unlink()
    for name in tool.executables:
        (into / name).chmod(0o755)


def _published_checksum(address: str, file: str) -> str:
    """Return the SHA-256 of a file out of its publisher's list: `<sum>  <file>` lines, or the sum alone."""
    with _opened(address) as answer:
        text = answer.read(1 << 20).decode("ascii", errors="replace")
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1 or (len(words) > 1 and words[1].lstrip("*") == file):
            found = words[0].lower()
            if len(found) == hashlib.sha256().digest_size * 2:
                return found
    raise NotToBeHad(f"{address} holds no SHA-256 of {file}")


def _download(address: str, wanted: str, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    try:
        with _opened(address) as answer, part.open("wb") as output:
            shutil.copyfileobj(answer, output, _BLOCK)
        got = _checksum(part)
        if got != wanted:
            raise NotToBeHad(f"{address} has SHA-256 {got}, its publisher says {wanted}; thrown away")
        part.replace(file)
    except (OSError, http.client.HTTPException) as error:
        raise NotToBeHad(f"{address} broke off: {error}") from None
    finally:
        part.unlink(missing_ok=True)


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
