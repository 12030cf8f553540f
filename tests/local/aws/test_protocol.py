"""Finding a request's operation: by path, by query, or by header, depending on the protocol."""

import io
import json
from http.client import HTTPConnection

import pytest

from hpkit_local.aws.protocol import read_call


def operation_of(service, method, path, *, query="", target="", body=b""):
    environ = {
        "REQUEST_METHOD": method,
        "RAW_URI": f"{path}?{query}",
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=local/20260101/us-west-2/{service}/aws4_request",
        "HTTP_X_AMZ_TARGET": target,
    }
    return read_call(environ, default_region="us-west-2").operation


@pytest.mark.parametrize(
    ("service", "method", "path", "more", "operation"),
    [
        ("s3", "DELETE", "/acme/a/b", {}, "DeleteObject"),
        ("s3", "DELETE", "/acme/a/b", {"query": "uploadId=1"}, "AbortMultipartUpload"),
        ("s3", "GET", "/acme", {"query": "versioning"}, "GetBucketVersioning"),
        ("eks", "DELETE", "/clusters/acme", {}, "DeleteCluster"),
        ("eks", "GET", "/clusters/acme/addons", {}, "ListAddons"),
        ("monitoring", "POST", "/", {"body": b"Action=ListMetrics"}, "ListMetrics"),
        ("monitoring", "POST", "/", {"target": "GraniteServiceVersion20100801.ListMetrics"}, "ListMetrics"),
        ("monitoring", "POST", "/service/GraniteServiceVersion20100801/operation/ListMetrics", {}, "ListMetrics"),
        ("sagemaker", "POST", "/", {"target": "SageMaker.ListClusters"}, "ListClusters"),
        ("sts", "POST", "/", {"body": b"Action=GetCallerIdentity"}, "GetCallerIdentity"),
    ],
)
def test_a_request_is_the_operation_that_its_protocol_names(service, method, path, more, operation):
    assert operation_of(service, method, path, **more) == operation


@pytest.mark.parametrize(
    ("service", "operation", "change", "part"),
    [
        ("sagemaker", "list_clusters", {"body": b'{"CreationTimeAfter": "yesterday"}'}, "'yesterday' is not a timest"),
        ("eks", "list_clusters", {"path": "/clusters?maxResults=ten"}, "'ten' is not an integer"),
    ],
)
def test_what_is_no_number_and_no_time_is_refused(cloud, service, operation, change, part):
    cloud.make_cluster()
    target = {"X-Amz-Target": "SageMaker.ListClusters"} if service == "sagemaker" else {}
    scope = f"AWS4-HMAC-SHA256 Credential=local/20260101/us-west-2/{service}/aws4_request"
    connection = HTTPConnection(cloud.endpoint.url.removeprefix("http://"))
    method = "POST" if service == "sagemaker" else "GET"
    connection.request(
        method, change.get("path", "/"), body=change.get("body"), headers={"Authorization": scope, **target}
    )
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    assert (answer.status, content["__type"]) == (400, "SerializationException"), operation
    assert part in content["message"]
