"""Existing roles and an existing bucket: trust policies, permissions, and the bucket's region."""

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.calls import (
    CALLER,
    CLUSTERS,
    bucket_encryption,
    bucket_location,
    first_calls,
    further_calls,
    key_of_web_ui,
    principals,
    role,
    role_arns,
    team_bucket,
)
from hpkit.preflight.calls import simulations as asked_of
from hpkit.preflight.given import check_given
from tests.builders import group, organization, team, typed
from tests.program.recorder import recording_of

NODES = "arn:aws:iam::123456789012:role/live/nodes"
KEY = "arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"
CLOSED = "AccessDenied: another account's, or closed"
DENIED = FailedCall("iam:SimulatePrincipalPolicy", "AccessDenied", "not allowed")


def plan_of(bucket="sagemaker-live", *, script=None, **storage):
    named = {"lifecycleScript": script} if script else {}
    return derive(
        typed(
            organization(
                groups=[group("gpu", "ml.g5.12xlarge", 4, executionRole=NODES, **named)],
                environment={"storage": {"existing": {"bucket": bucket}, **storage}},
            )
        ),
        "dev",
    )


def trusting(*services, action="sts:AssumeRole", **more):
    statement = {"Effect": "Allow", "Principal": {"Service": list(services)}, "Action": action, **more}
    return {role("nodes").key: {"Role": {"Arn": NODES, "AssumeRolePolicyDocument": {"Statement": [statement]}}}}


def allowing(plan, *, denied=()):
    return {
        call.key: {
            "EvaluationResults": [
                {
                    "EvalActionName": action,
                    "EvalResourceName": resource,
                    "EvalDecision": "implicitDeny" if action in denied else "allowed",
                }
                for action in call.params["ActionNames"]
                for resource in call.params["ResourceArns"]
            ]
        }
        for call in asked_of(plan, NODES)
    }


def stored(plan, *, region="us-west-2", key=None):
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key} if key else {"SSEAlgorithm": "AES256"}
    rules = [{"ApplyServerSideEncryptionByDefault": default}]
    return {
        bucket_location(plan).key: {"LocationConstraint": region},
        bucket_encryption(plan).key: {"ServerSideEncryptionConfiguration": {"Rules": rules}},
    }


def rows_of(plan, **given):
    known = {**trusting("sagemaker.amazonaws.com"), **allowing(plan), **stored(plan), **given}
    return {row.what: row for row in check_given(plan, Responses(known))}


def test_what_serves_is_ok_and_all_of_it_is_asked_for():
    plan = plan_of()
    rows = rows_of(plan)
    assert {what: row.status for what, row in rows.items()} == {
        f"trust of {NODES}": "ok",
        f"rights of {NODES}": "ok",
        "bucket sagemaker-live": "ok",
        "bucket sagemaker-live, encryption": "ok",
    }
    asked = {call.key for call in first_calls(recording_of(plan))}
    asked |= {call.key for call in further_calls(plan, Responses({CLUSTERS.key: {"ClusterSummaries": []}}))}
    assert {*trusting(), *allowing(plan), *stored(plan)} <= asked


@pytest.mark.parametrize(
    ("trust", "status"),
    [
        (trusting("ec2.amazonaws.com"), "missing"),
        (trusting("sagemaker.amazonaws.com", action="sts:TagSession"), "missing"),
        (trusting("sagemaker.amazonaws.com", Condition={"StringEquals": {"aws:SourceAccount": "1"}}), "unknown"),
        (trusting("ec2.amazonaws.com", "sagemaker.amazonaws.com"), "ok"),
    ],
)
def test_an_execution_role_trusts_sagemaker_without_conditions(trust, status):
    assert rows_of(plan_of(), **trust)[f"trust of {NODES}"].status == status


def test_what_iam_does_not_allow_is_named_with_the_script_that_nodes_read():
    plan = plan_of(script="s3://other/v1/run.sh")
    row = rows_of(plan, **allowing(plan, denied=("s3:GetObject",)))[f"rights of {NODES}"]
    assert (row.status, row.found) == ("missing", "not allowed: s3:GetObject on arn:aws:s3:::other/v1/run.sh")


def test_a_simulation_that_is_refused_leaves_the_rights_unknown():
    plan = plan_of()
    refused = dict.fromkeys(allowing(plan), DENIED)
    assert rows_of(plan, **refused)[f"rights of {NODES}"].status == "unknown"


