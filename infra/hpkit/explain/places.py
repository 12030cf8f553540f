"""Where the files set what a team or an instance group has."""

from collections.abc import Iterator

from hpkit.config.document import Document, Mark, Path, value_at

__all__ = ["places_of_group", "places_of_team"]


def places_of_team(document: Document, environment: str, team: str) -> list[tuple[Path, Mark]]:
    """Return the path and the place of a team, of its quota, and of each setting that the environment has for it."""
    governance: Path = ("environments", environment, "governance")
    teams = value_at(document.data, ("teams",)) or ()
    paths: list[Path] = [("teams", index) for index, each in enumerate(teams) if value_at(each, ("name",)) == team]
    paths += [(*governance, "allocations", team), *_keys(document, (*governance, "overrides", team))]
    own = (*governance, "clusterPolicy")
    paths += _keys(document, own if value_at(document.data, own) is not None else ("clusterPolicy",))
    return [(path, document.locate(path)) for path in paths if value_at(document.data, path) is not None]


def places_of_group(document: Document, environment: str, group: str) -> list[tuple[Path, Mark]]:
    """Return the path and the place of an instance group."""
    cluster: Path = ("environments", environment, "cluster")
    paths = [
        (*cluster, key, index)
        for key in ("instanceGroups", "restrictedInstanceGroups")
        for index, item in enumerate(value_at(document.data, (*cluster, key)) or ())
        if value_at(item, ("name",)) == group
    ]
    return [(path, document.locate(path)) for path in paths]


def _keys(document: Document, path: Path) -> Iterator[Path]:
    """Yield the path of each key of a map: each can come from another file."""
    value = value_at(document.data, path)
    for key in value if isinstance(value, dict) else ():
        yield (*path, key)
