"""A self-contained page without scripts, fonts or requests; readable from 320 pixels up, and in print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Template

from hpkit.text.html import html_templates

__all__ = ["Section", "page"]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: lines, then a drawing (SVG), then a table with its header.

    numbers: which columns are figures.
    """

    title: str
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: frozenset[int] = frozenset()
    drawing: str = ""


@cache
def _template() -> Template:
    return html_templates("hpkit.cluster.usage").get_template("page.html.j2")


def page(title: str, summary: str, sections: Sequence[Section]) -> str:
    """Return the page; everything but the drawings, whose makers escape their texts, is escaped."""
    return _template().render(title=title, summary=summary, sections=[each for each in sections if _has_content(each)])


def _has_content(section: Section) -> bool:
    return bool(section.lines or section.rows or section.drawing)
