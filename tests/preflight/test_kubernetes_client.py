"""Detecting Kueue in an existing EKS cluster: the local cloud's real API server, with a token that EKS accepts."""

import base64
import json

import boto3
import pytest

from hpkit.clients.calls import FailedCall
from hpkit.clients.kubernetes import find_inside
from hpkit_local.kubernetes.pki import authority
from tests.local.controllers.conftest import Aws

pytestmark = [pytest.mark.platform, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def aws(instance):
    return Aws(instance)


@pytest.fixture(scope="module")
def cluster(aws):
    return aws.client("eks").describe_cluster(name="handson-dev")["cluster"]


@pytest.fixture
def stranger(aws):
    """Return a signer for a role without an access entry."""
    iam = aws.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName="stranger", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    keys = aws.client("sts").assume_role(RoleArn=role, RoleSessionName="ann")["Credentials"]
    yield boto3.Session(
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
        region_name="us-west-2",
    )
    iam.delete_role(RoleName="stranger")


def session(key):
    return boto3.Session(aws_access_key_id=key, aws_secret_access_key=key, region_name="us-west-2")


def test_a_kueue_is_seen_by_its_api_group_and_hyperpods_nodes_are_left_out(cluster):
    seen = {"apiGroups": ["kueue.x-k8s.io"], "deployments": [], "nodes": []}
    assert find_inside(session("local"), cluster) == seen


def test_an_identity_that_the_cluster_does_not_know_is_a_failure_with_the_reason(stranger, cluster):
    found = find_inside(stranger, cluster)
    assert isinstance(found, FailedCall)
    assert found.code == "401 Unauthorized"


def test_an_api_server_that_cannot_be_reached_is_a_failure(cluster):
    found = find_inside(session("local"), {**cluster, "endpoint": "https://127.0.0.1:9"})
    assert isinstance(found, FailedCall)
    assert "cannot be reached" in found.message


@pytest.mark.parametrize("data", ["bm90IGEgY2VydGlmaWNhdGU=", "%%%"])
def test_a_certificate_that_is_none_is_a_failure(cluster, data):
    found = find_inside(session("local"), {**cluster, "certificateAuthority": {"data": data}})
    assert isinstance(found, FailedCall)


def test_another_authority_than_that_of_the_cluster_is_not_trusted(cluster, instance):
    other = authority(instance.folder / "other", "stranger")
    data = base64.b64encode(other.certificate.read_bytes()).decode()
    found = find_inside(session("local"), {**cluster, "certificateAuthority": {"data": data}})
    assert isinstance(found, FailedCall)
    assert "certificate" in found.message.lower()
