"""Repositories for the teams' images: resources, permissions to pull and push, and protection."""

import json
from types import SimpleNamespace

import pytest

from hpkit.changes import change
from hpkit.changes.review.cost import minimum_cost
from hpkit.plan.derive import derive, quotas_of
from hpkit.plan.protected import contents_of
from hpkit.plan.registry import pulled_repositories, repositories_of
from hpkit.preflight.needs import InstanceNeed, instance_needs, volume_need
from hpkit.program.iam.deployer import calling_types, deployer_policies
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import tree_of
from tests.builders import group, organization, split, team, typed
from tests.program.recorder import ACCOUNT, recorded_from

ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
REPOSITORY, POLICY = "ecr/repository:Repository", "ecr/lifecyclePolicy:LifecyclePolicy"


def data(*, environment=None, **registries):
    names = {"nlp": [], "vision": [], **registries}
    return organization(
        teams=[{**team(name), "registry": list(wanted)} for name, wanted in names.items()],
        environment={"governance": {"allocations": dict.fromkeys(names, ROWS)}, **(environment or {})},
    )


def images_of_nodes(program):
    document = json.loads(program.one("iam/rolePolicy:RolePolicy", "nodes").inputs["policy"])
    return {each["Sid"]: each for each in document["Statement"] if "Images" in each["Sid"]}


@pytest.fixture(scope="module")
def program():
    return recorded_from(data(nlp=["train", "serve/large"], vision=["train"]))


def test_each_team_has_its_repositories_under_the_stacks_name(program):
    names = {each.inputs["name"] for each in program.all(REPOSITORY)}
    assert names == {"acme-dev/nlp/train", "acme-dev/nlp/serve/large", "acme-dev/vision/train"}
    assert program.outputs["teams"]["nlp"]["repositories"].keys() == {"train", "serve/large"}


def test_images_are_encrypted_with_the_stacks_key_scanned_and_their_tags_stay(program):
    for repository in program.all(REPOSITORY):
        (encryption,) = repository.inputs["encryptionConfigurations"]
        assert encryption == {"encryptionType": "KMS", "kmsKey": program.one("kms/key:Key", "key").made["arn"]}
        assert repository.inputs["imageScanningConfiguration"] == {"scanOnPush": True}
        assert repository.inputs["imageTagMutability"] == "IMMUTABLE"
        assert not repository.inputs["forceDelete"], "ECR itself won't delete one that has images"
        assert repository.ignore_changes == ("encryptionConfigurations",), (
            "another key would replace it, images and all"
        )


@pytest.mark.parametrize(
    ("registry", "kept"),
    [({}, [("untagged", 14)]), ({"untaggedDays": 3, "keepImages": 50}, [("untagged", 3), ("any", 50)])],
)
def test_what_nobody_names_goes_after_a_while(registry, kept):
    program = recorded_from(data(nlp=["train"], environment={"registry": registry}))
    rules = json.loads(program.one(POLICY, "nlp/train").inputs["policy"])["rules"]
    assert [(each["selection"]["tagStatus"], each["selection"]["countNumber"]) for each in rules] == kept


def test_nodes_pull_the_teams_images_and_what_else_the_file_names_and_nothing_more_of_the_account():
    ecr = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com"
    elsewhere = "210987654321.dkr.ecr.us-west-2.amazonaws.com/x"
    wanted = data(nlp=["train"], environment={"registry": {"pullFrom": ["shared/*"]}})
    cluster = wanted["environments"]["dev"]["cluster"]
    for mirror, repositories in ((f"{ecr}/hyperpod", ["hyperpod/*"]), (elsewhere, [])):
        cluster["dependencies"] = {"imageRegistry": mirror}
        statements = images_of_nodes(recorded_from(wanted))
        expected = ["acme-dev/*", "shared/*", *repositories]
        assert statements["OwnImages"]["Resource"] == [
            f"arn:aws:ecr:us-west-2:{ACCOUNT}:repository/{name}" for name in expected
        ]
        assert statements["ImagesOfOthers"]["Condition"] == {"StringNotEquals": {"aws:ResourceAccount": ACCOUNT}}
        assert "Images" not in statements


