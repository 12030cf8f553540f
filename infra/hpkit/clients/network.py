"""Determines facts that only this machine knows: its public address, and whether an endpoint is reachable."""

import socket
from typing import Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from hpkit.clients.calls import FailedCall

__all__ = ["find_address", "try_endpoint"]

# Amazon's service, which returns the address that a request came from.
_CHECKIP: Final = "https://checkip.amazonaws.com"
_SECONDS: Final = 5.0
_HTTPS: Final = 443
_MOST_BYTES: Final = 64


def find_address(endpoint: str = "") -> str | FailedCall:
    """Return this machine's public address, as AWS sees it.

    endpoint: the local cloud's, which returns "" if the stack admits callers from anywhere.
    """
    url = f"{endpoint.rstrip('/')}/_hpkit/address" if endpoint else _CHECKIP
    try:
        with urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - a fixed address of Amazon's
            return str(answer.read(_MOST_BYTES).decode().strip())
    except (URLError, OSError, UnicodeDecodeError) as error:
        return FailedCall(urlsplit(url).netloc, type(error).__name__, str(error))


def try_endpoint(endpoint: str) -> str | FailedCall:
    """Open a connection to the Kubernetes API and close it; return its address and port."""
    place = urlsplit(endpoint)
    where = (place.hostname or "", place.port or _HTTPS)
    try:
        with socket.create_connection(where, timeout=_SECONDS) as opened:
            return f"{opened.getpeername()[0]}:{where[1]}"
    except OSError as error:
        return FailedCall(f"connection to {where[0]}:{where[1]}", type(error).__name__, str(error))
