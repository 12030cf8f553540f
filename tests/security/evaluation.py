"""IAM's decision on a request, by its documented logic, as far as the policies of these tests need it.

Covered: an explicit Deny wins, no Allow is a rejection, a permissions boundary allows only what both allow; Action,
NotAction, Resource and NotResource with wildcards; the operators of `_OPERATORS` with their negations, `IfExists`,
`ForAllValues`, `ForAnyValue` and `Null`; policy variables. Not covered: policies of organizations and sessions, access
across accounts, a Principal (each document is assumed to apply to the request's principal), numbers and addresses.

No maintained library replaces it. moto's `IAMPolicyStatement` (5.2.5) evaluates only `StringEquals`: a `Deny` whose
condition doesn't hold still denies, one with `NotResource` never does, and other operators always hold. policy_sentry,
parliament and cloudsplaining check documents without evaluating requests. principalmapper and iamspy have had no
release since 2022. `iam:SimulateCustomPolicy` requires an account.

Source: IAM user guide, "Policy evaluation logic", "IAM JSON policy elements: Condition operators", "Set operators for
multi-valued context keys", "Variables and tags".
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from json import loads

from moto.iam.aws_managed_policies import aws_managed_policies_data

__all__ = ["Request", "allows", "decide", "managed"]


@dataclass(frozen=True)
class Request:
    """A request: principal, action, resource, and context keys."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, object] = field(default_factory=dict)

    def key(self, name: str) -> object:
        """Return the value of a context key, or None if the request doesn't have it."""
        parts = self.principal.split(":")
        principal = {"aws:PrincipalArn": self.principal, "aws:PrincipalAccount": parts[4] if len(parts) > 4 else None}
        known = {name.lower(): value for name, value in {**principal, **self.context}.items()}
        return known.get(name.lower())


@cache
def managed(name: str) -> dict:
    """Return the document of an AWS managed policy, from moto's copy."""
    return loads(aws_managed_policies_data)[name]["Document"]


def allows(request: Request, *, identity: Iterable[dict], resource: dict | None = None, boundary: dict | None = None):
    """Return whether a request inside one account is allowed."""
    identity = list(identity)
    documents = [*identity, *([resource] if resource else []), *([boundary] if boundary else [])]
    if any(decide(each, request) == "Deny" for each in documents):
        return False
    # A resource policy that allows the principal would be sufficient by itself; these tests have none.
    allowed = any(decide(each, request) == "Allow" for each in identity)
    return allowed and (boundary is None or decide(boundary, request) == "Allow")


def decide(document: dict, request: Request) -> str:
    """Return `Deny`, `Allow` or nothing: one document's decision on a request."""
    found = {each["Effect"] for each in _list(document["Statement"]) if _applies(each, request)}
    return "Deny" if "Deny" in found else "Allow" if "Allow" in found else ""


def _applies(statement: dict, request: Request) -> bool:
    if "NotAction" in statement:
        acts = not _any(statement["NotAction"], request.action, ignore_case=True)
    else:
        acts = _any(statement["Action"], request.action, ignore_case=True)
    if "NotResource" in statement:
        on = not _any_resource(statement["NotResource"], request)
    else:
        on = _any_resource(statement["Resource"], request)
    conditions = statement.get("Condition", {}).items()
    return acts and on and all(_holds(*each, request) for operator in conditions for each in _keys(*operator))


def _keys(operator, keys):
    return [(operator, name, values) for name, values in keys.items()]


def _holds(operator: str, name: str, values: object, request: Request) -> bool:
    given, wanted = request.key(name), [str(value) for value in _list(values)]
    if operator == "Null":
        return (given is None) == (wanted[0].lower() == "true")
    quantifier, _, plain = operator.rpartition(":")
    optional = plain.endswith("IfExists")
    plain = plain.removesuffix("IfExists")
    negated = "Not" in plain
    compare = _OPERATORS[plain.replace("Not", "")]
    resolved = [text for value in wanted if (text := _resolve(value, request)) is not None]
    if given is None:
        return optional or quantifier == "ForAllValues" or (negated and quantifier != "ForAnyValue")
    results = [compare(resolved, str(value)) != negated for value in _list(given)]
    return all(results) if quantifier == "ForAllValues" or (negated and not quantifier) else any(results)


def _resolve(text: str, request: Request) -> str | None:
    """Return a text with its policy variables replaced, or None if one has no value: it then matches nothing."""
    missing = False

    def value(variable: re.Match) -> str:
        nonlocal missing
        name, _, default = variable[1].partition(",")
        given = {"*": "*", "?": "?", "$": "$"}.get(name) or request.key(name.strip())
        if given is None and default:
            return default.strip().strip("'")
        missing = missing or given is None
        return str(given)

    filled = re.sub(r"\$\{([^}]+)\}", value, text)
    return None if missing else filled


def _any(patterns: object, text: str, *, ignore_case: bool = False) -> bool:
    flags = re.IGNORECASE if ignore_case else 0
    return any(re.fullmatch(_pattern(pattern), text, flags | re.DOTALL) for pattern in _list(patterns))


def _any_resource(patterns: object, request: Request) -> bool:
    return _any([text for each in _list(patterns) if (text := _resolve(each, request)) is not None], request.resource)


def _arn_like(patterns: list[str], value: str) -> bool:
    """Return whether an ARN matches a pattern: wildcards stay inside each of its six parts (Condition operators)."""
    parts = value.split(":", 5)
    return any(
        len(pattern.split(":", 5)) == len(parts) == 6
        and all(_any(part, text) for part, text in zip(pattern.split(":", 5), parts, strict=True))
        for pattern in patterns
    )


def _before(limits: list[str], value: str) -> bool:
    return any(datetime.fromisoformat(value) < datetime.fromisoformat(limit) for limit in limits)


def _ignoring_case(wanted: list[str], value: str) -> bool:
    return value.lower() in {text.lower() for text in wanted}


_OPERATORS = {
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": _ignoring_case,
    "DateLessThan": _before,
    "StringEquals": lambda wanted, value: value in wanted,
    "StringEqualsIgnoreCase": _ignoring_case,
    "StringLike": _any,
}


def _pattern(text: str) -> str:
    return re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")


def _list(values: object) -> list:
    return list(values) if isinstance(values, (list, tuple)) else [values]
