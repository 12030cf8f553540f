"""Reading files with every kind of error that a file can have."""

import os

import pytest

from generate.examples import example_files
from hpkit.config import format_path, read_file, read_text
from hpkit.config.reading.document import Mark, find_item, item_label
from hpkit.errors import InputError
from tests.builders import findings_in, organization, text_of


def problem(content: bytes):
    (found,) = read_text(content).problems
    return found


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"a: [1, 2", 1, "the `[` on line 1 isn't closed"),
        (b"a: {x: 1\nb: 3\n", 1, "the `{` on line 1 isn't closed"),
        (b"a:\n  weight:0\n  b: 1\n", 2, "a space is missing after the colon of `weight`"),
        (b"- a: 1\n  weight:0\n  b: {x: 1}\n", 2, "a space is missing after the colon of `weight`"),
        (b'a: it\'s \'so\' # "\nx: "abc\ny: 1\nz: "d"\n', 2, "the quote on line 2 isn't closed"),
        (b"x: 'abc\ny: 1\n", 1, "the quote on line 1 isn't closed"),
        (b"a: b: c\n", 1, "the line has a second colon"),
        (b"a: 1\n  b: 2\n", 2, "indented further than the one above"),
        (b"name john\na: 1\n", 1, "the line has no colon"),
        (b"a:\n  b: 1\n c: 2\n", 3, "the indentation of this line matches none"),
        (b"a:\n   b: 1\n  c:\n    - 2\n  d: 3\n", 2, "indented further than the lines below it"),
        (b"a:\n  b:\n  c: 1\n    d: 2\n", 3, "indented less than the lines below it"),
        (b"a:\n  - {x: 1}\n  {x: 2}\n  - {x: 3}\n", 3, "`- ` is missing before this entry"),
        (b"a:\n  - {x: 1}\n  {x: 2}\nb: 1\n", 3, "`- ` is missing before this entry"),
        (b"a:\n  b: {x: p q: 1}\n", 2, "a comma is missing before `q`"),
        (b'a:\n  b: ["x" y]\n', 2, "a comma is missing before `y`"),
        (b"a: {x: [1, y: 2}\n", 1, "the `[` on line 1 isn't closed"),
        (b"a: @b\n", 1, "a value can't start with `@`"),
        (b"a: `b`\n", 1, "a value can't start with a backtick"),
        (b"a: *\n", 1, "a value can't start with `*`"),
        (b'a: "x" y\n', 1, "text after the end of the value"),
        (b"a:\n\t- b\n", 2, "indented with a tab"),
        ('a:\n  b:\u00a0"1"\n  c: 1\n'.encode(), 2, "a special space"),
        (b"a: &x [1, *x]\n", 1, "would contain itself"),
        (b"a: &x {b: {c: [*x]}}\n", 1, "would contain itself"),
        (b"a: *nobody\n", 1, "has no anchor before it (anchors so far: none)"),
        (b"[" * 5000, 1, "nested deeper than"),
        (b"{a: " * 5000, 1, "nested deeper than"),
        (b"- " * 5000 + b"x", 1, "nested deeper than"),
        (b"a: caf\xe9\n", 1, "valid UTF-8: byte 0xe9"),
        (b"b: 1\na: \x07\n", 2, "the character U+0007 is not allowed"),
        (b"a: 1\n---\nb: 2\n", 2, "more than one YAML document"),
        (b"? [a, b]\n: 1\n", 1, "not a list or a map"),
        (b"a: " + b"x" * (5 * 1024 * 1024), 1, "larger than 4 MiB"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_read_is_one_clear_finding(content, line, says):
    error = problem(content)
    assert error.rule == "CFG005"
    assert says in error.message
    assert error.mark.line == line
    assert error.fix


def test_an_alias_bomb_is_refused_and_not_unfolded():
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{','.join(['*' + previous] * 10)}]\n".encode()
    assert "more than a million values" in problem(bomb).message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"- a\n", "contains a list; it must be a map"),
        (b"word\n", "text"),
    ],
)
def test_a_file_that_is_no_map_says_what_it_is(content, says):
    (found,) = findings_in(content)
    assert found.rule == "CFG005"
    assert says in found.message


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing():
    plain = text_of(organization())
    assert findings_in(plain) == []
    assert findings_in(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")) == []


def test_positions_count_from_one_and_point_at_the_value():
    document = read_text("a:\n  - name: über\n    b: {c: 1.30}\n".encode())
    assert document.locate(("a", 0, "b", "c")).line == 3
    assert document.locate(("a", 0, "b", "c")).column == 12
    assert document.locate(("a", 0, "name")).column == 11
    assert document.locate(("a", 0, "b"), key=True).column == 5
    assert document.raw(("a", 0, "b", "c")) == "1.30"
    assert document.locate(("a", 0, "missing")).line == 2, "the nearest value above stands in"


SHOWN = {
    ("teams", 0, "rows", 0, "x"): "teams[john].rows[1st].x",
    ("teams", 0, "members", 0): "teams[john].members[trainer]",
    ("teams", 0, "members", 1): "teams[john].members[2nd]",
    ("rows", 0): "rows[ml.g5.12xlarge]",
    ("rows", 1): "rows[2nd]",
    ("rows", 2): "rows[3rd]",
    ("ranges", 0): "ranges[10.0.0.0/8]",
    ("ranges", 1): "ranges[2nd]",
    ("ranges", 12): "ranges[12]",
}
LISTS = b"""
teams: [{name: john, rows: [{x: 1}], members: ["arn:aws:iam::123456789012:role/ci/trainer", "no] label"]}]
rows: [{instanceType: ml.g5.12xlarge}, {instanceType: ml.p5.48xlarge}, {instanceType: ml.p5.48xlarge}]
ranges: [10.0.0.0/8, 12]
"""


@pytest.mark.parametrize(("path", "shown"), SHOWN.items())
def test_items_of_lists_are_shown_by_what_tells_them_from_the_others(path, shown):
    assert format_path(path, read_text(LISTS).data) == shown


@pytest.mark.parametrize("list_", ["teams", "rows", "ranges"])
def test_an_item_is_found_by_what_it_is_shown_as_and_by_its_index(list_):
    items = read_text(LISTS).data[list_]
    for index in range(len(items)):
        assert find_item(items, item_label(items, index)) == find_item(items, str(index)) == index
    assert find_item(items, "ml.p5.48xlarge") is None, "two have it"
    assert find_item(items, "nothing") is find_item(items, "9th") is find_item(items, "0th") is None


def test_items_without_a_name_are_shown_by_index_where_that_is_asked_for():
    data = read_text(LISTS).data
    assert format_path(("teams", 0, "members", 0), data, numbered=True) == "teams[john].members[0]"


def test_merge_keys_work_and_own_keys_win():
    document = read_text(b"base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n")
    assert document.problems == ()
    assert document.data["use"] == {"x": 1, "y": 3}
    assert document.data["both"] == {"x": 1, "y": 2, "z": 4}


@pytest.mark.parametrize("word", ["on", "off", "yes", "No"])
def test_booleans_of_yaml_1_1_get_a_finding_of_their_own(word):
    (found,) = read_text(f"a: {word}\n".encode()).problems
    assert found.rule == "CFG002"
    assert f"`{word}`" in found.message
    assert read_text(f'a: "{word}"\n'.encode()).problems == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("0x1F", "0x1F"), ("0123", "0123"), ("1_000", "1_000"), ("12:30:45", "12:30:45"), ("1e3", 1000.0),
     ("~", None), ("true", True), ("2027-01-31", "2027-01-31"), ("9" * 5000, float("inf"))],
)  # fmt: skip
def test_scalars_are_read_by_yaml_1_2(text, value):
    assert read_text(f"a: {text}\n".encode()).data == {"a": value}


