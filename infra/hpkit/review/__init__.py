"""What a change does to the stacks it touches: a pure report, and its ways to be read.

Does not: open files, ask git or run Pulumi; the command line brings both sides and a parsed preview.
"""

from hpkit.review.build import FileInput, FileVersion, StackInput, StackVersion, review
from hpkit.review.model import Review

__all__ = ["FileInput", "FileVersion", "Review", "StackInput", "StackVersion", "review"]
