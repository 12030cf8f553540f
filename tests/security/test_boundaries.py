"""What a deployer gains through the roles that it creates: nothing beyond the account's permissions boundary."""

import pytest

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import calling_types, deployer_policies
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import record
from tests import builders
from tests.security.evaluation import Request, allows, managed

ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
BOUNDARY = "arn:aws:iam::123456789012:policy/platform-boundary"
BACKDOOR = "arn:aws:iam::123456789012:role/acme-dev-us-west-2-backdoor"
DEPLOYER = "arn:aws:iam::123456789012:role/deploy"
ATTACHED = "arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"


def plan_of(**environment):
    observed = {"observability": {"cloudwatch": True, "prometheus": True, "grafana": True}}
    return derive(
        builders.typed(builders.organization(environment={"inference": {}, **observed, **environment})), "dev"
    )


def policies(plan):
    types = calling_types(each.type for each in record(plan).resources.values())
    return [each.document for each in deployer_policies(plan, ACCOUNT, types)]


@pytest.fixture(scope="module")
def bounded():
    return policies(plan_of(permissionsBoundary=BOUNDARY))


@pytest.fixture(scope="module")
def unbounded():
    return policies(plan_of())


def request(action, *, boundary=None, resource=BACKDOOR, **context):
    known = {"iam:PermissionsBoundary": boundary} if boundary else {}
    return Request(DEPLOYER, f"iam:{action}", resource, {**known, **context})


@pytest.mark.parametrize("action", ["CreateRole", "PutRolePolicy", "AttachRolePolicy"])
def test_a_deployer_creates_no_role_without_the_boundary(action, bounded, unbounded):
    context = {"iam:PolicyARN": ATTACHED}
    assert allows(request(action, **context), identity=unbounded), "so it is where the file names no boundary"
    assert not allows(request(action, **context), identity=bounded)
    other = "arn:aws:iam::aws:policy/AdministratorAccess"
    assert not allows(request(action, boundary=other, **context), identity=bounded)
    assert allows(request(action, boundary=BOUNDARY, **context), identity=bounded), "what `up` does still works"


@pytest.mark.parametrize("boundary", [None, BOUNDARY])
def test_a_deployer_cannot_remove_the_boundary_from_a_role(boundary, bounded):
    attack = request("DeleteRolePermissionsBoundary", boundary=boundary)
    everything = [managed("IAMFullAccess")]
    assert allows(attack, identity=everything)
    assert not allows(attack, identity=[*bounded, *everything]), "refused whatever else is attached"


def test_a_deployer_cannot_replace_the_boundary(bounded):
    assert not allows(request("PutRolePermissionsBoundary", boundary=ATTACHED), identity=bounded)
    assert allows(request("PutRolePermissionsBoundary", boundary=BOUNDARY), identity=bounded)


@pytest.mark.parametrize("action", ["CreatePolicyVersion", "SetDefaultPolicyVersion", "DeletePolicyVersion"])
def test_a_deployer_cannot_rewrite_the_boundary(action, bounded):
    attack = request(action, resource=BOUNDARY)
    assert not allows(attack, identity=[*bounded, managed("IAMFullAccess")])


def test_a_deployer_cannot_attach_administrator_access(unbounded, bounded):
    context = {"iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess"}
    for identity in (unbounded, bounded):
        assert not allows(request("AttachRolePolicy", boundary=BOUNDARY, **context), identity=identity)


def test_every_role_of_the_program_has_the_boundary():
    roles = record(plan_of(permissionsBoundary=BOUNDARY)).all("iam/role:Role")
    assert {each.inputs["permissionsBoundary"] for each in roles} == {BOUNDARY}
    assert len(roles) > 3
