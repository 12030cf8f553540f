"""What a review contains for a change: every loss is named, and the verdict is OK only without losses.

changes.yaml has changes of the size of a pull request, and edits.yaml has single edits. Recording an edit takes half a
second, so each run tries a sixteenth of the edits, and the nightly run all of them.
"""

import html
import os
import re
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from hpkit.changes import GUARDED_TYPES
from hpkit.changes.plan_diff import Change
from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_markdown import as_markdown
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.model import ScenarioChange, TeamWaits
from hpkit.cli.common.documents import json_document
from hpkit.program.recording import Answers, record
from tests.builders import findings, group, organization, team, text_of
from tests.changes.review.builders import (
    Table,
    assert_findings,
    assert_says,
    assert_sufficient,
    codes_of,
    review_in,
    review_of,
)
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
    assert_findings(review, expected)
    assert expected.watch <= codes_of(review)


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
@pytest.mark.parametrize("name", one_of(16, EDITS))
def test_an_edit_is_judged_and_what_it_loses_is_said(name):
    review, expected = review_in(EDITS, name), EDITS.changes[name]
    assert review.verdict == expected.verdict
    assert_says(review, expected)
    assert_sufficient(*EDITS.sides(name), review)


def test_a_comment_shortens_what_is_lost_and_keeps_the_advice():
    said = html.unescape(as_markdown(review_in(EDITS, "another-name-of-the-organization")))
    lines = [line for line in said.splitlines() if "the HyperPod cluster acme will be replaced" in line]
    assert lines
    for line in lines:
        assert "…" in line
        assert "first run `pulumi up` with `allowReplace: [eks, bucket]` in the environment and without this" in line
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
    review = repository.review("--scenario", "day.yaml")
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
    (stack,) = repository.review("--scenario", "day.yaml")["stacks"]
    assert stack["scenario"]["note"] == "none of its tasks belongs to a team of this stack"
    result = repository.run("--scenario", "no.yaml")
    assert (result.returncode, "no.yaml: this file doesn't exist" in result.stderr) == (1, True)


# These tests compare the recordings with separate code, which shares nothing with the review.
TYPES = ("ml.g5.12xlarge", "ml.p4d.24xlarge")
ROLE = "arn:aws:iam::123456789012:role/"
NIGHTLY = bool(os.environ.get("HPKIT_NIGHTLY"))


@st.composite
def organizations(draw):
    """Generate small platforms in an existing network and EKS cluster, so that recordings are short."""
    count = draw(st.integers(2, 6))
    groups = [group("gpu", TYPES[0], count), group("system", "ml.m5.4xlarge", draw(st.integers(1, 3)))]
    groups[0] |= draw(st.sampled_from([{}, {"labels": {"tier": "gold"}}, {"imageId": "ami-0a1b2c3d4e5f60718"}]))
    if draw(st.booleans()):
        groups.append(group("more", TYPES[1], draw(st.integers(0, 3))))
    pool = draw(st.sampled_from([None, "8", "16", "160"]))
    autoscaling = {}
    if pool:
        groups.append(group("burst", "ml.g5.8xlarge", 0))
        node_pool = {"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": pool}}
        node_pool |= draw(st.sampled_from([{}, {"expireAfter": "24h"}, {"weight": 5}]))
        classes = [{"name": "burst", "instanceGroups": ["burst"]}]
        autoscaling = {"autoscaling": {"nodeClasses": classes, "nodePools": [node_pool]}}
    names = draw(st.lists(st.sampled_from(("ada", "bob")), unique=True))
    members = st.lists(st.sampled_from([f"{ROLE}a", f"{ROLE}b"]), unique=True)
    teams = [
        team(
            name,
            fairShareWeight=draw(st.sampled_from([10, 50])),
            sharing={"strategy": "LendAndBorrow", "borrowLimit": draw(st.sampled_from([50, 100]))},
            members=draw(members) if name == "ada" else [],
        )
        for name in names
    ]
    classes = draw(st.lists(st.sampled_from(("training", "batch")), unique=True))
    data = organization(
        teams=teams,
        groups=groups,
        allocations={name: [{"instanceType": TYPES[0], "count": draw(st.integers(1, 2))}] for name in names},
        environment=autoscaling | draw(st.sampled_from([{}, {"protect": True}])),
        top={
            "clusterPolicy": {
                "taskPrioritization": "Rank" if classes else "FirstComeFirstServed",
                "priorityClasses": [
                    {"name": name, "weight": draw(st.integers(1, 4)) + 10 * index} for index, name in enumerate(classes)
                ],
            }
        },
    )
    environment = data["environments"]["dev"]
    environment["network"] = {
        "existing": {
            "vpcId": "vpc-0123456789abcdef0",
            "subnets": {"us-west-2a": "subnet-0123456789abcdef0", "us-west-2b": "subnet-0123456789abcdef1"},
            "securityGroupIds": ["sg-0123456789abcdef0"],
        }
    }
    environment["eks"] = {"version": "1.35", "existing": {"name": "shared"}}
    environment["eks"]["administrators"] = [f"{ROLE}{name}" for name in draw(st.sampled_from(["x", "xy", "y"]))]
    environment["cluster"]["dependencies"] = {"installed": True}
    return data


