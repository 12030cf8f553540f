"""Resources of other tools with the same name: never adopted, and never deleted during a replacement."""

import pytest

from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.harness import CREDENTIALS, FailedError, World, in_process, quota

OURS = [{"key": "hpkit:organization", "value": "acme"}, {"key": "hpkit:environment", "value": "dev"}]
THEIRS = [{"key": "hpkit:organization", "value": "acme"}, {"key": "hpkit:environment", "value": "prod"}]


@pytest.fixture
def place(monkeypatch):
    """Create a governed cluster, and two engines: of another stack, and of this one."""
    for name, value in {**CREDENTIALS, "MOTO_IAM_LOAD_MANAGED_POLICIES": "false"}.items():
        monkeypatch.setenv(name, value)
    with running_endpoint() as endpoint:
        world = World(Cloud(endpoint))
        with in_process(**world.settings) as theirs, in_process(**world.settings) as ours:
            yield world, theirs, ours


def policy(arn, **more):
    weights = [{"name": "training", "weight": 80}]
    return {
        "name": "policy",
        "clusterArn": arn,
        "schedulerConfig": {"priorityClasses": weights, "fairShare": "Enabled"},
        **more,
    }


KINDS = {
    "ComputeQuota": lambda arn, tags: {**quota(arn, "nlp", 2), **tags},
    "ClusterSchedulerConfig": lambda arn, tags: policy(arn, **tags),
}


@pytest.mark.parametrize("tags", [{"tags": THEIRS}, {}], ids=["another stack's", "nobody's"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_quota_or_policy_of_another_stack_with_the_same_name_is_refused(place, kind, tags):
    world, theirs, ours = place
    arn = world.governed(theirs)
    made = theirs.up(kind, "x", KINDS[kind](arn, tags))["id"]
    with pytest.raises(FailedError) as refused:
        ours.up(kind, "x", KINDS[kind](arn, {"tags": OURS}))
    message = str(refused.value)
    assert f"({made}), and nothing shows that this stack created it" in message
    assert f"pulumi import --stack dev hyperpod:index:{kind} x {made}" in message
    assert theirs.refresh(kind, "x")["id"] == made, "it was not touched"


def test_a_failed_policy_of_another_stack_with_the_same_name_is_kept(place):
    world, theirs, ours = place
    arn = world.governed(theirs)
    world.endpoint.set_faults({"failed-create": "1@quota"})
    with pytest.raises(FailedError, match="CreateFailed"):
        theirs.up("ComputeQuota", "q", {**quota(arn, "nlp", 2), "tags": THEIRS})
    world.endpoint.set_faults({"failed-create": None})
    with pytest.raises(FailedError, match="nothing shows that this stack created it"):
        ours.up("ComputeQuota", "q", {**quota(arn, "nlp", 2), "tags": OURS})
    (left,) = world.sm.list_compute_quotas()["ComputeQuotaSummaries"]
    assert left["ComputeQuotaArn"] == theirs.state["q"]["id"]


@pytest.mark.parametrize("tags", [{"tags": THEIRS}, {}], ids=["another stack's", "nobody's"])
def test_a_cluster_of_another_stack_with_the_same_name_is_refused(place, tags):
    world, theirs, ours = place
    made = theirs.up("Cluster", "c", {**world.cluster(), **tags})["id"]
    for mine in ({"tags": OURS}, {}):
        with pytest.raises(FailedError) as refused:
            ours.up("Cluster", "c", {**world.cluster(), **mine})
        assert f"pulumi import --stack dev hyperpod:index:Cluster c {made}" in str(refused.value)
    assert "c" not in ours.state


@pytest.mark.parametrize("kind", KINDS)
def test_resources_of_a_killed_run_of_the_same_stack_are_taken_over(place, kind):
    world, theirs, ours = place
    arn = world.governed(theirs)
    made = theirs.up(kind, "x", KINDS[kind](arn, {"tags": OURS}))["id"]
    assert ours.up(kind, "x", KINDS[kind](arn, {"tags": OURS}))["id"] == made
