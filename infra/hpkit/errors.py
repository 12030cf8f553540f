"""What hpkit raises for anything a user can cause.

HpkitError
├── InputError         a file cannot be read at all (missing, a directory, not allowed, not UTF-8)
│   └── FindingsError  an organization file has errors of form; the text lists all findings
├── SelectionError     the requested stack or file does not exist, or is named in two ways at once
├── CatalogError       a name that the catalog does not hold
└── ToolError          an outside tool or service is missing or failed
    └── MissingClusterError    AWS has no cluster of that name, which the local cloud may have

The command line prints the message and exits 1; a traceback is always a bug.
"""

from collections.abc import Iterable

__all__ = [
    "CatalogError",
    "FindingsError",
    "HpkitError",
    "InputError",
    "MissingClusterError",
    "SelectionError",
    "ToolError",
]


class HpkitError(Exception):
    """Base of all errors that are reported as one message: what is wrong, where, how to fix it."""


class InputError(HpkitError):
    """A file that was named cannot be read."""


class FindingsError(InputError):
    """An organization file has errors of form; the text lists all findings, and is printed as it is."""

    def __init__(self, text: str, findings: Iterable[object]) -> None:
        super().__init__(text)
        self.findings = tuple(findings)


class SelectionError(HpkitError):
    """What was asked for is not in the project; the command line exits 2, as for every misuse."""


class CatalogError(HpkitError):
    """A name that the catalog does not hold."""


class ToolError(HpkitError):
    """A tool or a service that hpkit needs is missing or failed."""


class MissingClusterError(ToolError):
    """These credentials see no cluster of that name; it may be on an instance of the local cloud."""
