"""A member tries to keep pods running that Kueue no longer counts: after a deletion, next to a job, after its end."""

import pytest

from tests.running import eventually
from tests.security.accounting import counted, settled_excess, taken
from tests.security.members import CORE, JOBS, delete, job, refused

pytestmark = pytest.mark.platform

GPU = "nvidia.com/gpu"
STUBBORN = {"hpkit.local/ignore-sigterm": "true"}


def pods_of(api, name, *, phase="Running"):
    pods = api.items(f"{CORE}/pods", labels=f"batch.kubernetes.io/job-name={name}")
    return [item for item in pods if item.get("status", {}).get("phase") == phase]


def stubborn(name, *, pods=1, seconds=120):
    """Return a Job whose pods ignore SIGTERM for a number of seconds."""
    document = job(name, pods=pods, terminationGracePeriodSeconds=seconds)
    document["spec"]["template"]["metadata"]["annotations"] |= STUBBORN
    return document


@pytest.fixture
def running_job(john, api):
    """Create a member's own Job with two running pods of a GPU each."""
    john.create(JOBS, job("train", pods=2))
    eventually(lambda: len(pods_of(api, "train")) == 2, "its pods run")
    eventually(lambda: counted(api, "john")[GPU] == 2, "Kueue counts them")
    return f"{JOBS}/train"


def assert_books_are_right(api, gpus):
    """Check that the team's pods run, and that Kueue counts them."""
    assert settled_excess(api) == {}
    assert (taken(api, "john")[GPU], counted(api, "john")[GPU]) == (gpus, gpus)


ORPHANING = (
    {"propagationPolicy": "Orphan"},
    {"orphanDependents": True},
    {},  # Without a propagation policy, deleting a Job orphans its pods.
    {"propagationPolicy": "Orphan", "gracePeriodSeconds": 120},
)


def test_a_member_cannot_keep_the_pods_of_a_deleted_job(john, api, running_job):
    for options in ORPHANING:
        for path in (running_job, JOBS):
            assert "--cascade=background" in refused(delete, john, path, options)
    assert_books_are_right(api, 2)


def test_a_job_that_is_deleted_takes_its_pods_with_it(john, api, running_job):
    delete(john, running_job, {"propagationPolicy": "Foreground"})
    eventually(lambda: not pods_of(api, "train"), "its pods end")
    assert_books_are_right(api, 0)


def test_kueue_frees_the_quota_of_a_deleted_job_while_its_pods_use_their_grace_period(john, api):
    john.create(JOBS, stubborn("slow", seconds=120))
    john.create(JOBS, stubborn("brief", seconds=2))
    eventually(lambda: pods_of(api, "slow") and pods_of(api, "brief"), "both run")
    eventually(lambda: counted(api, "john")[GPU] == 2, "and are counted")
    for name in ("slow", "brief"):
        delete(john, f"{JOBS}/{name}", {"propagationPolicy": "Background"})
    eventually(lambda: counted(api, "john")[GPU] == 0, "Kueue counts neither")
    eventually(lambda: not pods_of(api, "brief"), "the pod of two seconds ends by itself")
    (pod_left,) = pods_of(api, "slow")
    assert pod_left["metadata"]["deletionGracePeriodSeconds"] == 120
    # What ends within the period may run, and nothing else runs.
    assert settled_excess(api) == {}
    assert pods_of(api, "slow")
