"""The typed organization file, with the position of each value."""

from hpkit.config.models.organization import Environment, Organization
from hpkit.config.reading.document import Document, Mark, Path, Problem, format_path
from hpkit.config.reading.load import MAX_BYTES, read_file, read_text, require_file
from hpkit.config.reading.parse import Parsed, parse

__all__ = [
    "MAX_BYTES",
    "Document",
    "Environment",
    "Mark",
    "Organization",
    "Parsed",
    "Path",
    "Problem",
    "format_path",
    "parse",
    "read_file",
    "read_text",
    "require_file",
]
