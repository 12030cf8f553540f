"""The Spaces add-on's roles, values and required add-ons; and the teams' permissions for spaces."""

import json

import pytest

from tests.builders import findings, organization, team
from tests.program.recorder import recorded_from

SPACES = "amazon-sagemaker-spaces"
POLICY = "AmazonSageMakerSpacesControllerPolicy"
NEEDED = ("aws-ebs-csi-driver", "cert-manager", "eks-pod-identity-agent")
KEY = "arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"
CERTIFICATE = "arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"
WEB = {"domain": "spaces.acme.com", "certificateArn": CERTIFICATE, "kmsKeyArn": KEY}
BOUNDARY = "arn:aws:iam::123456789012:policy/bounds"
MEMBER = "arn:aws:iam::123456789012:role/nlp"
ROLE = "kubernetes:rbac.authorization.k8s.io/v1:Role"


def wanted(*, workloads=("training", "spaces"), **spaces):
    data = organization(
        teams=[team("nlp", members=[MEMBER], workloads=list(workloads))],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
        environment={"permissionsBoundary": BOUNDARY},
    )
    data["environments"]["dev"]["spaces"] = spaces
    return data


@pytest.fixture(scope="module")
def least():
    return recorded_from(wanted())


@pytest.fixture(scope="module")
def most():
    return recorded_from(wanted(remoteAccess=True, webUi=WEB))


def values_of(program):
    return json.loads(program.one("eks/addon:Addon", SPACES).inputs["configurationValues"])


def policy_of(program, name):
    return json.loads(program.one("iam/rolePolicy:RolePolicy", name).inputs["policy"])["Statement"]


def trust_of(program, name):
    (statement,) = json.loads(program.one("iam/role:Role", name).inputs["assumeRolePolicy"])["Statement"]
    return statement


def test_an_empty_section_installs_it_after_what_it_needs_and_breaks_no_rule(least):
    addon = least.one("eks/addon:Addon", SPACES)
    assert all(least.waits(addon, least.one("eks/addon:Addon", name)) for name in NEEDED)
    assert least.waits(addon, least.one("hyperpod:index:Cluster"))
    assert values_of(least) == {"jupyter-k8s": {"workspacePodWatching": {"enable": True}}}
    assert findings(wanted()) == []


def test_its_controller_has_the_role_that_aws_documents_and_others_come_when_asked_for(least):
    association = least.one("eks/podIdentityAssociation:PodIdentityAssociation", SPACES)
    assert (association.inputs["namespace"], association.inputs["serviceAccount"]) == (
        "jupyter-k8s-system",
        "jupyter-k8s-controller-manager",
    )
    attached = least.one("iam/rolePolicyAttachment:RolePolicyAttachment", f"{SPACES}-{POLICY}")
    assert attached.inputs["policyArn"] == f"arn:aws:iam::aws:policy/{POLICY}"
    assert least.waits(least.one("eks/addon:Addon", SPACES), attached)
    assert not least.named("iam/role:Role").keys() & {"space", "spaces-router"}


def test_the_web_ui_and_remote_access_are_told_key_certificate_and_role(most):
    role = most.one("iam/role:Role", "space")
    assert values_of(most)["jupyter-k8s-aws-hyperpod"] == {
        "remoteAccess": {"enabled": True, "ssmManagedNodeRole": role.made["arn"]},
        "clusterWebUI": {
            "enabled": True,
            "domain": "spaces.acme.com",
            "awsCertificateArn": CERTIFICATE,
            "alb": {"scheme": "internal"},
            "kmsEncryptionContext": {"enabled": True},
            "traefik": {"shouldInstall": True},
            "auth": {"kmsKeyId": KEY},
        },
    }


def test_a_connected_space_has_a_role_that_reads_nothing_of_the_account(most):
    role = most.one("iam/role:Role", "space")
    # The controller's policy can only pass roles whose names start like this.
    assert role.inputs["name"] == "sagemaker-space-acme-dev-us-west-2"
    assert trust_of(most, "space")["Principal"] == {"Service": "ssm.amazonaws.com"}
    assert trust_of(most, "space")["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    actions = {action for each in policy_of(most, "space") for action in each["Action"]}
    assert {each.partition(":")[0] for each in actions} == {"ssm", "ssmmessages"}
    assert not [each for each in actions if "Parameter" in each or "Document" in each]


def test_the_router_uses_the_one_key_for_tokens_of_its_cluster(most):
    assert [each["Resource"] for each in policy_of(most, "spaces-router")] == [[KEY], [KEY]]
    context = policy_of(most, "spaces-router")[1]["Condition"]["StringEquals"]
    assert context["kms:EncryptionContext:sagemaker:eks-cluster-arn"] == "${aws:PrincipalTag/eks-cluster-arn}"
    association = most.one("eks/podIdentityAssociation:PodIdentityAssociation", "spaces-router")
    assert association.inputs["serviceAccount"] == "jupyter-k8s-authmiddleware"
    assert most.waits(most.one("eks/addon:Addon", SPACES), association)


def test_teams_end_before_the_controller_that_ends_their_spaces(least):
    assert least.waits(least.one("hyperpod:index:ComputeQuota", "nlp"), least.one("eks/addon:Addon", SPACES))


@pytest.mark.parametrize("workloads", [("training",), ("training", "spaces")])
def test_only_teams_with_spaces_make_them_and_only_in_their_namespace(workloads):
    program = recorded_from(wanted(workloads=workloads))
    roles = {each.inputs["metadata"]["namespace"]: each.inputs["rules"] for each in program.all(ROLE)}
    kinds = {kind for rule in roles.pop("hyperpod-ns-nlp") for kind in rule["resources"]}
    assert ("workspaces" in kinds) == ("spaces" in workloads)
    assert not roles
    (shared,) = program.all("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")
    verbs = {
        verb for rule in shared.inputs["rules"] if "workspacetemplates" in rule["resources"] for verb in rule["verbs"]
    }
    assert verbs == ({"get", "list", "watch"} if "spaces" in workloads else set())
