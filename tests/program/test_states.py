"""What the engine kept of the examples is what the program registers today: a preview of them shows nothing."""

import json
from dataclasses import replace

import pytest

from hpkit.program.recording import record
from hpkit.project import load_stack, project_root
from tests.program.states import FOLDER, differences

STACKS = sorted(file.stem.removeprefix("Pulumi.") for file in (project_root() / "stacks").glob("Pulumi.*.yaml"))


def plan_of(stack):
    (plan,) = load_stack(stack).plans.values()
    return plan


def state_of(stack):
    return json.loads((FOLDER / f"{stack}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("stack", STACKS)
def test_the_recorded_state_of_an_example_is_what_the_program_registers(stack):
    found = list(differences(state_of(stack), record(plan_of(stack))))
    assert found == [], "stacks that live would see this in their next preview; if it is meant, record the states anew"


def test_what_would_change_is_found():
    plan = plan_of("handson-dev")
    first, *others = plan.teams
    smaller = replace(plan, teams=(replace(first, fair_share_weight=first.fair_share_weight + 1), *others))
    (found,) = differences(state_of("handson-dev"), record(smaller))
    assert f"ComputeQuota::{first.name}: computeQuotaTarget:" in found


def test_what_would_be_created_deleted_or_protected_no_more_is_found():
    state = state_of("handson-dev")
    vpc = next(each for each in state if each["urn"].endswith("Vpc::vpc"))
    there = [{**each, "protect": False} if each is vpc else each for each in state if "::lifecycle" not in each["urn"]]
    found = list(differences(there, record(plan_of("handson-dev"))))
    assert any(each.endswith("Bucket::lifecycle: is created") for each in found)
    assert f"{vpc['urn']}: protect: False → True" in found
