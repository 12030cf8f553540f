"""A parser for IAM documents, and IAM actions, grouped by what they allow."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ["DocumentError", "Statement", "statements", "takes_resource"]

_BINDING: Final = re.compile(
    r"(?:ForAnyValue:)?(?:String(?:Equals|EqualsIgnoreCase|Like)|Arn(?:Equals|Like))", re.IGNORECASE
)


class DocumentError(ValueError):
    """A text that is no policy document."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; not_actions, not_resources and not_principals are what NotAction and the like list."""

    sid: str
    effect: str
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_resources: tuple[str, ...]
    principals: Mapping[str, tuple[str, ...]]
    not_principals: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]]

    @property
    def allows(self) -> bool:
        """Return whether the statement grants permissions."""
        return self.effect == "Allow"

    def condition_keys(self) -> set[str]:
        """Return the keys of all conditions, in lower case: AWS reads them so."""
        return {key.lower() for tests in self.conditions.values() for key in tests}

    def binding_conditions(self) -> dict[str, tuple[str, ...]]:
        """Return required condition values: key in lower case, as AWS reads it, → values, one of which is required.

        Conditions that are true for requests without the key require nothing (IfExists, ForAllValues, negated
        operators), and neither does Null, which checks no value. Source: IAM user guide, condition operators.
        """
        return {
            key.lower(): values
            for operator, tests in self.conditions.items()
            if _BINDING.fullmatch(operator)
            for key, values in tests.items()
        }


def statements(document: Any) -> list[Statement]:
    """Return the statements of a document, JSON text or already parsed; raises DocumentError for anything else."""
    try:
        data = json.loads(document, object_pairs_hook=_once) if isinstance(document, str) else document
    except json.JSONDecodeError as error:
        raise DocumentError(f"it isn't valid JSON: {error}") from None
    listed = data.get("Statement") if isinstance(data, Mapping) else None
    if isinstance(listed, Mapping):
        listed = [listed]
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise DocumentError("it has no Statement")
    return [_statement(each) for each in listed]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; reject duplicate keys, because another reader may use the other value."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DocumentError(f"it has {twice} more than once")
    return dict(pairs)


def _statement(data: Mapping[str, Any]) -> Statement:
    principal, conditions = data.get("Principal", {}), data.get("Condition", {})
    if isinstance(principal, str):
        principal = {"*": principal}
    if not isinstance(conditions, Mapping) or not all(isinstance(tests, Mapping) for tests in conditions.values()):
        raise DocumentError("Condition must map operators to keys and values")
    if not isinstance(principal, Mapping):
        raise DocumentError("Principal must map types to names")
    return Statement(
        sid=str(data.get("Sid", "")),
        effect=str(data.get("Effect", "")),
        actions=_listed(data.get("Action")),
        not_actions=_listed(data.get("NotAction")),
        resources=_listed(data.get("Resource")),
        not_resources=_listed(data.get("NotResource")),
        not_principals=_named(data.get("NotPrincipal")),
        principals={kind: _listed(value) for kind, value in principal.items()},
        conditions={
            operator: {key: _listed(value) for key, value in tests.items()} for operator, tests in conditions.items()
        },
    )


def _named(principal: Any) -> tuple[str, ...]:
    """Return the names in a principal of any kind."""
    if isinstance(principal, Mapping):
        return tuple(name for value in principal.values() for name in _listed(value))
    return _listed(principal)


def _listed(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(each) for each in value) if isinstance(value, list) else (str(value),)


_TABLE: Final = Path(__file__).with_name("actions.json")


# Its resource is optional, so a policy with a resource might not allow it.
_OPTIONAL: Final = frozenset({"ec2:deletenetworkinterfacepermission"})


@cache
def _without_resource() -> frozenset[str]:
    data = json.loads(_TABLE.read_text(encoding="utf-8"))
    return frozenset(f"{service}:{action}".lower() for service, names in data["actions"].items() for action in names)


def takes_resource(action: str) -> bool:
    """Return whether an action can be limited to resources; unknown actions are assumed to be.

    The table covers the services that a HyperPod platform uses. IAM ignores the case of actions.
    """
    return action.lower() not in _without_resource() | _OPTIONAL
