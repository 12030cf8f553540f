"""The differences that the first preview after an adoption shows."""

import json

from hpkit.adopt.preview import differences

URN = "urn:pulumi:acme-prod::hpkit::hpkit:index:Addons$aws:eks/addon:Addon::coredns"


def preview(*steps):
    return json.dumps({"steps": list(steps)})


def step(op, urn=URN, *, old=None, new=None, at=()):
    paths = {name: {"kind": "update"} for name in at or new or {}}
    return {"op": op, "urn": urn, "oldState": {"inputs": old}, "newState": {"inputs": new}, "detailedDiff": paths}


def test_what_stays_the_same_is_not_mentioned():
    assert differences(preview(step("same"), step("read"))) == []


def test_what_would_be_lost_comes_first_and_says_so():
    found = differences(preview(step("create", "urn:pulumi:s::hpkit::a:b:C::new"), step("delete"), step("replace")))
    assert [each.is_destructive for each in found] == [True, True, False]
    assert "must not delete or replace" in found[0].reason


def test_an_update_shows_both_values_and_a_reason():
    (difference,) = differences(
        preview(step("update", old={"configurationValues": '{"a":1}'}, new={"configurationValues": '{"a": 1}'}))
    )
    assert difference.resource == "aws:eks/addon:Addon coredns"
    assert difference.lines == ('configurationValues: "{\\"a\\":1}" → "{\\"a\\": 1}"',)
    assert "the same settings" in difference.reason


def test_an_update_deep_inside_shows_the_values_at_its_path():
    old, new = ({"spec": {"rules": [{"a.b/c": verb}]}} for verb in ("get", "list"))
    (found,) = differences(preview(step("update", old=old, new=new, at=('spec.rules[0]["a.b/c"]', "spec.rules[1]"))))
    assert found.lines == ('spec.rules[0]["a.b/c"]: "get" → "list"', "spec.rules[1]: null → null")


def test_long_values_are_shown_from_where_they_begin_to_differ():
    old, new = ({"spec": f"{'x' * 1000} {name} {'y' * 1000}"} for name in ("ours", "theirs"))
    (line,) = differences(preview(step("update", old=old, new=new)))[0].lines
    before, after = line.removeprefix("spec: ").split(" → ")
    assert before[:4] + before[-1] == "…xxx…"
    assert " ours " in before
    assert " theirs " in after
    assert len(after) < 170


def test_an_update_that_nobody_foresaw_says_what_one_can_do():
    (found,) = differences(preview(step("update", old={"addonVersion": "v1"}, new={"addonVersion": "v2"})))
    assert "change the file to the live value" in found.reason
