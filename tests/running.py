"""A local cloud that runs while a test needs it, and is deleted afterward, however the test ends."""

import http.client
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import RejectedError
from hpkit_local.processes import hold_ports
from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import LocalCloud
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
    "free_ports",
    "get_tools",
    "held_port",
    "helm",
    "making",
    "running",
    "tools_required",
    "unavailable",
]

AT_ONCE = ("--latency-factor", "0")
# The requirements of a local cloud, and of Pulumi on it.
WITH_PULUMI = [tool.name for tool in TOOLS]
# Seconds after which something hangs, even on the busiest machine; not a performance requirement.
HANGS = 300.0


def eventually(holds: Callable[[], object], what: str | Callable[[], object], seconds: float = HANGS) -> None:
    """Wait until a condition holds; otherwise, fail with the text `what`, or with its result."""
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if holds():
            return
        assert time.monotonic() < deadline, f"not within {seconds} s: {what() if callable(what) else what}"
        # What takes long to ask for keeps the servers busy, so it's asked for less often.
        time.sleep(max(0.1, 2 * (time.monotonic() - asked)))


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """Return a free port for each name."""
    held = hold_ports(names)
    ports = {name: int(each.getsockname()[1]) for name, each in held.items()}
    for each in held.values():
        each.close()
    return ports


@contextmanager
def held_port() -> Iterator[int]:
    """Return a port on which nothing responds, reserved for a server that reuses addresses."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def unavailable(reason: object) -> NoReturn:
    """Skip a test whose tool isn't on this machine; fail it in CI, which promises every tool."""
    if os.environ.get("CI"):
        pytest.fail(f"not in CI, which promises it: {reason}")
    pytest.skip(str(reason))


@contextmanager
def tools_required() -> Iterator[None]:
    """End the test with `unavailable` if the block can't get a tool."""
    try:
        yield
    except ToolError as error:
        unavailable(error)


def get_tools(*names: str) -> list[Found]:
    """Return the paths of tools, which the test requires."""
    with tools_required():
        return get_all([tool_named(name) for name in names], say=print)


@contextmanager
def running(
    name: str, root: Path, *arguments: str, engine: bool = False, kubernetes: str | None = None
) -> Iterator[LocalCloud]:
    """Yield a local cloud whose AWS endpoint has these arguments; engine: whether Pulumi is needed too.

    kubernetes: the version to emulate, if not the default.

    The test requires the tools.
    """
    get_tools(*(WITH_PULUMI if engine else TOOL_NAMES))
    instance = LocalCloud.named(name, root=root)
    instance.write_aws_arguments(list(arguments))
    if kubernetes is not None:
        instance.write_kubernetes(kubernetes)
    ended_with_this_process(instance.folder)
    try:
        control.start(instance, say=print)
        yield instance
    finally:
        control.reset(instance)


@contextmanager
def making(api) -> Iterator[Callable]:
    """Yield a function that creates an object in a folder from a document; in the end, all are deleted in reverse."""
    made = []

    def make(folder, document):
        api.create(folder, document)
        made.append(f"{folder}/{document['metadata']['name']}")

    def there(path):
        try:
            return api.read(path) is not None
        except RejectedError as error:
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
    """Create what HyperPod requires in a cluster before it adds nodes, as its chart would; no pod is created."""
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
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
    )


def chart_mirror() -> Path:
    """Return the folder in HPKIT_MIRROR at the start of the tests; skip the test if none was set."""
    folder = os.environ.get("HPKIT_TESTS_MIRROR")
    if not folder:
        pytest.skip("HPKIT_MIRROR names no folder of charts")
    return Path(folder)


def helm() -> Path:
    """Return the toolchain's helm, which the test requires."""
    with tools_required():
        return tool_path("helm")
