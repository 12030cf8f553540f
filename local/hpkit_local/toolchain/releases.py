"""Downloads an executable from its official release, if it's reachable and its checksum is right."""

import hashlib
import http.client
import shutil
import tarfile
from pathlib import Path

from hpkit.cache import cache_root
from hpkit_local.toolchain.cache import Say, locked
from hpkit_local.toolchain.download import BLOCK, Unavailable, checksum, download, of_this_machine, opened
from hpkit_local.toolchain.model import Release, Tool

__all__ = ["take"]


def take(tool: Tool, source: Release, *, into: Path, say: Say) -> None:
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