@pytest.mark.parametrize(
    ("location", "status", "detail"),
    [
        ({"LocationConstraint": None}, "missing", "in us-east-1"),
        ({"LocationConstraint": "EU"}, "missing", "in eu-west-1"),
        (FailedCall("s3:GetBucketLocation", "NoSuchBucket", "none"), "missing", "missing"),
        (FailedCall("s3:GetBucketLocation", "AccessDenied", "no"), "unknown", ""),
    ],
)
def test_a_bucket_is_there_and_in_the_region(location, status, detail):
    plan = plan_of()
    row = rows_of(plan, **{bucket_location(plan).key: location})["bucket sagemaker-live"]
    assert (row.status, row.found) == (status, detail)


@pytest.mark.parametrize(
    ("response", "status", "found"),
    [
        ({"LocationConstraint": "us-west-2"}, "ok", "in account 123456789012"),
        (FailedCall("s3:GetBucketLocation", "NoSuchBucket", "none"), "missing", "missing"),
        (FailedCall("s3:GetBucketLocation", "AccessDenied", "no"), "missing", CLOSED),
    ],
    ids=["own", "none", "of another account"],
)
def test_a_teams_bucket_is_there_and_of_the_account(response, status, found):
    quota = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    buckets = {"storage": {"teamBuckets": {"nlp": [{"bucket": "acme-data"}]}}}
    plan = derive(typed(organization(teams=[team("nlp")], allocations=quota, environment=buckets)), "dev")
    caller = {CALLER.key: {"Account": "123456789012"}}
    asked = further_calls(plan, Responses({CLUSTERS.key: {"ClusterSummaries": []}, **caller}))
    assert team_bucket("acme-data", "123456789012") in asked
    known = {**caller, team_bucket("acme-data", "123456789012").key: response}
    (row,) = check_given(plan, Responses(known))
    assert (row.status, row.found) == (status, found)


def test_a_key_of_the_bucket_must_be_the_files():
    other = plan_of()
    row = rows_of(other, **stored(other, key=KEY))["bucket sagemaker-live, encryption"]
    assert (row.status, row.found) == ("missing", KEY)
    assert KEY in row.fix
    same = plan_of(kmsKeyArn=KEY)
    assert rows_of(same, **stored(same, key=KEY))["bucket sagemaker-live, encryption"].status == "ok"


def test_a_name_without_the_prefix_of_the_managed_policy_is_said():
    row = rows_of(plan_of("live-scripts"))["bucket live-scripts, name"]
    assert (row.status, row.needed) == ("unknown", "sagemaker-…")


@pytest.mark.parametrize(
    ("response", "status", "detail"),
    [
        ({"KeyMetadata": {"KeyState": "Enabled", "KeySpec": "SYMMETRIC_DEFAULT"}}, "ok", "enabled, SYMMETRIC_DEFAULT"),
        ({"KeyMetadata": {"KeyState": "Enabled", "KeySpec": "ECC_NIST_P256"}}, "missing", "enabled, ECC_NIST_P256"),
        ({"KeyMetadata": {"KeyState": "Disabled", "KeySpec": "SYMMETRIC_DEFAULT"}}, "missing", "disabled"),
        (FailedCall("kms:DescribeKey", "NotFoundException", "no key"), "missing", "missing"),
        (FailedCall("kms:DescribeKey", "AccessDeniedException", "no"), "unknown", ""),
    ],
)
def test_the_key_of_the_web_ui_of_spaces_encrypts(response, status, detail):
    web = {
        "domain": "spaces.acme.com",
        "certificateArn": "arn:aws:acm:us-west-2:123456789012:certificate/1",
        "kmsKeyArn": KEY,
    }
    plan = derive(typed(organization(environment={"spaces": {"webUi": web}})), "dev")
    assert key_of_web_ui(plan) in first_calls(recording_of(plan))
    (row,) = check_given(plan, Responses({key_of_web_ui(plan).key: response}))
    assert row.status == status
    assert row.found.startswith(detail)


def test_a_role_that_the_deployment_makes_is_not_looked_for():
    teams = [{"name": "nlp", "memberRole": {"permissionSets": ["NLP"]}}]
    data = organization(
        teams=teams,
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
        environment={"account": "123456789012"},
    )
    plan = derive(typed(data), "dev")
    (planned,) = plan.teams
    assert planned.made_role
    assert planned.made_role in principals(plan)
    assert planned.made_role not in role_arns(plan)
