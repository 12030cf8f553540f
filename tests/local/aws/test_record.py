"""The record of calls: each operation with its resources, once, without secrets or documents."""

import json
from functools import partial

import boto3
import pytest

from hpkit_local.aws.backend import Backend, EndpointSettings
from hpkit_local.aws.record import CallRecorder, read_record
from hpkit_local.aws.server import Endpoint

CONTENT = "not-for-the-record"
ASSUMED = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
TRUST = json.dumps({"Version": "2012-10-17", "Statement": [ASSUMED]})


@pytest.fixture
def recorded(tmp_path):
    """Return a function that creates a client of a recording endpoint, and the record's file."""
    file = tmp_path / "deep" / "calls.jsonl"
    endpoint = Endpoint(Backend(EndpointSettings(latency_factor=0)), record=CallRecorder(file))
    endpoint.start()

    yield partial(client_of, endpoint), file
    endpoint.stop()


def client_of(endpoint, service):
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": CONTENT}
    return boto3.client(service, region_name="us-west-2", endpoint_url=endpoint.url, **keys)


def names_of(file, operation):
    (only,) = [each["names"] for each in read_record(file) if each["operation"] == operation]
    return only


def test_a_call_is_recorded_with_what_it_names_in_every_protocol(recorded):
    client, file = recorded
    client("ec2").create_vpc(
        CidrBlock="10.0.0.0/16",
        TagSpecifications=[{"ResourceType": "vpc", "Tags": [{"Key": "hpkit:organization", "Value": "acme"}]}],
    )
    client("iam").create_role(RoleName="acme-dev", AssumeRolePolicyDocument=TRUST)
    client("sagemaker").list_compute_quotas()
    client("s3").create_bucket(Bucket="acme", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    client("s3").put_object(Bucket="acme", Key="a/b", Body=CONTENT.encode())
    client("s3").delete_object(Bucket="acme", Key="a/b")
    assert names_of(file, "CreateVpc") == {
        "TagSpecification.1.ResourceType": "vpc",
        "TagSpecification.1.Tag.1.Key": "hpkit:organization",
        "TagSpecification.1.Tag.1.Value": "acme",
    }
    assert names_of(file, "CreateRole") == {"RoleName": "acme-dev"}
    assert names_of(file, "PutObject") == {"Bucket": "acme", "Key": "a/b"}
    assert names_of(file, "DeleteObject") == {"Bucket": "acme", "Key": "a/b"}
    assert names_of(file, "ListComputeQuotas") == {}


def test_neither_documents_nor_contents_nor_secrets_are_recorded(recorded):
    client, file = recorded
    client("iam").create_role(
        RoleName="acme-dev", AssumeRolePolicyDocument=json.dumps({"Id": CONTENT, "Statement": [ASSUMED]})
    )
    client("s3").create_bucket(Bucket="acme", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    client("s3").put_object(Bucket="acme", Key="script", Body=CONTENT.encode())
    assert CONTENT not in file.read_text(encoding="utf-8")
