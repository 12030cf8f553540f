"""A running instance for each file that wants one, in a folder of its own, with the tools bootstrapped once."""

import pytest

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import Api
from hpkit_local.toolchain import TOOL_NAMES, TOOLS, get_all
from tests.program.cloud import Repository
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
def repository(tmp_path_factory):
    """A repository whose stacks go up with the real engine."""
    try:
        get_all([tool for tool in TOOLS if not tool.by_name], say=print)
    except ToolError as error:
        pytest.skip(str(error))
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def api(running):
    return Api.of_kubeconfig(running.kubeconfig)
