"""A separate local cloud for each file, and a mark that all processes of a test inherit."""

import uuid

import pytest

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.leftovers import ended_with_this_process
from tests.local.chaos.harness import MARK
from tests.program.cloud import Repository
from tests.running import WITH_PULUMI, tools_or_skip


@pytest.fixture(scope="module")
def tools():
    tools_or_skip(*WITH_PULUMI)


@pytest.fixture(scope="module")
def mark():
    """Mark all processes that are started from now on, so that tests can find each of them."""
    value = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, value)
        yield value


@pytest.fixture(scope="module")
def make(tools, mark, tmp_path_factory):
    """Return a function that creates instances by name in one repository; all are deleted at the end."""
    root = tmp_path_factory.mktemp("cloud")
    made = []

    def instance(name, *, latency):
        made.append(Instance.named(name, root=root))
        # Long enough that a change is in progress when something is killed.
        made[-1].write_aws_arguments(["--latency-factor", str(latency)])
        ended_with_this_process(made[-1].folder)
        return made[-1]

    yield instance
    for each in made:
        control.reset(each)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return Repository(tmp_path_factory.mktemp("repository"))
