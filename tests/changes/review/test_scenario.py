"""A scenario in a review: waits and preemptions before and after, in every format, and when they need attention."""

import html

import pytest

from hpkit.changes.plan_diff import Change
from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_markdown import as_markdown
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.model import ScenarioChange, TeamWaits
from tests.builders import organization, text_of
from tests.changes.review.builders import review_of
from tests.cli.test_review import Repository, acme
from tests.documents import plain

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
