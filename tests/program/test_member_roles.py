"""The role that the program creates for a team: who can assume it, its permissions, and its access to the cluster."""

import json
import re

import pytest

from hpkit.config.models.member_role import MemberRole
from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import calling_types, deployer_policies
from hpkit.program.iam.documents import trust_of_members
from hpkit.program.iam.live import AwsAccount
from tests.builders import organization, split, team, typed
from tests.program.recorder import ACCOUNT, recorded_from

ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
IAM = f"arn:aws:iam::{ACCOUNT}"
MADE = f"{IAM}:role/acme-dev-us-west-2-team-nlp"
SSO = f"{IAM}:role/aws-reserved/sso.amazonaws.com"


@pytest.fixture(scope="module")
def program():
    teams = [{**team("nlp"), "memberRole": {"permissionSets": ["NLP"]}, "registry": ["train"]}, team("vision")]
    environment = {"account": ACCOUNT, "governance": {"allocations": {"nlp": ROWS, "vision": ROWS}}}
    return recorded_from(organization(teams=teams, environment=environment))


def test_a_team_has_a_role_of_its_own_in_the_cluster_and_other_teams_have_none(program):
    role = program.one("iam/role:Role", "team-nlp")
    assert not [each for each in program.all("iam/role:Role") if each.name == "team-vision"]
    assert MADE.endswith(f":role/{role.inputs['name']}")
    (entry,) = (each for each in program.all("eks/accessEntry:AccessEntry") if each.inputs["principalArn"] == MADE)
    assert entry.inputs["kubernetesGroups"] == ["hyperpod:team:nlp"]


def test_the_role_allows_what_members_need_and_pushes_to_the_teams_repositories_alone(program):
    policy = json.loads(program.one("iam/rolePolicy:RolePolicy", "team-nlp").inputs["policy"])
    actions = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert "eks:DescribeCluster" in actions
    assert not {action for action in actions if action.startswith(("iam:", "sts:", "ssm:"))}
    pushes = [statement for statement in policy["Statement"] if "ecr:PutImage" in statement["Action"]]
    assert [statement["Resource"] for statement in pushes] == [
        [f"arn:aws:ecr:us-west-2:{ACCOUNT}:repository/acme-dev/nlp/train"]
    ]


def test_a_stack_that_governs_an_existing_cluster_keeps_names_and_deploys_no_other_roles():
    teams = [{**team("nlp"), "memberRole": {"permissionSets": ["NLP"]}, "registry": ["train"]}]
    data = organization(teams=teams, environment={"account": ACCOUNT, "governance": {"allocations": {"nlp": ROWS}}})
    divided = split(data)
    governance = recorded_from(divided, "governance")
    names = [
        (part.one("iam/role:Role", "team-nlp").inputs["name"], part.one("ecr/repository:Repository").inputs["name"])
        for part in (recorded_from(data), governance)
    ]
    assert names == [("acme-dev-us-west-2-team-nlp", "acme-dev/nlp/train")] * 2
    plan = derive(typed(divided), "governance")
    types = calling_types(each.type for each in governance.resources.values())
    policies = deployer_policies(plan, AwsAccount("aws", "us-west-2", ACCOUNT), types)
    roles = {found for each in policies for found in re.findall(r"role/acme[^\"]*", json.dumps(each.document))}
    assert roles == {"role/acme-dev-us-west-2-team-*"}


def test_only_whom_the_file_names_can_assume_it(program):
    trust = json.loads(program.one("iam/role:Role", "team-nlp").inputs["assumeRolePolicy"])
    (statement,) = trust["Statement"]
    assert statement["Condition"]["ArnLike"]["aws:PrincipalArn"] == [
        f"{SSO}/AWSReservedSSO_NLP_*",
        f"{SSO}/*/AWSReservedSSO_NLP_*",
    ]


@pytest.mark.parametrize(
    ("key", "value", "principal", "action", "condition"),
    [
        ("principals", (f"{IAM}:role/ci",), {"AWS": [f"{IAM}:role/ci"]}, "sts:AssumeRole", None),
        (
            "samlProvider",
            "Okta",
            {"Federated": f"{IAM}:saml-provider/Okta"},
            "sts:AssumeRoleWithSAML",
            {"StringEquals": {"SAML:aud": "https://signin.aws.amazon.com/saml"}},
        ),
        (
            "oidc",
            {
                "provider": "token.actions.githubusercontent.com",
                "subjects": ("repo:acme/training:ref:refs/heads/main",),
            },
            {"Federated": f"{IAM}:oidc-provider/token.actions.githubusercontent.com"},
            "sts:AssumeRoleWithWebIdentity",
            {
                "StringEquals": {"token.actions.githubusercontent.com:aud": "sts.amazonaws.com"},
                "StringLike": {"token.actions.githubusercontent.com:sub": ["repo:acme/training:ref:refs/heads/main"]},
            },
        ),
    ],
)
def test_each_way_in_is_one_statement(key, value, principal, action, condition):
    role = MemberRole.model_validate({key: value})
    (statement,) = trust_of_members(role, AwsAccount("aws", "us-west-2", ACCOUNT))["Statement"]
    assert (statement["Principal"], statement["Action"], statement.get("Condition")) == (principal, action, condition)


def test_members_get_awss_access_policies_for_the_console_by_their_workloads():
    scientist, viewer = (f"arn:aws:iam::123456789012:role/{name}" for name in ("nlp", "viewer"))
    teams = [team("nlp", members=[scientist], consoleAccess=True, workloads=["training", "spaces"])]
    eks = {"version": "1.35", "viewers": [scientist, viewer]}
    program = recorded_from(organization(teams=teams, environment={"eks": eks}, allocations={"nlp": ROWS}))
    found = {
        (each.inputs["principalArn"], each.inputs["policyArn"].rpartition("/")[2]): each.inputs["accessScope"]
        for each in program.all("eks/accessPolicyAssociation:AccessPolicyAssociation")
    }
    inside = {"type": "namespace", "namespaces": ["hyperpod-ns-nlp"]}
    assert found == {
        (scientist, "AmazonSagemakerHyperpodSpacePolicy"): inside,
        (scientist, "AmazonSagemakerHyperpodTrainingPolicy"): inside,
        (scientist, "AmazonSagemakerHyperpodUserClusterPolicy"): {"type": "cluster"},
        (viewer, "AmazonEKSAdminViewPolicy"): {"type": "namespace", "namespaces": ["kube-system"]},
    }
    entries = {each.inputs["principalArn"]: each.inputs for each in program.all("eks/accessEntry:AccessEntry")}
    assert entries[scientist]["kubernetesGroups"] == ["hyperpod:team:nlp", "hyperpod:viewers"]
