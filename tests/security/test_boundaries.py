"""What a deployer gains through the roles that it creates, and a governor through the policies of `--governance`."""

import pytest

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import calling_types, deployer_policies, governance_policies
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import record
from tests import builders
from tests.program.iam.authorization import problems
from tests.program.recorder import recording_of
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


GOVERNOR, ADMIN, VIEWER = (ACCOUNT.role_arn(name) for name in ("governor", "admin", "viewer"))
HYPERPOD = ACCOUNT.role_arn("aws-service-role/hyperpod.sagemaker.amazonaws.com/AWSServiceRoleForSageMakerHyperPod")
MEMBERS = [ACCOUNT.role_arn("nlp"), ACCOUNT.role_arn("nlp-lead")]
POLICIES = "arn:aws:eks::aws:cluster-access-policy/"
CLUSTER = ACCOUNT.arn("eks", "cluster/acme-dev")
TEAM = ["hyperpod:team:nlp"]


@pytest.fixture(scope="module")
def plan():
    eks = {"version": "1.35", "administrators": [ADMIN], "viewers": [VIEWER]}
    data = builders.organization(
        teams=[builders.team("nlp", members=MEMBERS)],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
        environment={"eks": eks},
    )
    return derive(builders.typed(data), "dev")


@pytest.fixture(scope="module")
def program(plan):
    return recording_of(plan)


@pytest.fixture(scope="module")
def documents(plan, program):
    types = calling_types(each.type for each in program.resources.values())
    return [policy.document for policy in governance_policies(plan, ACCOUNT, types)]


def on_entry(action, principal, groups, *, entry_type="STANDARD", **keys):
    kind, _, name = principal.rpartition(":")[2].partition("/")
    resource = CLUSTER
    if action != "CreateAccessEntry":
        resource = ACCOUNT.arn("eks", f"access-entry/acme-dev/{kind}/{ACCOUNT.id}/{name.rpartition('/')[2]}/11aa")
    context = {"eks:accessEntryType": entry_type, "eks:principalArn": principal}
    context |= {"eks:kubernetesGroups": groups} if groups else {}
    return Request(GOVERNOR, f"eks:{action}", resource, {**context, **{f"eks:{key}": keys[key] for key in keys}})


def associated(policy, principal, groups=(), action="AssociateAccessPolicy"):
    return on_entry(action, principal, groups, policyArn=f"{POLICIES}{policy}", accessScope="cluster")


def test_the_reference_has_each_key_of_the_conditions_for_each_action(documents):
    assert [problem for document in documents for problem in problems(document)] == []


def test_a_governor_can_change_the_members_that_the_program_registers(program, documents):
    entries = [each.inputs for each in program.all("eks/accessEntry:AccessEntry")]
    members = [each for each in entries if each["principalArn"] in MEMBERS]
    assert len(members) == len(MEMBERS)
    for entry in members:
        for action in ("CreateAccessEntry", "UpdateAccessEntry", "DeleteAccessEntry"):
            request = on_entry(action, entry["principalArn"], entry["kubernetesGroups"], entry_type=entry["type"])
            assert allows(request, identity=documents), action
        assert allows(on_entry("TagResource", entry["principalArn"], entry["kubernetesGroups"]), identity=documents)
    for policy in ("AmazonSagemakerHyperpodClusterPolicy", "AmazonSagemakerHyperpodControllerPolicy"):
        assert allows(associated(policy, HYPERPOD), identity=documents)


@pytest.mark.parametrize("principal", [GOVERNOR, *MEMBERS, ADMIN])
def test_a_governor_cannot_associate_a_policy_with_an_assumable_role(documents, principal):
    for policy in ("AmazonEKSClusterAdminPolicy", "AmazonEKSViewPolicy", "AmazonSagemakerHyperpodClusterPolicy"):
        assert not allows(associated(policy, principal, TEAM), identity=documents), policy
    assert not allows(associated("AmazonEKSClusterAdminPolicy", HYPERPOD), identity=documents)


@pytest.mark.parametrize("groups", [[], ["hyperpod:viewers"], ["cluster-admins"], [*TEAM, "cluster-admins"]])
def test_a_governor_cannot_create_an_entry_in_a_group_that_is_no_teams(documents, groups):
    assert not allows(on_entry("CreateAccessEntry", GOVERNOR, groups), identity=documents)
    # The groups are those of the request, or of an entry that isn't a member's.
    assert not allows(on_entry("UpdateAccessEntry", GOVERNOR, groups), identity=documents)
    assert not allows(on_entry("DeleteAccessEntry", GOVERNOR, groups), identity=documents)


@pytest.mark.parametrize("principal", [ADMIN, VIEWER])
def test_a_governor_cannot_touch_the_entry_of_an_administrator_or_viewer(documents, principal):
    for action in ("CreateAccessEntry", "UpdateAccessEntry", "DeleteAccessEntry"):
        for groups in ([], TEAM):
            assert not allows(on_entry(action, principal, groups), identity=documents), action
    removal = associated("AmazonEKSClusterAdminPolicy", principal, action="DisassociateAccessPolicy")
    assert not allows(removal, identity=documents)


def test_a_governor_cannot_delete_the_entry_of_nodes(documents):
    nodes = on_entry("DeleteAccessEntry", ACCOUNT.role_arn("nodes"), ["system:nodes"], entry_type="HYPERPOD_LINUX")
    assert not allows(nodes, identity=documents)


def test_a_governor_cannot_tag_the_cluster_or_an_add_on(documents):
    for resource in ("cluster/acme-dev", "addon/acme-dev/vpc-cni/11aa", "podidentityassociation/acme-dev/a-1"):
        for action in ("TagResource", "UntagResource"):
            assert not allows(Request(GOVERNOR, f"eks:{action}", ACCOUNT.arn("eks", resource)), identity=documents)
