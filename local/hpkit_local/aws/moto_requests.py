"""Checks requests to the services that moto answers against their API models, before moto sees them.

moto reads only the members that it knows. It accepts a role name of 65 characters, an unknown volume type, or a missing
member. The services reject each of these, each with its own error code.
"""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import unquote

from moto.core.parse import PROTOCOL_PARSERS, RequestParserError
from moto.core.utils import get_service_model
from werkzeug.wrappers import Request

from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.protocol import Call, parameters, path_segments, service_model
from hpkit_local.aws.service import services
from hpkit_local.aws.validation import check_request

__all__ = ["check_moto_request"]


# Inferred from: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
def check_moto_request(call: Call, environ: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request; reject one that breaks the model of its service."""
    model = service_model(call.service)
    code = services()[call.service].refuses_with
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
    return "MalformedXML" if call.protocol == "rest-xml" else services()[call.service].refuses_with
