"""A single identity: provider, plugin and tokens use the stack's `aws:` configuration, or it is rejected."""

import json

import pulumi
import pytest

from hpkit.plan.derive import derive
from hpkit.program.components import build
from hpkit.program.components.common.credentials import Credentials, configured
from hpkit.program.recording import record
from tests import builders

ROLE = "arn:aws:iam::123456789012:role/ci/deploy"


@pytest.fixture
def config():
    """Set values of the stack's configuration, and restore them."""
    before = dict(pulumi.runtime.config.CONFIG.get())

    def put(**values):
        for name, value in values.items():
            pulumi.runtime.set_config(f"aws:{name}", value if isinstance(value, str) else json.dumps(value))

    yield put
    pulumi.runtime.set_all_config(before)


def asked_for(program):
    """Return the command that the program's kubeconfig runs for a token, without the cluster's part."""
    kubeconfig = json.loads(program.one("pulumi:providers:kubernetes").inputs["kubeconfig"])
    arguments = kubeconfig["users"][0]["user"]["exec"]["args"]
    assert arguments[:6] == ["--region", "us-west-2", "eks", "get-token", "--cluster-name", "acme-dev"]
    return arguments[8:]


def program():
    return record(derive(builders.typed(builders.organization()), "dev"))


def test_without_configuration_all_three_use_the_environment(config):
    recording = program()
    assert asked_for(recording) == []
    for provider in ("pulumi:providers:aws", "pulumi:providers:hyperpod"):
        assert not {"profile", "assumeRoles", "assumeRoleArn"} & recording.one(provider).inputs.keys()


def test_endpoints_reach_the_aws_provider(config):
    config(endpoints=[{"ec2": "http://127.0.0.1:1"}], s3UsePathStyle=True, skipRegionValidation=False)
    inputs = program().one("pulumi:providers:aws").inputs
    assert json.loads(inputs["endpoints"]) == [{"ec2": "http://127.0.0.1:1"}]
    assert (inputs["s3UsePathStyle"], inputs["skipRegionValidation"]) == ("true", "false")


def test_profile_and_role_reach_all_three(config):
    config(profile="work", assumeRoles=[{"roleArn": ROLE, "sessionName": "ci"}])
    recording = program()
    assert asked_for(recording) == ["--profile", "work", "--role-arn", ROLE]
    plugin = recording.one("pulumi:providers:hyperpod").inputs
    assert (plugin["profile"], plugin["assumeRoleArn"]) == ("work", ROLE)
    aws = recording.one("pulumi:providers:aws").inputs
    assert aws["profile"] == "work"
    assert json.loads(aws["assumeRoles"]) == [{"roleArn": ROLE, "sessionName": "ci"}]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"accessKey": "AKIA"}, "only the aws provider would use aws:accessKey"),
        (
            {"assumeRoleWithWebIdentity": {"roleArn": ROLE}},
            "only the aws provider would use aws:assumeRoleWithWebIdentity",
        ),
        ({"assumeRoles": [{"roleArn": ROLE}, {"roleArn": f"{ROLE}2"}]}, "has 2 roles"),
        ({"assumeRoles": [{"roleArn": ROLE, "externalId": "x"}]}, "has externalId"),
        ({"assumeRoles": [{"sessionName": "ci"}]}, "isn't a list of roles with a roleArn"),
        ({"assumeRoles": "{"}, "isn't a list of roles with a roleArn"),
        ({"assumeRoles": {"roleArn": ROLE}}, "isn't a list of roles with a roleArn"),
    ],
)
def test_what_cannot_be_one_identity_is_refused_before_anything_is_made(config, values, words):
    config(**values)
    with pytest.raises(pulumi.RunError, match=f"{words}.*Nothing was created"):
        configured()


def test_the_program_asks_before_it_registers_anything(config):
    config(accessKey="AKIA")
    with pytest.raises(pulumi.RunError, match="aws:accessKey"):
        build(derive(builders.typed(builders.organization()), "dev"))


def test_nothing_set_is_nobody_in_particular(config):
    assert configured() == Credentials()
