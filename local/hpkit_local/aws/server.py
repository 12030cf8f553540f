"""The HTTP server: one port for every service, and the control pages under /_hpkit/.

Checks requests to the services that moto answers against their API models, before moto sees them. moto reads only the
members that it knows. It accepts a role name of 65 characters, an unknown volume type, or a missing member. The
services reject each of these, each with its own error code.
"""

import io
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from moto.core.parse import PROTOCOL_PARSERS, RequestParserError
from moto.core.utils import get_service_model
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server
from werkzeug.wrappers import Request

from hpkit_local.aws import api
from hpkit_local.aws.api import BackendView
from hpkit_local.aws.backend import Backend
from hpkit_local.aws.errors import EndpointError, Reply, ServiceError, render_error, unsupported
from hpkit_local.aws.protocol import (
    Call,
    check_signed,
    is_form,
    parameters,
    path_segments,
    read_call,
    rejection,
    render,
    service_model,
)
from hpkit_local.aws.record import CallRecorder
from hpkit_local.aws.service import services
from hpkit_local.aws.validation import check_request

__all__ = ["Endpoint"]


# Inferred from: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
def check_moto_request(call: Call, environ: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request; reject a request that breaks the service's model."""
    model = service_model(call.service)
    code = services()[call.service].rejects_with
    if not code or call.operation not in model.operation_names:
        return {}
    shape = model.operation_model(call.operation).input_shape
    if shape is None:
        return {}
    try:
        params = _params(call, environ)
    except (RequestParserError, ValueError) as error:
        raise ServiceError(_unreadable(call), str(error)) from None
    check_request(shape, params, code=code)
    return params


def _params(call: Call, environ: dict[str, Any]) -> dict[str, Any]:
    if call.protocol in ("json", "rest-json"):
        return parameters(call)
    request = Request({**environ, "wsgi.input": io.BytesIO(call.body)})
    parser = PROTOCOL_PARSERS[call.protocol](get_service_model(call.service).operation_model(call.operation))
    parsed: dict[str, Any] = parser.parse(
        {
            "body": call.body,
            "headers": request.headers,
            "method": request.method,
            "url_params": {name: unquote(value) for name, value in path_segments(call).items()},
            "url_path": call.path,
            "values": request.values if call.protocol in ("ec2", "query") else request.args,
        }
    )
    return {name: value for name, value in parsed.items() if value is not None}


def _unreadable(call: Call) -> str:
    return "MalformedXML" if call.protocol == "rest-xml" else services()[call.service].rejects_with


_log = logging.getLogger(__name__)
_STATUS_TEXT = {
    200: "OK",
    201: "Created",
    204: "No Content",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    415: "Unsupported Media Type",
}
_THROTTLED = {"ec2": "RequestLimitExceeded", "query": "Throttling", "rest-xml": "SlowDown"}
# Source: common errors in the API reference of each service.
_EXPIRED = {"ec2": "RequestExpired", "query": "ExpiredToken", "rest-xml": "ExpiredToken"}
_DENIED = {"ec2": "UnauthorizedOperation", "query": "AccessDenied", "rest-xml": "AccessDenied"}
_SOMEONE = "arn:aws:sts::123456789012:assumed-role/fault/injected"
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class _QuietHandler(MotoRequestHandler):
    # Send a response in one piece: a kill between its header and its body would leave half of it.
    wbufsize = 1 << 20

    def handle_expect_100(self) -> bool:
        """Send immediately what uploading clients wait a second for, before they continue without it."""
        expected = super().handle_expect_100()
        self.wfile.flush()
        return expected

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        _log.debug("%s %s %s", self.requestline, code, size)


class Endpoint:
    """A running AWS endpoint on loopback; `start` and `stop` it."""

    def __init__(self, backend: Backend, *, port: int = 0, record: CallRecorder | None = None) -> None:
        self.backend = backend
        self._record = record
        self._calls: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._server = make_server("127.0.0.1", port, self._application, threaded=True, request_handler=_QuietHandler)
        self._wake = threading.Event()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.1,), name="aws-http", daemon=True),
            threading.Thread(target=self._tick, name="aws-transitions", daemon=True),
        ]

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        """Begin to answer."""
        self.backend.settings.controllers.started(BackendView(self.backend))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop answering, write the state file, release the port."""
        self._server.shutdown()
        self._stopping = True
        self._wake.set()
        for thread in self._threads:
            thread.join()
        self._server.server_close()
        self.backend.settings.controllers.stopped()
        self.backend.close()
        if self._record:
            self._record.close()

    def reset(self, backend: Backend) -> None:
        """Forget everything and serve `backend` at the same address, so that clients still work."""
        with self.backend.lock:
            old, self.backend = self.backend, backend
            self._calls.clear()
            self._errors.clear()
        # Without the lock, as controllers may be reading.
        old.settings.controllers.stopped()
        backend.settings.controllers.started(BackendView(backend))
        old.close()

    def stats(self) -> dict[str, Any]:
        """Call and error counts by operation, and the faults that are set."""
        with self.backend.lock:
            return {
                "calls": dict(sorted(self._calls.items())),
                "errors": dict(sorted(self._errors.items())),
                "faults": self.backend.faults.describe(),
            }

    def set_faults(self, changes: dict[str, object]) -> None:
        """Set faults by name; None takes one away."""
        with self.backend.lock:
            self.backend.faults.update(changes)

    def _tick(self) -> None:
        """Apply transitions when they are due, even without requests."""
        while not self._stopping:
            with self.backend.locked():
                try:
                    self.backend.settle()
                    self.backend.save()
                except Exception:  # noqa: BLE001 - the thread must continue; the next request has the same state
                    _log.exception("a transition failed")
                wait = self.backend.seconds_to_next()
            self._wake.wait(timeout=1.0 if wait is None else min(max(wait, 0.02), 1.0))
            self._wake.clear()

    def _application(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if why := rejection(environ, port=self._server.server_port):
            reply = _json(403, {"error": why})
        elif environ.get("PATH_INFO", "").startswith("/_hpkit/"):
            reply = self._control(environ)
        else:
            reply = self._aws(environ)
        # moto lets every origin read its responses.
        headers = [
            (name, value) for name, value in reply.headers.items() if not name.lower().startswith("access-control-")
        ]
        if environ["REQUEST_METHOD"] != "HEAD":
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(reply.body))))
        start_response(f"{reply.status} {_STATUS_TEXT.get(reply.status, 'Status')}", headers)
        return [reply.body]

    def _aws(self, environ: dict[str, Any]) -> Reply:
        request_id = str(uuid4())
        call = read_call(environ, default_region=self.backend.settings.region)
        name = f"{call.service}.{call.operation}"
        try:
            self._hold_back(call)
            with self.backend.locked():
                self._calls[name] += 1
                if self._record:
                    self._record.add(call)
                reply = self._guarded(call, environ, request_id)
        except ServiceError as error:
            status = error.status or _statuses(call.service).get(error.code) or 400
            reply = render_error(error, call.protocol, status=status, request_id=request_id)
            with self.backend.lock:
                self._errors[f"{name}:{error.code}"] += 1
        self._wake.set()
        return reply

    def _guarded(self, call: Call, environ: dict[str, Any], request_id: str) -> Reply:
        """Answer a defect, ours or moto's, the way the service would, and log where it is."""
        try:
            return self._answer(call, environ, request_id)
        except ServiceError:
            raise
        except Exception as error:  # noqa: BLE001 - a defect is answered as one
            _log.exception("%s:%s failed", call.service, call.operation)
            raise ServiceError("InternalFailure", f"{type(error).__name__}: {error}", status=500) from None

    # Inferred from: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic-cross-account.html
    def _answer(self, call: Call, environ: dict[str, Any], request_id: str) -> Reply:
        check_signed(call, environ)
        self._inject(call)
        foreign = self.backend.settings.caller_account
        if api.is_own(call):
            if foreign not in (None, self.backend.settings.account):
                raise ServiceError(
                    "AccessDeniedException",
                    f"the caller is of account {foreign}, and everything here belongs to account "
                    f"{self.backend.settings.account}",
                    status=403,
                )
            self.backend.settle()
            if call.changes_state:
                self.backend.touched("own")
            try:
                ctx = self.backend.context(call.region, access_key=call.access_key)
                return render(call, api.invoke(ctx, call), request_id=request_id)
            finally:
                self.backend.save()
        if call.service not in services():
            raise unsupported(call.service, call.operation)
        service = services()[call.service].moto
        params = check_moto_request(call, environ)
        api.check_rules(self.backend.context(call.region), call.service, call.operation, params)
        reply = self.backend.moto.call(environ, service=call.service, operation=call.operation, account=foreign)
        if call.changes_state:
            self.backend.save(service)
        return reply

    def _hold_back(self, call: Call) -> None:
        with self.backend.lock:
            seconds = self.backend.faults.value("latency", call.operation) or 0.0
        if seconds:
            time.sleep(seconds)

    def _inject(self, call: Call) -> None:
        faults = self.backend.faults
        if faults.strikes("throttle", call.operation):
            raise ServiceError(_THROTTLED.get(call.protocol, "ThrottlingException"), "Rate exceeded")
        if faults.strikes("expired", call.operation):
            code = _EXPIRED.get(call.protocol, "ExpiredTokenException")
            raise ServiceError(code, "The security token included in the request is expired", status=403)
        if faults.strikes("denied", call.operation):
            action = f"{call.service}:{call.operation}"
            message = f"User: {_SOMEONE} is not authorized to perform: {action} because no policy allows the action"
            raise ServiceError(_DENIED.get(call.protocol, "AccessDeniedException"), message, status=403)
        if faults.strikes("internal", call.operation):
            raise ServiceError("InternalFailure", "fault injected: internal", status=500)
        if not api.is_own(call) or not call.changes_state:
            return
        codes = _error_codes(call)
        for code in ("ConflictException", "ResourceInUseException"):
            if code in codes and faults.strikes("conflict", call.operation):
                raise ServiceError(code, "fault injected: conflict; the resource is being changed, try again")

    def _control(self, environ: dict[str, Any]) -> Reply:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        # A page can have a browser send no JSON to another site without asking: CORS preflight, which is rejected.
        if is_form(environ):
            return _json(415, {"error": f"POST {path} takes JSON: send the header Content-Type: application/json"})
        try:
            if (method, path) == ("GET", "/_hpkit/stats"):
                return _json(200, self.stats())
            if (method, path) == ("GET", "/_hpkit/address"):
                address = f"{self.backend.settings.caller_address or ''}\n"
                return Reply(200, address.encode(), {"Content-Type": "text/plain"})
            if path == "/_hpkit/faults":
                return self._faults(method, environ)
            if method == "POST":
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                answer = self.backend.settings.controllers.asked(path.removeprefix("/_hpkit/"), body)
                if answer is not None:
                    return _json(200, answer)
        except EndpointError as error:
            return _json(400, {"error": str(error)})
        pages = "GET /_hpkit/stats, GET /_hpkit/address, GET|POST|DELETE /_hpkit/faults"
        return _json(404, {"error": f"{method} {path} doesn't exist; the pages are {pages}"})

    def _faults(self, method: str, environ: dict[str, Any]) -> Reply:
        with self.backend.lock:
            if method == "POST":
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                try:
                    changes = json.loads(body)
                except ValueError as error:
                    raise EndpointError(f"the body is not JSON: {error}") from None
                if not isinstance(changes, dict):
                    raise EndpointError('the body must be an object such as {"throttle": 0.5, "conflict": null}')
                self.backend.faults.update(changes)
            elif method == "DELETE":
                self.backend.faults.clear()
            return _json(200, self.backend.faults.describe())


@cache
def _statuses(service: str) -> dict[str, int]:
    """Return the HTTP status of the errors in an API model, by code."""
    if service not in services():
        return {}
    shapes = service_model(service).error_shapes
    return {each.error_code: each.metadata.get("error", {}).get("httpStatusCode") for each in shapes}


def _error_codes(call: Call) -> set[str]:
    model = service_model(call.service)
    if call.operation not in model.operation_names:
        return set()
    return {shape.error_code for shape in model.operation_model(call.operation).error_shapes}


def _json(status: int, document: Mapping[str, Any]) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})
