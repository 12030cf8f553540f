"""The packages that hpkit needs, each with its version and hashes: what a project's pipelines install."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

_LOCK = Path(__file__).parent / "requirements.lock"


def locked_requirements(extra: str) -> str:
    """Return the part of the kit's own lock file that hpkit with an extra needs, on every platform."""
    entries = {
        canonicalize_name(entry.partition("==")[0]): entry
        for entry in re.split(r"^(?=[A-Za-z0-9])", _LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if "==" in entry
    }
    needed: set[NormalizedName] = set()
    todo = [(canonicalize_name("hpkit"), frozenset({extra}))]
    seen = set(todo)
    while todo:
        for requirement in _requirements(*todo.pop()):
            name = canonicalize_name(requirement.name)
            following = (name, frozenset(requirement.extras))
            if name in entries and following not in seen:
                needed.add(name)
                seen.add(following)
                todo.append(following)
    return "".join(entries[name] for name in sorted(needed))


def _requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what a package needs; for another platform it may not be installed here, and needs nothing then."""
    try:
        listed = requires(name) or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, listed):
        marker = requirement.marker
        if marker is None or "extra" not in str(marker) or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield requirement
