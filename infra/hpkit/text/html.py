"""HTML pages that need nothing else: no network and no script."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["html_templates"]


def html_templates(package: str) -> "Environment":
    """Return the templates of a package. They escape every value, and a name without a value is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
