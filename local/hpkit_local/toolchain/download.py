"""The common part of all publishers.

A file with a known SHA-256, for this machine, on a host that might be unreachable.
"""

import hashlib
import http.client
import platform
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from hpkit_local.toolchain.steps import EVERY_SECONDS

__all__ = ["BLOCK", "Unavailable", "checksum", "download", "of_this_machine", "opened"]

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
