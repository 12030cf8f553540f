"""The table itself, and its check and diff: no endpoint, no engine."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from hpkit.program import components
from hpkit_local.plugins.aws import VERSION
from hpkit_local.plugins.aws.check import check
from hpkit_local.plugins.aws.config import settings_from
from hpkit_local.plugins.aws.diff import changes
from hpkit_local.plugins.aws.lifecycle import differences, preview_outputs
from hpkit_local.plugins.aws.table import FUNCTIONS, RESOURCE_TYPES
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import UNKNOWN

COMPONENTS = Path(components.__file__).parent
VPC, ROLE, CLUSTER = (
    RESOURCE_TYPES[token] for token in ("aws:ec2/vpc:Vpc", "aws:iam/role:Role", "aws:eks/cluster:Cluster")
)
ENVIRONMENT = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_REGION": "us-west-2"}


def _changed(kind, old, new):
    return {change.path: change.replaces for change in changes(kind, old, new)}


def test_the_version_is_that_of_the_installed_package():
    assert version("pulumi_aws") == VERSION


def test_every_type_and_function_is_used_by_a_component():
    """Unused types aren't kept: on the local cloud, other types of a program are rejected by name."""
    sources = [file.read_text(encoding="utf-8") for file in COMPONENTS.glob("*.py")]
    calls = {call for text in sources for call in re.findall(r"aws\.([\w.]+)\b", text)}
    for token in RESOURCE_TYPES:
        _, folder, name = token.split(":")
        assert f"{folder.partition('/')[0]}.{name}" in calls, token
    for token in FUNCTIONS:
        _, folder, name = token.split(":")
        function = re.sub("(?=[A-Z])", "_", name).lower()
        module = "" if folder.startswith("index/") else f"{folder.partition('/')[0]}."
        assert calls & {f"{module}{function}", f"{module}{function}_output"}, token


def test_a_property_that_is_not_supported_is_named_with_the_nearest():
    (failure,) = check(ROLE, {"assumeRolePolicy": "{}", "descripton": "x"})
    assert failure.path == "descripton"
    assert failure.reason == (
        "the local cloud's aws:iam/role:Role has no property 'descripton'; did you mean 'description'?"
    )


def test_server_defaults_and_the_layout_of_a_policy_are_no_difference():
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["a", "b"], "Resource": ["*"]}]}
    other = {"Statement": {"Resource": "*", "Action": ["b", "a"], "Effect": "Allow"}, "Version": "2012-10-17"}
    old = {"assumeRolePolicy": json.dumps(policy), "path": "/", "maxSessionDuration": 3600, "description": ""}
    assert _changed(ROLE, old, {"assumeRolePolicy": json.dumps(other)}) == {}
    assert _changed(ROLE, old, {"assumeRolePolicy": json.dumps({**other, "Id": "x"})}) == {"assumeRolePolicy": False}


def test_a_part_that_cannot_change_replaces_and_the_rest_does_not():
    old = {"accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}}
    mode = {"accessConfig": {**old["accessConfig"], "authenticationMode": "API_AND_CONFIG_MAP"}}
    creator = {"accessConfig": {**old["accessConfig"], "bootstrapClusterCreatorAdminPermissions": False}}
    assert _changed(CLUSTER, old, mode) == {"accessConfig": False}
    assert _changed(CLUSTER, old, creator) == {"accessConfig": True}


def test_a_file_system_that_shrinks_is_another_one():
    resource_type = RESOURCE_TYPES["aws:fsx/lustreFileSystem:LustreFileSystem"]
    sizes = [{"subnetIds": "subnet-1", "storageCapacity": size} for size in (1200, 2400)]
    assert _changed(resource_type, sizes[1], sizes[0]) == {"storageCapacity": True}
    assert _changed(resource_type, sizes[0], sizes[1]) == {"storageCapacity": False}


@pytest.mark.parametrize(
    ("token", "old", "new", "replaces"),
    [
        ("aws:amp/workspace:Workspace", {"alias": "a"}, {"alias": "b"}, {"alias": False}),
        ("aws:amp/workspace:Workspace", {"alias": "a"}, {}, {"alias": True}),
        ("aws:eks/cluster:Cluster", {}, {"encryptionConfig": {"resources": ["s"]}}, {"encryptionConfig": False}),
        ("aws:eks/cluster:Cluster", {"encryptionConfig": {"resources": ["s"]}}, {}, {"encryptionConfig": True}),
        (
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            {"cidrIpv4": "10.0.0.0/8"},
            {"referencedSecurityGroupId": "sg-1"},
            {"cidrIpv4": True, "referencedSecurityGroupId": False},
        ),
        (
            "aws:fsx/lustreFileSystem:LustreFileSystem",
            {"fileSystemTypeVersion": "2.15"},
            {"fileSystemTypeVersion": "2.12"},
            {"fileSystemTypeVersion": True},
        ),
    ],
)
def test_what_the_real_provider_replaces_for_under_a_condition_is_replaced_under_it(token, old, new, replaces):
    assert _changed(RESOURCE_TYPES[token], old, new) == replaces


def test_default_tags_are_part_of_what_is_compared_and_shown():
    state = {"tagsAll": {"Name": "a"}}
    same = {"old": {"tags": {"Name": "a"}}, "new": {"tags": {"Name": "a"}}, "state": state}
    assert differences(VPC, **same, common={}) == []
    assert [change.path for change in differences(VPC, **same, common={"team": "ml"})] == ["tagsAll"]
    shown = preview_outputs(VPC, {"tags": {"Name": "a"}}, {}, {"team": "ml"}, region="us-west-2")
    assert shown["tagsAll"] == {"Name": "a", "team": "ml"}
    assert shown["arn"] is UNKNOWN


@pytest.mark.parametrize("url", ["", "https://ec2.us-west-2.amazonaws.com", "http://10.0.0.1:4566", "http://[::2]:1"])
def test_any_endpoint_that_is_not_loopback_is_refused(url):
    with pytest.raises(PluginError, match="accepts only loopback endpoints"):
        settings_from({}, {**ENVIRONMENT, "AWS_ENDPOINT_URL": url})


def test_an_endpoint_of_one_service_must_be_loopback_too():
    given = {"endpoints": json.dumps([{"s3": "https://s3.amazonaws.com"}])}
    with pytest.raises(PluginError, match=r"aws:endpoints\.s3 is 'https://s3\.amazonaws\.com'"):
        settings_from(given, ENVIRONMENT)


def test_configuration_that_travels_as_text_is_read():
    given = {"region": "eu-west-1", "defaultTags": '{"tags": {"team": "ml"}}', "allowedAccountIds": '["123456789012"]'}
    settings = settings_from(given, ENVIRONMENT)
    assert (settings.region, settings.default_tags, settings.allowed_accounts) == (
        "eu-west-1",
        {"team": "ml"},
        ("123456789012",),
    )
