"""What a file can and can't set for existing resources."""

import pytest

from hpkit.config.schema.reference import json_schema
from tests.builders import findings, group, organization, team, typed


def first_group(**more):
    return organization(groups=[group("gpu", "ml.g5.12xlarge", 4, **more)])


def messages(data):
    return [(found.rule, found.path.rpartition(".")[2]) for found in findings(data) if found.rule == "CFG002"]


@pytest.mark.parametrize("script", ["s3://live/run.sh", "s3://live/v1//run.sh"])
def test_a_script_is_a_uri(script):
    (group,) = typed(first_group(lifecycleScript=script)).environments["dev"].cluster.instance_groups
    assert group.lifecycle_script == script
    assert not group.runs_kits_script


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lifecycleScript", ""),
        ("lifecycleScript", "None"),
        ("executionRole", "nodes"),
        ("executionRole", "arn:aws:iam::12:role/nodes"),
    ],
)
def test_what_the_api_would_refuse_is_refused(key, value):
    assert messages(first_group(**{key: value})) == [("CFG002", key)]


@pytest.mark.parametrize(
    "override",
    [
        {"subnets": [], "securityGroupIds": ["sg-0a1b2c3d4e5f60718"]},
        {"subnets": ["subnet-0a1b2c3d4e5f60718"], "securityGroupIds": []},
        {"subnets": ["vpc-0a1b2c3d4e5f60718"], "securityGroupIds": ["sg-0a1b2c3d4e5f60718"]},
    ],
)
def test_a_network_of_a_group_has_both_kinds_of_ids(override):
    assert messages(first_group(overrideVpcConfig=override))


def test_a_description_has_any_text_but_no_control_characters():
    for text in ("", "Sprachmodelle – Köln, 30 %", "言語 モデル"):
        assert typed(organization(teams=[team("nlp", description=text)])).teams[0].description == text
    assert messages(organization(teams=[team("nlp", description="a\tb")])) == [("CFG002", "description")]
    assert messages(organization(teams=[team("nlp", description="x" * 1025)])) == [("CFG002", "description")]


@pytest.mark.parametrize("role", [{"permissionSets": ["Schüler"]}, {"samlProvider": "Schüler"}])
def test_a_name_in_iam_has_only_ascii_letters(role):
    ((rule, _),) = messages(organization(teams=[team("nlp", memberRole=role)]))
    assert rule == "CFG002"


def test_the_schema_has_no_pattern_that_some_readers_cannot_read():
    description = json_schema()["$defs"]["Team"]["properties"]["description"]
    assert {"minLength", "maxLength"} <= description.keys()
    assert "pattern" not in description


@pytest.mark.parametrize("name", ["ml_policy", "-ml", "x" * 64, ""])
def test_a_name_is_one_that_the_api_takes(name):
    data = organization()
    data["environments"]["dev"]["governance"] |= {"policyName": name, "quotaNames": {}}
    assert messages(data) == [("CFG002", "policyName")]


def test_a_bucket_has_a_name_that_s3_takes():
    assert messages(organization(environment={"storage": {"existing": {"bucket": "Live_Scripts"}}})) == [
        ("CFG002", "bucket")
    ]
    assert not messages(organization(environment={"storage": {"existing": {"bucket": "live.scripts-1"}}}))
