"""The endpoint and the CRDs accept what the validator accepts: files with random mistakes."""

import json
import os

import pytest
from jsonschema import Draft202012Validator

from hpkit.plan.derive import derive_all
from hpkit.plan.existing import given_roles
from hpkit_local.aws.testing import running_endpoint
from hpkit_local.controllers.policy import governance
from hpkit_local.kubernetes.crds import crds_in
from hpkit_local.toolchain import tool_path
from tests.builders import TODAY, organization, typed
from tests.program.mutations import mutant
from tests.program.without_engine import up
from tests.provider.harness import CREDENTIALS

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(600)]

NIGHT = os.environ.get("HPKIT_NIGHTLY") == "1"
SEEDS = range(120 if NIGHT else 2)
MISTAKES = 25 if NIGHT else 20
TRUSTED = ["sagemaker.amazonaws.com", "hyperpod.sagemaker.amazonaws.com", "pods.eks.amazonaws.com"]


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint() as endpoint:
        endpoint.warm()
        yield endpoint


@pytest.fixture(autouse=True)
def _environment(endpoint, monkeypatch):
    for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint.url}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def kueue():
    """Return kind → schema of Kueue's kinds in their storage version."""
    crds = list(crds_in(tool_path("kueue-manifests")))
    versions = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"] for crd in crds}
    return {
        kind: {each["name"]: each["schema"]["openAPIV3Schema"] for each in found} for kind, found in versions.items()
    }


def _have_roles(endpoint, plan):
    """Create the roles that the file names as existing; every service may assume them."""
    statement = {"Effect": "Allow", "Principal": {"Service": TRUSTED}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    of_the_account = f"arn:aws:iam::{plan.spec.account}:role/"
    for arn in given_roles(plan):
        if arn.startswith(of_the_account):
            path, _, name = arn.removeprefix(of_the_account[:-1]).rpartition("/")
            endpoint.client("iam").create_role(Path=f"{path}/", RoleName=name, AssumeRolePolicyDocument=trust)


def _have_scripts(endpoint, plan):
    """Create the buckets from which nodes get a custom lifecycle script, each with the script."""
    found = {getattr(group.spec, "lifecycle_script", None) or "" for group in plan.own_groups}
    for uri in {each for each in found if each.startswith("s3://")}:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        place = {} if plan.spec.region == "us-east-1" else {"LocationConstraint": plan.spec.region}
        s3 = endpoint.client("s3", region=plan.spec.region)
        s3.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": place} if place else {}))
        s3.put_object(Bucket=bucket, Key=key)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_validator_passes_is_refused_nowhere(seed, endpoint, kueue):
    changed = mutant(seed, MISTAKES, today=TODAY)
    for plan in derive_all(changed.organization).values():
        endpoint.reset()
        _have_roles(endpoint, plan)
        _have_scripts(endpoint, plan)
        refusals, _ = up(plan)
        assert refusals == [], changed
        queues = governance(endpoint.snapshot())
        assert queues.refused == {}, changed
        for manifest in queues.items:
            version = manifest.kind.api_version.rpartition("/")[2]
            schema = kueue.get(manifest.kind.kind, {}).get(version)
            assert schema is None or Draft202012Validator(schema).is_valid(manifest.content), (manifest, changed)


def test_kubernetes_can_be_upgraded_on_what_the_program_creates(endpoint):
    (plan,) = derive_all(typed(organization())).values()
    endpoint.reset()
    refusals, _ = up(plan)
    assert refusals == []
    eks = endpoint.client("eks")
    assert eks.describe_cluster(name=plan.stack)["cluster"]["encryptionConfig"]
    versions = eks.describe_cluster_versions()["clusterVersions"]
    at = [each["clusterVersion"] for each in versions].index(plan.spec.eks.version)
    eks.update_cluster_version(name=plan.stack, version=versions[at - 1]["clusterVersion"])


def test_a_mistake_that_the_endpoint_refuses_is_seen(endpoint):
    organization = mutant(0, 1, today=TODAY).organization
    (name, environment), *_ = organization.environments.items()
    twice = environment.eks.administrators[:1] * 2 or ("arn:aws:iam::123456789012:role/admin",) * 2
    broken = environment.model_copy(update={"eks": environment.eks.model_copy(update={"administrators": twice})})
    endpoint.reset()
    refusals, _ = up(derive_all(organization.model_copy(update={"environments": {name: broken}}))[name])
    assert "already in use" in str(refusals) or "Duplicate" in str(refusals)
