"""Values are changed where they stand, alone, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.config import read_text
from hpkit.config.edit import replaced
from hpkit.errors import InputError

TEXT = """\
# of the team
groups:
  - {name: gpu, count: 4}   # four
  - {name: cpu, count: 1}
version: "1.34"  # quoted
other: '1.34'
"""


def edit(text, values):
    return replaced(text, read_text(text.encode()), values, file="stacks/a.yaml")


def test_only_the_value_changes_and_comments_quotes_and_layout_stay():
    found = edit(TEXT, {("groups", 0, "count"): 3, ("version",): "1.35", ("other",): "1.36"})
    assert found == TEXT.replace("count: 4", "count: 3").replace('"1.34"', '"1.35"').replace("'1.34'", "'1.36'")


@given(count=st.integers(0, 10**6), other=st.integers(0, 10**6))
def test_two_values_of_one_line_both_change(count, other):
    found = edit("{a: 10, b: 9}\n", {("a",): count, ("b",): other})
    assert read_text(found.encode()).data == {"a": count, "b": other}


def test_a_value_that_an_anchor_shares_is_left_to_people():
    text = "a: &n 4\nb: *n\n"
    with pytest.raises(
        InputError, match=r"stacks/a\.yaml:1:\d+: .* shared by an anchor\. What to do: write 3 there by hand"
    ):
        edit(text, {("b",): 3})


def test_a_value_that_is_not_written_is_left_to_people():
    with pytest.raises(InputError, match="is not written there alone"):
        edit("a: {b: 1}\n", {("a", "c"): 3})
