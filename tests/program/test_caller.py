"""The identity that runs the program: access is granted once; an identity that can't finish is rejected first."""

import json

import pulumi
import pytest

from hpkit.plan.derive import derive
from hpkit.program.components import build
from hpkit.program.components.common.credentials import Credentials, configured
from hpkit.program.recording import Answers, record
from tests import builders
from tests.program.recorder import recording_of

ACCOUNT = "123456789012"
ADMIN, VIEWER, SCIENTIST = (f"arn:aws:iam::{ACCOUNT}:role/path/to/{name}" for name in ("Admin", "Viewer", "scientist"))
BOOTSTRAP = "bootstrapClusterCreatorAdminPermissions"


def session(role, *, account=ACCOUNT):
    """Return the GetCallerIdentity response for a session of a role: its name, without its path."""
    return f"arn:aws:sts::{account}:assumed-role/{role.rpartition('/')[2]}/somebody"


def program(caller, **eks):
    reserved = {"allocations": {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}}
    data = builders.organization(
        teams=[builders.team("nlp", members=[SCIENTIST])], environment={"governance": reserved}
    )
    data["environments"]["dev"]["eks"] |= {"administrators": [ADMIN], "viewers": [VIEWER], **eks}
    return recording_of(derive(builders.typed(data), "dev"), Answers(caller=caller))


def entries(found):
    return {each.inputs["principalArn"] for each in found.all("eks/accessEntry:AccessEntry")}


def made_by_eks(found):
    """Return whether EKS creates an access entry for the cluster's creator."""
    return found.one("eks/cluster:Cluster").inputs["accessConfig"][BOOTSTRAP]


def test_an_administrator_who_creates_the_cluster_has_one_entry():
    found = program(session(ADMIN))
    assert entries(found) == {ADMIN, VIEWER, SCIENTIST}, "whoever deploys"
    assert not made_by_eks(found), "EKS answers a second entry of a role with 409 ResourceInUseException"


@pytest.mark.parametrize(
    "caller", [session("role/deploy"), session(ADMIN, account="210987654321"), f"arn:aws:iam::{ACCOUNT}:root"]
)
def test_anybody_else_is_let_in_by_eks(caller):
    found = program(caller)
    assert made_by_eks(found)
    assert entries(found) == {ADMIN, VIEWER, SCIENTIST}


def test_who_created_the_cluster_is_settled_when_it_is_made():
    cluster = program(session(ADMIN)).one("eks/cluster:Cluster")
    assert cluster.ignore_changes == (f"accessConfig.{BOOTSTRAP}",)


def test_a_viewer_reads_secrets_only_where_helm_keeps_releases():
    recording = program(session(ADMIN))
    policies = {
        association.inputs["principalArn"]: (
            association.inputs["policyArn"].rpartition("/")[2],
            association.inputs["accessScope"],
        )
        for association in recording.all("eks/accessPolicyAssociation:AccessPolicyAssociation")
    }
    assert policies == {
        ADMIN: ("AmazonEKSClusterAdminPolicy", {"type": "cluster"}),
        VIEWER: ("AmazonEKSAdminViewPolicy", {"type": "namespace", "namespaces": ["kube-system"]}),
    }
    groups = {
        entry.inputs["principalArn"]: entry.inputs["kubernetesGroups"]
        for entry in recording.all("eks/accessEntry:AccessEntry")
    }
    assert groups[VIEWER] == ["hyperpod:viewers"]
    binding = recording.one("ClusterRoleBinding", "hpkit-viewer").inputs
    assert [each["name"] for each in binding["subjects"]] == ["hyperpod:viewers"]


@pytest.mark.parametrize(
    ("caller", "words"), [(VIEWER, "listed in eks.viewers of acme-dev"), (SCIENTIST, "a data scientist of nlp")]
)
def test_who_could_not_finish_an_up_may_not_begin_it(caller, words, monkeypatch):
    with pytest.raises(pulumi.RunError, match=words):
        program(session(caller))
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    assert entries(program(session(caller))), "a preview changes nothing"


def test_a_data_scientist_who_administers_may_deploy():
    assert not made_by_eks(program(session(SCIENTIST), administrators=[ADMIN, SCIENTIST]))


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


def asked_for(program_text):
    """Return the command that the program's kubeconfig runs for a token, without the cluster's part."""
    kubeconfig = json.loads(program_text.one("pulumi:providers:kubernetes").inputs["kubeconfig"])
    arguments = kubeconfig["users"][0]["user"]["exec"]["args"]
    assert arguments[:6] == ["--region", "us-west-2", "eks", "get-token", "--cluster-name", "acme-dev"]
    return arguments[8:]


def program_text():
    return record(derive(builders.typed(builders.organization()), "dev"))


def test_without_configuration_all_three_use_the_environment(config):
    recording = program_text()
    assert asked_for(recording) == []
    for provider in ("pulumi:providers:aws", "pulumi:providers:hyperpod"):
        assert not {"profile", "assumeRoles", "assumeRoleArn"} & recording.one(provider).inputs.keys()


def test_endpoints_reach_the_aws_provider(config):
    config(endpoints=[{"ec2": "http://127.0.0.1:1"}], s3UsePathStyle=True, skipRegionValidation=False)
    inputs = program_text().one("pulumi:providers:aws").inputs
    assert json.loads(inputs["endpoints"]) == [{"ec2": "http://127.0.0.1:1"}]
    assert (inputs["s3UsePathStyle"], inputs["skipRegionValidation"]) == ("true", "false")


def test_profile_and_role_reach_all_three(config):
    config(profile="work", assumeRoles=[{"roleArn": ROLE, "sessionName": "ci"}])
    recording = program_text()
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
