"""A running instance for each file that wants one, in a folder of its own, with the tools bootstrapped once."""

import pytest

from hpkit.errors import ToolError
from local.kubernetes.api import Api
from local.kubernetes.pki import Pair
from local.supervisor.parts import TOOL_NAMES
from local.toolchain import TOOLS, get_all
from tests.running import running as started


@pytest.fixture(scope="session")
def tools():
    try:
        get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=print)
    except ToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def running(tools, tmp_path_factory):
    with started("one", tmp_path_factory.mktemp("cloud")) as instance:
        yield instance


@pytest.fixture(scope="module")
def api(running):
    pki = running.folder / "pki"

    def pair(name):
        return Pair(pki / f"{name}.crt", pki / f"{name}.key")

    return Api(port=running.ports()["kube-apiserver"], authority=pair("hpkit-local-ca"), client=pair("admin"))
