"""Changes of a cluster: zones, groups with the cluster's own network, a training plan, and threads per core."""

import pytest

from hpkit_provider.engine.values import UNKNOWN
from tests.provider.harness import FailedError, PartlyFailedError

REMARK = "Instance group gpu keeps its subnets: the API can't add subnets. Only new groups use new zones."


def sent(world):
    return world.endpoint.stats()["calls"].get("sagemaker.UpdateCluster", 0)


def placed(world, subnets, name="gpu", **more):
    override = {"subnets": list(subnets), "securityGroupIds": [world.sg]}
    return world.group(name, 1, overrideVpcConfig=override, **more)


def live_subnets(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: group["OverrideVpcConfig"]["Subnets"] for group in groups}


@pytest.fixture
def made(world, engine):
    """Create a cluster whose group has the first of two subnets."""
    engine.up("Cluster", "c", world.cluster(placed(world, world.subnets[:1])))
    return engine


def same(engine, inputs):
    """Return the engine's result without a difference: the new inputs with the old outputs."""
    diff = engine.diff("Cluster", "c", inputs)
    assert list(diff.detailedDiff) == []
    engine.state["c"] = {**engine.state["c"], "inputs": inputs}


def test_added_subnets_are_no_difference_and_said_once(world, made):
    wider = world.cluster(placed(world, world.subnets))
    with made.warnings() as warnings:
        same(made, wider)
        assert warnings == [REMARK]
        same(made, wider)
        assert warnings == [REMARK], "nothing new"
    assert sent(world) == 0


def test_a_refresh_after_it_is_clean(world, made):
    wider = world.cluster(placed(world, world.subnets))
    same(made, wider)
    before = made.state["c"]["outputs"]
    after = made.refresh("Cluster", "c")
    assert (after["inputs"], after["outputs"]) == (wider, before)
    with made.warnings() as said:
        same(made, wider)
    assert said == []


def test_added_subnets_are_not_sent_with_another_change_and_new_groups_have_all(world, made):
    labels = {"labels": {"pool": "gpu"}}
    wider = world.cluster(placed(world, world.subnets, kubernetesConfig=labels), placed(world, world.subnets, "next"))
    made.up("Cluster", "c", wider)
    assert live_subnets(world) == {"gpu": world.subnets[:1], "next": world.subnets}
    assert sent(world) == 1
    after = made.refresh("Cluster", "c")
    assert after["inputs"] == wider
    same(made, wider)


def test_an_update_that_failed_half_way_remembers_the_subnets_that_live(world, made):
    labels = {"labels": {"pool": "gpu"}}
    world.endpoint.set_faults({"failed-update": "1@cluster"})
    with pytest.raises(PartlyFailedError):
        made.up("Cluster", "c", world.cluster(placed(world, world.subnets, kubernetesConfig=labels)))
    world.endpoint.set_faults({"failed-update": None})
    narrow = world.cluster(placed(world, world.subnets[:1], kubernetesConfig=labels))
    made.up("Cluster", "c", narrow)
    assert made.refresh("Cluster", "c")["inputs"] == narrow


def test_other_subnets_or_security_groups_are_refused_as_ever(world, engine):
    engine.up("Cluster", "c", world.cluster(placed(world, world.subnets)))
    with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
        engine.diff("Cluster", "c", world.cluster(placed(world, world.subnets[:1])))
    with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
        engine.diff("Cluster", "c", world.cluster(placed(world, [world.subnets[0], "subnet-x", "subnet-y"])))
    group = placed(world, [*world.subnets, "subnet-x"])
    group["overrideVpcConfig"]["securityGroupIds"] = ["sg-other"]
    with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
        engine.diff("Cluster", "c", world.cluster(group))


def test_at_preview_a_subnet_that_is_yet_to_be_made_counts_as_added(world, made):
    wider = world.cluster(placed(world, [world.subnets[0], UNKNOWN]))
    with made.warnings() as said:
        assert list(made.diff("Cluster", "c", wider).detailedDiff) == []
    assert said == [REMARK]


def own(world, turned=False):
    """Return the cluster's network, as a group's."""
    subnets, groups = (world.cluster()["vpcConfig"][name] for name in ("subnets", "securityGroupIds"))
    return {"subnets": list(reversed(subnets)) if turned else list(subnets), "securityGroupIds": list(groups)}


def there(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: "OverrideVpcConfig" in group for group in groups}


def test_naming_the_clusters_network_is_no_change_of_a_group_that_has_none(world, engine):
    plain, named = world.group("gpu", 1), world.group("gpu", 1, overrideVpcConfig=own(world, turned=True))
    engine.up("Cluster", "c", world.cluster(plain))
    assert list(engine.diff("Cluster", "c", world.cluster(named)).detailedDiff) == []
    labels = {"labels": {"pool": "gpu"}}
    engine.up("Cluster", "c", world.cluster({**named, "kubernetesConfig": labels}))
    assert sent(world) == 1
    assert there(world) == {"gpu": False}, "what the API would reject is not sent"
    engine.refresh("Cluster", "c")
    assert list(engine.diff("Cluster", "c", world.cluster({**named, "kubernetesConfig": labels})).detailedDiff) == []


