"""Records AWS calls with their answers: a proxy on loopback that forwards the calls of child processes.

Callers sign for the proxy's address. The proxy verifies that signature, so that no other process of this machine can
use the account through it, and signs again for AWS. What it writes has passed `redaction.py`.
"""

from __future__ import annotations

import io
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import botocore.session
from botocore.awsrequest import HeadersDict
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session
from botocore.model import OperationModel
from botocore.parsers import create_parser
from botocore.regions import EndpointResolver
from botocore.utils import get_environ_proxies
from moto.core.parse import RequestParserError
from werkzeug.serving import make_server

from hpkit.errors import ToolError
from hpkit_local.aws.errors import Reply, ServiceError, render_error
from hpkit_local.aws.guard import refusal
from hpkit_local.aws.moto_requests import read_parameters
from hpkit_local.aws.protocol import Call, endpoint_variable, read_call, service_model
from hpkit_local.aws.server import QuietHandler
from hpkit_local.aws.service import services
from hpkit_local.recording.login import Login
from hpkit_local.recording.redaction import Redactor
from hpkit_local.recording.signatures import decoded_chunks, resign, signed_of

__all__ = ["FORMAT", "CallLog", "parsed_answer", "recorded"]

FORMAT: Final = 1
_CONNECT_SECONDS, _READ_SECONDS = 10, 120
_CONNECTIONS: Final = 64
# Longer answers, such as all prices of a service, aren't kept.
_MOST_BYTES: Final = 4 << 20
_OF_ONE_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"})
# EKS tokens are URLs of STS that the caller signs: they must name AWS's host. hpkit finds Grafana's own API by the
# endpoints of Grafana and Secrets Manager. Prices are public, and the local endpoint has older ones.
_NEVER = frozenset({"sts", "grafana", "secretsmanager", "pricing"})
_CREDENTIALS: Final = "/_hpkit/credentials"
_ERROR: Final = 400
_REFUSED: Final = 403


@contextmanager
def recorded(
    file: Path, environment: Mapping[str, str], region: str, *, names: Iterable[str] = ()
) -> Iterator[dict[str, str | None]]:
    """Record the AWS calls of child processes; yield the variables for their environment: None must be absent there.

    environment: the variables that lead to the account, or to a local cloud. names: names that the user chose, as far
    as known; others are found in the calls. Credentials are renewed as the caller's are, except those in `environment`
    itself. Raises ToolError if the file exists, or without credentials.
    """
    proxy = _Proxy(_Upstream(environment, region), CallLog(file, region, names))
    thread = threading.Thread(target=proxy.server.serve_forever, args=(0.1,), name="aws-recording", daemon=True)
    thread.start()
    try:
        yield proxy.variables()
    finally:
        proxy.server.shutdown()
        thread.join()
        proxy.server.server_close()
        proxy.log.close()


