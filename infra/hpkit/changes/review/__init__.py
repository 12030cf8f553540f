"""The review of a change: a report without side effects, and its formats.

It doesn't open files, call git or run Pulumi; the command line provides base, head and a parsed preview.
"""

from hpkit.changes.review.build import FileInput, FileVersion, StackInput, StackVersion, review
from hpkit.changes.review.model import Review

__all__ = ["FileInput", "FileVersion", "Review", "StackInput", "StackVersion", "review"]
