"""Values in a file that can change: quotas, weights and borrow limits of teams, and instances of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hpkit.catalog import find_instance_type
from hpkit.config.reading.document import Document, Path
from hpkit.plan.model import Plan, QuotaResource, TeamPlan

__all__ = ["Lever", "State", "find_levers", "instance_levers", "moves", "per_instance"]

Value = int | str
State = tuple[Value, ...]
"""The value of each lever, in their order."""
Kind = Literal["quota", "weight", "borrow limit", "instances"]
_WEIGHTS: Final = (0, 10, 25, 50, 75, 100)
_LIMITS: Final = (1, 25, 50, 100, 150, 200, 300, 500)
_SHARE_STEP: Final = 5
_MOST_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Lever:
    """A value that can change.

    paths: its positions; several if a YAML anchor shares the value. unit: the unit of a quota: `count`, `accelerators`
    or `share`. base: the current value, even if the file omits it.
    """

    label: str
    kind: Kind
    teams: tuple[str, ...]
    instance_type: str
    paths: tuple[Path, ...]
    unit: str
    base: Value
    most: int


def find_levers(plan: Plan, document: Document) -> tuple[Lever, ...]:
    """Return the values that a search can change in a stack's sharing: each position in the file once."""
    levers: dict[object, Lever] = {}
    for lever in _candidates(plan, document.data):
        mark = document.locate(lever.paths[0])
        # A value that the file omits has no place yet; its path identifies it.
        key = (mark, lever.kind) if document.raw(lever.paths[0]) is not None else lever.paths
        existing = levers.get(key)
        if existing is None:
            levers[key] = lever
        else:
            teams = (*existing.teams, *lever.teams)
            label = f"{lever.kind} of {', '.join(teams)}"
            levers[key] = replace(existing, label=label, teams=teams, paths=(*existing.paths, *lever.paths))
    return tuple(levers.values())


def _candidates(plan: Plan, data: Any) -> Iterator[Lever]:
    fair = plan.policy is not None and plan.policy.fair_share == "Enabled"
    positions = {each["name"]: index for index, each in enumerate(data.get("teams") or ()) if isinstance(each, dict)}
    for team in plan.teams:
        if team.is_shared_pool or team.name not in positions:
            continue
        yield from _of_team(team, _homes(plan, data, team.name, positions[team.name]), fair=fair)
        yield from _quotas(plan, team)


def _homes(plan: Plan, data: Any, team: str, position: int) -> dict[str, Path]:
    """Return where a team's weight and sharing are set: in the environment's overrides, or in the team."""
    governance = data["environments"][plan.environment].get("governance") or {}
    override = (governance.get("overrides") or {}).get(team) or {}
    there: Path = ("environments", plan.environment, "governance", "overrides", team)
    return {key: (there if key in override else ("teams", position)) for key in ("fairShareWeight", "sharing")}


def _of_team(team: TeamPlan, homes: dict[str, Path], *, fair: bool) -> Iterator[Lever]:
    if fair:
        label = f"fairShareWeight of {team.name}"
        where: Path = (*homes["fairShareWeight"], "fairShareWeight")
        yield Lever(label, "weight", (team.name,), "", (where,), "", team.spec.fair_share_weight, 100)
    if (
        team.spec.sharing.strategy == "LendAndBorrow"
        and not team.absolute_borrow_limits
        and team.spec.sharing.borrow_limit is not None
    ):
        label = f"borrowLimit of {team.name}"
        where = (*homes["sharing"], "sharing", "borrowLimit")
        yield Lever(label, "borrow limit", (team.name,), "", (where,), "", team.spec.sharing.borrow_limit, _LIMITS[-1])


def _quotas(plan: Plan, team: TeamPlan) -> Iterator[Lever]:
    for resource in team.quota_resources:
        unit_and_value = _unit(resource)
        capacity = plan.capacity.get(resource.instance_type)
        if unit_and_value is None or capacity is None or not resource.path:
            continue
        unit, value = unit_and_value
        most = _MOST_PERCENT if unit == "share" else capacity.permanent * per_instance(resource.instance_type, unit)
        if resource.elastic and isinstance(value, int):
            most = max(most, value)
        label = f"{resource.instance_type} {unit} of {team.name}"
        yield Lever(label, "quota", (team.name,), resource.instance_type, ((*resource.path, unit),), unit, value, most)


