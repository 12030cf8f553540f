"""What IAM decides of a request, by its documented logic, as far as the policies of these tests need it.

Source: IAM user guide, "Policy evaluation logic" (an explicit Deny wins, no Allow is a refusal; a permissions boundary
allows only what both allow), "IAM JSON policy elements: Condition operators" (negated operators match where the key is
absent, others do not, `IfExists` does; `*` and `?` of ARNs match across slashes, never across colons of the first five
parts).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from json import loads

from moto.iam.aws_managed_policies import aws_managed_policies_data

__all__ = ["Request", "allows", "decide", "managed"]


@dataclass(frozen=True)
class Request:
    """One request: who, what, on which resource, with which context keys."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, object] = field(default_factory=dict)

    def key(self, name: str) -> object:
        """Return the value of a context key, None for one that the request does not have."""
        known = {name.lower(): value for name, value in {"aws:PrincipalArn": self.principal, **self.context}.items()}
        return known.get(name.lower())


@cache
def managed(name: str) -> dict:
    """Return the document of a policy that AWS manages, as moto keeps it of AWS's own."""
    return loads(aws_managed_policies_data)[name]["Document"]


def allows(request: Request, *, identity: Iterable[dict], resource: dict | None = None, boundary: dict | None = None):
    """Say whether a request inside one account is allowed."""
    identity = list(identity)
    documents = [*identity, *([resource] if resource else []), *([boundary] if boundary else [])]
    if any(decide(each, request) == "Deny" for each in documents):
        return False
    # A resource's policy that allows the principal would be enough by itself; none of these tests has one.
    allowed = any(decide(each, request) == "Allow" for each in identity)
    return allowed and (boundary is None or decide(boundary, request) == "Allow")


def decide(document: dict, request: Request) -> str:
    """Return `Deny`, `Allow` or nothing: what one document says of a request."""
    found = {each["Effect"] for each in document["Statement"] if _applies(each, request)}
    return "Deny" if "Deny" in found else "Allow" if "Allow" in found else ""


def _applies(statement: dict, request: Request) -> bool:
    if "NotAction" in statement:
        acts = not _any(statement["NotAction"], request.action, ignore_case=True)
    else:
        acts = _any(statement["Action"], request.action, ignore_case=True)
    if "NotResource" in statement:
        on = not _any(statement["NotResource"], request.resource)
    else:
        on = _any(statement["Resource"], request.resource)
    conditions = statement.get("Condition", {}).items()
    return acts and on and all(_holds(*each, request) for operator in conditions for each in _keys(*operator))


def _keys(operator, keys):
    return [(operator, name, values) for name, values in keys.items()]


def _holds(operator: str, name: str, values: object, request: Request) -> bool:
    found, wanted = request.key(name), [str(each) for each in (values if isinstance(values, list) else [values])]
    if operator == "Null":
        return (found is None) == (wanted == ["true"])
    quantifier, _, plain = operator.rpartition(":")
    optional = plain.endswith("IfExists")
    plain = plain.removesuffix("IfExists")
    negated = "Not" in plain
    if found is None:
        return negated or optional or quantifier == "ForAllValues"
    given = [str(each) for each in (found if isinstance(found, (list, tuple)) else [found])]
    matches = [_matches(plain.replace("Not", ""), wanted, each) for each in given]
    if quantifier == "ForAllValues":
        return all(matches)
    return not any(matches) if negated else any(matches)


def _matches(operator: str, wanted: list[str], value: str) -> bool:
    if operator in ("StringLike", "ArnLike", "ArnEquals"):
        return _any(wanted, value)
    if operator in ("StringEqualsIgnoreCase", "Bool"):
        return value.lower() in {each.lower() for each in wanted}
    assert operator == "StringEquals", operator
    return value in wanted


def _any(patterns: object, text: str, *, ignore_case: bool = False) -> bool:
    flags = re.IGNORECASE if ignore_case else 0
    return any(
        re.fullmatch(re.escape(each).replace(r"\*", ".*").replace(r"\?", "."), text, flags)
        for each in ([patterns] if isinstance(patterns, str) else patterns)
    )
