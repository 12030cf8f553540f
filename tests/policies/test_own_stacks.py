"""hpkit passes its own pack: every example stack as registered, with its organization's policy file."""

import json

import pytest

from generate.examples import EXAMPLES, example_stacks
from hpkit_policies.configuration import problems
from hpkit_policies.recorded import parse_recording, run_policies
from tests.policies.builders import TODAY
from tests.program.recorder import STACKS, recorded

NAMES = example_stacks()
FILES = [file for name in EXAMPLES if (file := STACKS / f"{name}.policy.json").is_file()]


def settings_of(stack):
    file = STACKS / f"{stack.rpartition('-')[0]}.policy.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def pack_findings(stack, settings=None):
    resources = parse_recording(recorded(stack).resources.values())
    return run_policies(resources, settings_of(stack) | (settings or {}), TODAY)


@pytest.mark.parametrize("stack", NAMES)
def test_an_example_stack_breaks_no_mandatory_policy_and_all_is_known(stack):
    found = pack_findings(stack)
    assert [each for each in found if each.level != "advisory"] == []
    assert not [each for each in found if each.message.startswith("not checked")]


def test_levels_and_parameters_are_those_of_the_organization():
    name = "handson-dev"
    assert {each.level for each in pack_findings(name, {"eks-addons-pinned": "mandatory"})} == {"mandatory"}
    assert pack_findings(name, {"eks-addons-pinned": "disabled"}) == []
    elsewhere = pack_findings(name, {"regions-allowed": {"allowed": ["eu-west-1"]}})
    said = [each for each in elsewhere if each.level != "advisory"]
    assert {each.policy for each in said} == {"regions-allowed"}
    assert all("us-west-2" in each.message for each in said)


def test_a_waiver_covers_what_it_names_until_it_ends():
    waiver = {"resource": "vpc-cni", "reason": "pinned next week", "until": "2026-12-31"}
    settings = {"eks-addons-pinned": {"enforcementLevel": "mandatory", "waivers": [waiver]}}
    (reported,) = [each for each in pack_findings("handson-dev", settings) if each.policy == "eks-addons-pinned"]
    assert reported.message.startswith("coredns, eks-pod-identity-agent, kube-proxy have no addonVersion")
    waiver["until"] = "2026-01-01"
    ended = [each for each in pack_findings("handson-dev", settings) if "expired on 2026-01-01" in each.message]
    assert [each.policy for each in ended] == ["policy-configuration"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_organizations_file_stands_beside_it_and_is_right(file):
    assert (STACKS / f"{file.name.removesuffix('.policy.json')}.yaml").is_file()
    assert problems(file.read_text()) == []


@pytest.mark.parametrize("stack", ["autoscale-dev", "enterprise-prod"])
def test_what_an_organizations_file_says_is_said_once(stack):
    found = run_policies(parse_recording(recorded(stack).resources.values()), {}, TODAY)
    assert {each.policy for each in found if each.level != "advisory"} == set()