def test_a_missing_file_a_directory_and_a_name_that_is_none_are_refused(tmp_path):
    for name, says in (("missing.yaml", "this file doesn't exist"), (".", "this is a directory"), ("a\0b", "null")):
        with pytest.raises(InputError, match=says):
            read_file(tmp_path / name if name != "." else tmp_path)


def test_a_named_pipe_or_a_device_is_refused_without_opening_it_and_the_callers_own_pipe_is_read(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        with pytest.raises(InputError, match="this is a pipe or device, not a file; to read from a pipe, use"):
            read_file(path)
    reading, writing = os.pipe()
    os.write(writing, b"a: 1\n")
    os.close(writing)
    assert read_file(f"/dev/fd/{reading}") == b"a: 1\n"
    os.close(reading)


@pytest.mark.parametrize(
    ("text", "path", "column"),
    [
        ("a: !!int '3'\n", ("a",), 4),
        ("a: !custom\n  b: 1\n", ("a",), 4),
        ("a: [x, !!set {y: 1}]\n", ("a", 1), 8),
        ("!env a: 1\n", (), 1),
        ("a: ! foo\n", ("a",), 4),
        ("a: &anchor !x foo\n", ("a",), 4),
    ],
)
def test_a_tag_is_a_problem_where_it_stands(text, path, column):
    (problem,) = read_text(text.encode()).problems
    assert (problem.rule, problem.path, problem.mark) == ("CFG005", path, Mark(1, column))
    assert "tag" in problem.message
    assert "Remove the tag" in problem.fix


def test_a_tag_that_says_what_its_value_is_anyway_is_none():
    document = read_text(b"a: !!str 1.30\nb: !!seq [1]\nc: !!map {d: 1}\n")
    assert document.problems == ()
    assert document.data["a"] == "1.30"


@pytest.mark.parametrize("file", example_files(), ids=lambda file: file.stem)
def test_examples_have_no_backslash_that_a_shell_left(file):
    assert "\\'" not in file.read_text(encoding="utf-8")
