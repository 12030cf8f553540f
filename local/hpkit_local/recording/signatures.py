"""Signatures of version 4: checks those of local callers, and signs requests again for another host."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from hpkit_local.aws.errors import ServiceError

__all__ = ["Signed", "decoded_chunks", "resign", "signed_of"]

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/(?P<day>\d{8})/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)"
    r"/aws4_request,\s*SignedHeaders=(?P<headers>[^,\s]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)
_TIMESTAMP = re.compile(r"\d{8}T\d{6}Z")
_BODY_HASH = "x-amz-content-sha256"
# What a chunked upload or one hop of the connection adds, or what is signed again.
_DROPPED = frozenset(
    {
        *("authorization", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"),
        *("te", "trailer", "transfer-encoding", "upgrade", "accept-encoding", _BODY_HASH, "x-amz-date"),
        *("x-amz-security-token", "x-amz-decoded-content-length", "x-amz-trailer", "date"),
    }
)


@dataclass(frozen=True)
class Signed:
    """What a verified signature names; `timestamp` is the caller's."""

    service: str
    region: str
    timestamp: str


def signed_of(
    method: str, url: str, headers: Mapping[str, str], body: bytes, issued: Mapping[str, ReadOnlyCredentials]
) -> Signed:
    """Verify the signature of a request with the credentials of its caller. Raises ServiceError if it's another one.

    headers: with names in lower case. issued: the callers' credentials, by access key.
    """
    match = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    timestamp = headers.get("x-amz-date", "")
    if match is None or not _TIMESTAMP.fullmatch(timestamp) or timestamp[:8] != match["day"]:
        raise _refused("the request has no signature of version 4 in its header Authorization")
    names = match["headers"].split(";")
    credentials = issued.get(match["key"])
    if credentials is None or "host" not in names:
        raise _refused("the request is signed with another access key than the recording's")
    token = headers.get("x-amz-security-token")
    if not hmac.compare_digest((token or "").encode(), (credentials.token or "").encode()):
        raise _refused("the request has another session token than the recording's")
    stated = headers.get(_BODY_HASH, "")
    if re.fullmatch("[0-9a-f]{64}", stated) and stated != sha256(body).hexdigest():
        raise _refused("the request's body isn't the signed one")
    request = AWSRequest(method, url, {name: headers[name] for name in names if name in headers}, body)
    auth = _auth(credentials, match["service"], match["region"])
    if not hmac.compare_digest(_signature(auth, request, timestamp), match["signature"]):
        raise _refused("the request's signature isn't that of the recording's credentials")
    return Signed(match["service"], match["region"], timestamp)


def resign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    signed: Signed,
    region: str,
    credentials: ReadOnlyCredentials,
) -> AWSRequest:
    """Return a request for another URL, signed at the time of the caller's signature."""
    kept = {name: value for name, value in headers.items() if name not in _DROPPED}
    encodings = [part.strip() for part in kept.pop("content-encoding", "").split(",")]
    if left := ", ".join(part for part in encodings if part not in ("", "aws-chunked")):
        kept["content-encoding"] = left
    kept["x-amz-date"] = signed.timestamp
    if credentials.token:
        kept["x-amz-security-token"] = credentials.token
    if signed.service == "s3":
        kept[_BODY_HASH] = sha256(body).hexdigest()
    request = AWSRequest(method, url, kept, body)
    auth = _auth(credentials, signed.service, region)
    signature = _signature(auth, request, signed.timestamp)
    request.headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={auth.scope(request)}, "
        f"SignedHeaders={auth.signed_headers(auth.headers_to_sign(request))}, Signature={signature}"
    )
    # Not signed, because proxies on the way can change it.
    request.headers["accept-encoding"] = "identity"
    return request


def decoded_chunks(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the content and the trailing headers of a body in the encoding aws-chunked.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
    """
    content, trailers, rest = bytearray(), {}, body
    while True:
        head, separator, rest = rest.partition(b"\r\n")
        try:
            size = int(head.partition(b";")[0], 16)
        except ValueError:
            size = -1
        if not separator or size < 0 or size > len(rest):
            raise ServiceError("IncompleteBody", "the body isn't a complete one of encoding aws-chunked")
        if size == 0:
            break
        content += rest[:size]
        rest = rest[size:].removeprefix(b"\r\n")
    for line in rest.split(b"\r\n"):
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower().startswith("x-amz-checksum-"):
            trailers[name.lower()] = value.strip()
    return bytes(content), trailers


def _auth(credentials: ReadOnlyCredentials, service: str, region: str) -> Any:
    """Return botocore's signer; that of S3 doesn't normalize paths."""
    return (S3SigV4Auth if service == "s3" else SigV4Auth)(credentials, service, region)


def _signature(auth: Any, request: AWSRequest, timestamp: str) -> str:
    request.context["timestamp"] = timestamp
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


def _refused(why: str) -> ServiceError:
    return ServiceError("SignatureDoesNotMatch", f"hpkit's recording forwards only its own calls: {why}", status=403)