class CallLog:
    """The file: a header, then a line per call."""

    def __init__(self, file: Path, region: str, names: Iterable[str]) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise ToolError(f"--record {file}: the file exists. Name another file, or delete it") from None
        except OSError as error:
            raise ToolError(f"--record {file}: {error.strerror}. Name a file that can be written") from None
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        self._lock = threading.Lock()
        self._redactor = Redactor(names)
        self._begin = time.monotonic()
        self._calls = 0
        now = datetime.now(UTC).isoformat(timespec="seconds")
        versions = {"hpkit": _version(), "botocore": botocore.__version__}
        self._write({"format": FORMAT, **versions, "region": region, "begin": now})

    def add(self, call: Call, environ: dict[str, Any], reply: Reply, begin: float) -> None:
        """Append a call with its answer; of what can't be read, nothing is kept."""
        end = time.monotonic()
        with self._lock:
            if not self._file.closed:
                self._calls += 1
                line = {"call": self._calls, **self._line(call, environ, reply)}
                times = {"start": round(begin - self._begin, 3), "duration": round(end - begin, 3)}
                self._write({**line, **times})

    def close(self) -> None:
        """Close the file; answers that arrive later aren't kept."""
        with self._lock:
            self._file.close()

    def _line(self, call: Call, environ: dict[str, Any], reply: Reply) -> dict[str, Any]:
        known = call.service in services() and call.operation in service_model(call.service).operation_names
        line: dict[str, Any] = {
            "service": call.service if call.service in services() else None,
            "operation": call.operation if known else None,
            "region": self._redactor.words(call.region),
            "status": reply.status,
            "parameters": None,
            "error": None,
            "answer": None,
        }
        if not known:
            return line
        operation = service_model(call.service).operation_model(call.operation)
        try:
            shape = operation.input_shape
            line["parameters"] = self._redactor.value(shape, read_parameters(call, environ)) if shape else {}
        except (ServiceError, RequestParserError, ValueError, KeyError, TypeError, AttributeError):
            line["unreadable"] = ["parameters"]
        try:
            answer = parsed_answer(operation, call.protocol, reply)
            line["answer"] = self._redactor.value(operation.output_shape, answer) if operation.output_shape else {}
            if reply.status >= _ERROR:
                error = answer.get("Error", {})
                line["answer"] = None
                line["error"] = self._redactor.message(str(error.get("Code", "")), call.service)
                line["message"] = self._redactor.message(str(error.get("Message", "")), call.service)
        except Exception:  # noqa: BLE001 - parsers fail in many ways, and what they can't read must not be kept
            line |= {"answer": None, "unreadable": [*line.get("unreadable", ()), "answer"]}
        return line

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(f"{json.dumps(line, separators=(',', ':'))}\n")
        self._file.flush()


def parsed_answer(operation: OperationModel, protocol: str, reply: Reply) -> dict[str, Any]:
    """Return an answer as boto3 does. Raises ValueError if it's too long, and errors of botocore's parsers."""
    if len(reply.body) > _MOST_BYTES:
        raise ValueError(f"{len(reply.body)} bytes")
    shape = operation.output_shape
    streams = operation.has_streaming_output and reply.status < _ERROR
    content = {"headers": HeadersDict(reply.headers), "status_code": reply.status, "body": reply.body}
    parsed = dict(create_parser(protocol).parse({**content, "context": {"operation_name": operation.name}}, shape))
    parsed = {name: value for name, value in parsed.items() if name == "Error" or name in getattr(shape, "members", ())}
    if streams:
        parsed[shape.serialization["payload"]] = reply.body
    return parsed


@dataclass(frozen=True)
class _Target:
    """The base URL of a service, and the region that its signatures name."""

    url: str
    region: str


class _Upstream:
    """The account, or local cloud, that calls are forwarded to."""

    def __init__(self, environment: Mapping[str, str], region: str) -> None:
        self.region = region
        # A copy: the caller may add the recording's own variables to it.
        self._environment = dict(environment)
        self.login = Login(self._environment)
        self._http: dict[str, URLLib3Session] = {}
        self._lock = threading.Lock()

    def forward(self, call: Call, environ: Mapping[str, Any], *, url: str) -> Reply:
        """Send a call on. Raises ServiceError if its signature is wrong, or if there is no answer."""
        headers = _headers(environ)
        signed = signed_of(environ["REQUEST_METHOD"], url, headers, call.body, self.login.issued)
        body = call.body
        if "aws-chunked" in headers.get("content-encoding", ""):
            body, trailers = decoded_chunks(body)
            headers |= trailers
        target = self._target(call.service, signed.region)
        parts = urlsplit(url)
        address = f"{target.url}{parts.path}{f'?{parts.query}' if parts.query else ''}"
        request = resign(
            environ["REQUEST_METHOD"],
            address,
            headers,
            body,
            signed=signed,
            region=target.region,
            credentials=self.login.current(),
        )
        try:
            answer = self._connection(target.url).send(request.prepare())
        except BotoCoreError as error:
            raise ServiceError(
                "ServiceUnavailable", f"{urlsplit(target.url).netloc} doesn't answer: {error}", status=502
            ) from None
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _OF_ONE_HOP}
        if environ["REQUEST_METHOD"] == "HEAD" and "content-length" in answer.headers:
            kept["Content-Length"] = answer.headers["content-length"]
        return Reply(answer.status_code, answer.content, kept)

    def _target(self, service: str, region: str) -> _Target:
        url = self._environment.get(endpoint_variable(service)) or self._environment.get("AWS_ENDPOINT_URL")
        if url:
            return _Target(url.rstrip("/"), region)
        found = EndpointResolver(botocore.session.Session().get_data("endpoints")).construct_endpoint(
            service_model(service).endpoint_prefix,
            region,
            use_fips_endpoint=self._environment.get("AWS_USE_FIPS_ENDPOINT", "").lower() == "true",
            use_dualstack_endpoint=self._environment.get("AWS_USE_DUALSTACK_ENDPOINT", "").lower() == "true",
        )
        if found is None:
            raise ServiceError("InvalidAction", f"{service} has no endpoint in region {region}", status=400)
        return _Target(f"https://{found['hostname']}", found.get("credentialScope", {}).get("region", region))

    def _connection(self, url: str) -> URLLib3Session:
        with self._lock:
            if url not in self._http:
                bundle = self._environment.get("AWS_CA_BUNDLE") or self._environment.get("REQUESTS_CA_BUNDLE")
                self._http[url] = URLLib3Session(
                    verify=bundle or True,
                    proxies=get_environ_proxies(url),
                    timeout=(_CONNECT_SECONDS, _READ_SECONDS),
                    max_pool_connections=_CONNECTIONS,
                )
            return self._http[url]


