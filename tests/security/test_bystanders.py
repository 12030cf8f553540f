"""An unrelated role of the account, such as Studio's, tries to get the platform's roles, cluster or certificates."""

import json
import re

import pytest
from botocore.loaders import Loader
from policy_sentry.querying.actions import get_actions_for_service

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import outsider_policies
from hpkit.program.iam.documents import iam_document
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import record
from tests import builders
from tests.program.iam.authorization import access_level, resource_formats
from tests.security.evaluation import Request, allows, managed

ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
STUDIO = "arn:aws:iam::123456789012:role/studio"
# A policy that many accounts attach to Studio's roles.
GIVEN = [
    managed("AmazonSageMakerFullAccess"),
    {"Statement": [{"Effect": "Allow", "Action": ["iam:PassRole", "sagemaker:*"], "Resource": "*"}]},
]
OF_HYPERPOD = ("cluster", "cluster-scheduler-config", "compute-quota")


@pytest.fixture(scope="module")
def plan():
    return derive(builders.typed(builders.organization(environment={"inference": {}})), "dev")


@pytest.fixture(scope="module")
def denied(plan):
    (policy,) = outsider_policies(plan, ACCOUNT)
    return policy.document


@pytest.fixture(scope="module")
def program(plan):
    return record(plan)


def operations():
    """Return the HyperPod operations in botocore's API model that aren't read-only."""
    model = Loader().load_service_model("sagemaker", "service-2")["operations"]
    named = [name for name in model if re.search("Cluster|ComputeQuota", name)]
    return {f"sagemaker:{name}" for name in named if not name.startswith(("Describe", "List"))}


def referenced():
    """Return the same from the Service Authorization Reference, whose actions differ from the model's operations."""
    operations_ = set()
    for action in get_actions_for_service("sagemaker"):
        kinds = {form.split(":")[5].split("/")[0] for form in resource_formats(action)}
        if kinds & set(OF_HYPERPOD) and access_level(action) not in ("List", "Read"):
            operations_.add(action)
    return operations_


def test_the_denial_covers_every_operation_that_changes_hyperpod(denied):
    wanted = operations() | referenced()
    assert {"sagemaker:AddTags", "sagemaker:AttachClusterNodeVolume", "sagemaker:UpdateClusterSoftware"} <= wanted
    for action in wanted:
        for kind in OF_HYPERPOD:
            attack = Request(STUDIO, action, ACCOUNT.arn("sagemaker", f"{kind}/abc"))
            assert allows(attack, identity=GIVEN), "so it is without it"
            assert not allows(attack, identity=[*GIVEN, denied]), action
    listed = {action for each in denied["Statement"] for action in each["Action"]}
    assert listed - wanted == {"iam:PassRole"}, "no action is denied that no model has"


def test_a_denied_role_cannot_pass_roles_of_the_platform(denied, program):
    roles = {name: each.inputs["name"] for name, each in program.named("iam/role:Role").items()}
    assert {"nodes", "inference"} <= roles.keys()
    for name in roles.values():
        context = {"iam:PassedToService": "sagemaker.amazonaws.com"}
        attack = Request(STUDIO, "iam:PassRole", ACCOUNT.role_arn(name), context)
        assert allows(attack, identity=GIVEN)
        assert not allows(attack, identity=[*GIVEN, denied]), name


def test_a_denied_role_keeps_its_own_jobs_endpoints_notebooks_and_tags(denied):
    own = ACCOUNT.role_arn("studio-execution")
    for action, resource in (
        ("iam:PassRole", own),
        ("sagemaker:AddTags", ACCOUNT.arn("sagemaker", "training-job/mine")),
        ("sagemaker:CreateEndpoint", ACCOUNT.arn("sagemaker", "endpoint/mine")),
        ("sagemaker:CreateProcessingJob", ACCOUNT.arn("sagemaker", "processing-job/mine")),
    ):
        assert allows(Request(STUDIO, action, resource), identity=[*GIVEN, denied]), action


def assumed(program, role, source):
    trust = json.loads(program.one("iam/role:Role", role).inputs["assumeRolePolicy"])
    statements = [{**each, "Resource": "*"} for each in trust["Statement"] if "Service" in each["Principal"]]
    context = {} if source is None else {"aws:SourceArn": ACCOUNT.arn("sagemaker", source)}
    service = Request("sagemaker.amazonaws.com", "sts:AssumeRole", "*", context)
    return allows(service, identity=[{"Statement": statements}])


@pytest.mark.parametrize("role", ["nodes", "inference"])
def test_jobs_cannot_assume_roles_of_the_platform(program, role):
    for job in ("compilation-job/x", "pipeline/x/execution/y", "processing-job/x", "training-job/x", "transform-job/x"):
        assert not assumed(program, role, job), job
    assert assumed(program, role, None), "HyperPod does not document a source"
    assert assumed(program, role, "*"), "endpoints send the account alone"


def test_an_endpoint_cannot_read_or_replace_certificates_of_the_inference_operator(program):
    role = program.one("iam/role:Role", "inference").made["arn"]
    bucket = program.one("s3/bucket:Bucket", "certificates").inputs["bucket"]
    identity = [
        iam_document("inference", ACCOUNT, certificates=bucket),
        managed("AmazonSageMakerHyperPodInferenceAccess"),
    ]
    marked = {
        "aws:ResourceAccount": ACCOUNT.id,
        "s3:ExistingObjectTag/CreatedBy": "HyperPodInference",
        "s3:RequestObjectTag/CreatedBy": "HyperPodInference",
    }
    pods = {**marked, "aws:FederatedProvider": "https://oidc.eks.us-west-2.amazonaws.com/id/0A1B"}
    for action in ("s3:DeleteObject", "s3:GetObject", "s3:PutObject", "s3:PutObjectTagging"):
        for key in ("tls/ca.pem", "data-capture/ca.pem"):
            certificate = f"arn:aws:s3:::{bucket}/{key}"
            assert allows(Request(role, action, certificate, pods), identity=identity), action
            assert not allows(Request(role, action, certificate, marked), identity=identity), action
    captured = Request(
        role, "s3:PutObject", f"arn:aws:s3:::{bucket}/data-capture/x", {"aws:ResourceAccount": ACCOUNT.id}
    )
    assert allows(captured, identity=identity), "what an endpoint captures is still written"
