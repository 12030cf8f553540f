"""What a review contains for a change: every loss is named, and the verdict is OK only without losses.

changes.yaml has changes of the size of a pull request, and edits.yaml has single edits. Recording an edit takes half a
second, so each run tries an eighth of the edits, and the nightly run all of them.
"""

import html
import re

import pytest

from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_markdown import as_markdown
from tests.changes.review.builders import Table, assert_says, assert_sufficient, review_in
from tests.documents import plain

CHANGES, EDITS = Table("changes"), Table("edits")


def one_of(count, table):
    """Return the names in a table; only one of `share` names outside the nightly run."""
    marks = {index: pytest.mark.nightly for index in range(len(table.changes)) if index % count}
    return [pytest.param(name, marks=marks.get(index, ())) for index, name in enumerate(table.changes)]


@pytest.mark.parametrize("name", CHANGES.changes)
def test_the_review_of_a_change_says_what_matters(name):
    review, expected = review_in(CHANGES, name), CHANGES.changes[name]
    by_name = {stack.stack: stack for stack in review.stacks}
    assert expected.stacks
    assert {stack: by_name[stack].verdict for stack in expected.stacks} == expected.stacks, review.reasons
    assert {stack: by_name[stack].status for stack in expected.status} == expected.status
    assert review.verdict == (expected.verdict or review.verdict)
    assert_says(review, expected)


@pytest.mark.parametrize("name", CHANGES.changes)
def test_findings_and_what_to_watch_are_as_expected(name):
    review, expected = review_in(CHANGES, name), CHANGES.changes[name]
    changes = [part.findings for part in (*review.files, *review.stacks)]
    found = {kind: [each.rule for part in changes for each in getattr(part, kind)] for kind in expected.rules}
    assert found == expected.rules
    assert expected.watch <= {risk.code for stack in review.stacks for risk in stack.risks}


@pytest.mark.parametrize("name", CHANGES.changes)
def test_every_format_has_the_same_verdict_and_the_reasons(name):
    review = review_in(CHANGES, name)
    data = plain(ChangeReview.model_validate(review))
    assert data["verdict"] == review.verdict
    assert data["reasons"] == list(review.reasons)
    mark = {"ok": "✅", "attention": "❗", "blocked": "⛔"}[review.verdict]
    assert re.search(rf"^## {mark} ", as_markdown(review), re.MULTILINE)


# tests/changes/test_change.py follows every kind of advice.
@pytest.mark.parametrize("name", one_of(4, CHANGES))
def test_the_advice_of_every_refusal_is_accepted_by_the_validator_and_sufficient(name):
    assert_sufficient(*CHANGES.sides(name), review_in(CHANGES, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of(8, EDITS))
def test_an_edit_is_judged_and_what_it_loses_is_said(name):
    review, expected = review_in(EDITS, name), EDITS.changes[name]
    assert review.verdict == expected.verdict
    assert_says(review, expected)
    assert_sufficient(*EDITS.sides(name), review)


@pytest.mark.parametrize("name", [name for name, edit in EDITS.changes.items() if edit.verdict != "ok"])
def test_without_recording_no_loss_is_ok_either(name):
    assert review_in(EDITS, name, quick=True).verdict != "ok"


def test_a_comment_shortens_what_is_lost_and_keeps_the_advice():
    said = html.unescape(as_markdown(review_in(EDITS, "another-name-of-the-organization")))
    lines = [line for line in said.splitlines() if "the HyperPod cluster acme will be replaced" in line]
    assert lines
    for line in lines:
        assert "…" in line
        assert "first run `pulumi up` with `protect: false` and without this change" in line
        assert "`allowReplace: [eks, cluster, bucket, fileSystem]`" in line
