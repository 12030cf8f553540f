"""A local cloud that runs while a test needs it, and is gone afterwards, however the test ends."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from local.supervisor import control
from local.supervisor.instance import Instance
from local.toolchain import TOOL_NAMES, TOOLS, get_all

__all__ = ["AT_ONCE", "HANGS", "eventually", "held_port", "running"]

AT_ONCE = ("--latency-factor", "0")
# Seconds after which something hangs, on the busiest machine: not a time that anything has to keep.
HANGS = 300.0


def eventually(holds: Callable[[], object], what: str | Callable[[], object], seconds: float = HANGS) -> None:
    """Wait until it holds; `what` is said if it does not, or returns what is said."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(0.1)


@contextmanager
def held_port() -> Iterator[int]:
    """Give a port on which nobody answers, and which nobody else gets; a server that reuses addresses may take it."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def running(name: str, root: Path, *arguments: str, engine: bool = False) -> Iterator[Instance]:
    """Give an instance whose AWS endpoint has these arguments; engine says whether Pulumi is needed too.

    Skips the test where a tool cannot be had.
    """
    try:
        get_all([tool for tool in TOOLS if engine or tool.name in TOOL_NAMES], say=print)
    except ToolError as error:
        pytest.skip(str(error))
    instance = Instance.named(name, root=root)
    instance.write_aws_arguments(list(arguments))
    try:
        control.start(instance, say=print)
        yield instance
    finally:
        control.reset(instance)
