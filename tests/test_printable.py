"""Untrusted text in all output: shown, but without effect on a terminal, workflow, spreadsheet or page."""

import copy
import datetime
import json
import re
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hpkit.cli.common.output import own, printable_output
from hpkit.text.printable import printable, printable_lines, quoted
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.plugin_server import PluginServicer, readable
from tests.builders import yaml_of
from tests.cli.invoke import hpkit
from tests.cli.test_review import Repository
from tests.conftest import NIGHTLY

ROOT = Path(__file__).parents[1]
# If the output doesn't go to a terminal, hpkit itself writes none of these.
HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Default_Ignorable_Code_Point of other categories, and a letter that is rendered as a blank.
INVISIBLE = "\u034f\u115f\u1160\u17b4\u180b\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"
ATTACKS = (
    "\x1b[2J\x1b]0;title\x07",
    "\x1b[8mconcealed",
    "\n::error file=stacks/acme.yaml,line=1::forged",
    "\r\n  ::add-mask::a",
    "::stop-commands::x",
    "##[error]forged",
    "a\u2028::warning::x",
    "\x85::warning::x",
    "\u00ad::warning::x",
    "\u202egnp.exe",
    "\u2066isolated",
    "\u200bzero",
    "\U000e0001tag",
    "\x9b31mred",
    "=HYPERLINK(1)",
    "@SUM(A1)",
    "<img src=x onerror=alert(1)>",
    "</details><script>x</script>",
    "![a](https://example.com/a.png) [b](javascript:x) @octocat #1",
    "\x1b[0Ksection_start:1:x\r\x1b[0K",
    "100%0A::error::x",
)
HOSTILE = st.one_of(
    st.sampled_from(ATTACKS),
    st.lists(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=5)), min_size=1, max_size=3).map("".join),
)
# Additional arguments of each command that reads the organization's file, by its output format.
SCENARIO = str(ROOT / "stacks" / "scenarios" / "handson.yaml")
COMMANDS = {
    "text": [
        ["validate"],
        ["quota"],
        ["plan"],
        ["quota", "--team", "john", "--stack", "handson-dev"],
        ["review"],
        ["review", "--scenario", SCENARIO],
        ["whatif", "simulate", SCENARIO, "--stack", "handson-dev"],
        ["aws", "images", "--stack", "handson-dev", "--account", "123456789012"],
        ["aws", "team-policy", "--stack", "handson-dev", "--team", "john"],
        ["aws", "deployer-policy", "--stack", "handson-dev"],
        ["job", "new", "--stack", "handson-dev", "--team", "john", "--instance-type", "ml.g5.12xlarge"],
    ],
    "json": [
        ["validate", "--format", "json"],
        ["validate", "--format", "sarif"],
        ["quota", "--format", "json"],
        ["plan", "--format", "json"],
        ["review", "--format", "json"],
        ["whatif", "simulate", SCENARIO, "--stack", "handson-dev", "--format", "json"],
    ],
    "github": [["validate", "--format", "github"]],
    "markdown": [["review", "--format", "markdown"]],
}
CASES = [(form, command) for form, commands in COMMANDS.items() for command in commands]
COMMAND = re.compile(r"::(error|warning) file=[^:,]+,line=\d+,col=\d+,title=[^:,]+::(?!.*##\[).+")


def hidden(text):
    return {character for character in text if unicodedata.category(character) in HIDDEN_CATEGORIES} - {"\n", "\t"}


def assert_inert(text):
    assert not hidden(text)
    for line in text.splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


class Page(HTMLParser):
    """The tags of a page, and the addresses of its links."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.handlers = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def assert_no_page_obeys(text):
    page = Page(text)
    assert not page.tags & {"img", "script", "iframe", "form", "object"}
    assert not page.handlers
    assert all(address.startswith("#") for address in page.addresses)


def places(value, path=()):
    """Return the path of every key and every text below a value; that of a key ends with the key and True."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key, True)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))
    elif isinstance(value, str):
        yield path


ORGANIZATION = yaml.safe_load((ROOT / "stacks" / "handson.yaml").read_text(encoding="utf-8"))
# Places where a file may contain any text.
ORGANIZATION["environments"]["dev"]["cluster"]["dependencies"] = {"values": {"note": "a value of the chart"}}
WAIVER = {"rule": "ACC001", "path": "teams[john]", "reason": "until March", "until": datetime.date(2027, 3, 1)}
ORGANIZATION["environments"]["dev"]["waivers"] = [WAIVER]
PLACES = list(places(ORGANIZATION))


def mutated(place, text):
    """Return the organization's file with a text in place of a key or of a value."""
    data = copy.deepcopy(ORGANIZATION)
    is_key = place[-1] is True
    *path, last = place[:-1] if is_key else place
    inner = data
    for step in path:
        inner = inner[step]
    if is_key:
        inner[text] = inner.pop(last)
    else:
        inner[last] = text
    return yaml_of(data)


def answer_of(command, repository):
    return hpkit(*command, *(["--base", "main"] if command[0] == "review" else []), cwd=repository.folder)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    made = Repository(tmp_path_factory.mktemp("printable"))
    made.write("stacks/handson.yaml", yaml.safe_dump(ORGANIZATION, sort_keys=False).encode())
    made.commit()
    return made


