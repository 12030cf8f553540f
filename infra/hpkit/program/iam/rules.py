"""How each IAM action of a deployment is limited; the rules are in data/rules.yaml, with their source."""

from dataclasses import dataclass
from functools import cache

from hpkit.program.iam.template import read

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
    return tuple(
        Rule(
            rule["sid"],
            rule["service"],
            frozenset(f"{rule['service']}:{action}" for action in rule["actions"]),
            tuple(rule["resources"]),
            tuple(rule.get("conditions", ())),
        )
        for rule in read("rules")["rules"]
    )


def actions_of_call(call: str) -> list[str]:
    """Return the IAM actions that an API call (`api:Operation`) needs; none if it needs no permission."""
    data = read("rules")
    if call in data["noRightNeeded"]:
        return []
    api, _, operation = call.partition(":")
    named: list[str] | None = data["actions"].get(call)
    return named if named is not None else [f"{data['servicePrefixes'].get(api, api)}:{operation}"]
