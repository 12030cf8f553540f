"""Fixes can be typed as they are written, and then solve the problem."""

import re

import pytest

from generate.examples import example_files
from hpkit.checks import check
from hpkit.config import format_path, parse, read_text
from hpkit.config.schema.contract import fields_at
from tests.builders import plain, yaml_of
from tests.checks.test_fixtures import CASES

# A fix that names a value or a key names it first, in backticks.
_NAMED = re.compile(r"(?:(?:Use|Did you mean) `|Set `(?=[^`.]+: ))(?P<value>[^`]+)`")
# A setting anywhere in a fix, unless the fix removes it or leaves it open.
_SETTING = re.compile(
    r"(?<!emove )`(?P<key>[A-Za-z][A-Za-z0-9.]*): (?P<value>[^`]+)`"
    r"(?: in (?P<top>the organization's )?(?P<in>[A-Za-z]+(?:\.[A-Za-z]+)*))?"
)
_OPEN = re.compile(r"…|\.\.\.|ACCOUNT|NAME")
# Rules that judge a value alone, independent of the rest of the file.
_OF_ONE_VALUE = ("ACC009", "CLU003", "EKS010", "KAR021", "NET001", "NET009")
_MOVED = re.compile(
    r"Move it (?:(?P<top>to the top level)|into `(?P<beside>\w+):)|Move it: `\w+` belongs under `(?P<under>[^`]+)`"
)
_KEY_AND_VALUE = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9-]*): (?P<value>.+)\Z")

# Words from the tools that read the file, which aren't part of the file format.
_WORDS_OF_TOOLS = re.compile(
    r"pydantic|Input should|valid (?:string|integer|boolean|dictionary)|pattern|regex|\\[dswAZ]|\(\?|\[a-z"
)

# A finding without a path is in another file next to the organization file. For fixes of defaults and in several files,
# see config/test_compose.py.
ALONE = [case for case in CASES if not case.files and "environmentDefaults" not in str(case.patch)]
NAMING = [
    (case, index) for case in ALONE for index, each in enumerate(case.expected) if each.path and _NAMED.match(each.fix)
]

SETTINGS = [
    (case, index, match[0])
    for case in ALONE
    for index, expected in enumerate(case.expected)
    for match in _SETTING.finditer(expected.fix)
    if expected.path and not _OPEN.search(match[0])
]


def steps_of(document, path):
    """Return the steps of a path as findings write it, with keys under their assumed names; None for no path."""
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
    """Return a text with the fix applied at the finding's position."""
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
    return yaml_of(data)


def renames(expected, parent, last):
    """Return whether a fix changes a key: the key is wrong, not its value. An add-on and a range have wrong values."""
    names = isinstance(parent, dict) and f"`{last}`" in expected.message
    values = expected.message.startswith((f"add-on `{last}` ", f"`{last}` has")) or expected.rule.startswith("NET")
    return names and not values


def value_of(text):
    return plain(read_text(f"value: {text}".encode()).data["value"])


@pytest.mark.parametrize(("case", "index"), NAMING, ids=lambda each: getattr(each, "name", str(each)))
def test_a_fix_that_names_a_value_holds_when_it_is_typed(case, index):
    expected = case.expected[index]
    text = applied(case.text, expected)
    remaining = check(parse(read_text(text.encode())), file="acme.yaml", today=case.today)
    assert (expected.rule, expected.path) not in {(each.rule, each.path) for each in remaining}, text
    assert not [each for each in remaining if each.rule.startswith("CFG") and each.path == expected.path]
    known = {(each.rule, each.path) for each in case.findings()}
    new = [each for each in remaining if each.severity == "error" and (each.rule, each.path) not in known]
    # Once a value is readable, it may still be too large; only its form must be right.
    of_form = [each for each in new if each.rule in _OF_ONE_VALUE or not expected.rule.startswith("CFG")]
    # The fix names everything else that must change.
    assert not of_form or "also " in expected.fix.lower(), text


