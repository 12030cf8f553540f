"""An instance of the local cloud for each file that runs the program, and a repository to edit."""

import pytest

from tests.program.cloud import Live, Program, Repository
from tests.running import AT_ONCE, running


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    with running("program", tmp_path_factory.mktemp("cloud"), *AT_ONCE, engine=True) as instance:
        yield instance


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def live(instance):
    return Live(instance)


@pytest.fixture(scope="module")
def handson(instance, repository):
    return Program(instance, "handson-dev", root=repository.folder)
