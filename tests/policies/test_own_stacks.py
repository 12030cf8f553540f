"""The kit keeps to its own pack: every example stack, judged as it is registered, with its organization's file."""

import json

import pytest

from policies.__main__ import POLICIES
from policies.adapter import plain
from policies.configuration import problems
from policies.model import Resource, UnknownInputError, Violation
from tests.program.recorder import STACKS, recorded

NAMES = sorted(file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in STACKS.glob("Pulumi.*.yaml"))
FILES = sorted(STACKS.glob("*.policy.json"))


def registered(program):
    """Return what a program registers as policies see it."""
    providers = {each.urn: each.inputs for each in program.all("") if each.type.startswith("pulumi:providers:")}
    return [
        Resource(
            each.type,
            each.name,
            each.urn,
            plain(each.inputs),
            protect=each.protect,
            provider=plain(providers.get(each.provider, {})),
            dependencies=tuple(each.after),
            property_dependencies=dict.fromkeys(each.inputs, tuple(each.after)),
        )
        for each in program.resources.values()
    ]


def settings_of(stack):
    file = STACKS / f"{stack.rpartition('-')[0]}.policy.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def found(policy, resources, given):
    settings = {**policy.defaults, **given}
    if policy.judge_stack:
        yield from policy.judge_stack(resources, settings)
        return
    for each in resources:
        if not policy.types or each.type in policy.types:
            try:
                yield from policy.judge(each, settings)
            except UnknownInputError:
                pytest.fail(f"{each.name}: all is known here")


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("stack", NAMES)
def test_an_example_stack_breaks_no_mandatory_policy(stack, policy):
    if policy.level == "advisory":
        return
    said = list(found(policy, registered(recorded(stack)), settings_of(stack).get(policy.name, {})))
    assert [item.message for item in said if isinstance(item, Violation)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_organizations_file_stands_beside_it_and_is_right(file):
    assert (STACKS / f"{file.name.removesuffix('.policy.json')}.yaml").is_file()
    assert problems(file.read_text()) == []


def test_every_example_organization_has_a_file_so_that_one_command_serves_all():
    assert {stack.rpartition("-")[0] for stack in NAMES} == {file.name.removesuffix(".policy.json") for file in FILES}
