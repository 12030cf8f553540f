"""The local cloud with handson-dev, and its API server, for the examples from articles."""

import pytest

from tests.program.cloud import Live
from tests.running import making


@pytest.fixture(scope="module")
def instance(clouds):
    return clouds.handson()


@pytest.fixture(scope="module")
def api(instance):
    return Live(instance).api


@pytest.fixture(scope="module")
def make(api):
    with making(api) as make:
        yield make
