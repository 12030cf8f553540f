"""Training plans: purchased from an offering, and used by groups up to their capacity."""

TYPE = "ml.p5.48xlarge"
WANTED = {"InstanceType": TYPE, "InstanceCount": 2, "DurationHours": 48}


def buy(cloud, name="december"):
    offer = cloud.sm.search_training_plan_offerings(**WANTED)["TrainingPlanOfferings"][0]
    return cloud.sm.create_training_plan(TrainingPlanName=name, TrainingPlanOfferingId=offer["TrainingPlanOfferingId"])[
        "TrainingPlanArn"
    ]


def test_instances_of_a_plan_are_in_use_while_a_group_has_them(cloud):
    arn = buy(cloud)
    cloud.make_cluster(InstanceGroups=[cloud.group("gpu", 2, InstanceType=TYPE, TrainingPlanArn=arn)])
    (plan,) = cloud.sm.list_training_plans()["TrainingPlanSummaries"]
    assert (plan["TotalInstanceCount"], plan["AvailableInstanceCount"], plan["InUseInstanceCount"]) == (2, 0, 2)


def test_a_group_larger_than_its_plan_is_refused_at_creation_and_update(cloud, refused):
    arn = buy(cloud)
    large = cloud.request(InstanceGroups=[cloud.group("gpu", 3, InstanceType=TYPE, TrainingPlanArn=arn)])
    assert "reserves 2 instances, and 3 are needed" in refused("ValidationException", cloud.sm.create_cluster, **large)
    cloud.make_cluster(InstanceGroups=[cloud.group("gpu", 1, InstanceType=TYPE, TrainingPlanArn=arn)])
    larger = {"InstanceGroups": [cloud.group("gpu", 4, InstanceType=TYPE, TrainingPlanArn=arn)]}
    assert "3 are needed" in refused("ValidationException", cloud.sm.update_cluster, ClusterName="train", **larger)


def test_a_search_names_what_it_is_for_and_finds_nothing_that_ends_too_late(cloud, refused):
    said = refused("ValidationException", cloud.sm.search_training_plan_offerings, DurationHours=24)
    assert "InstanceType and InstanceCount must be given" in said
    assert cloud.sm.search_training_plan_offerings(**WANTED, EndTimeBefore=1)["TrainingPlanOfferings"] == []


def test_a_name_is_bought_once_and_only_from_an_offering(cloud, refused):
    buy(cloud)
    offer = cloud.sm.search_training_plan_offerings(**WANTED)["TrainingPlanOfferings"][0]["TrainingPlanOfferingId"]
    again = {"TrainingPlanName": "december", "TrainingPlanOfferingId": offer}
    assert "already exists" in refused("ResourceInUse", cloud.sm.create_training_plan, **again)
    unknown = {"TrainingPlanName": "other", "TrainingPlanOfferingId": "tpo-none"}
    assert "does not exist" in refused("ResourceNotFound", cloud.sm.create_training_plan, **unknown)