@pytest.mark.parametrize("everything", [{"pullFrom": ["*"]}, None])
def test_nodes_pull_all_of_the_account_where_the_file_names_all_of_it(everything):
    wanted = data(nlp=["train"], environment={"registry": everything} if everything else None)
    if not everything:
        mirror = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com"
        wanted["environments"]["dev"]["cluster"]["dependencies"] = {"imageRegistry": mirror}
    assert images_of_nodes(recorded_from(wanted)).keys() == {"Images"}


def test_nodes_pull_only_what_the_file_names_where_the_teams_are_in_another_stack():
    program = recorded_from(data(environment={"registry": {"pullFrom": ["acme-dev/*"]}}))
    arn = f"arn:aws:ecr:us-west-2:{ACCOUNT}:repository/acme-dev/*"
    assert set(images_of_nodes(program)["OwnImages"]["Resource"]) == {arn}
    assert pulled_repositories(derive(typed(split(data(nlp=["train"]))), "governance"), ACCOUNT) is None


def test_a_warm_pools_image_of_the_account_can_be_pulled():
    wanted = data(nlp=["train"])
    environment = wanted["environments"]["dev"]
    image = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com/tools/pause:3.10"
    environment["autoscaling"] = {
        "nodeClasses": [{"name": "burst", "instanceGroups": ["gpu"]}],
        "nodePools": [
            {"name": "warm", "nodeClass": "burst", "warmPool": {"replicas": 1, "requests": {"cpu": 1}, "image": image}}
        ],
    }
    assert pulled_repositories(derive(typed(wanted), "dev"), ACCOUNT) == ("acme-dev/*", "tools/pause")


def test_the_image_that_makes_the_teams_folders_can_be_pulled_of_the_account():
    wanted = data(nlp=["train"])
    image = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com/tools/busybox:1.37.0@sha256:{'0' * 64}"
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True, "image": image}
    wanted["environments"]["dev"]["storage"] = {"lustre": lustre}
    assert pulled_repositories(derive(typed(wanted), "dev"), ACCOUNT) == ("acme-dev/*", "tools/busybox")


def test_a_team_without_quota_here_has_none_here():
    wanted = data(nlp=["train"])
    del wanted["environments"]["dev"]["governance"]["allocations"]["nlp"]
    assert repositories_of(derive(typed(wanted), "dev")) == ()


@pytest.mark.parametrize("allowed", [[], ["nlp/train"]])
def test_a_repository_leaves_only_where_the_file_allows_it(allowed):
    before = data(nlp=["train"], vision=["train"])
    after = data(vision=["train"], environment={"allowDelete": {"repositories": allowed}} if allowed else None)
    found = change(recorded_from(before), recorded_from(after))
    (decision,) = [each for each in found.decisions if each.code == "repository-removed"]
    assert decision.subject == "nlp/train"
    assert decision.rejected is not bool(allowed)
    assert "the repository acme-dev/nlp/train of nlp's images is deleted" in decision.reason
    (guard,) = [each for each in recorded_from(after).all("hyperpod:index:ChangeGuard") if each.name == "keep-parts"]
    assert guard.inputs["parts"]["repositories/vision/train"] == "acme-dev/vision/train"
    assert guard.inputs["allowReplace"] == [f"repositories/{name}" for name in allowed]


ROLE = "arn:aws:iam::123456789012:role/nova"
PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/nova"
LUSTRE = {"sizeInGiB": 4800, "perUnitStorageThroughput": 250}


def nova(**more):
    restricted = group("nova", "ml.g5.12xlarge", 2, executionRole=ROLE, environmentConfig={"fSxLustreConfig": LUSTRE})
    return {**restricted, **more}


def with_groups(*restricted, **environment):
    data = organization(
        teams=[team("ada")],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
        environment=environment,
    )
    data["environments"]["dev"]["cluster"] |= {"restrictedInstanceGroups": list(restricted)} if restricted else {}
    return data


def cluster_of(data):
    return recorded_from(data).one("hyperpod:index:Cluster").inputs


