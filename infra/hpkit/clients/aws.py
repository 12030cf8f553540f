"""Calls AWS in parallel, with retries when throttled; a failed call is also a result.

It never writes: every call comes from `calls`, and these only Describe, Get and List.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache
from typing import Any, Final

import botocore.exceptions
from boto3 import Session
from botocore import xform_name
from botocore.config import Config

from hpkit.clients.calls import ApiCall, FailedCall

__all__ = ["call_all"]

_MAX_PARALLEL: Final = 12
_CONFIG: Final = Config(
    connect_timeout=5,
    read_timeout=30,
    retries={"mode": "adaptive", "total_max_attempts": 6},
    max_pool_connections=_MAX_PARALLEL,
)

Progress = Callable[[int, int], None]


def call_all(session: Session, calls: Iterable[ApiCall], *, on_progress: Progress) -> dict[str, Any]:
    """Return key of the call → complete result or FailedCall.

    On_progress gets the numbers of completed and of all calls.
    """
    pending_calls = list(calls)
    # Threads can share clients, but not a session.
    clients = {service: _client(session, service) for service in sorted({call.service for call in pending_calls})}
    results: dict[str, Any] = {}
    with ThreadPoolExecutor(max_workers=_MAX_PARALLEL) as pool:
        running = {pool.submit(_call, clients[call.service], call): call for call in pending_calls}
        for done in as_completed(running):
            results[running[done].key] = done.result()
            on_progress(len(results), len(pending_calls))
    return results


# Creating SageMaker's client takes longer than its calls.
@lru_cache(maxsize=16)
def _client(session: Session, service: str) -> Any:
    try:
        return session.client(service, config=_CONFIG)
    except (botocore.exceptions.BotoCoreError, ValueError) as error:
        return error


def _call(client: Any, call: ApiCall) -> Any:
    if isinstance(client, Exception):
        return FailedCall(call.action, type(client).__name__, str(client))
    method = xform_name(call.operation)
    try:
        if client.can_paginate(method):
            result = client.get_paginator(method).paginate(**call.params).build_full_result()
        else:
            result = getattr(client, method)(**call.params)
        # Services omit empty lists; the checks shouldn't need to handle that.
        return {**dict.fromkeys(_list_members(client, call), ()), **result}
    except botocore.exceptions.ClientError as error:
        details = error.response.get("Error", {})
        return FailedCall(call.action, details.get("Code", "Unknown"), details.get("Message", str(error)))
    except botocore.exceptions.BotoCoreError as error:
        return FailedCall(call.action, type(error).__name__, str(error))


def _list_members(client: Any, call: ApiCall) -> list[str]:
    members = client.meta.service_model.operation_model(call.operation).output_shape.members
    return [name for name, shape in members.items() if shape.type_name == "list"]
