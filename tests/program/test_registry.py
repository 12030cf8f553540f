"""Repositories for the teams' images: resources, permissions to pull and push, and protection."""

import json

import pytest

from hpkit.changes import change
from hpkit.plan.derive import derive
from hpkit.plan.registry import pulled_repositories, repositories_of
from tests.builders import organization, split, team, typed
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
    [
        ({}, [("untagged", 14)]),
        ({"untaggedDays": 3, "keepImages": 50}, [("untagged", 3), ("any", 50)]),
    ],
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


def test_without_repositories_nothing_changes_for_anybody():
    program = recorded_from(data())
    assert images_of_nodes(program).keys() == {"Images"}
    assert program.all(REPOSITORY) == []
    assert all("repositories" not in row for row in program.outputs["teams"].values())


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
    assert decision.refused is not bool(allowed)
    assert "the repository acme-dev/nlp/train of nlp's images is deleted" in decision.reason
    (guard,) = [each for each in recorded_from(after).all("hyperpod:index:ChangeGuard") if each.name == "keep-parts"]
    assert guard.inputs["parts"]["repositories/vision/train"] == "acme-dev/vision/train"
    assert guard.inputs["allowReplace"] == [f"repositories/{name}" for name in allowed]
