"""Errors in the shape that the AWS service itself would send.

ServiceError
├── raised by an operation with the code of its service model (`ConflictException`, `ResourceNotFound`, …)
└── raised by the endpoint for what it doesn't implement (`UnsupportedOperation`)
EndpointError
└── a mistake in starting or controlling the endpoint (an unknown fault, a foreign state file)
"""

import json
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

__all__ = ["EndpointError", "Reply", "ServiceError", "render_error", "unsupported"]


class EndpointError(Exception):
    """An error in starting or controlling the endpoint; the message explains how to fix it."""


class ServiceError(Exception):
    """An answer that the service rejects a call with: AWS code, message, and HTTP status if its API model has none."""

    def __init__(self, code: str, message: str, *, status: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Reply:
    """One HTTP answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def unsupported(service: str, operation: str) -> ServiceError:
    """Return the answer to an operation that nothing here implements."""
    return ServiceError(
        "UnsupportedOperation",
        f"The local AWS endpoint does not implement {service}:{operation}. Try it on AWS.",
        status=501,
    )


def render_error(error: ServiceError, protocol: str, *, status: int, request_id: str) -> Reply:
    """Write `error` the way `protocol` (the name in the service's API model) carries errors."""
    if protocol in ("json", "rest-json"):
        body = json.dumps({"__type": error.code, "message": error.message})
        headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": error.code}
        return Reply(status, body.encode(), {**headers, "x-amzn-RequestId": request_id})
    if protocol == "rest-xml":
        body = (
            f"<Error><Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
            f"<RequestId>{request_id}</RequestId></Error>"
        )
    elif protocol == "ec2":
        body = (
            f"<Response><Errors><Error><Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
            f"</Error></Errors><RequestID>{request_id}</RequestID></Response>"
        )
    else:
        body = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{escape(error.code)}</Code>"
            f"<Message>{escape(error.message)}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    return Reply(status, body.encode(), {"Content-Type": "text/xml", "x-amzn-RequestId": request_id})
