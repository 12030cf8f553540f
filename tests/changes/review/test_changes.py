"""What a review contains for a change: every loss is named, and the verdict is OK only without losses.

changes.yaml has changes of the size of a pull request, and edits.yaml has single edits. Recording an edit takes half a
second, so each run tries an eighth of the edits, and the nightly run all of them.
"""

import html
import re

import pytest

from hpkit.changes.plan_diff import Change
from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_markdown import as_markdown
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.model import ScenarioChange, TeamWaits
from tests.builders import organization, text_of
from tests.changes.review.builders import Table, assert_says, assert_sufficient, review_in, review_of
from tests.cli.test_review import Repository, acme
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


SAME = Change(1, 1)


def waits(before, after, never=SAME, name="john"):
    return TeamWaits(name, Change(1.0, 0.5), Change(0.0, 60.0), Change(before, after), Change(0, 2), never)


def reviewed(*teams, note=""):
    text = text_of(organization())
    change = ScenarioChange("day.yaml", note, Change(0.9, 0.8), Change(1.0, 4.5), Change(0, 2), teams)
    return review_of(text, text, record=None, scenarios={"acme-dev": change})


@pytest.mark.parametrize(
    ("team", "message"),
    [
        (waits(0.0, 5400.0), ["acme-dev: 95 of 100 tasks of john wait up to 1h30m, not 0s"]),
        (waits(3600.0, 3700.0), []),
        (waits(5400.0, 0.0), []),
        (waits(None, 9000.0), []),
        (waits(0.0, 0.0, never=Change(0, 2)), ["acme-dev: 2 tasks of john can no longer run at all"]),
    ],
)
def test_much_longer_waits_ask_for_attention(team, message):
    found = reviewed(team)
    assert list(found.reasons) == message
    assert found.verdict == ("attention" if message else "ok")


def test_every_format_shows_the_waits():
    review = reviewed(waits(0.0, 5400.0), waits(None, 60.0, name="<new>"))
    text, markdown = as_text(review), as_markdown(review)
    for shown in (text, html.unescape(markdown)):
        assert "0s → 1h30m" in shown
        assert "90% → 80%" in shown
        assert "day.yaml" in shown
    assert "<new>" not in markdown
    (stack,) = plain(ChangeReview.model_validate(review))["stacks"]
    assert stack["scenario"]["teams"][0]["waitP95"] == {"before": 0.0, "after": 5400.0}


def test_what_cannot_be_simulated_is_said():
    for write in (as_text, as_markdown):
        assert "there is no team" in write(reviewed(note="there is no team"))


def test_the_command_simulates_base_and_head(tmp_path):
    repository = Repository(tmp_path)
    repository.write("stacks/acme.yaml", acme(count=3))
    repository.commit()
    repository.write("stacks/acme.yaml", acme(count=1))
    tasks = "\n".join(f"- {{name: t{n}, team: ada, count: 1, run: 1h}}" for n in range(3))
    (tmp_path / "day.yaml").write_text(f"tasks:\n{tasks}\n- {{name: big, team: ada, count: 2, run: 1h}}\n")
    review = repository.review("--scenario", "day.yaml", "--quick")
    (stack,) = review["stacks"]
    (team,) = stack["scenario"]["teams"]
    assert team["never"] == {"before": 0, "after": 1}
    assert team["waitP95"]["after"] > team["waitP95"]["before"]
    assert any("can no longer run at all" in reason for reason in review["reasons"])


def test_a_scenario_of_other_teams_is_said_and_one_that_is_not_there_ends_it(tmp_path):
    repository = Repository(tmp_path)
    repository.write("stacks/acme.yaml", acme(count=3))
    repository.commit()
    repository.write("stacks/acme.yaml", acme(count=1))
    (tmp_path / "day.yaml").write_text("tasks:\n- {name: t, team: others, count: 1, run: 1h}\n")
    (stack,) = repository.review("--scenario", "day.yaml", "--quick")["stacks"]
    assert stack["scenario"]["note"] == "none of its tasks belongs to a team of this stack"
    result = repository.run("--scenario", "no.yaml", "--quick")
    assert (result.returncode, "no.yaml: this file doesn't exist" in result.stderr) == (1, True)