def test_of_the_file_as_it_was_every_command_says_something(repository):
    repository.write("stacks/handson.yaml", yaml.safe_dump(ORGANIZATION, sort_keys=False).encode())
    for form, command in CASES:
        answer = answer_of(command, repository)
        assert answer.returncode == 0, (command, answer.stderr)
        assert answer.stdout or form == "github", command


@pytest.mark.parametrize(
    ("form", "command"), CASES, ids=[" ".join(command).replace(SCENARIO, "FILE") for _, command in CASES]
)
@settings(max_examples=20 if NIGHTLY else 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), text=HOSTILE)
@example(place=("tags", True), text="\x1b[2J\n::error::x##[error]y\u202e")
@example(place=("environments", "dev", "waivers", 0, "reason"), text="\x1b[2J\n::error::x##[error]y\u202e")
@example(
    place=("environments", "dev", "cluster", "dependencies", "values", "note"),
    text="<img src=x onerror=alert(1)>\x1b[2J",
)
def test_no_text_of_a_file_is_obeyed_by_what_shows_it(form, command, repository, place, text):
    repository.write("stacks/handson.yaml", mutated(place, text).encode())
    answer = answer_of(command, repository)
    assert "Traceback" not in answer.stderr
    assert_inert(answer.stderr)
    if form == "github":
        assert not hidden(answer.stdout)
        assert [line for line in answer.stdout.splitlines() if not COMMAND.fullmatch(line)] == []
        return
    assert_inert(answer.stdout)
    if form == "json" and answer.stdout:
        json.loads(answer.stdout)
    if form == "markdown":
        assert_no_page_obeys(MarkdownIt("commonmark", {"html": True}).render(answer.stdout))
        assert not re.search(r"(?<!\w)@\w|(?<![&\w])#\d", answer.stdout)


def test_a_key_of_a_file_adds_no_line_to_its_findings(repository):
    key = "x\n0 errors, 0 warnings in 1 file"
    repository.write("stacks/handson.yaml", mutated(("tags", True), "t").encode() + f"{json.dumps(key)}: 1\n".encode())
    said = answer_of(["validate"], repository).stdout
    assert "unknown key `x\\u000a0 errors" in said
    assert "\n0 errors" not in said


@given(st.text())
def test_what_is_printed_is_one_line_without_hidden_characters_and_stays_so(text):
    shown = printable(text)
    assert not hidden(shown)
    assert "\n" not in shown
    assert "\t" not in shown
    assert printable(shown) == shown
    assert quoted(text) == printable(quoted(text))


def test_every_character_that_is_not_seen_is_escaped():
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character) in HIDDEN_CATEGORIES | {"Zs"} and character != " ":
            assert re.fullmatch(r"(\\u[0-9a-f]{4}){1,2}", printable(character)), hex(ord(character))
    for character in INVISIBLE:
        assert printable(character) != character


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_json_of_the_same_value(value):
    for indent in (None, 2):
        assert json.loads(printable_lines(json.dumps(value, ensure_ascii=False, indent=indent))) == value


@given(st.text(alphabet=" \t\n\r:#[]x\u2028\x85\x0b\x1b\ufeff", max_size=30))
@example("x\n \t::error::y ##[error]z ##[[x]")
def test_no_line_of_a_text_is_a_workflow_command(text):
    assert_inert(printable_lines(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m \x1b[1;33mbold\x1b[m", "\x1b[31mred\x1b[0m \x1b[1;33mbold\x1b[m"),
        ("\x1b[8mconcealed", "\\u001b[8mconcealed"),
        ("\x1b[30;40mblack", "\\u001b[30;40mblack"),
        ("\x1b[31;8mred", "\\u001b[31;8mred"),
        ("\x1b[2J", "\\u001b[2J"),
        ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
        ("\rover", "\\u000dover"),
    ],
)
def test_a_terminal_takes_colors_and_nothing_else(text, shown):
    assert printable_lines(text, styled=True) == shown


def test_whatever_writes_to_the_streams_of_a_command_is_printable(capsys):
    with printable_output():
        print("a\x1b[31m\n::error::x", file=sys.stdout)
        sys.stderr.writelines(["##[error]x\n", "\u202e\n"])
        own(sys.stdout).write("::error::of hpkit itself\n")
    out, err = capsys.readouterr()
    assert out == "a\\u001b[31m\n\\u003a:error::x\n::error::of hpkit itself\n"
    assert err == "#\\u0023[error]x\n\\u202e\n"


def test_the_engine_is_told_errors_of_the_plugin_in_printable_text():
    messages = []

    class Context:
        def abort(self, _code, text):
            messages.append(text)

    @readable
    def refuse(servicer, request, context):
        raise PluginError("AWS rejected it: \x1b[2J\n::error::x\nTo fix: wait")

    refuse(PluginServicer(), None, Context())
    assert messages == ["AWS rejected it: \\u001b[2J\n\\u003a:error::x\nTo fix: wait"]
