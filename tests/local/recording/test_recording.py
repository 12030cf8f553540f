"""The recording of calls: what it forwards, what it refuses, and that nothing secret is in its file."""

import io
import json
import os
import re
import socket
import stat
import sys
from contextlib import contextmanager
from functools import cache
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import boto3
import botocore.session
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model
from urllib3 import HTTPResponse
from werkzeug.test import EnvironBuilder

from hpkit import extensions
from hpkit.errors import ToolError
from hpkit_local.aws.errors import Reply, ServiceError
from hpkit_local.aws.protocol import endpoint_variable, read_call, service_model
from hpkit_local.aws.service import services
from hpkit_local.aws.testing import running_endpoint
from hpkit_local.recording import proxy, signatures
from hpkit_local.recording.redaction import Redactor

KEY, SECRET, TOKEN = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjE/h4+w=="
ACCOUNT = "987654321098"
UNRECORDED = {"sts", "grafana", "secretsmanager", "pricing"}


@pytest.fixture(scope="module")
def cloud():
    """Return the variables of a local endpoint, with the credentials of a session."""
    with running_endpoint(account=ACCOUNT) as endpoint:
        yield {
            "AWS_ENDPOINT_URL": endpoint.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN,
        }


@contextmanager
def recorded_clients(file, environment, **keys):
    """Yield a function that returns clients as a child process of a recording has them."""
    environment = dict(environment)
    recorded = extensions.extension("recorded")(file, environment, "us-west-2")
    with pytest.MonkeyPatch.context() as patch, recorded as variables:
        for name, value in {**environment, **variables}.items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        config = Config(retries={"total_max_attempts": 1})
        yield lambda service: boto3.session.Session(**keys).client(service, region_name="us-west-2", config=config)


