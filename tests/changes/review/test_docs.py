"""docs/guides/review.md lists every code and key."""

import re
from pathlib import Path

from hpkit.changes import GUARDED_TYPES
from hpkit.changes.decision import CODES, RELOCATIONS, RENAMED
from hpkit.changes.review.as_markdown import LIMIT
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.losses import GRAVITY
from tests.changes.review.builders import Table, review_in

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "review.md").read_text()


def test_the_example_is_what_the_review_says():
    review = review_in(Table("changes"), "a-group-is-renamed")
    assert f"```text\n{as_text(review)}\n```" in PAGE


def test_every_code_to_watch_is_described_and_no_other():
    files = (ROOT / "infra" / "hpkit" / "changes").rglob("*.py")
    sources = "".join(file.read_text() for file in files)
    made = set(re.findall(r'(?:Risk|GuardDecision)\(\s*"([a-z-]+)"', sources)) | {"group-removed", "group-renamed"}
    made |= {*RELOCATIONS, *RENAMED.values(), *re.findall(r'"(limit-[a-z]+)"', sources)}
    made |= {f"{action}-{key}" for action in ("replace", "delete") for key in GUARDED_TYPES.values()} | set(
        CODES.values()
    )
    assert made == set(GRAVITY), "each has its place among what loses more and less"
    section = PAGE.split("## Risks")[1].split("## Cost")[0]
    rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert made == {code for row in rows for code in re.findall(r"`([a-zA-Z-]+)`", row)}


def test_the_limit_of_a_comment_is_the_one_in_the_code():
    assert f"{LIMIT:,} characters" in PAGE
