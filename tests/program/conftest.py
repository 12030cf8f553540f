"""An instance of the local cloud for each file that runs the program, and a repository to edit."""

import pytest

from hpkit.errors import ToolError
from local.supervisor import control
from local.supervisor.instance import Instance
from local.toolchain import TOOLS, get_all
from tests.program.cloud import Live, Program, Repository


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    try:
        get_all(list(TOOLS), say=print)
    except ToolError as error:
        pytest.skip(str(error))
    instance = Instance.named("program", root=tmp_path_factory.mktemp("cloud"))
    instance.write_aws_arguments(["--latency-factor", "0"])
    control.start(instance, say=print)
    yield instance
    control.reset(instance)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def live(instance):
    return Live(instance)


@pytest.fixture(scope="module")
def handson(instance, repository):
    return Program(instance, "handson-dev", root=repository.folder)
