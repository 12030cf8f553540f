"""The review's formats: limited in size, and escaped."""

import html
import re
from pathlib import Path

import pytest

from hpkit.catalog.prices import find_price, near_price
from hpkit.changes import GUARDED_TYPES
from hpkit.changes.decision import CODES, RELOCATIONS, RENAMED
from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_markdown import LIMIT, as_markdown, escape
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.losses import GRAVITY
from hpkit.changes.review.model import Preview, PreviewStep
from hpkit.program.recording import tree_of
from tests.builders import group, organization, team, text_of
from tests.changes.review.builders import Table, file_version, recorded, review_in, review_of
from tests.documents import plain

GITHUB_LIMIT = 65_536
# Compared as files: recording so many stacks would take a minute.
TEAMS = 1000
HOSTILE = "</details><script>alert(1)</script> @octocat #1 [x](https://evil.example) ![y](//e/y.png) `c` | $a$ www.evil"


def many(count):
    names = [f"team-{number:04d}" for number in range(TEAMS)]
    return text_of(
        organization(
            teams=[team(name) for name in names],
            groups=[group("gpu", "ml.g5.12xlarge", 5000)],
            allocations={name: [{"instanceType": "ml.g5.12xlarge", "count": count}] for name in names},
        )
    )


@pytest.fixture(scope="module")
def large():
    return review_of(many(3), many(2), record=None)


@pytest.fixture(scope="module")
def hostile():
    data = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]})
    bad = {**data, HOSTILE: 1}
    steps = (PreviewStep("replace", "aws:ec2/vpc:Vpc", HOSTILE, "urn:x", (HOSTILE,)),)
    preview = Preview(steps, 3, (HOSTILE,))
    return review_of(text_of(data), text_of(bad), previews={"acme-dev": preview}, notes=[HOSTILE])


def test_a_new_stack_creates_as_many_resources_as_the_plan_has():
    text = text_of(
        organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]})
    )
    review = review_of(None, text)
    plan = file_version(text)[0].plans["dev"]
    count = tree_of(recorded(plan, "acme-dev", "")).resources
    assert f"create {count} resources (a new stack)" in as_text(review, width=100)
    assert len(max(as_text(review, width=80).splitlines(), key=len)) <= 80


def test_a_comment_about_many_teams_fits_and_says_what_is_left_out(large):
    text = as_markdown(large)
    assert len(text) <= len(text.encode()) <= LIMIT < GITHUB_LIMIT
    assert "sections left out" in text
    assert "`hpkit review --format json --output review.json` contains everything" in text
    assert "team-0000: quota of ml.g5.12xlarge 3 → 2" in text
    assert text.count("<details") == text.count("</details>")


def test_the_head_of_a_comment_is_never_left_out(large):
    assert "| acme-dev | ⛔ blocked (changed) |" in as_markdown(large, limit=3000)


def test_many_long_findings_leave_room_for_what_follows():
    names = [f"team-{number}" for number in range(300)]
    rows = {name: [{"instanceType": "ml.g5.12xlarge", "count": 1}] for name in names}
    teams = [team(name) for name in names]
    head = organization(teams=teams, groups=[group("gpu", "ml.g5.12xlarge", 300)], allocations=rows)
    base = text_of(head)
    for each in teams[:200]:
        each["~[*](_)" * 200] = 1
    text = as_markdown(review_of(base, text_of(head)))
    assert len(text.encode()) <= LIMIT
    assert "**New** (200)" in text
    assert re.search(r"and \d+ more", text)
    assert text.count("<details") == text.count("</details>")


def test_warnings_of_an_environment_that_does_not_change_are_left_to_validate():
    data = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]})
    dev = data["environments"]["dev"]
    # NET015: the same addresses twice.
    both = {**data, "environments": {"dev": dev, "prod": {**dev, "cluster": {**dev["cluster"], "name": "other"}}}}
    for name, shown in (("dev", False), ("prod", True)):
        newer = {**both["environments"][name], "eks": {**dev["eks"], "version": "1.36"}}
        head = {**both, "environments": {**both["environments"], name: newer}}
        review = review_of(text_of(both), text_of(head))
        prod = next(stack for stack in review.stacks if stack.stack == "acme-prod")
        assert [finding.rule for finding in prod.findings.remaining] == ["NET015"]
        assert {"NET015" in text for text in (as_text(review), as_markdown(review))} == {shown}


def test_json_holds_every_team(large):
    assert len(plain(ChangeReview.model_validate(large))["stacks"][0]["teams"]) == TEAMS


