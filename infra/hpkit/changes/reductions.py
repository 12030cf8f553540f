"""Reductions and other changes of resources that stay, which no engine step is named after.

Growth isn't reported: a higher number or version, an added item or key. Neither are consequences of a deleted resource
or part, because that is reported itself.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hpkit.catalog import UNKNOWN, TypeFacts, differences
from hpkit.changes.compare import Recorded, facts_of
from hpkit.changes.steps import Step, texts_in
from hpkit.plan.capacity import quantity
from hpkit.plan.model import Plan

__all__ = ["Edit", "Reduction", "edits_of_plans", "reductions_of"]

_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)+(?:-eksbuild\.\d+)?")
_TOKEN: Final = re.compile(r"[\w][\w:/.@*-]*")
_KEYS_OF_PLAN: Final = TypeFacts(
    entries={
        "environment.network.zones": "availabilityZone",
        "environment.cluster.instanceGroups": "name",
        "environment.cluster.restrictedInstanceGroups": "name",
        "environment.autoscaling.nodeClasses": "name",
        "environment.autoscaling.nodePools": "name",
        "clusterPolicy.priorityClasses": "name",
    },
    literal=True,
)
# A person's permissions aren't part of the platform. Governance is compared as derived, except for the limits of teams.
_NO_SETTINGS: Final = {"waivers", "allow_replace", "allow_delete", "governance"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """One setting that is reduced or changed.

    - before: None if there was nothing. For a list, the removed items.
    - after: None if nothing is left. For a list, the added items.
    - type, name: its resource's type and name.
    - made_up: the recording invented the values, because only AWS knows them.
    """

    type: str
    name: str
    place: str
    before: Any
    after: Any
    made_up: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """One key of the file whose value changes; None if it was or is missing."""

    place: str
    before: Any
    after: Any


def edits_of_plans(before: Plan, after: Plan) -> tuple[Edit, ...]:
    """Return every key of the file that differs, growth too, without teams' shares and sharing."""
    found = differences(_KEYS_OF_PLAN, _settings(before), _settings(after))
    return tuple(Edit(each.place, each.before, each.after) for each in found)


def reductions_of(before: Recorded, after: Recorded, steps: Sequence[Step]) -> Iterator[Reduction]:
    """Yield what becomes less or other of the resources that stay."""
    removed_names = _gone(before, steps) | _names(before.plan) - _names(after.plan)
    for step in steps:
        if step.action != "update" or not step.holds:
            continue
        defaults = facts_of(before.resources[step.urn]).defaults
        for cause in step.causes:
            if cause.because:
                continue
            default = defaults.get(cause.path)
            was, now = (default if value is None else value for value in (cause.before, cause.after))
            for place, old, new in _less(cause.place, was, now):
                if not _follows(old, new, removed_names):
                    yield Reduction(step.type, step.name, place, old, new, cause.made_up)


def _settings(plan: Plan) -> dict[str, Any]:
    """Return an environment's settings without teams and groups, which readers compare by name."""
    policy = plan.policy.model_dump(by_alias=True, mode="json") if plan.policy else None
    environment = plan.spec.model_dump(by_alias=True, mode="json", exclude=_NO_SETTINGS)
    if plan.spec.governance is not None:
        limits = plan.spec.governance.team_limits.model_dump(by_alias=True, mode="json")
        environment["governance"] = {"teamLimits": limits}
    teams = {
        team.name: {
            "serviceAccounts": list(team.spec.service_accounts),
            "workloads": list(team.spec.workloads),
            "priorityClasses": list(team.spec.priority_classes),
            "spacePriorityClass": team.spec.space_priority_class,
            "maxRunTime": team.spec.max_run_time and team.spec.max_run_time.model_dump(by_alias=True),
            "registry": list(team.spec.registry),
            "description": team.spec.description,
        }
        for team in plan.teams
    }
    topology = ("Enabled" if plan.topology_aware_scheduling else "Disabled") if plan.manages_topology else None
    return {
        "environment": environment,
        "clusterPolicy": policy,
        "teams": teams,
        "tags": dict(plan.tags),
        "topologyAwareScheduling": topology,
    }


def _less(place: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what of a difference is no growth, by place."""
    if old is None or new is UNKNOWN or old == new:
        return
    before, after = _parsed(old), _parsed(new)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in before:
            yield from _less(f"{place}.{key}", before[key], after.get(key))
    elif isinstance(before, list) or isinstance(after, list):
        items, others = _items(before), _items(after)
        went, came = _without(items, others), _without(others, items)
        if len(went) == len(came) and all(isinstance(item, Mapping) for item in (*went, *came)):
            for one, other in zip(went, came, strict=True):
                yield from _less(f"{place}[{items.index(one)}]", one, other)
        elif went:
            yield place, went, came or None
    elif not _grows(before, after) and before not in ("", False, {}, []):
        yield place, before, after


def _parsed(value: Any) -> Any:
    """Return a JSON text's value, such as a policy's; any other value unchanged."""
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _items(value: Any) -> list[Any]:
    """Return a list; a single value becomes a list with one item, as in policies."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _without(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Return the items that are not among the others, each as often as it is more there."""
    unmatched = Counter(_key(item) for item in others)
    remaining = []
    for item in items:
        if unmatched[_key(item)]:
            unmatched[_key(item)] -= 1
        else:
            remaining.append(item)
    return remaining


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _grows(old: Any, new: Any) -> bool:
    was, now = _number(old), _number(new)
    return was is not None and now is not None and now >= was


def _number(value: Any) -> Any:
    """Return a comparable size: a number, a Kubernetes quantity, a version; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (value,)
    if not isinstance(value, str):
        return None
    if _VERSION.fullmatch(value):
        return tuple(int(part) for part in re.findall(r"\d+", value))
    try:
        return (quantity(value),)
    except ValueError:
        return None


def _gone(before: Recorded, steps: Sequence[Step]) -> set[str]:
    """Return the names of deleted resources, in the program and in AWS."""
    lost = [before.resources[step.urn] for step in steps if step.action in ("delete", "replace")]
    return {text for each in lost for text in (each.name, *texts_in(each.made)) if text}


def _names(plan: Plan) -> set[str]:
    """Return the names that others mention a plan's parts by."""
    names = {
        name for team in plan.teams for name in (team.name, team.namespace, team.cluster_queue, *team.spec.members)
    }
    names |= {team.quota_name for team in plan.teams} | {addon.name for addon in plan.addons}
    names |= {group.spec.name for group in plan.own_groups} | {pool.spec.name for pool in plan.node_pools}
    return names | {*plan.spec.eks.administrators, *plan.spec.eks.viewers, *plan.spec.deployers}


def _follows(old: Any, new: Any, gone: set[str]) -> bool:
    """Return whether the reduction only refers to what is deleted."""
    return not (_tokens(old) - _tokens(new)).isdisjoint(gone)


def _tokens(value: Any) -> set[str]:
    found = {token for text in texts_in(value) for token in (text, *_TOKEN.findall(text))}
    # An ARN ends in its resource's name, and so does the name of hpkit's groups in Kubernetes.
    return found | {token.rpartition(mark)[2] for token in found for mark in "/:"}
