"""The page of what the source articles say: each sentence, what does it here, and which test or page shows it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field

__all__ = ["FILES", "Article", "Row", "articles"]

_HEAD: Final = """# What the articles say, and where it is here

Five articles describe what this kit does. Below is every capability, setting, step and number of theirs. `by` is what
does it: a key of the organization file ([reference/config.md](reference/config.md)), a command, a rule
([reference/rules.md](reference/rules.md)) or a file; `shown by` is the test or page that runs it. Where the kit does
something else, the last column says what and why. This page is generated, and a test fails for a name on it that is not
there.
"""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Row(_Strict):
    """One thing that an article says."""

    says: str
    by: tuple[str, ...] = Field(min_length=1)
    shown: tuple[str, ...] = Field(min_length=1)
    differs: str = ""


class Article(_Strict):
    """An article, the example stacks that are of it, and what it says."""

    title: str
    source: str
    stacks: tuple[str, ...] = Field(min_length=1)
    rows: tuple[Row, ...] = Field(min_length=1)


def articles() -> list[Article]:
    """Return what the data file beside this module holds."""
    data: list[Any] = yaml.safe_load((Path(__file__).parent / "articles.yaml").read_text(encoding="utf-8"))
    return [Article.model_validate(each) for each in data]


def _page() -> str:
    """Return docs/articles.md."""
    return "\n".join([_HEAD, *(line for each in articles() for line in _section(each))])


def _section(article: Article) -> list[str]:
    stacks = ", ".join(f"[{name}](../{name})" for name in article.stacks)
    return [
        f"## {article.title}",
        "",
        f"{article.source}. Examples: {stacks}.",
        "",
        "| the article says | by | shown by | what differs, and why |",
        "|---|---|---|---|",
        *(f"| {row.says} | {_code(row.by)} | {_code(row.shown)} | {row.differs or '–'} |" for row in article.rows),
        "",
    ]


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


FILES: Final[dict[str, Callable[[], str]]] = {"docs/articles.md": _page}
