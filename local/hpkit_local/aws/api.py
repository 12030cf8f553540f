"""The operations that this package implements itself, their common code, and what controllers read of the state."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hpkit_local.aws.backend import Backend, Context, Record
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.errors import ServiceError, unsupported
from hpkit_local.aws.protocol import Call, parameters, service_model
from hpkit_local.aws.service import services
from hpkit_local.aws.validation import WrongTypeError, check_request, violations

__all__ = [
    "OPERATIONS",
    "BackendView",
    "Operation",
    "check_rules",
    "describes",
    "existing",
    "given",
    "invoke",
    "is_own",
    "operation",
    "page",
    "part",
    "rule",
    "tag_operations",
]

Operation = Callable[[Context, Record], Record]
OPERATIONS: dict[tuple[str, str], Operation] = {}
TOKEN_SECONDS = 8 * 3600  # BatchAddClusterNodes: "The token is valid for 8 hours"


Rule = Callable[[Context, Record], None]
_RULES: dict[tuple[str, str], list[Rule]] = {}
Part = Callable[[Snapshot, Context], None]
_parts: list[Part] = []


def operation(service: str, name: str) -> Callable[[Operation], Operation]:
    """Register the implementation of an operation; a name that the API model lacks is a mistake."""
    service_model(service).operation_model(name)

    def register(function: Operation) -> Operation:
        OPERATIONS[service, name] = function
        return function

    return register


def describes(service: str, name: str, find: Operation, *, member: str = "") -> None:
    """Register an operation that only answers what `find` returns, as `member` if the answer has one."""
    operation(service, name)(lambda ctx, params: {member: find(ctx, params)} if member else find(ctx, params))


def tag_operations(service: str, find: Callable[[Context, str], dict[str, str]], *, empty: bool) -> None:
    """Register the tag operations of a REST API.

    find: returns the stored tags of an ARN, or rejects it; empty: the answer contains `tags` even if it has none.
    """

    @operation(service, "TagResource")
    def tag(ctx: Context, params: Record) -> Record:
        find(ctx, params["resourceArn"]).update(params["tags"])
        return {}

    @operation(service, "UntagResource")
    def untag(ctx: Context, params: Record) -> Record:
        tags = find(ctx, params["resourceArn"])
        for key in params["tagKeys"]:
            tags.pop(key, None)
        return {}

    @operation(service, "ListTagsForResource")
    def list_tags(ctx: Context, params: Record) -> Record:
        tags = find(ctx, params["resourceArn"])
        return {"tags": dict(tags)} if tags or empty else {}


def existing(
    records: Mapping[str, Record], key: str, message: str, *, code: str = "ResourceNotFoundException"
) -> Record:
    """Return a record, or the service's rejection if it doesn't exist."""
    if key not in records:
        raise ServiceError(code, message)
    return records[key]


def given(params: Record, *members: str) -> Record:
    """Return the given members of a request."""
    return {member: params[member] for member in members if member in params}


def is_own(call: Call) -> bool:
    """Return whether this package answers, not moto."""
    service = services().get(call.service)
    return service is not None and (not service.moto or (call.service, call.operation) in OPERATIONS)


def rule(service: str, *operations: str) -> Callable[[Rule], Rule]:
    """Register what AWS rejects in operations that moto answers; requests already match their API model."""

    def register(function: Rule) -> Rule:
        for operation in operations:
            _RULES.setdefault((service, operation), []).append(function)
        return function

    return register


def check_rules(ctx: Context, service: str, operation: str, params: Record) -> None:
    """Reject what AWS rejects by a rule that isn't in an API model."""
    for function in _RULES.get((service, operation), ()):
        function(ctx, params)