def _unit(resource: QuotaResource) -> tuple[str, Value] | None:
    """Return unit and amount of a quota; None if it's set in parts of an instance."""
    if resource.share is not None:
        whole = 100 * resource.share
        return ("share", f"{whole}%") if whole.denominator == 1 else None
    if resource.partition is not None or resource.v_cpu is not None or resource.memory_in_gib is not None:
        return None
    if resource.count is not None:
        return "count", resource.count
    return ("accelerators", resource.accelerators) if resource.accelerators is not None else None


def per_instance(instance_type: str, unit: str) -> int:
    """Return one instance in a quota's unit."""
    kind = find_instance_type(instance_type)
    return (kind.accelerators or 1) if unit == "accelerators" and kind is not None else 1


def instance_levers(plan: Plan, data: Any) -> tuple[Lever, ...]:
    """Return the instance groups whose size can change: those with instance types for which teams have quota."""
    quota_types = {resource.instance_type for team in plan.teams for resource in team.quota_resources}
    place = ("environments", plan.environment, "cluster", "instanceGroups")
    groups = data["environments"][plan.environment]["cluster"].get("instanceGroups") or ()
    levers = []
    for index, group in enumerate(groups):
        instance_type, count = group.get("instanceType"), group.get("instanceCount")
        if instance_type in quota_types and isinstance(count, int):
            path: Path = (*place, index, "instanceCount")
            label = f"instanceCount of {group['name']}"
            levers.append(Lever(label, "instances", (), instance_type, (path,), "", count, 100_000))
    return tuple(levers)


def moves(levers: Sequence[Lever], state: State) -> list[State]:
    """Return the states one step away: a value changed, or changed back, or quota handed from one team to another."""
    states: dict[State, None] = {}
    for index, lever in enumerate(levers):
        for value in _steps(lever, state[index]):
            states.setdefault(_replace_value(state, index, value))
        states.setdefault(_replace_value(state, index, lever.base))
        if lever.kind == "quota":
            for other, giver in enumerate(levers):
                if other != index and giver.kind == "quota" and giver.instance_type == lever.instance_type:
                    states.update(dict.fromkeys(_handed(levers, state, giver=other, taker=index)))
    states.pop(state, None)
    return list(states)


def _replace_value(state: State, index: int, value: Value) -> State:
    return (*state[:index], value, *state[index + 1 :])


def _steps(lever: Lever, value: Value) -> Iterator[Value]:
    if lever.kind == "weight":
        yield from _WEIGHTS
    elif lever.kind == "borrow limit":
        yield from _LIMITS
    else:
        step = _SHARE_STEP if lever.unit == "share" else 1
        now = _number(value)
        for by in (step, -step, 4 * step, -4 * step):
            if 0 < now + by <= lever.most:
                yield _written(lever, now + by)


def _handed(levers: Sequence[Lever], state: State, *, giver: int, taker: int) -> Iterator[State]:
    """Return the states in which one team gives quota to another: one step, or half of its quota."""
    units = (levers[giver].unit, levers[taker].unit)
    if units[0] != units[1]:
        return
    step = _SHARE_STEP if units[0] == "share" else 1
    amount = _number(state[giver])
    for moved in dict.fromkeys((step, amount // 2 // step * step)):
        total = _number(state[taker]) + moved
        if moved > 0 and amount - moved > 0 and total <= levers[taker].most:
            given = _replace_value(state, giver, _written(levers[giver], amount - moved))
            yield _replace_value(given, taker, _written(levers[taker], total))


def _number(value: Value) -> int:
    return value if isinstance(value, int) else int(value.removesuffix("%"))


def _written(lever: Lever, value: int) -> Value:
    return f"{value}%" if lever.unit == "share" else value
