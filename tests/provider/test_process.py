"""The plugin as a process of its own."""

import signal
import subprocess

import pytest

from tests.provider.harness import FOLDER


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_plugin_ends_by_itself_when_the_engine_asks(ending):
    with subprocess.Popen(
        [FOLDER / "pulumi-resource-hyperpod", "127.0.0.1:1"], stdout=subprocess.PIPE, text=True
    ) as plugin:
        assert plugin.stdout.readline().strip().isdigit(), "the first line is the port"
        plugin.send_signal(ending)
        assert plugin.wait(timeout=30) == 0, "ended by itself, and was not killed"
