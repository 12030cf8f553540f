"""HTTP requests of AWS clients ↔ service, region, operation and parameters.

Rejects HTTP requests before they are read: those that a web page can make. A page can reach loopback in two ways:

- DNS rebinding: its name resolves to 127.0.0.1 after the page was loaded. The header Host then contains that name.
- A form or an image request to another site. A browser sends it without asking if method, headers, and content type are
  simple (Fetch standard, "CORS-safelisted request-header").

This doesn't protect from other users of the machine: they can send any header.
"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

import botocore.session
from botocore.model import OperationModel, ServiceModel

from hpkit.text.formatting import is_loopback
from hpkit_local.aws.errors import Reply, ServiceError
from hpkit_local.aws.service import services

__all__ = [
    "FORM_TYPES",
    "Call",
    "check_signed",
    "is_form",
    "parameters",
    "path_segments",
    "read_call",
    "rejection",
    "render",
    "service_model",
]

# Content types that a browser sends to any site without asking first (Fetch standard, "CORS-safelisted
# request-header").
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_HTTP_PORT = 80
# S3 distinguishes these by a header, all other operations by method, path and query.
_COPIES = {"CopyObject": "PutObject", "UploadPartCopy": "UploadPart"}
_RPC = re.compile(r"/service/[^/]+/operation/([^/]+)")
_CREDENTIAL = re.compile(r"Credential=([^/]*)/\d{8}/([^/]+)/([^/]+)/aws4_request")


def rejection(environ: Mapping[str, Any], *, port: int) -> str:
    """Return why a request is rejected, or ""; port: the endpoint's port."""
    if not _is_own(environ.get("HTTP_HOST", ""), port):
        return f"the header Host must name this endpoint, such as 127.0.0.1:{port}"
    # Browsers add Origin to every request except simple GET and HEAD, and Sec-Fetch-Site to all requests. AWS SDKs
    # and the Kubernetes API server send neither.
    if "HTTP_ORIGIN" in environ:
        return "requests of web pages are rejected: the header Origin must be absent"
    if environ.get("HTTP_SEC_FETCH_SITE", "none") != "none":
        return "requests of web pages are rejected: the header Sec-Fetch-Site must be absent, or `none`"
    return ""


def is_form(environ: Mapping[str, Any]) -> bool:
    """Report whether an HTML form could have sent a request: a POST whose content type is simple or missing."""
    content_type = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    return environ["REQUEST_METHOD"] == "POST" and content_type in (*FORM_TYPES, "")


def _is_own(host: str, port: int) -> bool:
    """Return whether a Host header has loopback and the port.

    A name below `localhost` is loopback by RFC 6761, section 6.3: S3 clients put buckets there.
    """
    match = _HOST.fullmatch(host)
    if match is None or int(match["port"] or _HTTP_PORT) != port:
        return False
    name = match["name"].lower().removesuffix(".")
    return name.endswith(".localhost") or is_loopback(f"http://{name}")


@dataclass(frozen=True)
class Call:
    """One request, as far as every service is alike."""

    service: str
    region: str
    operation: str
    protocol: str
    path: str
    query: dict[str, list[str]]
    body: bytes
    access_key: str

    @property
    def changes_state(self) -> bool:
        """Return whether the operation's name means that it's read-only."""
        return not self.operation.startswith(("Describe", "List", "Get", "Head", "Unknown"))


@cache
def _session() -> botocore.session.Session:
    return botocore.session.get_session()


@cache
def service_model(service: str) -> ServiceModel:
    """Botocore's model of a service."""
    return _session().get_service_model(service)


@cache
def _signers() -> dict[str, str]:
    """Return the services that sign requests with another name than that of their API model."""
    return {service.signs_as: service.name for service in services().values() if service.signs_as}


@cache
def _known_services() -> frozenset[str]:
    return frozenset(_session().get_available_services())


