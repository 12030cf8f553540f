"""Reported risks and losses, and the resulting verdict: one change per row of risks.yaml, or per test."""

import pytest

from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.model import Preview, PreviewStep
from hpkit.changes.review.tables import headline, loss_lines, summary_rows
from tests.builders import organization, team, text_of
from tests.changes.review.builders import Table, assert_findings, assert_says, codes_of, review_in, review_of
from tests.documents import plain

RISKS = Table("risks")
ROW = {"instanceType": "ml.g5.12xlarge", "count": 2}


@pytest.mark.parametrize("name", RISKS.changes)
def test_a_change_has_its_verdict_risks_and_losses(name):
    review, expected = review_in(RISKS, name), RISKS.changes[name]
    assert (review.verdict, codes_of(review)) == (expected.verdict, expected.codes)
    assert_findings(review, expected)
    assert_says(review, expected)
    losses = tuple(line for stack in review.stacks for line in loss_lines(stack))
    assert losses == (losses if expected.losses is None else expected.losses)


def reviewed(base, head, **more):
    (stack,) = review_of(text_of(base), text_of(head), **more).stacks
    return stack


def of(environment=None, **more):
    return organization(environment=environment, **more)


def shares(*, ada=2, bob=2, lend="LendAndBorrow", weight=50):
    return organization(
        teams=[
            team("ada", sharing={"strategy": "LendAndBorrow", "borrowLimit": 100}, fairShareWeight=weight),
            team("bob", sharing={"strategy": lend}),
        ],
        allocations={"ada": [{**ROW, "count": ada}], "bob": [{**ROW, "count": bob}]},
        top={"clusterPolicy": {"idleResourceSharing": "Disabled"}},
    )


def test_of_two_faults_at_one_place_the_one_that_is_fixed_is_told_by_its_words():
    # Both environments have CAP006 for the team's only borrowLimit; in dev, bob then has enough to lend.
    both = shares(ada=3, bob=1)
    both["environments"]["prod"] = shares(ada=3, bob=1)["environments"]["dev"]
    half = shares(ada=2, bob=2)
    half["environments"]["prod"] = both["environments"]["prod"]
    (file,) = review_of(text_of(both), text_of(half)).files
    assert ["in `dev`" in each.message for each in file.findings.fixed] == [True]
    assert ["in `prod`" in each.message for each in file.findings.remaining] == [True]


def test_a_preview_that_fails_blocks_and_one_that_replaces_asks_for_attention():
    steps = (PreviewStep("replace", "aws:ec2/vpc:Vpc", "net", "urn:x", ("cidrBlock",)),)
    new = review_of(text_of(of()), text_of(of()), previews={"acme-dev": Preview((), 3, ("no room for it",))})
    assert (headline(new)[:13], new.reasons) == ("Blocked: this", ("acme-dev: the preview fails: no room for it",))
    missing = Preview((), 0, ("no such stack",), ran=False)
    for top, verdict in ((None, "ok"), ({"tags": {"a": "b"}}, "attention")):
        absent = reviewed(of(), of(top=top), previews={"acme-dev": missing})
        assert (absent.verdict, absent.reasons) == (verdict, ("not previewed: no such stack",))
    replacing = reviewed(of(), of(), previews={"acme-dev": Preview(steps, 3, ())})
    assert (replacing.verdict, replacing.reasons) == ("attention", ("the preview replaces 1 resource",))
    failed = Preview((), 3, ("CAP001 environments.dev.governance.allocations.ada[ml.g5.12xlarge]: too many",))
    old = review_of(*[text_of(shares(ada=99))] * 2, previews={"acme-dev": failed})
    assert headline(old) == "Blocked by errors that main already has: this change adds none"


def test_what_a_team_shares_less_is_in_one_line():
    text = as_text(review_of(text_of(shares()), text_of(shares(lend="DontLend"))), width=1000)
    (said,) = [line for line in text.splitlines() if "DontLend" in line]
    assert "sharing of bob LendAndBorrow → DontLend" in said
    assert "borrow limit" not in text


def test_settings_of_the_table_and_what_follows_from_the_version_are_not_repeated_by_resource():
    newer = shares(weight=70)
    newer["environments"]["dev"]["eks"]["version"] = "1.34"
    older = shares(weight=50)
    older["environments"]["dev"]["eks"]["version"] = "1.33"
    lines = [line.strip() for line in as_text(review_of(text_of(older), text_of(newer)), width=1000).splitlines()]
    assert "update hyperpod.ComputeQuota ada" in lines
    assert "update kubernetes.NamespacePatch ada, bob" in lines


def test_of_a_stack_that_cannot_be_read_nothing_is_said_about_teams():
    (row,) = summary_rows(review_of(text_of(of()), text_of(of({"region": 7}))))
    assert row[2:4] == ("not known", "not known")


def test_a_loss_in_json_has_the_names_of_what_is_lost():
    sides = (
        of(teams=[team("ada", serviceAccounts=names)], allocations={"ada": [ROW]}) for names in (["a", "b"], ["b"])
    )
    review = review_of(*(text_of(side) for side in sides))
    (loss,) = plain(ChangeReview.model_validate(review))["stacks"][0]["losses"]
    assert (loss["what"], loss["before"], loss["after"], loss["names"]) == ("service accounts", 2, 1, ["a"])