def entries(inputs, name="name"):
    return {entry[name]: entry for entry in inputs or ()}


def named_losses(old, new):
    """Yield each loss between two recordings as text that a review must contain: a removed name, or a lower number.

    `|` separates alternatives, of which one is enough.
    """
    for urn, was in held(old):
        now = new.resources.get(urn)
        if now is None:
            yield was.name
        elif was.type in LOWER:
            yield from LOWER[was.type](was.name, was.inputs, now.inputs)


def is_said(text, message):
    """Return whether a text appears, where `team: loss` may be one of several losses in the team's line."""
    team, parted, loss = text.partition(": ")
    lines = [line for line in message.splitlines() if line.strip().startswith(f"{team}: ")]
    return text in message or (bool(parted) and any(loss in line for line in lines))


def held(recording):
    """Return the resources that hold something: not components, providers or guards."""
    nothing = ("pulumi:", "hyperpod:index:ChangeGuard")
    return [
        (urn, each) for urn, each in recording.resources.items() if each.custom and not each.type.startswith(nothing)
    ]


def lower_groups(_, was, now):
    groups = [entries(each["instanceGroups"], "instanceGroupName") for each in (was, now)]
    for name, before in groups[0].items():
        if name not in groups[1]:
            yield f"{name} is deleted"
        elif groups[1][name]["instanceCount"] < before["instanceCount"]:
            yield f"{name} {before['instanceCount']:.0f} → {groups[1][name]['instanceCount']:.0f}"


def lower_classes(_, was, now):
    classes = [entries(each["schedulerConfig"].get("priorityClasses")) for each in (was, now)]
    yield from (f"{name}-priority" for name in classes[0].keys() - classes[1].keys())
    for name in classes[0].keys() & classes[1].keys():
        before, after = (int(side[name]["weight"]) for side in classes)
        if after < before:
            yield f"{name} {before} → {after}|priorityClasses[{name}].weight {before} → {after}"


def lower_limits(_, was, now):
    limits = [int(each["spec"]["limits"]["nvidia.com/gpu"]) for each in (was, now)]
    if limits[0] != limits[1]:
        yield f"nvidia.com/gpu {limits[0]} → {limits[1]}"


def lower_quota(name, was, now):
    rows = [entries(each["computeQuotaConfig"]["computeQuotaResources"], "instanceType") for each in (was, now)]
    for kind, row in rows[0].items():
        before, after = row["count"], rows[1].get(kind, {}).get("count", 0)
        if after < before:
            yield f"{name}: quota of {kind} {before:.0f} → {after:.0f}"
    weights = [each["computeQuotaTarget"]["fairShareWeight"] for each in (was, now)]
    if weights[1] < weights[0]:
        yield f"{name}: weight {weights[0]:.0f} → {weights[1]:.0f}"
    limits = [each["computeQuotaConfig"]["resourceSharingConfig"]["borrowLimit"] for each in (was, now)]
    if limits[1] < limits[0]:
        yield f"{name}: borrowLimit {limits[0]:.0f}% → {limits[1]:.0f}%"


LOWER = {
    "hyperpod:index:Cluster": lower_groups,
    "hyperpod:index:ComputeQuota": lower_quota,
    "hyperpod:index:ClusterSchedulerConfig": lower_classes,
    "kubernetes:karpenter.sh/v1:NodePool": lower_limits,
}


def leaves(value, path=""):
    """Yield every value of a resource's inputs by its path without indexes."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    else:
        yield path, value


def number(value):
    text = str(value)
    return Fraction(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else None


def something_is_less(old, new):
    """Return whether any previous value is missing, without a higher one in its place."""
    for urn, was in held(old):
        now = new.resources.get(urn)
        if now is None:
            return True
        # Policy texts are documents; an added entry looks like a different text.
        if was.type.startswith(("aws:iam", "aws:s3")):
            continue
        values = list(leaves(now.inputs))
        for path, value in leaves(was.inputs):
            here = [other for place, other in values if place == path]
            if value not in here and not has_grown(value, here) and value not in (False, None, ""):
                return True
    return False


def has_grown(value, others):
    known = number(value)
    return known is not None and any((number(each) or Fraction(-1)) >= known for each in others)


@pytest.mark.slow
@settings(
    max_examples=150 if NIGHTLY else 8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(organizations(), organizations())
def test_what_disappears_or_shrinks_is_named_and_is_never_ok(before, after):
    assume(not any(each.severity == "error" for data in (before, after) for each in findings(data)))
    recordings = []

    def recorded(plan, stack, account):
        recordings.append(record(plan, Answers(account=account) if account else None, stack=stack))
        return recordings[-1]

    review = review_of(text_of(before), text_of(after), record=recorded)
    if not recordings:
        assert review.verdict == "ok"
        return
    old, new = recordings
    said = as_text(review, width=100_000) + json_document(ChangeReview.model_validate(review))
    for loss in named_losses(old, new):
        assert any(is_said(text, said) for text in loss.split("|")), loss
    (stack,) = review.stacks
    if something_is_less(old, new) or any(step.type in GUARDED_TYPES for step in stack.change.lost):
        assert review.verdict != "ok"
