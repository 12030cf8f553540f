"""The same scenario under many policies: values of an organization file varied, each combination simulated."""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpkit.config import parse
from hpkit.config.messages.suggest import nearest
from hpkit.config.models.organization import Environment
from hpkit.config.reading.document import Path, find_item, item_label, with_value
from hpkit.config.reading.load import resolve
from hpkit.errors import SelectionError
from hpkit.plan.model import Plan
from hpkit.project import Loaded
from hpkit_whatif.scenario.read import Source
from hpkit_whatif.simulate.report import Report
from hpkit_whatif.simulate.workers import Cluster, simulate_plans

__all__ = ["MOST_POLICIES", "NewValue", "Result", "Variation", "changed", "grid", "sweep", "variation"]

MOST_POLICIES = 10_000
_UNKNOWN_KEY = "CFG001"

_STEP = re.compile(r"([A-Za-z][A-Za-z0-9-]*)((?:\[[^\[\]]+\])*)(?:\.|\Z)")


@dataclass(frozen=True, slots=True)
class Variation:
    """A value of the file, as it was named, and the values to try."""

    text: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NewValue:
    """One value of the file, and its new value."""

    text: str
    value: Any


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one policy: a report without single tasks, or why the validator rejects it."""

    changes: tuple[NewValue, ...]
    report: Report | None = None
    rejected: str | None = None


def variation(text: str) -> Variation:
    """Return the parsed `PATH=VALUE,VALUE`. Raises SelectionError for any other format."""
    path, equals, values = text.partition("=")
    if not equals or not path or not values:
        raise SelectionError(
            f"`{text}` isn't a valid --vary option; use PATH=VALUE,VALUE, such as teams[smith].fairShareWeight=0,50"
        )
    return Variation(path, tuple(resolve(each.strip()) for each in values.split(",")))


def grid(variations: Sequence[Variation]) -> list[tuple[NewValue, ...]]:
    """Return every combination of the variations' values; SelectionError for more than a sweep should have."""
    count = 1
    for each in variations:
        count *= len(each.values)
    if count > MOST_POLICIES:
        raise SelectionError(f"that is {count:,} policies; a sweep has at most {MOST_POLICIES:,}")
    rows = itertools.product(*([NewValue(each.text, value) for value in each.values] for each in variations))
    return list(rows)


def changed(loaded: Loaded, changes: Iterable[NewValue]) -> tuple[Loaded, Plan | str]:
    """Return a stack with other values, and its plan; or, instead of that, the first error that was not there before.

    SelectionError for a path that the file does not have.
    """
    data = loaded.document.data
    hint = ""
    for change in changes:
        path = _locate(data, change.text, loaded.environment or "")
        hint = hint or _nearest_path(data, path)
        data = with_value(data, path, change.value)
    document = replace(loaded.document, data=data)
    after = replace(loaded, document=document, parsed=parse(document))
    known = {(each.rule, each.path) for each in loaded.findings if each.severity == "error"}
    for finding in after.findings:
        if finding.severity == "error" and (finding.rule, finding.path) not in known:
            if finding.rule == _UNKNOWN_KEY:
                raise SelectionError(f"{finding.message}. {hint or finding.fix}")
            return after, f"{finding.rule} {finding.path}: {finding.message}"
    for plan in after.plans.values():
        return after, plan
    return after, "its file has format errors"


def _locate(data: Any, text: str, environment: str) -> Path:
    """Return the way to a value: from the top, from the environment, or `governance.teams` for the teams."""
    steps = _steps(text)
    if steps[:2] == ["governance", "teams"]:
        steps = steps[1:]
    elif steps[0] not in data:
        fields = {field.alias or name for name, field in Environment.model_fields.items()}
        if steps[0] not in fields:
            parts = data.get("environments", {}).get(environment, {})
            deeper = (
                f"{part}.{steps[0]}" for part in parts if isinstance(parts[part], dict) and steps[0] in parts[part]
            )
            near = next(deeper, None) or nearest(str(steps[0]), {*map(str, data), *fields})
            raise SelectionError(
                f"{text}: the file has no `{steps[0]}`" + (f"; did you mean `{near}`?" if near else "")
            )
        steps = ["environments", environment, *steps]
    path: list[str | int] = []
    value = data
    for index, step in enumerate(steps):
        if isinstance(value, (tuple, list)):
            position = find_item(value, step)
            if position is None:
                there = ", ".join(item_label(value, each) for each in range(len(value)))
                raise SelectionError(f"{text}: there is no [{step}]; there are {there or 'none'}")
            path.append(position)
            value = value[position]
        elif isinstance(value, dict):
            if step not in value and index < len(steps) - 1 and not _may_be_new(steps[index:]):
                raise SelectionError(f"{text}: there is no `{step}`; there are {', '.join(map(str, value))}")
            path.append(step)
            value = value.get(step, {})
        else:
            raise SelectionError(f"{text}: `{path[-1]}` is `{value}`, and has no `{step}`")
    return tuple(path)


def _nearest_path(data: Any, path: Path) -> str:
    """Return the existing key that a new one probably means; the validator would only report both."""
    parent = functools.reduce(
        lambda value, step: value.get(step, {}) if isinstance(value, dict) else value[step], path[:-1], data
    )
    if not isinstance(parent, dict) or path[-1] in parent:
        return ""
    near = nearest(str(path[-1]), map(str, parent))
    return f"Did you mean `{near}`?" if near else ""


def _may_be_new(steps: Sequence[str]) -> bool:
    """Return whether a map can be created on the way: only those that the file may omit as a whole."""
    return steps[0] in ("sharing", "clusterPolicy", "sharedPool")


def _steps(text: str) -> list[str]:
    steps: list[str] = []
    place = 0
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise SelectionError(
                f"`{text}` isn't a valid path; use keys and dots, and list items by name, such as teams[smith].x"
            )
        steps += [match[1], *re.findall(r"\[([^\[\]]+)\]", match[2])]
        place = match.end()
    return steps


def sweep(
    loaded: Loaded,
    source: Source,
    policies: Sequence[tuple[NewValue, ...]],
    *,
    seed: int | None = None,
    workers: int | None = None,
    on: Cluster | None = None,
) -> Iterator[Result]:
    """Simulate a scenario with each policy, in order, with one process per core, or on a cluster.

    Raises InputError for an invalid scenario or path, ToolError if a process dies or the cluster is missing.
    """
    # Policies are applied to the file here, because remote workers have neither the project nor its charts.
    plans = [changed(loaded, policy)[1] for policy in policies]
    good = [plan for plan in plans if isinstance(plan, Plan)]
    reports = simulate_plans(good, source, seeds=(seed,), workers=workers, on=on)
    for policy, plan in zip(policies, plans, strict=True):
        yield Result(policy, rejected=plan) if isinstance(plan, str) else Result(policy, next(reports)[0])
