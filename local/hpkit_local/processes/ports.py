"""Free ports of loopback, for services and processes that are told theirs."""

import socket
from collections.abc import Iterable, Mapping
from types import MappingProxyType

__all__ = ["free_ports"]

_NONE: Mapping[str, int] = MappingProxyType({})


def free_ports(names: Iterable[str], before: Mapping[str, int] = _NONE) -> dict[str, int]:
    """Return a free port for each name, the same as before where that is still free.

    All are held at once, so that no two names get the same.
    """
    held = {name: _held(before.get(name, 0)) for name in names}
    ports = {name: int(each.getsockname()[1]) for name, each in held.items()}
    for each in held.values():
        each.close()
    return ports


def _held(port: int) -> socket.socket:
    """Hold this port if it is free, else another."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(("127.0.0.1", port))
    except OSError:
        held.bind(("127.0.0.1", 0))
    return held
