"""The worker's cloud for files that need a running instance, and the tools, bootstrapped once."""

import pytest

from hpkit_local.kubernetes.api import Api
from hpkit_local.toolchain import TOOL_NAMES
from tests.program.cloud import Repository
from tests.running import WITH_PULUMI, get_tools


@pytest.fixture(scope="session")
def tools():
    get_tools(*TOOL_NAMES)


@pytest.fixture(scope="module")
def running(clouds):
    return clouds.empty()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Return a repository whose stacks are deployed with the real engine."""
    get_tools(*WITH_PULUMI)
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def api(running):
    return Api.of_kubeconfig(running.kubeconfig)
