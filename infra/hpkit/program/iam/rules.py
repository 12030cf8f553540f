"""How each IAM action of a deployment is limited; the rules are in data/rules.yaml, with their source."""

from dataclasses import dataclass
from functools import cache

from hpkit.catalog import type_calls
from hpkit.program.iam.documents import read

__all__ = ["Rule", "actions_of_call", "rules"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Actions of one service on resources (`{…}` is filled in), under conditions by name."""

    sid: str
    service: str
    actions: frozenset[str]
    resources: tuple[str, ...]
    conditions: tuple[str, ...]


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules in their order."""
    data = read("rules")["rules"]
    named = {rule["sid"]: _actions(rule["service"], rule["actions"]) for rule in data if "actions" in rule}
    others = _actions_of_types().difference(*named.values())
    return tuple(
        Rule(
            rule["sid"],
            rule["service"],
            named.get(rule["sid"], frozenset(each for each in others if each.startswith(f"{rule['service']}:"))),
            tuple(rule["resources"]),
            tuple(rule.get("conditions", ())),
        )
        for rule in data
    )


def _actions(service: str, names: list[str]) -> frozenset[str]:
    return frozenset(f"{service}:{name}" for name in names)


def _actions_of_types() -> frozenset[str]:
    """Return every IAM action that the catalog's resource types need."""
    types = type_calls().values()
    calls = {call for resource_type in types for call in resource_type.operations()}
    named = {action for resource_type in types for action in resource_type.service}
    return frozenset(named.union(*map(actions_of_call, calls)))


def actions_of_call(call: str) -> list[str]:
    """Return the IAM actions that an API call (`api:Operation`) needs; none if it needs no permission."""
    data = read("rules")
    if call in data["noRightNeeded"]:
        return []
    api, _, operation = call.partition(":")
    named: list[str] | None = data["actions"].get(call)
    return named if named is not None else [f"{data['servicePrefixes'].get(api, api)}:{operation}"]
