"""Who can write the script that every new node runs as root: only the deployer's principals."""

import json

import pulumi
import pytest

from hpkit.plan.derive import derive
from hpkit.program.recording import Answers
from tests import builders
from tests.program.recorder import recording_of
from tests.security.evaluation import Request, allows, managed

ACCOUNT = "123456789012"
ADMIN, CI, STUDIO, POWER = (
    f"arn:aws:iam::{ACCOUNT}:role/{name}"
    for name in ("PlatformAdmin", "ci/deploy", "service-role/AmazonSageMaker-ExecutionRole-20260101T000000", "power")
)
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/deploy/run-1"
EVERYTHING_ON_S3 = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def program(*, caller=SESSION, **environment):
    data = builders.organization(environment=environment)
    data["environments"]["dev"]["eks"]["administrators"] = [ADMIN]
    return recording_of(derive(builders.typed(data), "dev"), Answers(caller=caller))


def policy_of(recording):
    return json.loads(recording.one("s3/bucketPolicy:BucketPolicy").inputs["policy"])


def bucket_of(recording):
    return recording.one("s3/bucket:Bucket").made["arn"]


def request(recording, who, action, *, inside=""):
    """Return a request on the bucket or, with inside, on an object in it."""
    return Request(who, f"s3:{action}", bucket_of(recording) + inside, {"aws:SecureTransport": "true"})


@pytest.fixture(params=["named", "the caller"])
def recording(request):
    return program(deployers=[CI]) if request.param == "named" else program()


def studio_policy(recording):
    """Return AmazonSageMakerFullAccess as it applies to this bucket.

    A recording's ARNs don't contain the bucket's name.
    """
    name = recording.one("s3/bucket:Bucket").inputs["bucket"]
    document = json.loads(json.dumps(managed("AmazonSageMakerFullAccess")))
    for statement in document["Statement"]:
        resources = statement.get("Resource", [])
        if "arn:aws:s3:::*sagemaker*" in resources and "sagemaker" in name:
            statement["Resource"] = [*resources, f"{bucket_of(recording)}*"]
    return document


@pytest.mark.parametrize("action", ["PutObject", "DeleteObject"])
def test_a_studio_role_cannot_overwrite_the_lifecycle_script(recording, action):
    script = f"/{recording.one('BucketObjectv2').inputs['key']}"
    attack = request(recording, STUDIO, action, inside=script)
    assert allows(attack, identity=[studio_policy(recording)]), "without the bucket's policy nothing rejects it"
    assert not allows(attack, identity=[studio_policy(recording)], resource=policy_of(recording))


