"""The modules that a plugin's process has loaded when it starts to serve."""

import subprocess
import sys

import pytest

from tests.running import HANGS

PLUGINS = {
    "hpkit_provider.server": "HyperpodServicer",
    "hpkit_local.plugins.aws.servicer": "AwsServicer",
    "hpkit_local.plugins.kubernetes.server": "KubernetesServicer",
}
BEGIN = """
import sys
from importlib import import_module
from hpkit_provider.engine import entry_point

def load(name):
    module = import_module(name)
    if name.endswith(".plugin_server"):
        module.run = lambda servicer, _: print(servicer.__name__, *sys.modules) or 0
    return module

entry_point.import_module = load
sys.exit(entry_point.begin(*sys.argv[1:]))
"""
# Modules that run programs, and modules for other uses of a Kubernetes client.
UNUSED = {"pulumi.automation", "pulumi.resource", "opentelemetry", "kubernetes.stream", "kubernetes.dynamic", "moto"}


@pytest.mark.slow
@pytest.mark.parametrize("module", PLUGINS)
def test_a_plugin_loads_the_protocol_and_not_the_sdk(module):
    command = [sys.executable, "-c", BEGIN, module, PLUGINS[module]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    servicer, *loaded = done.stdout.split()
    assert servicer == PLUGINS[module]
    assert "pulumi.runtime.proto.provider_pb2" in loaded
    assert UNUSED & set(loaded) == set()