def test_leaving_it_out_is_no_change_of_a_group_that_has_it(world, engine):
    plain, named = world.group("gpu", 1), world.group("gpu", 1, overrideVpcConfig=own(world))
    engine.up("Cluster", "c", world.cluster(named))
    assert there(world) == {"gpu": True}
    assert list(engine.diff("Cluster", "c", world.cluster(plain)).detailedDiff) == []
    engine.up("Cluster", "c", world.cluster({**plain, "kubernetesConfig": {"labels": {"pool": "gpu"}}}))
    assert there(world) == {"gpu": True}


def test_another_network_is_refused_as_ever(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1)))
    for changed in ({"subnets": own(world)["subnets"][:1]}, {"securityGroupIds": ["sg-other"]}):
        group = world.group("gpu", 1, overrideVpcConfig={**own(world), **changed})
        with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
            engine.diff("Cluster", "c", world.cluster(group))


TYPE = "ml.p5.48xlarge"
ARN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"


@pytest.fixture
def bought(world):
    """Buy a plan with two instances, which starts later."""
    offers = world.sm.search_training_plan_offerings(InstanceType=TYPE, InstanceCount=2)["TrainingPlanOfferings"]
    offer = offers[0]["TrainingPlanOfferingId"]
    return world.sm.create_training_plan(TrainingPlanName="december", TrainingPlanOfferingId=offer)["TrainingPlanArn"]


def test_a_group_that_needs_more_than_its_plan_reserves_is_refused_before_anything_is_created(world, engine, bought):
    with pytest.raises(FailedError, match=r"needs 3 × ml\.p5\.48xlarge.*reserves 2 instances, and 3 are needed"):
        engine.up("Cluster", "c", world.cluster(world.group("gpu", 3, instanceType=TYPE, trainingPlanArn=bought)))
    assert world.sm.list_clusters()["ClusterSummaries"] == []


def test_a_cluster_grows_within_its_plan_and_no_further(world, engine, bought):
    assert bought == ARN
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1, instanceType=TYPE, trainingPlanArn=bought)))
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 2, instanceType=TYPE, trainingPlanArn=bought)))
    with pytest.raises(FailedError, match="training plan"):
        engine.up("Cluster", "c", world.cluster(world.group("gpu", 5, instanceType=TYPE, trainingPlanArn=bought)))


@pytest.mark.parametrize(("types", "is_rejected"), [(["ml.p4d.24xlarge"], True), (["ml.p4d.24xlarge", TYPE], False)])
def test_a_group_of_several_types_needs_one_that_its_plan_reserves(world, engine, bought, types, is_rejected):
    flexible = world.group("gpu", 1, instanceRequirements={"instanceTypes": types}, trainingPlanArn=bought)
    cluster = world.cluster({key: value for key, value in flexible.items() if key != "instanceType"})
    if is_rejected:
        with pytest.raises(FailedError, match=r"reserves ml\.p5\.48xlarge, not ml\.p4d\.24xlarge"):
            engine.up("Cluster", "c", cluster)
    else:
        engine.up("Cluster", "c", cluster)


def test_a_plan_that_was_bought_elsewhere_is_left_to_aws(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 3, trainingPlanArn=ARN)))


def test_a_group_in_another_zone_than_its_plan_is_refused(world, engine, bought):
    (reserved,) = world.sm.describe_training_plan(TrainingPlanName="december")["ReservedCapacitySummaries"]
    group = world.group("gpu", 1, instanceType=TYPE, trainingPlanArn=bought)
    vpc = world.cluster(group)["vpcConfig"]
    subnets = world.endpoint.client("ec2").describe_subnets()["Subnets"]
    own = next(each["VpcId"] for each in subnets if each["SubnetId"] in vpc["subnets"])
    place = {
        each["AvailabilityZone"]: {**vpc, "subnets": [each["SubnetId"]]} for each in subnets if each["VpcId"] == own
    }
    there, other = reserved["AvailabilityZone"], next(zone for zone in place if zone != reserved["AvailabilityZone"])
    with pytest.raises(FailedError, match=f"reserves capacity in {there}, and the group is in {other}"):
        engine.up("Cluster", "c", world.cluster({**group, "overrideVpcConfig": place[other]}))
    assert world.sm.list_clusters()["ClusterSummaries"] == []
    engine.up("Cluster", "c", world.cluster({**group, "overrideVpcConfig": place[there]}))


def live_threads(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: group.get("ThreadsPerCore") for group in groups}


@pytest.mark.parametrize("number", [1, 2])
def test_a_first_statement_is_no_change_of_a_group_that_the_service_reports_none_of(world, engine, number):
    plain, stated = world.group("gpu", 1), world.group("gpu", 1, threadsPerCore=number)
    engine.up("Cluster", "c", world.cluster(plain))
    with engine.warnings() as warnings:
        assert list(engine.diff("Cluster", "c", world.cluster(stated)).detailedDiff) == []
    (warning,) = warnings
    assert warning == (
        f"HyperPod doesn't report threadsPerCore of instance group gpu, so it isn't known whether it's {number}. It "
        "can't change, and isn't sent."
    )


def test_what_the_service_reports_counts_where_the_program_stated_nothing(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=1)))
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1)))
    assert live_threads(world) == {"gpu": 1}
    with pytest.raises(FailedError, match="threadsPerCore: 1 can't become 2"):
        engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=2)))
    assert list(engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=1))).detailedDiff) == []


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_another_number_is_refused_at_preview(world, engine, before, after):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=before)))
    with pytest.raises(FailedError, match=rf"threadsPerCore: .* can't become {after}"):
        engine.diff("Cluster", "c", world.cluster(world.group("gpu", 1, threadsPerCore=after)))