def invoke(ctx: Context, call: Call) -> Record:
    """Validate a request, carry it out once per client token, and validate the answer."""
    implementation = OPERATIONS.get((call.service, call.operation))
    if implementation is None:
        raise unsupported(call.service, call.operation)
    params = parameters(call)
    model = service_model(call.service).operation_model(call.operation)
    if model.input_shape is not None:
        check_request(model.input_shape, params, code=services()[call.service].rejects_with)
    params = {name: value for name, value in params.items() if value is not None}
    result = _once(ctx, call, implementation, params, model.idempotent_members)
    _check_answer(call, result)
    return result


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchAddClusterNodes.html
def _once(ctx: Context, call: Call, implementation: Operation, params: Record, members: Sequence[str]) -> Record:
    token = next((params[name] for name in members if name in params), None)
    if token is None:
        return implementation(ctx, params)
    tokens = ctx.backend.tokens
    for key in [key for key, entry in tokens.items() if entry["until"] <= ctx.now]:
        del tokens[key]
    key = f"{ctx.region}:{call.service}:{call.operation}:{token}"
    digest = sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()
    if key in tokens:
        if tokens[key]["digest"] != digest:
            raise ServiceError(
                services()[call.service].rejects_with,
                f"Client token {token} was used by a {call.operation} request with other parameters",
            )
        answer: Record = tokens[key]["answer"]
        return answer
    result = implementation(ctx, params)
    tokens[key] = {
        "until": ctx.now + TOKEN_SECONDS,
        "digest": digest,
        "answer": json.loads(json.dumps(result)),
    }
    return result


def _check_answer(call: Call, result: Record) -> None:
    """Report an answer that the API model does not allow as the defect it is, instead of sending it."""
    shape = service_model(call.service).operation_model(call.operation).output_shape
    if shape is None:
        return
    try:
        problems = list(violations(shape, result, sizes=False))
    except WrongTypeError as error:
        problems = [str(error)]
    if problems:
        raise ServiceError(
            "InternalFailure",
            f"{call.operation} built an answer its model forbids: {'; '.join(problems)}",
            status=500,
        )


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListClusters.html
def page(
    member: str, items: Sequence[Any], params: Record, *, default: int = 100, code: str = "ValidationException"
) -> Record:
    """Return the answer of a List operation: a page of `items` as `member`, and the token of the next page."""
    size, token = ("maxResults", "nextToken") if member[0].islower() else ("MaxResults", "NextToken")
    start = 0
    if params.get(token):
        try:
            start = int(base64.urlsafe_b64decode(params[token].encode()).decode().removeprefix("offset:"))
        except ValueError:
            raise ServiceError(code, f"Invalid pagination token: {params[token]}") from None
    end = start + (params.get(size) or default)
    following = base64.urlsafe_b64encode(f"offset:{end}".encode()).decode()
    return {member: list(items[start:end]), **({token: following} if end < len(items) else {})}


def part(function: Part) -> Part:
    """Register what a service adds to a snapshot, called for each region."""
    _parts.append(function)
    return function


@dataclass(frozen=True)
class BackendView:
    """The state of an endpoint, to be read from any thread, and a way to call it as the service itself."""

    _backend: Backend

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the backend's lock, so that several reads are consistent; callbacks wait meanwhile."""
        with self._backend.locked():
            yield

    @property
    def latency_factor(self) -> float:
        """Return how long changes take: 1 as on AWS, 0 no time."""
        return self._backend.settings.latency_factor

    def snapshot(self) -> Snapshot:
        """Return what exists."""
        existing = Snapshot({}, {}, {}, {}, [], {}, {}, {}, set())
        with self.held():
            for ctx in self.contexts():
                for add in _parts:
                    add(existing, ctx)
        return existing

    def contexts(self) -> Iterator[Context]:
        """Yield the context of the endpoint's region and of others that have records; call it in `held`."""
        regions = dict.fromkeys((self._backend.settings.region, *self._backend.regions))
        return (self._backend.context(region) for region in regions)

    def call(self, region: str, service: str, operation: str, **parameters: Any) -> Record:
        """Call an operation, not from a callback; ServiceError if it is rejected."""
        with self.held():
            self._backend.settle()
            self._backend.touched("own")
            try:
                return OPERATIONS[service, operation](self._backend.context(region), parameters)
            finally:
                self._backend.save()
