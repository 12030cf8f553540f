"""Exceptions for every error that a user can cause.

HpkitError
├── InputError         a file can't be read (missing, a folder, no permission, not UTF-8)
│   └── FindingsError  an organization file has format errors; the text lists all findings
├── SelectionError     the requested stack or file doesn't exist, or is selected in two ways
├── CatalogError       a name that isn't in the catalog
└── ToolError          an external tool or service is missing or failed
    ├── InterruptionError    the user pressed Ctrl-C; the exit code is 130
    └── MissingClusterError  AWS has no cluster with that name, but the local cloud might have it

The command line prints the message and exits 1; a traceback is always a bug.
"""

from collections.abc import Iterable

__all__ = [
    "UNSUPPORTED",
    "CatalogError",
    "FindingsError",
    "HpkitError",
    "InputError",
    "InterruptionError",
    "MissingClusterError",
    "SelectionError",
    "ToolError",
]

# On Windows, the command line and the Pulumi program end with this.
UNSUPPORTED = "hpkit runs on Linux, macOS and WSL. Install WSL with `wsl --install`, and run it there"


class HpkitError(Exception):
    """Base class of errors that are reported as one message: what is wrong, where, and how to fix it."""


class InputError(HpkitError):
    """A given file can't be read."""


class FindingsError(InputError):
    """An organization file has format errors; the text lists all findings, and is printed unchanged."""

    def __init__(self, text: str, findings: Iterable[object]) -> None:
        super().__init__(text)
        self.findings = tuple(findings)


class SelectionError(HpkitError):
    """The requested item isn't in the project; the command line exits 2, as for every usage error."""


class CatalogError(HpkitError):
    """A name that isn't in the catalog."""


class ToolError(HpkitError):
    """A required tool or service is missing or failed."""


class InterruptionError(ToolError):
    """The user pressed Ctrl-C; the message is what remains. The command line exits 130, as shells do for SIGINT."""


class MissingClusterError(ToolError):
    """These credentials see no cluster with that name; it might be on an instance of the local cloud."""
