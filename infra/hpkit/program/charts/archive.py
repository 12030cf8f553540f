"""Archives of charts as files in memory: read with suspicion, written the same on every machine."""

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from hpkit.errors import InputError

__all__ = ["Files", "read_archive", "write_archive"]

# Path inside the chart → content.
Files = Mapping[str, bytes]

_MOST_BYTES: Final = 256 * 1024 * 1024


def read_archive(content: bytes, folder: str = "") -> dict[str, bytes]:
    """Return the files of a .tar.gz in its only top folder, or in a folder of that, by path inside it.

    Raises InputError for any other file, and for links, devices and paths that lead out of it.
    """
    files: dict[str, bytes] = {}
    prefix = PurePosixPath(folder).parts
    remaining = _MOST_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts[1:]
                if member.isdir() or parts[: len(prefix)] != prefix or member.type == tarfile.XGLTYPE:
                    continue
                inside = parts[len(prefix) :]
                name = "/".join(inside)
                if not inside or ".." in inside or not member.isreg():
                    raise InputError(f"{member.name}: neither a file nor a folder of the chart")
                remaining -= member.size
                if remaining < 0:
                    raise InputError(f"more than {_MOST_BYTES // 1024 // 1024} MiB of files")
                found = archive.extractfile(member)
                files[name] = found.read() if found is not None else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"no archive that can be read: {error}") from None
    return files


def write_archive(file: Path, top: str, files: Files) -> None:
    """Write files below a top folder as .tar.gz, whole or not at all; without times or owners."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name in sorted(files):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode = len(files[name]), 0o644
            archive.addfile(member, io.BytesIO(files[name]))
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(packed.getvalue())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
