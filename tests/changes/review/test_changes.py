"""Changes of the size of a pull request: changes/NN-name holds base, head, and what a review must say.

expect.yaml: `stacks` and `status` by stack, `rules` (ids of new, fixed, remaining findings), `watch` (codes that must
be there), `says` and `silent` (what the text, its columns joined by one space, and the reasons must and must not say).
"""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from hpkit.changes.review.as_html import as_html
from hpkit.changes.review.as_json import as_dict
from hpkit.changes.review.as_markdown import as_markdown
from hpkit.changes.review.as_text import as_text
from tests.changes.review.builders import assert_sufficient, review_of
from tests.documents import plain

CHANGES = Path(__file__).parent / "changes"
NAMES = sorted(folder.name for folder in CHANGES.iterdir())


@cache
def change(name):
    """Return the review of a change, made once for all that is asked of it, and what it must say."""
    folder = CHANGES / name
    expected = yaml.safe_load((folder / "expect.yaml").read_text())
    return review_of((folder / "base.yaml").read_bytes(), (folder / "head.yaml").read_bytes()), expected


@pytest.mark.parametrize("name", NAMES)
def test_the_review_of_a_change_says_what_matters(name):
    review, expected = change(name)
    by_name = {stack.stack: stack for stack in review.stacks}
    assert {stack: by_name[stack].verdict for stack in expected["stacks"]} == expected["stacks"], review.reasons
    assert review.verdict == expected.get("verdict", review.verdict)
    for stack, status in expected.get("status", {}).items():
        assert by_name[stack].status == status
    said = " ".join((as_text(review, width=10_000) + " " + " ".join(review.reasons)).split())
    for line in expected.get("says", ()):
        assert line in said
    for line in expected.get("silent", ()):
        assert line not in said


@pytest.mark.parametrize("name", NAMES)
def test_findings_and_what_to_watch_are_as_expected(name):
    review, expected = change(name)
    for kind, rules in expected.get("rules", {}).items():
        changes = [part.findings for part in (*review.files, *review.stacks)]
        assert [each.rule for found in changes for each in getattr(found, kind)] == rules, kind
    codes = {risk.code for stack in review.stacks for risk in stack.risks}
    assert set(expected.get("watch", ())) <= codes


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_the_same_verdict_and_the_reasons(name):
    review, _ = change(name)
    data = plain(as_dict(review))
    assert data["verdict"] == review.verdict
    assert data["reasons"] == list(review.reasons)
    assert f"<title>hpkit review: {review.verdict}</title>" in as_html(review)
    mark = {"ok": "✅", "attention": "❗", "blocked": "⛔"}[review.verdict]
    assert re.search(rf"^## {mark} ", as_markdown(review), re.MULTILINE)


# A quarter of them each time: every kind of advice is followed in tests/changes/test_change.py.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if index % 4 == 0 else pytest.mark.nightly) for index, name in enumerate(NAMES)],
)
def test_the_advice_of_every_refusal_is_accepted_by_the_validator_and_sufficient(name):
    assert_sufficient(*((CHANGES / name / f"{side}.yaml").read_bytes() for side in ("base", "head")), change(name)[0])


def test_there_are_changes_of_every_verdict():
    verdicts = [change(name)[0].verdict for name in NAMES]
    assert len(NAMES) >= 20
    assert {verdict: verdicts.count(verdict) >= 4 for verdict in ("ok", "attention", "blocked")} == {
        "ok": True,
        "attention": True,
        "blocked": True,
    }
