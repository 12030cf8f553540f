"""An organization's policy file, checked without an engine; and the page about the pack."""

import json
import re
from pathlib import Path

import pytest

from generate.policies import page
from hpkit_policies.configuration import problems
from hpkit_policies.pack import POLICIES

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "policies.md"

WRONG = [
    ("{", "invalid JSON"),
    ("[]", "JSON object"),
    ({"quota-fit-capacity": {}}, "no such policy, did you mean quota-fits-capacity?"),
    ({"mandatory-tags": {"key": ["team"]}}, "parameter key (parameters: keys, values, waivers)"),
    ({"mandatory-tags": "strict"}, "strict isn't a valid enforcement level"),
    ({"mandatory-tags": 3}, "level or an object"),
    ({"quota-fits-capacity": {"waivers": []}}, "parameter waivers (parameters: none)"),
    ({"quota-fits-capacity": "advisory"}, "can't be lowered to advisory"),
    ({"policy-configuration": {"enforcementLevel": "disabled"}}, "can't be lowered to disabled"),
    ({"all": "advisory"}, "would lower policies that can't be waived"),
    ({"regions-allowed": {"allowed": "us-west-2"}}, 'allowed is "us-west-2"; it must be a list'),
    ({"regions-allowed": {"allowed": ["us-wset-2"]}}, "us-wset-2, which isn't an AWS region, did you mean us-west-2?"),
    ({"instance-types-allowed": {"allowed": ["g5.12xlarge"]}}, "did you mean ml.g5.12xlarge?"),
    ({"instance-types-allowed": {"allowed": ["ml.g5.12xlage"]}}, "instance type, did you mean ml.g5.12xlarge?"),
    ({"protected-from-replacement": {"allowReplace": ["clusters"]}}, "did you mean cluster?"),
    (
        {"security-group-not-open": {"publicPorts": [70000]}},
        "publicPorts, entry 1, is 70000; the maximum is 65535",
    ),
    ({"security-group-not-open": {"publicPorts": [-1]}}, "publicPorts, entry 1, is -1; the minimum is 0"),
    ({"security-group-not-open": {"publicPorts": [True]}}, "publicPorts, entry 1, is true; it must be a whole number"),
    ({"mandatory-tags": {"waivers": [{"resource": "x", "reason": "y"}]}}, "has no until"),
    ({"mandatory-tags": {"keys": [""]}}, "keys, entry 1, is empty"),
    ({"mandatory-tags": {"values": {"team": 3}}}, "values.team is 3; it must be text"),
    (
        {"mandatory-tags": {"waivers": [{"resource": "x", "reason": "y", "until": "31.01.2027"}]}},
        "a date such as 2027-01-31",
    ),
]
RIGHT = [
    {},
    {"all": "mandatory"},
    {"mandatory-tags": "disabled", "protected-from-replacement": {"allowReplace": []}},
    {"mandatory-tags": {"enforcementLevel": "remediate", "values": {"team": "ml"}, "waivers": []}},
]


@pytest.mark.parametrize(("data", "words"), WRONG)
def test_what_pulumi_would_pass_over_in_silence_is_said(data, words):
    (problem,) = problems(data if isinstance(data, str) else json.dumps(data))
    assert words in problem
    assert "^" not in problem


@pytest.mark.parametrize("data", RIGHT)
def test_a_file_that_does_what_it_says_has_no_problem(data):
    assert problems(json.dumps(data)) == []


def test_the_reference_page_names_every_policy():
    for policy in POLICIES:
        assert f"## {policy.name}\n" in page()


def test_the_guides_examples_are_right_and_name_what_exists():
    text = GUIDE.read_text(encoding="utf-8")
    examples = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        assert problems(example) == []
    names = {policy.name for policy in POLICIES}
    families = {word for word in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text) if word.split("-")[0] in {"quota", "eks"}}
    assert families <= names
