"""A running API server for the plugin, and both ways to drive it: over gRPC, and under the real engine."""

import pytest

from hpkit.errors import ToolError
from local.kubernetes.api import Api
from local.kubernetes.pki import Pair
from local.supervisor import control
from local.supervisor.instance import Instance
from local.supervisor.parts import TOOL_NAMES
from local.toolchain import TOOLS, get_all
from tests.local.plugins.kubernetes.harness import in_process


@pytest.fixture(scope="session")
def instance(tmp_path_factory):
    try:
        get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=print)
    except ToolError as error:
        pytest.skip(str(error))
    instance = Instance.named("plugin", root=tmp_path_factory.mktemp("cloud"))
    control.start(instance, say=print)
    yield instance
    control.reset(instance)


@pytest.fixture(scope="session")
def api(instance):
    pki = instance.folder / "pki"

    def pair(name):
        return Pair(pki / f"{name}.crt", pki / f"{name}.key")

    return Api(port=instance.ports()["kube-apiserver"], authority=pair("hpkit-local-ca"), client=pair("admin"))


@pytest.fixture
def plugin(instance):
    with in_process(kubeconfig=instance.kubeconfig.read_text()) as plugin:
        yield plugin