def read_call(environ: dict[str, Any], *, default_region: str) -> Call:
    """Determine service and operation; the request body is read and restored."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    raw = environ.get("RAW_URI") or environ.get("REQUEST_URI") or environ.get("PATH_INFO", "/")
    path = raw.split("?", 1)[0]
    key, region, service = _signer(environ, query, default_region)
    # S3 Control signs as S3; its API has the version in each path, and the account in a header.
    if service == "s3" and path.startswith("/v20180820/") and "HTTP_X_AMZ_ACCOUNT_ID" in environ:
        service = "s3control"
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if service is None:
        service = "sagemaker" if target.startswith("SageMaker.") else "s3"
    if service not in _known_services():
        return Call(service, region, "Unknown", "json", path, query, body, key)
    model = service_model(service)
    protocol = str(model.metadata["protocol"])
    if protocol == "json" or target.startswith(f"{model.metadata.get('targetPrefix')}."):
        protocol = "json"
        operation = target.rpartition(".")[2] or "Unknown"
    elif found := _RPC.fullmatch(path):  # smithy-rpc-v2-cbor, which CloudWatch speaks
        protocol, operation = "json", found[1]
    elif protocol in ("query", "ec2") or (body.startswith(b"Action=") and "query" in model.metadata["protocols"]):
        protocol = "ec2" if protocol == "ec2" else "query"
        form = parse_qs(body.decode("utf-8", "replace"))
        operation = (form.get("Action") or query.get("Action") or ["Unknown"])[0]
    else:
        operation = _route(service, environ["REQUEST_METHOD"], path, query)
        if operation in _COPIES and "HTTP_X_AMZ_COPY_SOURCE" not in environ:
            operation = _COPIES[operation]
    return Call(service, region, operation, protocol, path, query, body, key)


def _signer(environ: dict[str, Any], query: dict[str, list[str]], default_region: str) -> tuple[str, str, str | None]:
    match = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    if match is None:
        presigned = query.get("X-Amz-Credential", [""])[0]
        match = _CREDENTIAL.search(f"Credential={presigned}")
    if match is None:
        # URLs that boto3 presigns for S3 by default carry a signature of version 2, which names no region or service.
        return query.get("AWSAccessKeyId", [""])[0], default_region, None
    return match[1], match[2], _signers().get(match[3], match[3])


# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
def check_signed(call: Call, environ: dict[str, Any]) -> None:
    """Reject a call without an access key, as AWS does; signatures can't be verified here.

    A form can have a query string but no Authorization header, so presigned POST requests are rejected too: no SDK
    sends them.
    """
    if call.access_key and not (is_form(environ) and "HTTP_AUTHORIZATION" not in environ):
        return
    if call.protocol == "rest-xml":
        raise ServiceError("AccessDenied", "Access Denied", status=403)
    # Source: https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html
    raise ServiceError("MissingAuthenticationToken", "Request is missing Authentication Token", status=403)


@cache
def _routes(service: str) -> tuple[tuple[str, re.Pattern[str], frozenset[str], str], ...]:
    """Return method, path, required query keys and name of each operation, most specific first."""
    rows = []
    for name in service_model(service).operation_names:
        model = service_model(service).operation_model(name)
        # S3's PutBucketLifecycle is where PutBucketLifecycleConfiguration is, and takes another document.
        if model.deprecated:
            continue
        http = model.http
        path, _, query = http["requestUri"].partition("?")
        pattern = re.sub(r"\\\{(\w+)(\\\+)?\\\}", _segment, re.escape(path))
        keys = frozenset(part.partition("=")[0] for part in query.split("&") if part) | _required_in_query(
            service, name
        )
        rows.append((http["method"], re.compile(pattern + "/?"), keys, name))
    return tuple(sorted(rows, key=lambda row: (-len(row[2]), row[1].pattern.count("(?P<"), -len(row[1].pattern))))


def _required_in_query(service: str, operation: str) -> frozenset[str]:
    """Return what distinguishes DeleteObject from AbortMultipartUpload: the query that an operation requires."""
    shape = service_model(service).operation_model(operation).input_shape
    if shape is None:
        return frozenset()
    places = {name: member.serialization for name, member in shape.members.items()}
    return frozenset(
        str(places[name].get("name", name))
        for name in shape.required_members
        if places[name].get("location") == "querystring"
    )


def _segment(found: re.Match[str]) -> str:
    return f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})"


def _route(service: str, method: str, path: str, query: dict[str, list[str]]) -> str:
    for wanted, pattern, keys, name in _routes(service):
        if method == wanted and pattern.fullmatch(path) and keys <= query.keys():
            return name
    return "Unknown"


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CommonErrors.html
def parameters(call: Call) -> dict[str, Any]:
    """Return the operation's input, from wherever its protocol puts it."""
    operation = service_model(call.service).operation_model(call.operation)
    try:
        body = json.loads(call.body) if call.body else {}
    except ValueError as error:
        raise ServiceError("SerializationException", f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ServiceError("SerializationException", "the body is not a JSON object")
    if call.protocol == "json" or operation.input_shape is None:
        return body
    return _rest_parameters(call, operation, body)


def _rest_parameters(call: Call, operation: OperationModel, body: dict[str, Any]) -> dict[str, Any]:
    segments = path_segments(call)
    members = operation.input_shape.members
    wire = {shape.serialization.get("name", name): name for name, shape in members.items()}
    result = {wire.get(key, key): value for key, value in body.items()}
    for name, shape in members.items():
        place = shape.serialization.get("location")
        key = shape.serialization.get("name", name)
        if place == "uri" and key in segments:
            result[name] = unquote(segments[key])
        elif place == "querystring" and key in call.query:
            result[name] = _from_text(shape, call.query[key])
    return result


def path_segments(call: Call) -> dict[str, str]:
    """Return the parts of a path that its operation names, as they were sent."""
    pattern = next(row[1] for row in _routes(call.service) if row[3] == call.operation)
    found = pattern.fullmatch(call.path)
    return found.groupdict() if found else {}


# Inferred from: https://docs.aws.amazon.com/eks/latest/APIReference/API_CommonErrors.html
def _from_text(shape: Any, values: list[str]) -> Any:
    if shape.type_name == "list":
        return values
    if shape.type_name == "boolean":
        return values[0] == "true"
    if shape.type_name == "integer":
        try:
            return int(values[0])
        except ValueError:
            raise ServiceError("SerializationException", f"{values[0]!r} is not an integer") from None
    return values[0]


def render(call: Call, result: dict[str, Any], *, request_id: str) -> Reply:
    """Return an answer of this package's operations, all of which speak JSON."""
    content_type = "application/x-amz-json-1.1" if call.protocol == "json" else "application/json"
    operation = service_model(call.service).operation_model(call.operation)
    status = operation.http.get("responseCode", 200)
    return Reply(
        int(status), json.dumps(result).encode(), {"Content-Type": content_type, "x-amzn-RequestId": request_id}
    )
