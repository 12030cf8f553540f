"""Endpoint, world and plugin of the provider tests."""

import pytest

from local.aws.testing import running_endpoint
from tests.provider.harness import CREDENTIALS, World, in_process


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def world():
    with running_endpoint(latency_factor=0.0) as endpoint:
        yield World(endpoint)


@pytest.fixture
def engine(world):
    with in_process(**world.settings) as engine:
        yield engine
