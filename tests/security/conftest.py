"""One platform for the whole directory: handson-dev on the worker's cloud, and two of its users."""

import pytest

from tests.program.cloud import KUEUE, Live
from tests.running import eventually
from tests.security.members import member, tidy


@pytest.fixture(scope="module")
def john(instance):
    """Return a data scientist of the team john."""
    return member(instance, "john")


@pytest.fixture(scope="module")
def smith(instance):
    """Return a data scientist of the other team."""
    return member(instance, "smith")


@pytest.fixture
def classes(instance, api):
    """Create the classes `training-priority`, 80, and `experiment-priority`, 40; the cluster policy has none."""
    live = Live(instance)

    def set_config(config, names):
        (policy,) = live.policies()
        live.sm.update_cluster_scheduler_config(
            ClusterSchedulerConfigId=policy["ClusterSchedulerConfigId"],
            TargetVersion=policy["ClusterSchedulerConfigVersion"],
            SchedulerConfig=config,
        )
        eventually(lambda: _names(api) == names, lambda: _names(api))

    (policy,) = live.policies()
    before = policy["SchedulerConfig"]
    ranks = [{"Name": "training", "Weight": 80}, {"Name": "experiment", "Weight": 40}]
    set_config({**before, "PriorityClasses": ranks}, {"training-priority", "experiment-priority"})
    yield
    set_config(before, set())


@pytest.fixture(autouse=True)
def _tidy(request):
    """Delete what a test left on the platform; most of the directory only needs an empty one."""
    if request.node.get_closest_marker("platform") is None:
        yield
        return
    api = request.getfixturevalue("api")
    yield
    tidy(api)


def _names(api):
    return {each["metadata"]["name"] for each in api.items(f"{KUEUE}/workloadpriorityclasses")}
