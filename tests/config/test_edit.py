"""Changing values in a file's text: the surrounding text is kept, and git applies the patch."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generate.cases import TextFolder
from hpkit.config import read_text
from hpkit.config.reading.compose import composed
from hpkit.config.reading.edit import diff, edited_files, with_values
from hpkit.errors import InputError
from tests.whatif.recommend.builders import ROOT

TEXT = """\
# On top.
teams:
  - name: a          # first
    fairShareWeight: 5   # five
    sharing: {strategy: LendAndBorrow, borrowLimit: 50}
  - {name: b, "fairShareWeight": '7'}
  - name: ü
    sharing:
      # why
      strategy: LendAndBorrow
x-shared: &shared {borrowLimit: 10}
one: *shared
two: *shared
"""
PLACES = (
    ("teams", 0, "fairShareWeight"),
    ("teams", 0, "sharing", "borrowLimit"),
    ("teams", 1, "fairShareWeight"),
    ("teams", 1, "sharing", "borrowLimit"),
    ("teams", 2, "fairShareWeight"),
    ("teams", 2, "sharing", "borrowLimit"),
)


def change(text, values):
    return edited_files({"": text}, read_text(text.encode()), values, file="acme.yaml").get("", text)


def test_a_text_keeps_its_quotes_and_comments():
    text = """version: "1.34"  # quoted\nother: '1.34'\nplain: a\n"""
    after = change(text, {("version",): "1.35", ("other",): "1.36", ("plain",): "b"})
    assert after == """version: "1.35"  # quoted\nother: '1.36'\nplain: b\n"""


def test_values_change_and_comments_stay():
    after = change(TEXT, dict.fromkeys(PLACES, 42))
    assert after == (
        TEXT.replace("fairShareWeight: 5   #", "fairShareWeight: 42  #")
        .replace("borrowLimit: 50", "borrowLimit: 42")
        .replace(
            """{name: b, "fairShareWeight": '7'}""", """{sharing: {borrowLimit: 42}, name: b, "fairShareWeight": 42}"""
        )
        .replace("  - name: ü\n", "  - fairShareWeight: 42\n    name: ü\n")
        .replace("      strategy: LendAndBorrow\n", "      borrowLimit: 42\n      strategy: LendAndBorrow\n")
    )


def test_a_key_without_a_value_and_null_stay_different():
    text = "environmentDefaults:\n  storage:\n  spaces: null\n  tags: ~\na: 1\n"
    assert change(text, {("a",): 2}) == text.replace("~", "null").replace("a: 1", "a: 2")


def test_dates_stay_text():
    text = "environments: {dev: {until: 2026-01-31}}\na: 1\n"
    assert change(text, {("a",): 2}) == text.replace("a: 1", "a: 2")


@given(values=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 999)))
def test_any_set_of_values_is_what_the_file_says_then(values):
    document = read_text(TEXT.encode())
    assert read_text(change(TEXT, values).encode()).data == with_values(document.data, values)


@pytest.mark.parametrize("path", [("one", "borrowLimit"), ("x-shared", "borrowLimit")])
def test_a_value_that_an_anchor_shares_is_not_changed_alone(path):
    with pytest.raises(InputError, match=r"acme.yaml:11:\d+: .* can't be changed alone: .* Set 20 there by hand"):
        change(TEXT, {path: 20})


def test_values_of_several_files_are_changed_each_in_its_own():
    text = (
        "include: [teams/nlp.yaml]\ndefaults: shared.yaml\nteams: [{name: a, fairShareWeight: 1}]\nenvironments: {}\n"
    )
    document = in_files(text)
    texts = {"": text, "stacks/teams/nlp.yaml": "teams:\n  - name: nlp\n    fairShareWeight: 5\n"}
    values = {("teams", number, "fairShareWeight"): 9 for number in (0, 1)}
    assert edited_files(texts, document, values, file="stacks/acme.yaml") == {
        "": text.replace("Weight: 1", "Weight: 9"),
        "stacks/teams/nlp.yaml": "teams:\n  - name: nlp\n    fairShareWeight: 9\n",
    }


def in_files(text):
    shared = "environmentDefaults: {eks: {version: '1.34'}}\nclusterPolicy: {fairShare: Enabled}\n"
    files = {"teams/nlp.yaml": "teams:\n  - name: nlp\n    fairShareWeight: 5\n", "shared.yaml": shared}
    return composed(read_text(text.encode()), TextFolder(files), "acme.yaml", "stacks/")


def test_a_value_of_the_file_is_changed_and_one_of_another_file_is_refused_with_its_place():
    text = """include: [teams/nlp.yaml]
defaults: shared.yaml
environmentDefaults: {cluster: {name: a}}
teams: [{name: a, fairShareWeight: 1}]
environments: {dev: {cluster: {nodeRecovery: None}}}
"""
    document, dev = in_files(text), ("environments", "dev")
    values = {("teams", 0, "fairShareWeight"): 7, (*dev, "protect"): True}
    after = edited_files({"": text}, document, values, file="stacks/acme.yaml")
    assert after[""] == text.replace("Weight: 1", "Weight: 7").replace("dev: {", "dev: {protect: true, ")
    for path, place in (
        (("teams", 1, "fairShareWeight"), "stacks/teams/nlp.yaml:3:22"),
        (("clusterPolicy", "fairShare"), "stacks/shared.yaml:2:28"),
        ((*dev, "eks", "version"), "stacks/shared.yaml:1:38"),
        ((*dev, "cluster", "name"), "stacks/acme.yaml:3:39"),
    ):
        with pytest.raises(InputError, match=f"comes from {place}, .* Set 9 there by hand"):
            edited_files({"": text}, document, {path: 9}, file="stacks/acme.yaml")


def test_values_that_an_anchor_shares_change_together():
    places = (("one", "borrowLimit"), ("two", "borrowLimit"), ("x-shared", "borrowLimit"))
    assert "&shared {borrowLimit: 20}" in change(TEXT, dict.fromkeys(places, 20))


@pytest.mark.parametrize("text", [TEXT, TEXT.rstrip("\n"), TEXT.replace("\n", "\r\n")], ids=["unix", "cut", "windows"])
def test_git_applies_the_patch(tmp_path, text):
    after = change(
        text, {("teams", 0, "fairShareWeight"): 42, ("teams", 2, "fairShareWeight"): 3, ("x-shared", "borrowLimit"): 10}
    )
    file = tmp_path / "stacks" / "acme.yaml"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    patch = diff(text, after, "stacks/acme.yaml")
    subprocess.run(["git", "apply"], cwd=tmp_path, input=patch.encode(), check=True)
    assert file.read_bytes() == after.encode()


@settings(deadline=None, max_examples=20)
@given(
    name=st.sampled_from(["handson", "enterprise", "startup", "topology", "autoscale", "bestpractice"]),
    weight=st.integers(0, 100),
)
def test_every_example_takes_another_weight(name, weight):
    text = (ROOT / "stacks" / f"{name}.yaml").read_text()
    after = change(text, {("teams", 0, "fairShareWeight"): weight})
    before = read_text(text.encode()).data
    assert read_text(after.encode()).data == with_values(before, {("teams", 0, "fairShareWeight"): weight})
    assert after.count("#") == text.count("#")


def test_a_value_below_something_that_is_no_map_is_refused():
    with pytest.raises(InputError, match="isn't a map"):
        with_values({"metadata": {"labels": 1}}, {("metadata", "labels", "team"): "vision"})