def lines_of(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_calls_of_every_protocol_are_forwarded_and_recorded_without_names(tmp_path, cloud):
    file = tmp_path / "deep" / "calls.jsonl"
    with recorded_clients(file, cloud) as client:
        vpc = client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
        bucket = {"Bucket": f"zeus-{ACCOUNT}"}
        s3 = client("s3")
        s3.create_bucket(**bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        s3.put_object(**bucket, Key="a b/ü+c", Body=b"content-of-zeus")
        assert s3.get_object(**bucket, Key="a b/ü+c")["Body"].read() == b"content-of-zeus"
        assert s3.head_object(**bucket, Key="a b/ü+c")["ContentLength"] == 15
        with pytest.raises(ClientError, match=r"No cluster found for name: a:b/zeus\."):
            client("eks").describe_cluster(name="a:b/zeus")
        trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = client("iam").create_role(RoleName="zeus-nodes", AssumeRolePolicyDocument=document)["Role"]
        client("sagemaker").list_clusters()
        assert client("sts").get_caller_identity()["Account"] == ACCOUNT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text(encoding="utf-8")
    secrets = (ACCOUNT, "zeus", KEY, "wJalrXUtnFEMI", "IQoJb3JpZ2luX2VjE", vpc["VpcId"][-8:], role["RoleId"])
    assert not [secret for secret in secrets if secret in text]
    header, *calls = lines_of(file)
    assert (header["region"], header["botocore"]) == ("us-west-2", botocore.__version__)
    assert [call["operation"] for call in calls] == [
        *("CreateVpc", "CreateBucket", "PutObject", "GetObject", "HeadObject", "DescribeCluster", "CreateRole"),
        "ListClusters",
    ], "STS isn't recorded"
    created, got, missing, with_role = calls[1], calls[3], calls[5], calls[6]
    assert created["parameters"]["Bucket"].endswith("-111122223333")
    assert got["answer"]["Body"] == {"bytes": 15}
    assert (missing["status"], missing["error"]) == (404, "ResourceNotFoundException")
    assert missing["message"] == f"No cluster found for name: {missing['parameters']['name']}."
    (zeus,) = {created["parameters"]["Bucket"].partition("-")[0], with_role["parameters"]["RoleName"].partition("-")[0]}
    assert with_role["answer"]["Role"]["Arn"] == f"arn:aws:iam::111122223333:role/{zeus}-nodes"
    (allowed,) = json.loads(with_role["parameters"]["AssumeRolePolicyDocument"])["Statement"]
    assert allowed["Principal"] == {"AWS": "arn:aws:iam::111122223333:root"}


@pytest.mark.parametrize(
    "other",
    [{"aws_access_key_id": "AKIAOTHER"}, {"aws_secret_access_key": "other"}, {"aws_session_token": "other"}],
)
def test_callers_with_other_credentials_are_refused(tmp_path, cloud, other):
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_session_token": TOKEN, **other}
    file = tmp_path / "calls.jsonl"
    with recorded_clients(file, cloud, **keys) as client, pytest.raises(ClientError) as caught:
        client("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
    assert len(lines_of(file)) == 1


def test_changed_requests_unsigned_requests_and_pages_are_refused(tmp_path, cloud):
    with proxy.recorded(tmp_path / "calls.jsonl", cloud, "us-west-2") as variables:
        address = urlsplit(variables["AWS_ENDPOINT_URL_EKS"])
        request = prepared("eks", "DeleteCluster", {"name": "one"}, endpoint=address.geturl())
        head = {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}

        def status(path="/clusters/one", **changed):
            sent = {**head, "Host": address.netloc, "Connection": "close", **changed}
            lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(f"DELETE {path} HTTP/1.1\r\n{lines}\r\n".encode())
                return int(connection.makefile("rb").read().split()[1])

        assert status() == 404, "the request itself reaches the endpoint"
        assert [status("/clusters/two"), status(Authorization=""), status(Host="evil.example")] == [403, 403, 403]
        assert [status(Origin="http://evil.example"), status(**{"Sec-Fetch-Site": "cross-site"})] == [403, 403]


def test_a_service_that_does_not_answer_is_named(tmp_path, cloud):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = {**cloud, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{unused.getsockname()[1]}"}
        file = tmp_path / "calls.jsonl"
        with recorded_clients(file, away) as client, pytest.raises(ClientError, match="doesn't answer"):
            client("eks").list_clusters()
    assert [(call["status"], call["error"]) for call in lines_of(file)[1:]] == [(502, "ServiceUnavailable")]


def test_services_are_led_to_the_proxy_and_on_to_their_own_hosts(tmp_path, monkeypatch):
    sent = []

    def send(_self, request):
        sent.append(request)
        return AWSResponse(request.url, 200, {}, HTTPResponse(body=io.BytesIO(b""), preload_content=False))

    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", send)
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    file = tmp_path / "calls.jsonl"
    with proxy.recorded(file, environment, "us-west-2") as variables:
        names = {name for name in variables if name.startswith("AWS_ENDPOINT_URL")}
    assert names == {endpoint_variable(service) for service in services().keys() - UNRECORDED}
    for service in services():
        assert endpoint_variable(service) == (
            f"AWS_ENDPOINT_URL_{service_model(service).service_id.hyphenize().upper().replace('-', '_')}"
        )
    upstream = proxy._Upstream(environment, "us-west-2")
    url = "http://127.0.0.1:1"
    for service, operation, parameters in (("iam", "GetRole", {"RoleName": "a"}), ("eks", "ListClusters", {})):
        request = prepared(service, operation, parameters, endpoint=url, token=None)
        environ = environ_of(request)
        reply = upstream.forward(read_call(environ, default_region="us-west-2"), environ, url=request.url)
        assert reply.status == 200
    iam, eks = sent
    assert (iam.url, eks.url) == ("https://iam.amazonaws.com/", "https://eks.us-west-2.amazonaws.com/clusters")
    assert "/us-east-1/iam/aws4_request" in iam.headers["authorization"]
    signed = signatures.signed_of(
        eks.method,
        eks.url,
        {name.lower(): value for name, value in {**eks.headers, "host": "eks.us-west-2.amazonaws.com"}.items()},
        b"",
        {KEY: ReadOnlyCredentials(KEY, SECRET, None)},
    )
    assert (signed.service, signed.region) == ("eks", "us-west-2")


def test_chunked_uploads_are_decoded():
    body = b"5;chunk-signature=ab\r\nhello\r\n3\r\nyou\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"
    assert signatures.decoded_chunks(body) == (b"helloyou", {"x-amz-checksum-crc32": "AAAAAA=="})
    for cut in (body[:10], b"zz\r\n", b""):
        with pytest.raises(ServiceError, match="aws-chunked"):
            signatures.decoded_chunks(cut)


def test_calls_are_signed_with_renewed_credentials_and_with_the_last_ones_after_the_login_has_ended(
    tmp_path, cloud, monkeypatch
):
    """The profile's process returns another key each time."""
    ended, count, config = tmp_path / "ended", tmp_path / "count", tmp_path / "config"
    script = tmp_path / "login.py"
    script.write_text(
        f"""
import json, pathlib, sys
if pathlib.Path({str(ended)!r}).exists():
    sys.exit("the login has ended")
count = pathlib.Path({str(count)!r})
count.write_text(str(int(count.read_text()) + 1) if count.exists() else "1")
key = {KEY!r}[:-1] + count.read_text()
print(json.dumps({{"Version": 1, "AccessKeyId": key, "SecretAccessKey": {SECRET!r}, "SessionToken": {TOKEN!r}}}))
"""
    )
    config.write_text(f"[profile me]\ncredential_process = {sys.executable} {script}\n")
    environment = {"AWS_ENDPOINT_URL": cloud["AWS_ENDPOINT_URL"], "AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "me"}
    signed = []
    resign = proxy.resign

    def noted(*words, credentials, **more):
        signed.append(credentials.access_key[-1])
        return resign(*words, credentials=credentials, **more)

    monkeypatch.setattr(proxy, "resign", noted)
    monkeypatch.setattr("hpkit_local.recording.login._OFTEN_SECONDS", -1.0)
    monkeypatch.setattr("hpkit_local.recording.login._LEAST_SECONDS", -1.0)
    with recorded_clients(tmp_path / "calls.jsonl", environment) as client:
        iam = client("iam")
        iam.list_roles()
        iam.list_roles()
        assert signed == ["3", "4"], "the client's own are the second"
        ended.touch()
        iam.list_roles()
        assert signed[2:] == ["4"]
        ended.unlink()
        client("iam").list_roles()
        assert signed[3:] == ["6"]
        with pytest.raises(HTTPError, match="403"):
            urlopen(os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"])  # noqa: S310 - it's a URL of the recording
    assert len(lines_of(tmp_path / "calls.jsonl")) == 5


def test_an_existing_file_and_missing_credentials_are_errors(tmp_path, cloud):
    file = tmp_path / "calls.jsonl"
    file.write_text("mine")
    with pytest.raises(ToolError, match="the file exists"), proxy.recorded(file, cloud, "us-west-2"):
        pass
    none = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    none["AWS_EC2_METADATA_DISABLED"] = "true"
    with pytest.raises(ToolError, match="no credentials"), proxy.recorded(tmp_path / "b", none, "us-west-2"):
        pass
    assert not (tmp_path / "b").exists()


def test_error_codes_of_the_api_models_are_kept():
    assert Redactor().message("NoSuchResourceException", "service-quotas") == "NoSuchResourceException"


# What is planted: of each form of secret one, or the account's number.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
UPPER, DIGITS = LETTERS.upper(), "0123456789"
SECRETS = st.one_of(
    st.text(UPPER + DIGITS, min_size=16, max_size=16).map("AKIA{}".format),
    st.text(LETTERS + UPPER + DIGITS + "+/", min_size=40, max_size=40).filter(
        lambda text: any(len(part) > 7 and not part.isdigit() for part in text.replace("+", "/").split("/"))
    ),
    st.text(DIGITS, min_size=12, max_size=12).filter(lambda digits: digits[:4] not in ("1111", "2222")),
    st.integers(11, 99).map("203.0.1.{}".format).map(lambda address: address.replace("203.0.1", "52.94.76")),
    st.text(LETTERS, min_size=12, max_size=20).map("{}@example.org".format),
)
WRAPPED = (
    "{}",
    "name-{}",
    "arn:aws:iam::{}:role/admin",
    "arn:aws:iam::aws:policy/{}",
    '{{"Statement": ["{}"]}}',
    "{}.",
)
CALLS = [
    ("sagemaker", "DescribeCluster"),
    ("sagemaker", "CreateCluster"),
    ("eks", "CreateCluster"),
    ("eks", "ListTagsForResource"),
    ("iam", "CreateRole"),
    ("iam", "GetRolePolicy"),
    ("ec2", "CreateVpc"),
    ("ec2", "DescribeSubnets"),
    ("s3", "PutBucketTagging"),
    ("s3", "ListBuckets"),
    ("secretsmanager", "GetSecretValue"),
]


@given(data=st.data(), called=st.sampled_from(CALLS), secret=SECRETS, wrapped=st.sampled_from(WRAPPED))
@settings(max_examples=40)
def test_planted_secrets_survive_nowhere(tmp_path_factory, data, called, secret, wrapped):
    """Whatever the protocol and the place: in requests, answers, errors, and in bodies that can't be read."""
    planted = wrapped.format(secret)
    operation = service_model(called[0]).operation_model(called[1])
    parameters = data.draw(documents(operation.input_shape, planted))
    answer = data.draw(documents(operation.output_shape, planted, most=7))
    parameters.pop("ChecksumAlgorithm", None)  # botocore checks these
    if "Bucket" in parameters:
        parameters["Bucket"] = re.sub(r"[^\w.-]", "-", planted)
    request = prepared(*called, parameters)
    environ = environ_of(request)
    call = read_call(environ, default_region="us-west-2")
    assert call.operation == called[1]
    serializer = get_serializer_class(called[0], service_model(called[0]).protocol)
    written = serializer(get_service_model(called[0]).operation_model(called[1])).serialize(answer)
    body = written["body"] if isinstance(written["body"], bytes) else written["body"].encode()
    file = tmp_path_factory.mktemp("log") / "calls.jsonl"
    log = proxy.CallLog(file, "us-west-2", ())
    for status, content in ((200, body), (400, body), (200, body[:-9]), (400, f"<{planted}".encode())):
        log.add(call, environ, Reply(status, content, dict(written["headers"])), 0.0)
    error = f'{{"__type": "AccessDenied", "message": "{secret} is not authorized"}}'
    log.add(call, environ, Reply(403, error.encode(), {"Content-Type": "application/json"}), 0.0)
    environ["wsgi.input"] = io.BytesIO(call.body)
    log.close()
    text = file.read_text(encoding="utf-8")
    assert secret not in text
    first = lines_of(file)[1]
    assert "unreadable" not in first, first


def documents(shape, planted, *, most=3):
    """Return a strategy for values of a shape, whose texts contain what is planted."""
    if shape is None:
        return st.just({})
    return _documents(shape, planted, most)


def _documents(shape, planted, most):
    if shape.type_name == "structure":
        if most < 0 and not shape.required_members and not shape.is_tagged_union:
            return st.just({})
        required = {name: _documents(shape.members[name], planted, most - 1) for name in shape.required_members}
        others = [name for name in shape.members if name not in required] if most > 0 or shape.is_tagged_union else []
        least, at_most = (1, 1) if shape.is_tagged_union else (0, 3)
        chosen = (
            st.lists(st.sampled_from(others), min_size=least, max_size=at_most, unique=True) if others else st.just([])
        )
        return chosen.flatmap(
            lambda names: st.fixed_dictionaries(
                {**required, **{name: _documents(shape.members[name], planted, most - 1) for name in names}}
            )
        )
    if shape.type_name == "list":
        return _documents(shape.member, planted, most - 1).map(lambda item: [item])
    if shape.type_name == "map":
        return _documents(shape.value, planted, most - 1).map(lambda item: {planted: item})
    simple = {"boolean": True, "timestamp": "2026-01-01T00:00:00Z", "blob": planted.encode()}
    number = int(planted) if planted.isdigit() and len(planted) == 12 else 3
    numbers = dict.fromkeys(("integer", "long", "float", "double"), number)
    return st.just({**simple, **numbers}.get(shape.type_name, planted))


@cache
def _client(service, endpoint, token):
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_session_token": token}
    config = Config(parameter_validation=False, s3={"addressing_style": "path"})
    client = boto3.client(service, region_name="us-west-2", endpoint_url=endpoint, config=config, **keys)
    sent = []

    def keep(request, **_):
        sent.append(request)
        return AWSResponse(request.url, 200, {}, io.BytesIO(b""))

    client.meta.events.register("before-send", keep)
    return client, sent


def prepared(service, operation, parameters, *, endpoint="http://127.0.0.1:1", token=TOKEN) -> AWSRequest:
    """Return a request as boto3 sends it."""
    client, sent = _client(service, endpoint, token)
    try:
        client._make_api_call(operation, parameters)
    except Exception:  # the empty answer can't be parsed
        if not sent:
            raise
    return sent.pop()


def environ_of(request):
    parts = urlsplit(request.url)
    body = request.body if isinstance(request.body, bytes) else (request.body or "").encode()
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
    environ = EnvironBuilder(
        method=request.method, base_url=f"{parts.scheme}://{parts.netloc}", headers=headers, data=body
    ).get_environ()
    return {
        **environ,
        "RAW_URI": parts.path + (f"?{parts.query}" if parts.query else ""),
        "QUERY_STRING": parts.query,
        "PATH_INFO": parts.path,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
