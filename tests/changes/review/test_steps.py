"""The steps that are approved: which differences between two previews they show."""

import json

import pytest
from click.testing import CliRunner

from hpkit.changes.review.steps import differences, steps_of
from hpkit.cli.account.steps import command
from hpkit.errors import InputError

MARKER = "4dabf18193072939515e22adb298388d"
CREATED = {
    "op": "create",
    "urn": "urn:role",
    "newState": {"inputs": {"name": "nodes", "policy": {"Action": ["s3:Get*"]}}},
}
UPDATED = {
    "op": "update",
    "urn": "urn:quota",
    "detailedDiff": {"weight": {}},
    "oldState": {"id": "q-1"},
    "newState": {"inputs": {"weight": 7}},
}
DELETED = {"op": "delete", "urn": "urn:old", "oldState": {"id": "i-1", "inputs": {"name": "old"}}}
SAME = {"op": "same", "urn": "urn:same", "newState": {"inputs": {"any": 1}}}


def preview(*steps):
    return json.dumps({"steps": [SAME, *steps]})


def changed(step, state, **more):
    return {**step, state: {**step[state], **more}}


def test_the_order_of_steps_and_unchanged_resources_make_no_difference():
    approved = steps_of(preview(CREATED, UPDATED, DELETED))
    assert approved == steps_of(json.dumps({"steps": [DELETED, UPDATED, CREATED]}))
    assert [step["urn"] for step in approved] == ["urn:old", "urn:quota", "urn:role"]
    assert "s3:Get*" not in json.dumps(approved)


@pytest.mark.parametrize(
    ("step", "now"),
    [
        (CREATED, changed(CREATED, "newState", inputs={"name": "nodes", "policy": {"Action": ["s3:*"]}})),
        (CREATED, {**CREATED, "op": "import"}),
        (UPDATED, changed(UPDATED, "newState", inputs={"weight": 70})),
        (UPDATED, {**UPDATED, "detailedDiff": {"weight": {}, "limit": {}}}),
        (UPDATED, changed(UPDATED, "oldState", id="q-2")),
        (DELETED, changed(DELETED, "oldState", id="i-2")),
        (DELETED, SAME),
    ],
    ids=[
        "a new resource's value",
        "an import",
        "a value",
        "a property",
        "another quota",
        "another instance",
        "no step",
    ],
)
def test_another_step_than_the_approved_one_is_different(step, now):
    assert differences(steps_of(preview(step)), steps_of(preview(now)))


def test_secrets_and_what_plugins_generate_differ_in_each_preview_and_are_not_compared():
    def with_inputs(ciphertext, name, internal):
        inputs = {"password": {MARKER: "x", "ciphertext": ciphertext}, "name": name, "__defaults": ["name"]}
        return changed(CREATED, "newState", inputs={"parts": [inputs], "__internal": internal})

    first, second = (steps_of(preview(with_inputs(*each))) for each in (("a", "x-1", {}), ("b", "x-2", {"y": 1})))
    assert differences(first, second) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"steps": [1]}', '{"steps": []}'])
def test_a_preview_that_did_not_reach_the_stack_is_never_as_approved(text):
    with pytest.raises(InputError):
        steps_of(text)


def test_up_stops_at_a_step_that_was_not_approved(tmp_path):
    file = tmp_path / "approved.json"
    file.write_text(CliRunner().invoke(command, input=preview(UPDATED)).stdout, encoding="utf-8")
    options = ["--approved", str(file)]
    assert CliRunner().invoke(command, options, input=preview(UPDATED)).stdout == "1 step, as approved\n"
    other = CliRunner().invoke(command, options, input=preview(UPDATED, DELETED))
    assert isinstance(other.exception, InputError)
    assert "not approved: delete urn:old" in str(other.exception)
