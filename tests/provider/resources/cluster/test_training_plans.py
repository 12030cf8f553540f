"""A group only uses instances that a training plan has; running instances stay."""

import pytest

from tests.provider.harness import FailedError

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


@pytest.mark.parametrize(("types", "is_refused"), [(["ml.p4d.24xlarge"], True), (["ml.p4d.24xlarge", TYPE], False)])
def test_a_group_of_several_types_needs_one_that_its_plan_reserves(world, engine, bought, types, is_refused):
    flexible = world.group("gpu", 1, instanceRequirements={"instanceTypes": types}, trainingPlanArn=bought)
    cluster = world.cluster({key: value for key, value in flexible.items() if key != "instanceType"})
    if is_refused:
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
