"""What the validator says: one frozen record per finding."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from hpkit.text.printable import printable

__all__ = ["Finding", "Severity", "Summary", "summarize"]

# What all quota of an environment comes to together.
_OF_SUMS: Final = ("CAP005", "CAP006")
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, placed in its file.

    - path: as users read it (`teams[john].sharing.borrowLimit`).
    - line, column: counted from 1.
    - message: what is wrong with the values.
    - fix: what to do.

    path, message and fix are printable.
    """

    rule: str
    severity: Severity
    path: str
    file: str
    line: int
    column: int
    message: str
    fix: str

    def __post_init__(self) -> None:
        """Escape what the file's author put into path and texts; `file` stays the name that opens it."""
        for name in ("path", "message", "fix"):
            object.__setattr__(self, name, printable(getattr(self, name)))

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the key by which findings are sorted: in a file errors first, of these its form, each by place.

        What sums come to stands last: it may follow from what is wrong with a part of them.
        """
        form = self.rule.startswith("CFG")
        return (
            self.file,
            self.severity != "error",
            not form,
            self.rule in _OF_SUMS,
            self.line,
            self.column,
            self.rule,
            self.message,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as the JSON contract writes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Summary:
    """How many of each severity."""

    errors: int
    warnings: int


def summarize(findings: list[Finding]) -> Summary:
    """Count findings by severity."""
    errors = sum(finding.severity == "error" for finding in findings)
    return Summary(errors, len(findings) - errors)
