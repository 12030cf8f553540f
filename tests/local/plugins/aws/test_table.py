"""The table itself, and its check and diff: no endpoint, no engine."""

import json
from importlib.metadata import version

import pytest

from hpkit_local.plugins.aws import VERSION
from hpkit_local.plugins.aws.check import changes, check
from hpkit_local.plugins.aws.config import settings_from
from hpkit_local.plugins.aws.table import RESOURCE_TYPES
from hpkit_provider.engine.errors import PluginError

ROLE, CLUSTER = (RESOURCE_TYPES[token] for token in ("aws:iam/role:Role", "aws:eks/cluster:Cluster"))
ENVIRONMENT = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_REGION": "us-west-2"}


def _changed(kind, old, new):
    return {change.path: change.replaces for change in changes(kind, old, new)}


def test_the_version_is_that_of_the_installed_package():
    assert version("pulumi_aws") == VERSION


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


@pytest.mark.parametrize(
    ("config", "environment", "message"),
    [
        ({}, {"AWS_ENDPOINT_URL": ""}, "AWS_ENDPOINT_URL is not set"),
        ({}, {"AWS_ENDPOINT_URL": "http://10.0.0.1:4566"}, r"accepts only loopback .* is 'http://10\.0\.0\.1:4566'"),
        ({"endpoints": '[{"s3": "https://s3.amazonaws.com"}]'}, {}, r"endpoints\.s3 is 'https://s3\.amazonaws\.com'"),
    ],
)
def test_every_endpoint_must_be_on_loopback(config, environment, message):
    with pytest.raises(PluginError, match=message):
        settings_from(config, {**ENVIRONMENT, **environment})
