"""Kill a part or the supervisor with kill -9 during `pulumi up`: the result equals that of an undisturbed run."""

import pytest

from hpkit_local.supervisor import control
from tests.local.chaos.harness import marked, run_of
from tests.program.cloud import Live, Program
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def instance(make):
    return make("chaos", latency=0.003)


@pytest.fixture
def cloud(instance):
    """Yield a running, empty cloud, regardless of the previous test."""
    control.start(instance, say=print)
    return Live(instance)


@pytest.fixture(scope="module")
def reference(clouds, instance):
    """Return the result of an undisturbed `up` on another cloud, and what exists without it."""
    control.start(instance, say=print)
    return Live(instance).everything(), Live(clouds.handson()).settled()


@pytest.fixture
def handson(cloud, reference, repository):
    program = Program(cloud.instance, "handson-dev", root=repository.folder)
    yield program
    # A test that failed halfway must not affect the next one.
    if cloud.instance.folder.exists() and program.resources():
        program.destroy()


def assert_next_up_is_right(program, live, reference):
    """Check that the next `up` succeeds unaided, creates the right resources, and leaves nothing after `destroy`."""
    empty, whole = reference
    program.up()
    assert live.settled() == whole
    program.destroy()
    assert program.resources() == []
    eventually(lambda: live.everything() == empty, lambda: (empty, live.everything()))


@pytest.mark.parametrize(
    ("part", "moments"),
    [
        ("aws", ["ec2.CreateSubnet", "eks.AssociateAccessPolicy", "sagemaker.CreateCluster"]),
        ("etcd", ["eks.AssociateAccessPolicy"]),
        ("kube-apiserver", ["eks.CreateAccessEntry"]),
        ("kueue", ["sagemaker.CreateComputeQuota"]),
    ],
    ids=["aws", "etcd", "kube-apiserver", "kueue"],
)
def test_an_up_gets_over_the_death_of_a_part(cloud, handson, reference, tmp_path, part, moments):
    with run_of(handson, cloud.instance, tmp_path) as run:
        for moment in moments:
            run.reaches(moment)
            run.loses(part)
        assert run.ends(), run.said
    assert_next_up_is_right(handson, cloud, reference)


def test_an_up_gets_over_the_death_of_the_supervisor(cloud, handson, reference, mark, tmp_path):
    instance = cloud.instance
    with run_of(handson, instance, tmp_path) as run:
        run.reaches("eks.CreateCluster")
        run.loses_its_supervisor()
        assert run.ends(), run.said
    assert_next_up_is_right(handson, cloud, reference)
    control.reset(instance)
    assert marked(mark) == []
    assert not instance.folder.exists()
