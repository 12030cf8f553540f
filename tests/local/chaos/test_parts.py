"""Kill -9 of a part, or of the supervisor, while `pulumi up` runs: what is there at last is what would have been."""

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
    """Give a running cloud with nothing on it, whatever the test before did."""
    control.start(instance, say=print)
    return Live(instance)


@pytest.fixture(scope="module")
def reference(clouds, instance):
    """Return what an `up` that nobody disturbs makes, as it does on another cloud, and what there is without it."""
    control.start(instance, say=print)
    return Live(instance).everything(), Live(clouds.handson()).settled()


@pytest.fixture
def handson(cloud, reference, repository):
    program = Program(cloud.instance, "handson-dev", root=repository.folder)
    yield program
    # A test that failed half-way must not fail the next one.
    if cloud.instance.folder.exists() and program.resources():
        program.destroy()


def assert_next_up_is_right(program, live, reference):
    """The next `up` needs no help, makes what was meant, and nothing that `destroy` leaves behind."""
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
