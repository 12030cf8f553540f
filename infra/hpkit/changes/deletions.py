"""Decisions about teams, NodePools, add-ons and NAT gateways that are no longer in the file."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from hpkit.changes.decision import DELETION_ALLOWED, Allowance, GuardDecision
from hpkit.changes.recorded import Recorded
from hpkit.plan.model import Plan
from hpkit.plan.protected import parts_allowed, parts_of

__all__ = ["CODES", "RENAMED", "deletion_decisions", "renamed_parts"]

# By key in `allowDelete`: the decision's code, and the resource with which it's deleted, by its name in `allowReplace`.
CODES: Final = {
    "teams": "team-removed",
    "nodePools": "node-pool-removed",
    "addons": "addon-removed",
    "natGateways": "nat-gateway-removed",
    "repositories": "repository-removed",
}
# The same for probable renames.
RENAMED: Final = {"teams": "team-renamed", "nodePools": "node-pool-renamed"}
_GOES_WITH: Final = {"teams": "cluster", "nodePools": "cluster", "addons": "eks", "natGateways": "vpc"}
# Others, such as repositories, depend on nothing that is guarded.


def deletion_decisions(
    resources: Sequence[GuardDecision], before: Recorded, after: Recorded
) -> tuple[list[GuardDecision], list[GuardDecision]]:
    """Return the decisions about resources, and those about each deletion.

    Each loss is reported once: if a team is deleted with a rejected cluster, the cluster's decision needs both
    allowances.
    """
    refused = {each.key for each in resources if each.refused}
    deletions: list[GuardDecision] = []
    included: dict[str, list[Allowance]] = defaultdict(list)
    for kind, decision in _deletions(before, after):
        larger = _GOES_WITH.get(kind)
        if larger is None or larger not in refused:
            deletions.append(decision)
        elif decision.refused:
            included[larger] += decision.needs
    return [replace(each, needs=(*each.needs, *included[each.key])) for each in resources], deletions


def _deletions(before: Recorded, after: Recorded) -> Iterator[tuple[str, GuardDecision]]:
    """Yield deleted parts, and parts with a new API name, with their key in `allowDelete`."""
    allowed = set(parts_allowed(after.plan))
    staying = {name: called for name, (called, _) in parts_of(after.plan).items()}
    for part, (called, words) in parts_of(before.plan).items():
        if staying.get(part) == called:
            continue
        allow_key, _, name = part.partition("/")
        named = part in allowed
        decision_fields: dict[str, Any] = {"refused": not named, "needs": ((allow_key, name),)}
        fix = DELETION_ALLOWED if named else ""
        anew = f" and recreated as {staying[part]}" if part in staying else ""
        new_name = None if anew else _renamed_to(allow_key, name, before.plan, after.plan)
        if new_name is None:
            yield (
                allow_key,
                GuardDecision(CODES[allow_key], name, name, f"{words} is deleted{anew}", fix, **decision_fields),
            )
        else:
            what = "team" if allow_key == "teams" else "NodePool"
            reason = f"{words} is deleted, {new_name} starts empty; HyperPod can't rename an existing {what}"
            yield allow_key, GuardDecision(RENAMED[allow_key], name, name, reason, fix, **decision_fields)


def renamed_parts(allow_key: str, before: Plan, after: Plan) -> dict[str, str]:
    """Return the new parts that equal deleted ones, with the old names: probable renames."""
    leaving = set(_alike(allow_key, before)) - set(_alike(allow_key, after))
    renames = {name: _renamed_to(allow_key, name, before, after) for name in sorted(leaving)}
    return {new: name for name, new in renames.items() if new is not None}


def _renamed_to(kind: str, name: str, before: Plan, after: Plan) -> str | None:
    old, new = (_alike(kind, plan) for plan in (before, after))
    return next((other for other in new if other not in old and name in old and new[other] == old[name]), None)


def _alike(allow_key: str, plan: Plan) -> dict[str, object]:
    """Return name → what of a team or a NodePool stays as it is when only its name is another."""
    if allow_key == "teams":
        return {
            team.name: [replace(each, path=()) for each in team.quota_resources]
            for team in plan.teams
            if not team.is_shared_pool
        }
    if allow_key == "nodePools":
        return {pool.spec.name: pool.spec.model_copy(update={"name": ""}) for pool in plan.node_pools}
    return {}
