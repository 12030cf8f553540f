"""A local cloud that runs while a test needs it, and is gone afterwards, however the test ends."""

import http.client
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import RefusedError
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from hpkit_local.toolchain import TOOL_NAMES, TOOLS, Found, get_all, tool_path
from hpkit_local.toolchain.table import tool_named
from tests.leftovers import ended_with_this_process

__all__ = [
    "AT_ONCE",
    "HANGS",
    "WITH_PULUMI",
    "bring_dependencies",
    "chart_mirror",
    "eventually",
    "held_port",
    "helm",
    "making",
    "running",
    "tools_or_skip",
]

AT_ONCE = ("--latency-factor", "0")
# What an instance needs, and Pulumi to work on it.
WITH_PULUMI = [tool.name for tool in TOOLS if not tool.by_name]
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


def tools_or_skip(*names: str) -> list[Found]:
    """Return where tools are; skip the test where one can't be had."""
    try:
        return get_all([tool_named(name) for name in names], say=print)
    except ToolError as error:
        pytest.skip(str(error))


@contextmanager
def running(name: str, root: Path, *arguments: str, engine: bool = False) -> Iterator[Instance]:
    """Give an instance whose AWS endpoint has these arguments; engine says whether Pulumi is needed too.

    Skips the test where a tool cannot be had.
    """
    tools_or_skip(*(WITH_PULUMI if engine else TOOL_NAMES))
    instance = Instance.named(name, root=root)
    instance.write_aws_arguments(list(arguments))
    ended_with_this_process(instance.folder)
    try:
        control.start(instance, say=print)
        yield instance
    finally:
        control.reset(instance)


@contextmanager
def making(api) -> Iterator[Callable]:
    """Give what makes an object of a folder and a document; in the end all of them go, the last one first."""
    made = []

    def make(folder, document):
        api.create(folder, document)
        made.append(f"{folder}/{document['metadata']['name']}")

    def there(path):
        try:
            return api.read(path) is not None
        except RefusedError as error:
            if error.status != http.client.NOT_FOUND:
                raise
            return False

    try:
        yield make
    finally:
        for path in reversed(made):
            api.delete(path)
        eventually(lambda: not any(map(there, made)), "what was made goes")


def bring_dependencies(api) -> None:
    """Put into a cluster what HyperPod looks for before it makes nodes, as its chart would; no pod comes of it."""
    api.apply(
        "/api/v1/namespaces/aws-hyperpod",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "aws-hyperpod"}},
    )
    labels = {"app": "health-monitoring-agent"}
    pod = {"nodeSelector": {"nowhere": "true"}, "containers": [{"name": "agent", "image": "agent"}]}
    api.apply(
        "/apis/apps/v1/namespaces/aws-hyperpod/daemonsets/health-monitoring-agent",
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "health-monitoring-agent", "namespace": "aws-hyperpod"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    )


def chart_mirror() -> Path:
    """Return the folder that HPKIT_MIRROR named when the tests began; skips the test where it named none."""
    folder = os.environ.get("HPKIT_TESTS_MIRROR")
    if not folder:
        pytest.skip("HPKIT_MIRROR names no folder of charts")
    return Path(folder)


def helm() -> Path:
    """Return the toolchain's helm; skips the test where there is none."""
    try:
        return tool_path("helm")
    except ToolError as error:
        pytest.skip(str(error))