class _Proxy:
    """The HTTP server."""

    def __init__(self, upstream: _Upstream, log: CallLog) -> None:
        self._upstream = upstream
        self.log = log
        self.server = make_server("127.0.0.1", 0, self._application, threaded=True, request_handler=QuietHandler)

    def variables(self) -> dict[str, str | None]:
        """Return what leads most services of the local endpoint here, with the recording's credentials."""
        url = f"http://127.0.0.1:{self.server.server_port}"
        names = [endpoint_variable(service) for service in services() if service not in _NEVER]
        login = self._upstream.login.variables(f"{url}{_CREDENTIALS}")
        return {**dict.fromkeys(names, url), **login, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false"}

    def _application(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        reply = self._reply(environ)
        headers = list(reply.headers.items())
        if environ["REQUEST_METHOD"] != "HEAD":
            headers.append(("Content-Length", str(len(reply.body))))
        start_response(f"{reply.status} Status", headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else reply.body]

    def _reply(self, environ: dict[str, Any]) -> Reply:
        port = self.server.server_port
        if why := refusal(environ, port=port):
            return Reply(_REFUSED, json.dumps({"error": why}).encode(), {"Content-Type": "application/json"})
        if environ["PATH_INFO"] == _CREDENTIALS:
            document = self._upstream.login.document(environ.get("HTTP_AUTHORIZATION", ""))
            if document is None:
                return Reply(_REFUSED, b"{}", {"Content-Type": "application/json"})
            return Reply(200, document, {"Content-Type": "application/json"})
        begin = time.monotonic()
        if environ.get("wsgi.input_terminated"):  # Transfer-Encoding: chunked
            body = environ["wsgi.input"].read()
            environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        call = read_call(environ, default_region=self._upstream.region)
        target = re.sub(r"^https?://[^/]*", "", environ.get("RAW_URI") or environ.get("REQUEST_URI") or "/")
        if call.service not in services() or call.service in _NEVER:
            unknown = ServiceError("UnknownService", f"hpkit records no calls of {call.service}", status=403)
            return render_error(unknown, call.protocol, request_id="")
        try:
            reply = self._upstream.forward(call, environ, url=f"http://127.0.0.1:{port}{target}")
        except ServiceError as error:
            reply = render_error(error, call.protocol, request_id="")
            if reply.status == _REFUSED:
                return reply
        self.log.add(call, environ, reply, begin)
        return reply


def _headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return a request's headers, with names in lower case."""
    own = {name: str(environ[key]) for name, key in (("content-type", "CONTENT_TYPE"),) if environ.get(key)}
    if environ.get("CONTENT_LENGTH"):
        own["content-length"] = str(environ["CONTENT_LENGTH"])
    return own | {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }


def _version() -> str:
    try:
        return version("hpkit")
    except PackageNotFoundError:
        return ""
