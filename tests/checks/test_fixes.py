"""What a fix names can be typed as it stands there, and then holds."""

import os
import re

import pytest
import yaml

from hpkit.checks import check
from hpkit.config import format_path, parse, read_text
from tests.builders import TODAY, plain
from tests.checks.test_fixtures import CASES
from tests.program.mutations import mistaken

# A fix that names a value or a key names it first, between backticks.
_NAMED = re.compile(r"(?:Write|Did you mean) `(?P<value>[^`]+)`")
_KEY_AND_VALUE = re.compile(r"(?P<key>[A-Za-z]+): (?P<value>.+)\Z")

# Words of the tools by which a file is read, which are no words of its contract.
_WORDS_OF_TOOLS = re.compile(
    r"pydantic|Input should|valid (?:string|integer|boolean|dictionary)|pattern|regex|\\[dswAZ]|\(\?|\[a-z"
)

# A finding without a path is of another file beside the organization's.
NAMING = [
    (case, index) for case in CASES for index, each in enumerate(case.expected) if each.path and _NAMED.match(each.fix)
]


def steps_of(document, path):
    """Return the steps of a path as findings write it, keys under the names they were taken for; None for no path."""
    data = parse(document).document.data
    for steps in walk(document.data, ()):
        if format_path(steps, data) == path:
            return steps
    return None


def walk(value, steps):
    yield steps
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    for step, inner in entries:
        yield from walk(inner, (*steps, step))


def applied(text, expected):
    """Return a text with what the fix says typed where the finding points."""
    document = read_text(text.encode())
    data = plain(document.data)
    steps = steps_of(document, expected.path)
    typed = _NAMED.match(expected.fix)["value"]
    parent = data
    for step in steps[:-1]:
        parent = parent[step]
    last = steps[-1]
    pair = _KEY_AND_VALUE.match(typed)
    if pair and renames(expected, parent, last):
        del parent[last]
        parent[pair["key"]] = value_of(pair["value"])
    elif renames(expected, parent, last):
        named = {typed if key == last else key: value for key, value in parent.items() if key != typed}
        parent.clear()
        parent.update(named)
    elif pair and last != pair["key"]:
        (parent[last] if isinstance(parent[last], dict) else parent)[pair["key"]] = value_of(pair["value"])
    else:
        parent[last] = value_of(pair["value"] if pair else typed)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def renames(expected, parent, last):
    """Say whether a fix is of a key: the key is what is wrong then, not the value behind it."""
    return isinstance(parent, dict) and f"`{last}`" in expected.message


def value_of(text):
    return plain(read_text(f"value: {text}".encode()).data["value"])


@pytest.mark.parametrize(("case", "index"), NAMING, ids=lambda each: getattr(each, "name", str(each)))
def test_a_fix_that_names_a_value_holds_when_it_is_typed(case, index):
    expected = case.expected[index]
    text = applied(case.text, expected)
    found = check(parse(read_text(text.encode())), file="acme.yaml", today=case.today)
    assert (expected.rule, expected.path) not in {(each.rule, each.path) for each in found}, text
    assert not [each for each in found if each.rule.startswith("CFG") and each.path == expected.path]


def found_in(text):
    return check(parse(read_text(text.encode())), file="acme.yaml", today=TODAY)


@pytest.mark.parametrize("start", range(0, 2000 if os.environ.get("HPKIT_NIGHTLY") == "1" else 200, 50))
def test_a_fix_of_a_random_mistake_ends_its_finding_and_causes_no_error(start):
    typed = 0
    for seed in range(start, start + 50):
        mistake, text = mistaken(seed)
        before = found_in(text)
        for finding in before:
            # Under a key that was taken for another one, nothing can be typed before that key is right.
            if not _NAMED.match(finding.fix) or steps_of(read_text(text.encode()), finding.path) in (None, ()):
                continue
            fixed = applied(text, finding)
            after = found_in(fixed)
            where = f"seed {seed}, {mistake}: {finding.message}. {finding.fix}"
            known = {(each.rule, each.path) for each in before}
            assert (finding.rule, finding.path, finding.message) not in {
                (each.rule, each.path, each.message) for each in after
            }, where
            new = [each for each in after if each.severity == "error" and (each.rule, each.path) not in known]
            # A number or name that somebody meant otherwise is wrong in more than its form.
            assert not new or mistake.is_another_value, (where, new)
            typed += 1
    assert typed


def test_many_fixes_name_a_value():
    assert len(NAMING) > 60


@pytest.mark.parametrize("case", [case for case in CASES if not case.passes], ids=lambda case: case.name)
def test_no_message_has_words_of_the_tools_that_read_the_file(case):
    for each in case.expected:
        assert not _WORDS_OF_TOOLS.search(f"{each.message} {each.fix}"), each


def test_there_are_over_a_hundred_and_twenty_mistakes_with_their_messages():
    assert len([case for case in CASES if not case.passes]) >= 240
