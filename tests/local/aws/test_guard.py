"""Requests that a web page can send to the endpoint are rejected: on a real socket, with a browser's headers."""

import http.client
import json
from collections.abc import Iterator

import boto3
import pytest
from botocore.config import Config

from hpkit_local.aws.protocol import FORM_TYPES
from tests.endpoint import RunningEndpoint, running_endpoint

JSON = {"Content-Type": "application/json"}
SCOPE = "AWS4-HMAC-SHA256 Credential=local/20260101/us-west-2/{}/aws4_request"
CREATE_VPC = "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.0.0.0%2F16"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    with running_endpoint() as started:
        yield started


def ask(
    endpoint: RunningEndpoint, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Send an unchanged request; the header Host is the endpoint's own unless `headers` has one."""
    connection = http.client.HTTPConnection(endpoint.url.removeprefix("http://"), timeout=300)
    try:
        connection.request(method, path, body or None, headers or {})
        answer = connection.getresponse()
        assert answer.getheader("Access-Control-Allow-Origin") is None
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def port(endpoint: RunningEndpoint) -> str:
    return endpoint.url.rpartition(":")[2]


def vpcs(endpoint: RunningEndpoint) -> int:
    return len(endpoint.client("ec2").describe_vpcs()["Vpcs"])


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example:{port}"),
        *("10.0.0.1:{port}", "[2001:db8::1]:{port}", "127.0.0.1:1", "localhost", "", "127.0.0.1:{port}@evil.example"),
        *("0.0.0.0:{port}", "evil.example:{port}.localhost"),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/_hpkit/stats"), ("POST", "/_hpkit/faults"), ("POST", "/")])
def test_a_page_whose_name_resolves_to_loopback_is_refused(
    endpoint: RunningEndpoint, method: str, path: str, host: str
) -> None:
    before = vpcs(endpoint)
    body = '{"throttle": 1}' if path != "/" else CREATE_VPC
    content_type = JSON if path != "/" else {"Content-Type": FORM_TYPES[0], "Authorization": SCOPE.format("ec2")}
    headers = {**content_type, "Host": host.format(port=port(endpoint))}
    status, text = ask(endpoint, method, path, body, headers)
    assert status == 403, text
    assert "the header Host must name this endpoint" in json.loads(text)["error"]
    assert (endpoint.stats()["faults"], vpcs(endpoint)) == ({}, before)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "LocalHost", "[::1]", "bucket.localhost"])
def test_clients_by_any_name_of_loopback_are_served(endpoint: RunningEndpoint, host: str) -> None:
    assert ask(endpoint, "GET", "/_hpkit/stats", headers={"Host": f"{host}:{port(endpoint)}"})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
def test_a_page_of_another_site_is_refused(endpoint: RunningEndpoint, headers: dict[str, str]) -> None:
    sent = {name: value.format(port=port(endpoint)) for name, value in headers.items()}
    before = vpcs(endpoint)
    assert ask(endpoint, "GET", "/_hpkit/stats", headers=sent)[0] == 403
    assert ask(endpoint, "OPTIONS", "/_hpkit/faults", headers=sent)[0] == 403
    assert ask(endpoint, "POST", "/_hpkit/faults", '{"throttle": 1}', {**JSON, **sent})[0] == 403
    signed = {"Content-Type": FORM_TYPES[0], "Authorization": SCOPE.format("ec2"), **sent}
    assert ask(endpoint, "POST", "/", CREATE_VPC, signed)[0] == 403
    assert (endpoint.stats()["faults"], vpcs(endpoint)) == ({}, before)


@pytest.mark.parametrize("content_type", [*FORM_TYPES, "text/plain;charset=UTF-8", ""])
@pytest.mark.parametrize("page", ["faults", "unreachable", "token-review"])
def test_a_form_without_an_origin_reaches_no_control_page(
    endpoint: RunningEndpoint, page: str, content_type: str
) -> None:
    """This covers browsers older than 2020, and extensions that remove headers."""
    headers = {"Content-Type": content_type} if content_type else {}
    status, text = ask(endpoint, "POST", f"/_hpkit/{page}", '{"throttle": 1}', headers)
    assert (status, "Content-Type: application/json" in text) == (415, True)
    assert endpoint.stats()["faults"] == {}


@pytest.mark.parametrize("query", ["", "?X-Amz-Credential=local%2F20260101%2Fus-west-2%2Fec2%2Faws4_request"])
@pytest.mark.parametrize("content_type", FORM_TYPES)
def test_a_form_without_a_signature_is_refused(endpoint: RunningEndpoint, query: str, content_type: str) -> None:
    before = vpcs(endpoint)
    status, _ = ask(endpoint, "POST", f"/{query}", CREATE_VPC, {"Content-Type": content_type})
    assert (status, vpcs(endpoint)) == (403, before)


@pytest.mark.parametrize(
    ("method", "path", "headers", "code"),
    [
        ("PUT", "/a-bucket", {}, "AccessDenied"),
        ("DELETE", "/a-bucket", {}, "AccessDenied"),
        ("GET", "/", {}, "AccessDenied"),
        ("POST", "/", {"X-Amz-Target": "SageMaker.ListClusters", **JSON}, "MissingAuthenticationToken"),
        ("POST", "/moto-api/reset", {}, "AccessDenied"),
    ],
)
def test_a_call_without_a_signature_is_refused_as_aws_does(
    endpoint: RunningEndpoint, method: str, path: str, headers: dict[str, str], code: str
) -> None:
    status, text = ask(endpoint, method, path, "{}" if headers else "", headers)
    assert (status, code in text) == (403, True), text


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_presigned_url_of_s3_is_served_without_the_header_authorization(
    endpoint: RunningEndpoint, version: str
) -> None:
    """boto3 signs with `s3` unless its configuration sets another version."""
    client = endpoint.client("s3")
    signer = boto3.client(
        "s3",
        region_name="us-west-2",
        endpoint_url=endpoint.url,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - the endpoint checks no signature
        config=Config(signature_version=version, s3={"addressing_style": "path"}),
    )
    bucket = f"presigned-{version}"
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    names = {"Bucket": bucket, "Key": "key"}
    put = signer.generate_presigned_url("put_object", Params=names).removeprefix(endpoint.url)
    assert ask(endpoint, "PUT", put, "text")[0] == 200
    get = signer.generate_presigned_url("get_object", Params=names).removeprefix(endpoint.url)
    assert ask(endpoint, "GET", get) == (200, "text")
    assert ask(endpoint, "GET", f"/{bucket}/key")[0] == 403
