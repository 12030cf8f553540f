"""One platform for the whole directory: handson-dev on the worker's cloud, and two of its people."""

import pytest

from tests.program.cloud import Live
from tests.security.members import member, tidy


@pytest.fixture(scope="module")
def instance(clouds):
    return clouds.handson()


@pytest.fixture(scope="module")
def api(instance):
    """The administrator's view."""
    return Live(instance).api


@pytest.fixture(scope="module")
def john(instance):
    """A data scientist of the team john."""
    return member(instance, "john")


@pytest.fixture(scope="module")
def smith(instance):
    """A data scientist of the other team."""
    return member(instance, "smith")


@pytest.fixture(autouse=True)
def _tidy(request):
    """Take away what a test left on the platform; most of the directory needs none."""
    if request.node.get_closest_marker("platform") is None:
        yield
        return
    api = request.getfixturevalue("api")
    yield
    tidy(api)
