"""The worker's cloud for files that want a running instance, and the tools, bootstrapped once."""

import pytest

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import Api
from hpkit_local.toolchain import TOOL_NAMES, TOOLS, get_all
from tests.program.cloud import Repository


@pytest.fixture(scope="session")
def tools():
    try:
        get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=print)
    except ToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def running(clouds):
    return clouds.empty()


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
