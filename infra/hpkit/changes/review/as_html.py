"""The review as one HTML page: no network, no script, charts inline, everything escaped."""

from functools import cache

from jinja2 import Template

from hpkit.changes.review import tables
from hpkit.changes.review.charts import capacity_chart, team_charts
from hpkit.changes.review.model import Review
from hpkit.text.html import html_templates
from hpkit.text.plural import plural

__all__ = ["as_html"]


@cache
def _template() -> Template:
    environment = html_templates("hpkit.changes.review")
    environment.globals |= {"tables": tables, "plural": plural}
    environment.globals |= {"capacity_chart": capacity_chart, "team_charts": team_charts}
    environment.filters["risk_line"] = tables.risk_line
    environment.filters["step_row"] = tables.step_row
    return environment.get_template("review.html.j2")


def as_html(review: Review) -> str:
    """Return the page; it reads alike on screen, in print, by keyboard and by a screen reader."""
    return _template().render(review=review, stacks=review.stacks)