def test_a_studio_role_can_change_the_cluster_because_nothing_denies_it():
    # No policy of hpkit prevents this: the page on security describes the countermeasure.
    nodes = f"arn:aws:iam::{ACCOUNT}:role/acme-dev-us-west-2-nodes"
    passed = Request(STUDIO, "iam:PassRole", nodes, {"iam:PassedToService": "sagemaker.amazonaws.com"})
    changed = Request(STUDIO, "sagemaker:UpdateCluster", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster/abc")
    assert allows(passed, identity=[managed("AmazonSageMakerFullAccess")])
    assert allows(changed, identity=[managed("AmazonSageMakerFullAccess")])


@pytest.mark.parametrize("action", ["PutObject", "PutObjectAcl", "DeleteObjectVersion", "ReplicateObject"])
def test_full_s3_rights_cannot_overwrite_the_lifecycle_script(recording, action):
    attack = request(recording, POWER, action, inside="/lifecycle/0123/on_create.sh")
    assert allows(attack, identity=[EVERYTHING_ON_S3])
    assert not allows(attack, identity=[EVERYTHING_ON_S3], resource=policy_of(recording))


@pytest.mark.parametrize(
    "action",
    ["PutBucketVersioning", "PutLifecycleConfiguration", "PutReplicationConfiguration", "PutBucketAcl", "DeleteBucket"],
)
def test_full_s3_rights_cannot_change_versions_lifecycle_or_replication_of_the_bucket(recording, action):
    attack = request(recording, POWER, action)
    assert not allows(attack, identity=[EVERYTHING_ON_S3], resource=policy_of(recording))


@pytest.mark.parametrize("action", ["PutBucketPolicy", "DeleteBucketPolicy"])
def test_full_s3_rights_cannot_remove_the_bucket_policy(action):
    recording = program(deployers=[CI])
    assert not allows(request(recording, POWER, action), identity=[EVERYTHING_ON_S3], resource=policy_of(recording))


@pytest.mark.parametrize("who", [ADMIN, CI])
@pytest.mark.parametrize("action", ["PutObject", "DeleteObjectVersion", "PutBucketVersioning", "PutBucketPolicy"])
def test_deployers_and_administrators_can_write_the_lifecycle_script(recording, who, action):
    inside = "/lifecycle/0123/on_create.sh" if "Object" in action else ""
    assert allows(
        request(recording, who, action, inside=inside), identity=[EVERYTHING_ON_S3], resource=policy_of(recording)
    )


def test_another_deployer_can_take_over_if_the_file_names_none():
    recording = program()
    assert allows(
        request(recording, POWER, "PutBucketPolicy"), identity=[EVERYTHING_ON_S3], resource=policy_of(recording)
    )


@pytest.mark.parametrize("deployers", [[], [CI]])
def test_nodes_still_read_their_script(deployers):
    recording = program(deployers=deployers)
    node = f"arn:aws:iam::{ACCOUNT}:role/acme-dev-us-west-2-nodes"
    for action, inside in (("GetObject", "/lifecycle/0123/on_create.sh"), ("ListBucket", "")):
        asked = request(recording, node, action, inside=inside)
        assert allows(asked, identity=[EVERYTHING_ON_S3], resource=policy_of(recording))


def test_a_role_of_the_same_name_in_another_account_is_not_the_deployer():
    recording = program()
    stranger = CI.replace(ACCOUNT, "210987654321")
    attack = request(recording, stranger, "PutObject", inside="/x")
    assert not allows(attack, identity=[EVERYTHING_ON_S3], resource=policy_of(recording))


def certificates(action, who, inside="/endpoint/ca.pem"):
    """Return the request on the bucket of an endpoint's certificates, and that bucket's policy."""
    recording = program(deployers=[CI], inference={})
    bucket = recording.one("s3/bucket:Bucket", "certificates").made["arn"]
    policy = json.loads(recording.one("s3/bucketPolicy:BucketPolicy", "certificates").inputs["policy"])
    who = recording.one("iam/role:Role", "inference").made["arn"] if who == "operator" else who
    return Request(who, f"s3:{action}", bucket + inside, {"aws:SecureTransport": "true"}), policy


@pytest.mark.parametrize("who", [POWER, CI, STUDIO])
@pytest.mark.parametrize("action", ["PutObject", "DeleteObject"])
def test_full_s3_rights_cannot_replace_an_endpoints_certificate(who, action):
    attack, policy = certificates(action, who)
    assert allows(attack, identity=[EVERYTHING_ON_S3]), "without the bucket's policy nothing rejects it"
    assert not allows(attack, identity=[EVERYTHING_ON_S3], resource=policy)


def test_the_inference_operator_writes_certificates_and_cannot_open_their_bucket():
    written, policy = certificates("PutObject", "operator")
    assert allows(written, identity=[EVERYTHING_ON_S3], resource=policy)
    for action in ("PutBucketPolicy", "PutBucketAcl", "PutBucketVersioning"):
        opened, policy = certificates(action, "operator", inside="")
        assert not allows(opened, identity=[EVERYTHING_ON_S3], resource=policy)


def test_a_caller_that_is_no_deployer_is_refused_before_anything_is_created():
    with pytest.raises(pulumi.RunError, match=r"power/x isn't listed in `deployers` of acme-dev.*Nothing was created"):
        program(deployers=[CI], caller=f"arn:aws:sts::{ACCOUNT}:assumed-role/power/x")
    assert program(deployers=[CI], caller=f"arn:aws:sts::{ACCOUNT}:assumed-role/PlatformAdmin/x").resources


def test_an_administrators_run_keeps_the_bucket_policy_for_all_administrators():
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/PlatformAdmin/x"
    assert ADMIN in str(policy_of(program(caller=caller)))
    assert "assumed-role" not in str(policy_of(program(caller=caller)))


def test_the_bucket_policy_is_the_same_for_every_deployer_that_the_file_names():
    administrator = program(deployers=[CI], caller=f"arn:aws:sts::{ACCOUNT}:assumed-role/PlatformAdmin/x")
    assert policy_of(administrator) == policy_of(program(deployers=[CI]))


def test_a_viewers_preview_keeps_the_bucket_policy(monkeypatch):
    data = builders.organization()
    viewer = f"arn:aws:iam::{ACCOUNT}:role/preview"
    data["environments"]["dev"]["eks"]["viewers"] = [viewer]
    plan = derive(builders.typed(data), "dev")
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    recording = recording_of(plan, Answers(caller=viewer))
    assert recording.one("s3/bucketPolicy:BucketPolicy").ignore_changes == ("policy",)
    assert program().one("s3/bucketPolicy:BucketPolicy").ignore_changes == ()