def test_text_for_a_terminal_is_cut_with_a_count(large):
    text = as_text(large)
    assert f"{TEAMS - 40} more" in text
    assert len(text.splitlines()) < 250


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <b> & c", "a &lt;b&gt; &amp; c"),
        ("@octocat #12", "@&#8203;octocat #&#8203;12"),
        ("https://x.example www.x.example", "https&#58;//x.example www&#46;x.example"),
        (
            "`c` | *b* _i_ ~s~ $m$ [l](u)",
            "&#96;c&#96; &#124; &#42;b&#42; &#95;i&#95; &#126;s&#126; &#36;m&#36; &#91;l&#93;(u)",
        ),
        ("- item", "&#45; item"),
        ("1. one", "&#49;. one"),
        ("two\nlines\r\n\n# here", "two lines #&#8203; here"),
        ("teams[john].sharing 3 → 2", "teams&#91;john&#93;.sharing 3 → 2"),
    ],
)
def test_markdown_shows_text_as_it_is(text, shown):
    assert escape(text) == shown


def test_text_of_a_file_neither_formats_links_mentions_nor_runs(hostile):
    markdown = as_markdown(hostile)
    for live in ("<script", "<img", "@octocat", " #1", "](https", "://evil", "www.evil", "$a$"):
        assert live not in markdown.replace("<!-- hpkit review -->", ""), live
    assert markdown.count("<details") == markdown.count("</details>")
    assert markdown.count("&lt;script&gt;") >= 3, "the text itself is still there to be read"


def test_text_for_a_terminal_has_no_control_characters():
    data = organization()
    review = review_of(text_of(data), text_of({**data, "bad\x1b[31mkey": 1}).replace(b"\\e", b"\\x1b"))
    assert "\x1b" not in as_text(review)


def test_cloudwatch_is_named_as_not_included_where_the_file_has_it():
    def text_with(**observability):
        changed = organization(environment={"observability": observability})
        return as_text(review_of(text_of(organization()), text_of(changed)))

    assert "not included: CloudWatch" in text_with(prometheus=True)
    assert "not included: CloudWatch" not in text_with(cloudwatch=False)


def test_json_keys_are_the_contract():
    data = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]})
    less = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 3}]})
    said = plain(ChangeReview.model_validate(review_of(text_of(data), text_of(less))))
    assert list(said) == ["base", "commit", "verdict", "reasons", "notes", "files", "stacks"]
    (stack,) = said["stacks"]
    assert list(stack) == [
        "stack", "file", "why", "status", "verdict", "reasons", "note", "findings", "watch", "losses", "nodesLost",
        "teamsConcerned", "minimumCost",
        "maximumCost", "platformCost", "capacity", "teams", "unchangedTeams", "policy", "priorityClasses", "changes",
        "preview", "scenario",
    ]  # fmt: skip
    loss = {"team": "ada", "what": "quota", "instanceType": "ml.g5.12xlarge", "before": 4, "after": 3, "names": []}
    assert loss in stack["losses"]
    assert stack["minimumCost"]["before"] == {
        "known": str(4 * near_price("ml.g5.12xlarge", "us-west-2").monthly),
        "unknown": [],
        "unbounded": [],
        "pricesOf": ["us-east-1"],
        "complete": True,
    }
    assert stack["teams"][0]["shares"][0]["quota"] == {"before": 4, "after": 3}


def test_what_a_teams_quota_costs_a_month_stands_beside_it_in_every_format():
    price = find_price("ml.p4d.24xlarge", "us-west-2")
    assert price is not None
    quota = {"instanceType": "ml.g5.12xlarge", "count": 2}
    sides = [
        organization(
            groups=[group("gpu", "ml.g5.12xlarge", 2), group("train", "ml.p4d.24xlarge", 9)],
            teams=[team("ada")],
            allocations={"ada": [quota, {"instanceType": "ml.p4d.24xlarge", "count": count}]},
        )
        for count in (9, 4)
    ]
    review = review_of(*map(text_of, sides))
    nine, four = (f"{round(price.hourly * 730 * count):,}" for count in (9, 4))
    for text in (as_text(review, width=200), as_markdown(review)):
        assert f"{nine} → {four}" in html.unescape(text)
    text = plain(ChangeReview.model_validate(review))["stacks"][0]["teams"][0]["shares"]
    shares = {each["instanceType"]: (each["monthlyUsd"], each["monthlyUsdIsAbout"]) for each in text}
    own = {"before": round(price.hourly * 730 * 9), "after": round(price.hourly * 730 * 4)}
    near = round(2 * near_price("ml.g5.12xlarge", "us-west-2").monthly)
    assert shares == {"ml.p4d.24xlarge": (own, False), "ml.g5.12xlarge": ({"before": near, "after": near}, True)}
    assert f"about {near:,}" in as_text(review, width=200)
    assert "about: prices of us-east-1" in as_text(review, width=200)


def test_what_is_no_longer_described_is_lost_once_somebody_destroys_it():
    data = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]})
    gone = review_of(text_of(data), None, record=None)
    assert "\n  what teams lose once it is destroyed:\n    ada: its queue; " in as_text(gone)
    assert "what teams lose once it is destroyed (" in as_markdown(gone)
    assert "run `hpkit aws destroy --stack acme-dev` from the old commit" in " ".join(as_text(gone).split())


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
