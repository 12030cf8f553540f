"""What a change does to the stacks it touches: a pure report, and its formats.

Does not: open files, ask git or run Pulumi; the command line brings base, head and a parsed preview.
"""

from hpkit.changes.review.build import FileInput, FileVersion, StackInput, StackVersion, review
from hpkit.changes.review.model import Review

__all__ = ["FileInput", "FileVersion", "Review", "StackInput", "StackVersion", "review"]
