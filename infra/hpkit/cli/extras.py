"""The extras of the package: whether what a command needs beside the dependencies is installed."""

import re
from importlib.metadata import PackageNotFoundError, distribution

from hpkit.errors import ToolError

__all__ = ["need"]

_REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*["'](?P<extra>[\w.-]+)["']""")


def need(extra: str, *, what: str) -> None:
    """Raise ToolError, with how to install it, when a package of an extra is not here; `what` needs it."""
    lacking = [name for name in _packages(extra) if not _here(name)]
    if lacking:
        raise ToolError(
            f"{what} needs packages that are not installed: {', '.join(lacking)}. "
            f"Install them: pip install 'hpkit[{extra}]'"
        )


def _packages(extra: str) -> list[str]:
    """Return what the package's own metadata lists for an extra; nothing where it runs without being installed."""
    try:
        requires = distribution("hpkit").requires or ()
    except PackageNotFoundError:
        return []
    found = (_REQUIREMENT.match(line) for line in requires)
    return [each["name"] for each in found if each is not None and each["extra"] == extra]


def _here(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