def test_a_restricted_group_is_registered_with_what_its_shape_has_and_nothing_else():
    data = with_groups(
        nova(
            instanceStorageConfigs=[{"ebsVolumeConfig": {"volumeSizeInGB": 850}}],
            deepHealthChecks=["InstanceStress"],
            trainingPlanArn=PLAN,
            threadsPerCore=2,
        )
    )
    inputs = cluster_of(data)
    (restricted,) = inputs["restrictedInstanceGroups"]
    assert restricted == {
        "instanceGroupName": "nova",
        "instanceType": "ml.g5.12xlarge",
        "instanceCount": 2,
        "executionRole": ROLE,
        "overrideVpcConfig": inputs["instanceGroups"][0]["overrideVpcConfig"],
        "environmentConfig": {"fSxLustreConfig": LUSTRE},
        "threadsPerCore": 2,
        "instanceStorageConfigs": [{"ebsVolumeConfig": {"volumeSizeInGB": 850}}],
        "onStartDeepHealthChecks": ["InstanceStress"],
        "trainingPlanArn": PLAN,
    }
    assert [each["instanceGroupName"] for each in inputs["instanceGroups"]] == ["gpu"]
    assert volume_need(recorded_from(data)) == 850


def test_what_all_restricted_groups_share_is_registered_once():
    data = with_groups({key: value for key, value in nova().items() if key != "environmentConfig"})
    shared = {"sharedEnvironmentConfig": {"fSxLustreDeletionPolicy": "Keep", "fSxLustreConfig": LUSTRE}}
    data["environments"]["dev"]["cluster"]["restrictedInstanceGroupsConfig"] = shared
    inputs = cluster_of(data)
    assert inputs["restrictedInstanceGroupsConfig"] == shared
    assert "environmentConfig" not in inputs["restrictedInstanceGroups"][0]


def test_a_restricted_group_counts_as_nodes_and_not_as_capacity_of_teams():
    recording = recorded_from(with_groups(nova()))
    plan = recording.plan
    assert [quota.capacity.permanent for quota in quotas_of(plan)] == [4]
    assert instance_needs(recording)[0] == (InstanceNeed("ml.g5.12xlarge", spot=False, permanent=6, maximum=6),)
    assert minimum_cost(plan, lambda _, region: SimpleNamespace(monthly=10, region=region)).known == 60
    assert "nova 2 × ml.g5.12xlarge" in contents_of(plan)["cluster"]
    assert "2 × ml.g5.12xlarge in us-west-2a, restricted" in str(tree_of(recording))


def test_a_deployer_may_pass_the_role_of_a_restricted_group():
    recording = recorded_from(with_groups(nova()))
    types = calling_types(each.type for each in recording.resources.values())
    account = AwsAccount("aws", "us-west-2", "123456789012")
    statements = [
        statement
        for policy in deployer_policies(recording.plan, account, types)
        for statement in policy.document["Statement"]
        if "iam:PassRole" in statement["Action"] and ROLE in statement["Resource"]
    ]
    assert len(statements) == 1
    assert "sagemaker.amazonaws.com" in str(statements[0]["Condition"])


def codes(before, after):
    found = change(recorded_from(with_groups(*before)), recorded_from(after))
    return {(each.code, each.subject): each.rejected for each in found.decisions}


def test_a_restricted_group_leaves_only_when_it_is_named():
    assert codes([nova()], with_groups()) == {("group-removed", "nova"): True}
    assert codes([nova()], with_groups(allowDelete={"instanceGroups": ["nova"]})) == {("group-removed", "nova"): False}


@pytest.mark.parametrize(
    "edit", [{"executionRole": f"{ROLE}-2"}, {"instanceType": "ml.g5.24xlarge"}, {"threadsPerCore": 1}]
)
def test_what_the_service_refuses_on_a_restricted_group_that_exists_is_refused(edit):
    assert codes([nova(threadsPerCore=2)], with_groups(nova(**edit))) == {("immutable", "nova"): True}


def test_more_nodes_and_another_file_system_are_refused_by_nobody():
    other = {"fSxLustreConfig": {**LUSTRE, "sizeInGiB": 7200}}
    assert codes([nova()], with_groups(nova(instanceCount=3, environmentConfig=other))) == {}


def test_a_group_never_becomes_one_of_the_other_kind():
    after = with_groups()
    plain = {key: value for key, value in nova().items() if key != "environmentConfig"}
    after["environments"]["dev"]["cluster"]["instanceGroups"].append(plain)
    assert codes([nova()], after) == {("immutable", "nova"): True}
