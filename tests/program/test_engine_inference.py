"""The inference operator is added to a live platform and removed again, without any other change."""

import json

import pytest

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

OPERATOR = "amazon-sagemaker-hyperpod-inference"
NEEDED = ("aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver", "cert-manager", "metrics-server")
BUCKET = "hyperpod-tls-handson-dev-123456789012-us-west-2"


def write(repository, **more):
    data = repository.read("handson")
    data["environments"]["dev"].update(more)
    repository.write("handson", data)


def values_of(live):
    found = live.client("eks").describe_addon(clusterName="handson-dev", addonName=OPERATOR)["addon"]
    assert found["status"] == "ACTIVE"
    return json.loads(found["configurationValues"])


def test_the_inference_operator_comes_stays_and_goes(up, repository, live):
    before, buckets = live.settled(), live.client("s3").list_buckets()["Buckets"]

    # Its bucket is protected like that of the scripts, so that deleting it requires a setting in the file.
    write(repository, inference={"modelBuckets": ["acme-models"]}, allowReplace=["bucket"])
    up.up()
    values = values_of(live)
    assert values["tlsCertificateS3Bucket"] == BUCKET
    (issuer,) = live.client("iam").list_open_id_connect_providers()["OpenIDConnectProviderList"]
    assert ":oidc-provider/" in issuer["Arn"]
    s3 = live.client("s3")
    assert s3.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    policy = json.loads(s3.get_bucket_policy(Bucket=BUCKET)["Policy"])["Statement"]
    only = next(each["Condition"]["ArnNotLike"] for each in policy if each["Sid"] == "OnlyOperatorWrite")
    assert only == {"aws:PrincipalArn": [values["executionRoleArn"]]}
    s3.put_object(Bucket=BUCKET, Key="endpoint.pem", Body=b"certificate")
    assert up.preview() == {}

    write(repository, allowReplace=["bucket"], allowDelete={"addons": [OPERATOR, *NEEDED]})
    up.up()
    assert live.settled() == before
    assert live.client("s3").list_buckets()["Buckets"] == buckets
    write(repository)
    up.up()
    assert up.preview() == {}
