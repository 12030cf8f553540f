"""Finds where files set the values of a team, an instance group or an environment."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpkit.config.document import Document, Mark, Path, value_at

__all__ = ["PlacedValue", "places_of_group", "places_of_team", "values_of"]


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value that an environment uses, and its position. inherited: it's set for several environments or files."""

    path: Path
    value: Any
    mark: Mark
    inherited: bool


def places_of_team(document: Document, environment: str, team: str) -> list[tuple[Path, Mark]]:
    """Return path and position of a team, its quota, and each setting that applies to it in the environment."""
    governance: Path = ("environments", environment, "governance")
    teams = value_at(document.data, ("teams",)) or ()
    paths: list[Path] = [("teams", index) for index, each in enumerate(teams) if value_at(each, ("name",)) == team]
    paths += [(*governance, "allocations", team), *_keys(document, (*governance, "overrides", team))]
    own = (*governance, "clusterPolicy")
    paths += _keys(document, own if value_at(document.data, own) is not None else ("clusterPolicy",))
    paths += _keys(document, (*governance, "gangScheduling"))
    return [(path, document.locate(path)) for path in paths if value_at(document.data, path) is not None]


def places_of_group(document: Document, environment: str, group: str) -> list[tuple[Path, Mark]]:
    """Return path and position of an instance group."""
    cluster: Path = ("environments", environment, "cluster")
    paths = [
        (*cluster, key, index)
        for key in ("instanceGroups", "restrictedInstanceGroups")
        for index, item in enumerate(value_at(document.data, (*cluster, key)) or ())
        if value_at(item, ("name",)) == group
    ]
    return [(path, document.locate(path)) for path in paths]


def _keys(document: Document, path: Path) -> Iterator[Path]:
    """Yield the path of each key of a map, because each can come from another file."""
    value = value_at(document.data, path)
    for key in value if isinstance(value, dict) else ():
        yield (*path, key)


def values_of(document: Document, environment: str) -> list[PlacedValue]:
    """Return each value that the files set for an environment: its own, inherited ones, and the organization's."""
    return [
        PlacedValue(path, value, mark, _is_inherited(document, path, mark))
        for path, value in _leaves(document.data, ())
        if path[0] != "environments" or path[1:2] == (environment,)
        for mark in (document.locate(path),)
    ]


def _is_inherited(document: Document, path: Path, mark: Mark) -> bool:
    """Return whether a value comes from the `defaults` file or from `environmentDefaults`."""
    if mark.file and mark.file == document.defaults:
        return True
    own = document.parts.get(mark.file)
    stated = path[2:] if path[0] == "environments" else ()
    return bool(stated and own and own.locate(("environmentDefaults", *stated)) == mark)


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of each entry that has no nested values; a list of texts is one value."""
    steps: list[str | int] = []
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, tuple) and any(isinstance(each, dict | tuple) for each in value):
        steps = list(range(len(value)))
    if not steps:
        yield path, value
    for step in steps:
        yield from _leaves(value[step], (*path, step))
