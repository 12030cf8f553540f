"""Files with a random mistake: valid organizations, changed in one place."""

import copy
import random
from dataclasses import dataclass
from functools import cache

from generate.examples import example_files
from hpkit.checks import check
from hpkit.config import format_path, parse, read_text
from tests.builders import plain, yaml_of
from tests.checks.test_fixtures import CASES

__all__ = ["Mutant", "mistaken", "mutant"]

# Warnings that the service may reject something, such as an add-on that hpkit doesn't know.
_DOUBTS = ("ADD016",)


_ANOTHER_VALUE = ("another", "deleted", "emptied", "negated", "of another place", "swapped", "turned", "only the first")


@dataclass(frozen=True)
class Mistake:
    """One change of a file: its place, the old and the new value."""

    path: str
    change: str

    @property
    def is_another_value(self):
        """Return whether the value is different, rather than the same value in a wrong form."""
        return self.change.startswith(_ANOTHER_VALUE)

    def __str__(self):
        return f"{self.path}: {self.change}"


@dataclass(frozen=True)
class Mutant:
    """A file with changes that the validator accepted, and how many it rejected on the way.

    Each change is tried on top of the previous ones, so that one deployment tests many against the endpoint.
    """

    seed: int
    source: str
    organization: object
    mistakes: tuple
    refused: int

    def __str__(self):
        return f"seed {self.seed}, {self.source}, with {'; '.join(map(str, self.mistakes))}"


@cache
def _sources():
    """Return name → organization for every example, and every passing case of a rule that needs no other file."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in example_files()}
    usual = CASES[0].today
    texts |= {
        f"{case.rule}.{case.name}": case.text
        for case in CASES
        if case.passes and not case.stack_files and not case.files and case.today == usual
    }
    # Existing resources are in one account, and the endpoint starts without any.
    return {
        name: plain(read_text(text.encode()).data)
        for name, text in texts.items()
        if not any(each in text for each in ("existing:", "installed: [", "executionRoleArn:", "210987654321"))
    }


def mutant(seed, mistakes, *, today):
    """Return the file of a seed, the same on every machine, with a number of mistakes that pass on that day."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    source = chance.choice(sorted(_sources()))
    data = _sources()[source]
    organization, passed, refused = None, [], 0
    while len(passed) < mistakes:
        tried = copy.deepcopy(data)
        mistake = _mistake(tried, chance)
        if tried == data:
            continue
        parsed = parse(read_text(yaml_of(tried).encode()))
        if any(
            each.severity == "error" or each.rule in _DOUBTS for each in check(parsed, file="acme.yaml", today=today)
        ):
            refused += 1
            continue
        data, organization = tried, parsed.organization
        passed.append(mistake)
    return Mutant(seed, source, organization, tuple(passed), refused)


def mistaken(seed):
    """Return one mistake of a seed, and the text of the valid organization with it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    data = copy.deepcopy(_sources()[chance.choice(sorted(_sources()))])
    mistake = _mistake(data, chance)
    return mistake, yaml_of(data)


def _mistake(data, chance):
    """Make one mistake in a file, and return it."""
    # The first call reports a wrong account with its own message, and no rule of a file could.
    path = chance.choice([each for each in _places(data, ()) if each[-1] != "account"])
    shown, before = format_path(path, data), _at(data, path)
    name, apply = chance.choice(_changes(data, path, chance))
    apply()
    return Mistake(shown, f"{name}: {str(before)[:80]} → {str(_at(data, path))[:80]}")


def _places(value, path):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*path, step)
        yield from _places(inner, (*path, step))


def _at(data, path):
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _changes(data, path, chance):
    """Return name and function of every mistake that can be made at a place."""
    parent, step = _at(data, path[:-1]), path[-1]
    value = parent[step]

    def put(new):
        return lambda: parent.__setitem__(step, new)

    mutations = [("deleted", lambda: parent.pop(step))]
    if isinstance(parent, list):
        mutations.append(("twice", lambda: parent.insert(step, copy.deepcopy(value))))
    mutations += [(name, put(new)) for name, new in _values(value, chance)]
    alike = [
        other
        for other in (_at(data, each) for each in _places(data, ()))
        if type(other) is type(value) and other != value
    ]
    if alike:
        mutations.append(("of another place", put(copy.deepcopy(chance.choice(alike)))))
    if isinstance(parent, dict) and isinstance(step, str):
        mutations.append(("key misspelt", lambda: parent.__setitem__(_near(step, chance), parent.pop(step))))
    return mutations


def _values(value, chance):
    if isinstance(value, bool):
        return [("negated", not value), ("as text", str(value))]
    if isinstance(value, (int, float)):
        numbers = (0, 1, -1, value + 1, value * 2, value * 10, value * 1000, value / 2, 10**6, 10**10, 2**63)
        return [("another number", new) for new in numbers if new != value] + [
            ("as text", str(value)),
            ("as list", [value]),
        ]
    if isinstance(value, str):
        return list(_texts(value, chance))
    if isinstance(value, list):
        alone = [("as one value", value[0])] if len(value) == 1 and isinstance(value[0], str) else []
        return [
            *alone,
            ("emptied", []),
            ("turned", value[::-1]),
            ("only the first", value[:1]),
            ("all twice", value * 2),
        ]
    return [("emptied", {})] if isinstance(value, dict) else []


def _texts(value, chance):
    yield "misspelt", _near(value, chance)
    yield "emptied", ""
    yield "upper case", value.upper()
    yield "very long", (value + "-") * 20 + value
    yield "as long as a label", (value * 64)[:63]
    yield "with a blank", f" {value}"
    yield "in curly quotes", f"“{value}”"
    yield "with an umlaut", f"{value}ü"
    digits = [index for index, letter in enumerate(value) if letter.isdigit()]
    for index in chance.sample(digits, min(3, len(digits))):
        yield "another digit", value[:index] + chance.choice("0123456789") + value[index + 1 :]
    if "/" in value:
        head, _, tail = value.rpartition("/")
        if tail.isdigit():
            for length in (8, 15, 16, 20, 24, 28, 29, 32):
                yield "another prefix", f"{head}/{length}"
            for start in (
                "10.0.0.0",
                "172.16.0.0",
                "172.20.0.0",
                "192.168.0.0",
                "100.64.0.0",
                "198.19.0.0",
                "169.254.0.0",
                "224.0.0.0",
                "127.0.0.0",
                "8.8.0.0",
            ):
                yield "another range", f"{start}/{tail}"
    for old, new in (
        ("2a", "2b"),
        ("2b", "2c"),
        ("us-west-2", "us-east-1"),
        ("us-west-2", "eu-central-1"),
        ("xlarge", "large"),
        ("ml.", ""),
        ("arn:aws:", "arn:aws-cn:"),
        ("role/", "user/"),
        ("123456789012", "000000000000"),
        ("h", "m"),
        ("%", ""),
    ):
        if old in value:
            yield "swapped", value.replace(old, new)
    for unit in ("Gi", "%", "m", "h", "d"):
        if value.rstrip("Gimh%d").isdigit():
            yield "another unit", value.rstrip("Gimh%d") + unit


def _near(text, chance):
    if len(text) < 2:
        return text + "x"
    at = chance.randrange(len(text) - 1)
    return chance.choice(
        [
            text[:at] + text[at + 1] + text[at] + text[at + 2 :],
            text[:at] + text[at + 1 :],
            text[:at] + text[at] + text[at:],
        ]
    )
