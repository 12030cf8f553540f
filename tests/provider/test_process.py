"""The plugin as a process of its own."""

import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import grpc
import psutil
import pytest
from pulumi.runtime.proto import provider_pb2_grpc

from hpkit_provider.engine.plugin_server import OPTIONS
from tests.provider.harness import PLUGIN, Engine, FailedError
from tests.running import HANGS, eventually


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_plugin_ends_by_itself_when_the_engine_asks(ending):
    with subprocess.Popen([PLUGIN, "127.0.0.1:1"], stdout=subprocess.PIPE, text=True) as plugin:
        assert plugin.stdout.readline().strip().isdigit(), "the first line is the port"
        plugin.send_signal(ending)
        assert plugin.wait(timeout=HANGS) == 0, "ended by itself, and was not killed"


@contextmanager
def engine():
    """Yield the process of an engine that started a plugin and then waits, with the plugin's process and port."""
    start = f"plugin = subprocess.Popen([{str(PLUGIN)!r}], stdout=subprocess.PIPE)"
    tell = "print(plugin.pid, int(plugin.stdout.readline()), flush=True)"
    program = f"import subprocess, time; {start}; {tell}; time.sleep(120)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        pid, port = map(int, parent.stdout.readline().split())
        plugin = psutil.Process(pid)
        try:
            yield parent, plugin, port
        finally:
            parent.kill()
            with suppress(psutil.NoSuchProcess):
                plugin.kill()


def test_the_plugin_ends_when_the_engine_is_killed():
    with engine() as (parent, plugin, _):
        parent.kill()
        eventually(lambda: ended(plugin), "the plugin ends")


def test_the_plugin_ends_when_the_engine_is_killed_while_a_cluster_is_being_made(world):
    world.endpoint.set_faults({"slow-create": 3600})
    with engine() as (parent, plugin, port), grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
        client = Engine(provider_pb2_grpc.ResourceProviderStub(channel)).configure(**world.settings)
        creation = threading.Thread(target=suppressed, args=(lambda: client.up("Cluster", "c", world.cluster()),))
        creation.start()
        eventually(lambda: world.sm.list_clusters()["ClusterSummaries"], "it is being made")
        parent.kill()
        eventually(lambda: ended(plugin), "the plugin ends")
        creation.join()


def suppressed(call):
    with suppress(FailedError):
        call()


def ended(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
