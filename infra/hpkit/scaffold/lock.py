"""The packages that hpkit needs, each with its version and hashes: what a project's pipelines install."""

import re
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

__all__ = ["locked_installer", "locked_requirements"]

_LOCK = Path(__file__).parent / "requirements.lock"


def locked_requirements(extra: str) -> str:
    """Return the part of hpkit's own lock file that hpkit with an extra needs, on every platform and Python."""
    lock = _LOCK.read_text(encoding="utf-8")
    requirements = [
        requirement
        for requirement in map(Requirement, requires("hpkit") or [])
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    ]
    return _pins(lock, needed_packages(requirements, lock))


def locked_installer() -> str:
    """Return the part of hpkit's own lock file with uv, which installs the rest faster than pip."""
    return _pins(_LOCK.read_text(encoding="utf-8"), {canonicalize_name("uv")})


def _pins(lock: str, names: set[NormalizedName]) -> str:
    kept = (entry for name, entry in _entries(lock) if name in names)
    return "".join(re.sub(r"^ +#.*\n", "", entry, flags=re.MULTILINE) for entry in kept)


def needed_packages(requirements: Iterable[Requirement], lock: str) -> set[NormalizedName]:
    """Return the packages of a lock file that requirements lead to.

    The lock file lists which packages need each package. Metadata of installed packages isn't enough: packages for
    another platform or Python aren't installed here.
    """
    needed = {canonicalize_name(each.name) for each in requirements}
    pins = [(name, _needed_by(entry)) for name, entry in _entries(lock)]
    while more := {name for name, needed_by in pins if name not in needed and needed & needed_by}:
        needed |= more
    return needed


def _entries(lock: str) -> list[tuple[NormalizedName, str]]:
    """Return each pin with the package's name; a package can have several, each for other Pythons."""
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    return [(canonicalize_name(entry.partition("==")[0]), entry) for entry in entries if "==" in entry]


def _needed_by(entry: str) -> set[NormalizedName]:
    """Return the packages that an entry names after `# via`."""
    return {canonicalize_name(name) for name in re.findall(r"^ +#(?: via)? +([\w.-]+)$", entry, re.MULTILINE)}