def with_setting(data, steps, setting):
    """Add a setting to the nearest map that allows its key; None if no map does."""
    match = _SETTING.match(setting)
    *sections, key = f"{match['in']}.{match['key']}".removeprefix("None.").split(".")
    for length in range(0 if match["top"] else len(steps), -1, -1):
        at = value_at(data, steps[:length])
        if isinstance(at, dict) and (*sections, key)[0] in fields_at(steps[:length]):
            for section in sections:
                at = at.setdefault(section, {})
            at[key] = value_of(match["value"])
            return data
    return None


def value_at(data, steps):
    for step in steps:
        if isinstance(data, dict):
            data = data.get(step)
        else:
            data = data[step] if isinstance(data, list) and isinstance(step, int) and step < len(data) else None
    return data


@pytest.mark.parametrize(("case", "index", "setting"), SETTINGS, ids=lambda each: getattr(each, "name", str(each)))
def test_each_setting_that_a_fix_names_ends_the_finding_and_causes_no_error(case, index, setting):
    expected = case.expected[index]
    document = read_text(case.text.encode())
    steps = steps_of(document, expected.path)
    data = with_setting(plain(document.data), steps, setting)
    if data is None or renames(expected, value_at(plain(document.data), steps[:-1]), steps[-1]):
        # For replaced keys, see test_a_fix_that_names_a_value_holds_when_it_is_typed.
        assert data is None or _NAMED.match(expected.fix)
        return
    before = check(parse(document), file="acme.yaml", today=case.today)
    text = yaml_of(data)
    after = check(parse(read_text(text.encode())), file="acme.yaml", today=case.today)
    assert (expected.rule, expected.path, expected.severity) not in {
        (each.rule, each.path, each.severity) for each in after
    }, text
    known = {(each.rule, each.path) for each in before}
    new = [each for each in after if each.severity == "error" and (each.rule, each.path) not in known]
    # The fix names what a setting requires in turn.
    assert not [each for each in new if each.rule not in expected.fix], (new, text)


def misplaced():
    """Yield an example's data with one key in a wrong section, and the steps of the key there."""
    for file in example_files():
        original = plain(read_text(file.read_bytes()).data)
        places = [steps for steps in walk(read_text(file.read_bytes()).data, ()) if steps]
        sections = [
            steps for steps in [(), *places] if isinstance(value_at(original, steps), dict) and fields_at(steps)
        ]
        for number, steps in enumerate(places[::3]):
            to, key = sections[number * 7 % len(sections)], steps[-1]
            if (
                isinstance(key, str)
                and fields_at(steps[:-1])
                and key not in fields_at(to)
                and to[: len(steps)] != steps
            ):
                data = plain(read_text(file.read_bytes()).data)
                value_at(data, to)[key] = value_at(data, steps[:-1]).pop(key)
                yield data, (*to, key)


def test_a_misplaced_key_is_accepted_where_its_fix_moves_it():
    moved = 0
    for data, steps in misplaced():
        before = problems_in(data)
        fix = before.get(("CFG001", steps), "")
        where = _MOVED.match(fix)
        if not where or "[…]" in fix:
            continue
        assert not re.search("allow(?:Delete|Replace)|teamLimits|waivers", fix), (steps, fix)
        *to, key = steps
        value = value_at(data, to).pop(key)
        home = () if where["top"] else (*to, where["beside"]) if where["beside"] else steps_in(where["under"], data)
        around, last = value_at(data, home[:-1]), home[-1:]
        section = around.setdefault(*last, {}) if last and isinstance(around, dict) else value_at(data, home)
        section[key] = value
        assert not problems_in(data).keys() - before.keys(), (steps, fix)
        moved += 1
    assert moved > 20, moved


def problems_in(data):
    return {(each.rule, each.path): each.fix for each in parse(read_text(dumped(data).encode())).problems}


def steps_in(path, data):
    """Return the steps of a section that a fix names, even if the file doesn't have it."""
    return steps_of(read_text(dumped(data).encode()), path) or tuple(path.split("."))


def dumped(data):
    return yaml_of(data)


def test_no_message_has_words_of_the_tools_that_read_the_file():
    for case in CASES:
        for each in case.expected:
            assert not _WORDS_OF_TOOLS.search(f"{each.message} {each.fix}"), (case.name, each)
