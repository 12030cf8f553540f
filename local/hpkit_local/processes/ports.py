"""Free ports on loopback for services and processes.

They are below the ports that the kernel gives to outgoing connections, which can take any of these at any moment.
"""

import random
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

__all__ = ["hold_ports"]

_NONE: Mapping[str, int] = MappingProxyType({})
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000
# Linux's own default, and below that of other systems.
_FIRST_OF_KERNEL = 32_768
_FEWEST = 1_000
_TRIES = 100


def hold_ports(names: Iterable[str], before: Mapping[str, int] = _NONE) -> dict[str, socket.socket]:
    """Return a socket per name that reserves a free port, the same as before if it's still free.

    On Linux, a program can listen on a port that is reserved in this way, and the kernel gives it to no other program.
    """
    return {name: _held(before.get(name)) for name in names}


def _held(before: int | None) -> socket.socket:
    """Reserve this port if it's free, otherwise another."""
    # Closed connections keep a port busy for a while, but a service can still listen on it.
    reserved = None if before is None else _bound(before)
    ports = _below_those_of_the_kernel()
    for port in random.SystemRandom().sample(ports, min(_TRIES, len(ports))):
        if reserved is None and _is_untouched(port):
            reserved = _bound(port)
    if reserved is None:
        raise OSError("no loopback port is free")
    return reserved


def _bound(port: int) -> socket.socket | None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        return None
    return listener


def _is_untouched(port: int) -> bool:
    """Return whether no process has or reserves a port: processes that only reserve it don't exclude each other."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _below_those_of_the_kernel() -> range:
    try:
        first = int(_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        first = _FIRST_OF_KERNEL
    # Some systems give out nearly all ports: then these are as good as any.
    return range(_FIRST, first if first >= _FIRST + _FEWEST else _FIRST_OF_KERNEL)
