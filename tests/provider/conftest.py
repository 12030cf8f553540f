"""Endpoint, prerequisites and plugin for the provider tests."""

from functools import cache

import pytest

from tests.endpoint import running_endpoint
from tests.local.aws.conftest import new_cloud
from tests.provider.harness import CREDENTIALS, World, in_process


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    # Creating AWS's 1,500 managed policies takes longer than most tests.
    for name, value in {**CREDENTIALS, "MOTO_IAM_LOAD_MANAGED_POLICIES": "false"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def served():
    """Use one address and its clients for all tests: creating clients takes longer than most tests."""
    with running_endpoint() as endpoint:
        yield endpoint, cache(endpoint.client)


@pytest.fixture
def world(served):
    return World(new_cloud(served))


@pytest.fixture
def engine(world):
    with in_process(**world.settings) as engine:
        yield engine
