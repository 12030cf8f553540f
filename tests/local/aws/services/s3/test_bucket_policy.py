"""A bucket that requires TLS accepts requests over loopback; its other denials apply."""

import json

import boto3
import pytest
from botocore.exceptions import ClientError

from hpkit.program.iam.documents import bucket_policy
from hpkit_local.aws.testing import running_endpoint

BUCKET = "sagemaker-scripts"
ARN = f"arn:aws:s3:::{BUCKET}"


@pytest.fixture
def s3():
    with running_endpoint() as endpoint:
        client = boto3.client(
            "s3",
            endpoint_url=endpoint.url,
            region_name="us-west-2",
            aws_access_key_id="local",
            aws_secret_access_key="local",  # noqa: S106 - nobody checks it
        )
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        yield client


def test_a_tls_only_bucket_takes_objects_here(s3):
    anybody = ["arn:aws:iam::123456789012:*"]
    s3.put_bucket_policy(
        Bucket=BUCKET, Policy=json.dumps(bucket_policy(ARN, writers=anybody, keepers=anybody, sealed=False))
    )
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"b")
    assert s3.get_object(Bucket=BUCKET, Key="a")["Body"].read() == b"b"


def test_a_refusal_without_condition_holds(s3):
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": f"{ARN}/*"}
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    with pytest.raises(ClientError, match="403"):
        s3.put_object(Bucket=BUCKET, Key="a", Body=b"b")
