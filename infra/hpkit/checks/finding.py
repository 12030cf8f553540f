"""The validator's results: one frozen record per finding."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from hpkit.text.printable import printable

__all__ = ["Finding", "Severity", "Summary", "summarize"]

# Rules about the sum of all quota in an environment.
_OF_SUMS: Final = ("CAP005", "CAP006")
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding with its position in the file.

    - path: as displayed (`teams[john].sharing.borrowLimit`).
    - line, column: counted from 1.
    - message: the problem of the values.
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
        """Escape text from the file in path and messages; `file` remains the name that opens it."""
        for name in ("path", "message", "fix"):
            object.__setattr__(self, name, printable(getattr(self, name)))

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the sort key of findings: by file, errors first, of these format errors first, then by position.

        Findings about sums are last, because they can be consequences of errors in the parts.
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
    """The number of findings per severity."""

    errors: int
    warnings: int


def summarize(findings: list[Finding]) -> Summary:
    """Count findings by severity."""
    errors = sum(finding.severity == "error" for finding in findings)
    return Summary(errors, len(findings) - errors)
