"""What a review says of one edit: everything that is lost is named, and OK stands only where nothing is.

edits.yaml holds the edits. Each has to be recorded, which takes half a second; the base is recorded once. An eighth
is tried each time, all at night.
"""

import html
from functools import cache
from pathlib import Path

import pytest
import yaml

from hpkit.changes.review.as_markdown import as_markdown
from hpkit.changes.review.as_text import as_text
from hpkit.config.edit import Layout, patched
from tests.changes.review.builders import assert_sufficient, recorded, review_of

FOLDER = Path(__file__).parent
BASE = (FOLDER / "edits.base.yaml").read_text()
TABLE = FOLDER / "edits.yaml"
EDITS = yaml.safe_load(TABLE.read_text())


def edited(name):
    """Return the base with an edit in it."""
    case, base = EDITS[name], Layout(BASE)
    edits = [base.remove(path) for path in case.get("remove", ())]
    edits += [base.replace(old, new) for old, new in case.get("replace", {}).items()]
    for path in case.get("change", {}):
        edits += base.set(path, Layout(TABLE.read_text()).value(name, "change", path))
    text = patched(BASE, edits)
    for old, new in case.get("replace-all", {}).items():
        text = text.replace(old, new)
    return text.encode()


@cache
def review_of_edit(name, *, quick=False):
    return review_of(BASE.encode(), edited(name), record=None if quick else recorded)


def said_of(review):
    return " ".join(as_text(review, width=100_000).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if index % 8 == 0 else pytest.mark.nightly) for index, name in enumerate(EDITS)],
)
def test_an_edit_is_judged_and_what_it_loses_is_said(name):
    review, expected = review_of_edit(name), EDITS[name]
    said = said_of(review)
    assert review.verdict == expected["verdict"], said
    for line in expected["says"]:
        assert line in said
    for line in expected.get("silent", ()):
        assert line not in said
    assert_sufficient(BASE.encode(), edited(name), review)


@pytest.mark.parametrize("name", [name for name, edit in EDITS.items() if edit["verdict"] != "ok"])
def test_without_recording_no_loss_is_ok_either(name):
    assert review_of_edit(name, quick=True).verdict != "ok"


def test_a_comment_shortens_what_is_lost_and_keeps_the_advice():
    said = html.unescape(as_markdown(review_of_edit("another-name-of-the-organization")))
    lines = [line for line in said.splitlines() if "the HyperPod cluster acme will be replaced" in line]
    assert lines
    for line in lines:
        assert "…" in line
        assert "first run `pulumi up` with `protect: false` and without this change" in line
        assert "`allowReplace: [eks, cluster, bucket, fileSystem]`" in line
