"""Requests to the services that moto answers, checked against their API models before moto sees them.

moto reads what it knows of a request and takes the rest as it comes: a role name of 65 characters, an unknown
volume type, a missing member. The services refuse each of these, with a code of their own.
"""

from __future__ import annotations

import io
from typing import Any, Final
from urllib.parse import unquote

from moto.core.parse import PROTOCOL_PARSERS, RequestParserError
from moto.core.utils import get_service_model
from werkzeug.wrappers import Request

from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.protocol import Call, parameters, path_segments, service_model
from hpkit_local.aws.validation import check_request

__all__ = ["CODES", "check_moto_request"]

# Service → the code with which it refuses a request that breaks its model, and where that is written.
CODES: Final = {
    "amp": ("ValidationException", "https://docs.aws.amazon.com/prometheus/latest/APIReference/CommonErrors.html"),
    "ec2": ("InvalidParameterValue", "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"),
    "ecr": (
        "InvalidParameterException",
        "https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_CreateRepository.html",
    ),
    "fsx": ("BadRequest", "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html"),
    "iam": ("ValidationError", "https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html"),
    "kms": ("ValidationException", "https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html"),
    "logs": (
        "InvalidParameterException",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
    ),
    "s3": ("InvalidArgument", "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"),
    "service-quotas": (
        "IllegalArgumentException",
        "https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html",
    ),
    "sts": ("ValidationError", "https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html"),
}


def check_moto_request(call: Call, environ: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request; refuse one that breaks the model of its service."""
    model = service_model(call.service)
    if call.service not in CODES or call.operation not in model.operation_names:
        return {}
    shape = model.operation_model(call.operation).input_shape
    if shape is None:
        return {}
    try:
        params = _params(call, environ)
    except (RequestParserError, ValueError) as error:
        raise ServiceError(_unreadable(call), str(error)) from None
    check_request(shape, params, code=CODES[call.service][0])
    return params


def _params(call: Call, environ: dict[str, Any]) -> dict[str, Any]:
    if call.protocol in ("json", "rest-json"):
        return parameters(call)
    request = Request({**environ, "wsgi.input": io.BytesIO(call.body)})
    parser = PROTOCOL_PARSERS[call.protocol](get_service_model(call.service).operation_model(call.operation))
    found: dict[str, Any] = parser.parse(
        {
            "body": call.body,
            "headers": request.headers,
            "method": request.method,
            "url_params": {name: unquote(value) for name, value in path_segments(call).items()},
            "url_path": call.path,
            "values": request.values if call.protocol in ("ec2", "query") else request.args,
        }
    )
    return {name: value for name, value in found.items() if value is not None}


def _unreadable(call: Call) -> str:
    return "MalformedXML" if call.protocol == "rest-xml" else CODES[call.service][0]
