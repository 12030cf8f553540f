"""From a document to the typed organization, with everything that is wrong with its form.

Does not: stop at the first error. Unknown keys are left out and the rest is checked; an environment
with a wrong value is left out and the others are checked.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hpkit.config.contract import (
    ANY,
    description,
    fields_at,
    homes_of,
    kinds_at,
    required_at,
)
from hpkit.config.document import Document, Path, Problem, format_path
from hpkit.config.load import resolve
from hpkit.config.organization import Organization
from hpkit.config.other_files import other_file
from hpkit.config.suggest import ON_WHEN_EMPTY, candidates, explained, is_alike, key_candidates, nearest, units, written
from hpkit.config.wording import (
    called,
    example,
    expected,
    is_number,
    key_of,
    keys_of_map,
    members_of,
    root_errors,
    shown,
)

__all__ = ["Parsed", "parse"]

# Each tries one value in the place of another; a file of nothing but wrong values is not worth more.
_MOST_TRIALS = 400
_NAME_ONE = "Name an organization file; it begins with `organization: <name>`, and stands in stacks/."
# A map of more keys is not meant by a value alone.
_MOST_SHORT = 4
_NUMBERS = {"int_type", "float_type", "greater_than_equal", "less_than_equal", "greater_than"}
# What reserves less than a whole instance.
_PARTS_OF_INSTANCES = ("accelerators", "vCpu", "memoryInGiB")


@dataclass(frozen=True, slots=True)
class Parsed:
    """An organization as far as it could be read.

    unread holds the paths of parts that were left out because their form is wrong; no other rule has
    looked at them. organization is None when nothing could be read. document is what was read, with keys that were
    nearly right under the names that they were taken for.
    """

    organization: Organization | None
    problems: tuple[Problem, ...]
    document: Document
    unread: tuple[Path, ...] = ()


def parse(document: Document) -> Parsed:
    """Validate a document against the config contract; reports CFG001–CFG005, never raises."""
    if document.data is None or not isinstance(document.data, dict):
        return Parsed(None, document.problems or (_not_a_mapping(document),), document)
    if what := other_file(document.data):
        problem = Problem("CFG005", (), f"this is {what}", _NAME_ONE, document.locate(()))
        return Parsed(None, (problem,), document, ((),))
    if unnamed := _unnamed_environment(document.data):
        mark = document.locate(("environments",), key=True)
        message = f"environments holds what an environment has ({', '.join(unnamed)}), and no name of one above it"
        fix = "Write a name under `environments:`, such as `dev:`, and all that it holds below that, further in."
        return Parsed(
            None, (*document.problems, Problem("CFG003", ("environments",), message, fix, mark)), document, ((),)
        )
    reading = _Reading(document)
    organization = reading.organization()
    # Of a word that may be a boolean, the type says what it takes instead; of anything else the reader is more precise.
    typed = {problem.path for problem in reading.problems}
    nothing = [each for each in _nothing_behind(reading.document) if each.path not in typed]
    read = [each for each in document.problems if each.rule != "CFG002" or each.path not in typed]
    said = {problem.path for problem in read}
    problems = [problem for problem in reading.problems if problem.path not in said]
    return Parsed(organization, (*read, *problems, *nothing), reading.document, tuple(reading.unread))


def _nothing_behind(document: Document, path: Path = ()) -> Iterator[Problem]:
    """Yield keys with nothing behind them where that passes for not written: `keda:` is off, `keda: {}` is on."""
    data = _at(document.data, path)
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, tuple) else ()
    for step, value in entries:
        here = (*path, step)
        if value is None and document.raw(here) == "" and isinstance(step, str):
            on = (
                f"Write `{step}: {{}}`, or remove the line."
                if step in ON_WHEN_EMPTY
                else "Write it, or remove the line."
            )
            message = f"`{step}` has nothing behind it, and so counts as not written"
            yield Problem("CFG013", here, message, on, document.locate(here, key=True), "warning")
        elif isinstance(value, (dict, tuple)) and not (path == () and str(step).startswith("x-")):
            yield from _nothing_behind(document, here)


def _unnamed_environment(data: dict[str, Any]) -> list[str]:
    """Return the keys of an environment that stand where names of environments belong; none where only one does."""
    environments = data.get("environments")
    here = [key for key in fields_at(("environments", "")) if isinstance(environments, dict) and key in environments]
    return here if len(here) > 1 else []


def _not_a_mapping(document: Document) -> Problem:
    if document.data is None:
        message = "the file is empty"
    else:
        data = document.data
        kind = "a list" if isinstance(data, tuple) else "text" if isinstance(data, str) else "a single value"
        message = f"the file holds {kind} where a map belongs"
    return Problem("CFG005", (), message, "Begin with `organization: <name>`.", document.locate(()))


class _Reading:
    """One document on its way to an organization; collects what is wrong with its form."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.unread: list[Path] = []
        self._data = {key: value for key, value in document.data.items() if not key.startswith("x-")}
        self._trials = _MOST_TRIALS

    def organization(self) -> Organization | None:
        """Return the organization as far as it can be read."""
        while True:
            try:
                return _validated(self._data)
            except ValidationError as error:
                details = error.errors(include_url=False, include_context=True, include_input=True)
            # Unknown keys go first: what else is said may only follow from a key that was misspelt.
            unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
            for path in unknown:
                self._unknown_key(path)
            if not unknown and not self._leave_out(root_errors(details)):
                return None

    def _leave_out(self, details: list[ErrorDetails]) -> bool:
        """Report errors, and leave the environments out that they are in; False when nothing is left."""
        wrong: set[str] = set()
        for detail in details:
            path = _display_path(detail)
            self.problems.append(self._problem(detail, path))
            wrong.add(str(path[1]) if len(path) >= 2 and path[0] == "environments" else "")
        if "" in wrong:
            self.unread = [()]
            return False
        environments = self._data.get("environments", {})
        self.unread.extend(("environments", name) for name in sorted(wrong))
        self._data = {**self._data, "environments": {k: v for k, v in environments.items() if k not in wrong}}
        return bool(self._data["environments"])

    def _unknown_key(self, path: Path) -> None:
        """Report a key; go on with what it is nearly the name of, or without it."""
        key, known = str(path[-1]), fields_at(path[:-1])
        beside = _at(self._data, path[:-1])
        here = format_path(path[:-1], self.document.data) or "the file"
        message, mark = f"unknown key `{key}` in {here}", self.document.locate(path, key=True)
        if found := self._value_of_one(path, known):
            name, inner = found
            fix = f"Write `{name}: {written(inner, resolve)}`."
            self.problems.append(Problem("CFG001", path, message, fix, mark))
            self._data = _renamed(_with(self._data, path, inner), path, name)
            return
        near = self._meant(path, known)
        inside = [] if near else [each for each in known if key in fields_at((*path[:-1], each))]
        home = None if inside or (near and self._is_near(key, near)) else self._home(path)
        if home is not None:
            near = None
        if near and near in beside and is_alike(key, near):
            fix = f"Remove it: `{near}` is there already."
        elif near and near not in beside:
            fix = f"Did you mean `{near}`?"
        elif home is not None:
            self._move(path, *home)
            fix = f"Move it: `{key}` belongs under `{home[1]}`."
            self.problems.append(Problem("CFG001", path, message, fix, mark))
            return
        elif inside:
            fix = f"Move it into `{inside[0]}: {{{key}: …}}`."
        elif self._is_environment(path, known):
            fix, inside = "Put `environments:` above it, and it and all that it holds further in.", ["environments"]
        else:
            fix = f"Known here: {', '.join(known) or 'no key at all'}."
        self.problems.append(Problem("CFG001", path, message, fix, mark))
        if near and near not in beside:
            self._data = _renamed(self._data, path, near)
            self.document = self.document.renamed(path, near)
            return
        rest = {name: value for name, value in beside.items() if name != path[-1]}
        if inside and isinstance(around := beside.get(inside[0], {}), dict):
            rest[inside[0]] = {key: beside[path[-1]], **around}
        self._data = _with(self._data, path[:-1], rest)

    @staticmethod
    def _is_near(key: str, name: str) -> bool:
        """Return whether a key is more likely to mean a known one next to it than the same key of another section."""
        return is_alike(key, name) or name.lower().endswith(key.lower())

    def _home(self, path: Path) -> tuple[Path, str] | None:
        """Return the section that an unknown key belongs to, as a path and as people read it; None if several fit."""
        key, value = str(path[-1]), _at(self._data, path)
        kind = "map" if isinstance(value, dict) else "list" if isinstance(value, tuple) else "value"
        homes = [home for home in homes_of(key) if value is None or kind in kinds_at((*home, key))]
        # The nearest section: the one with which the key's own place has the most steps in common.
        shared = [_steps_in_common(home, path) for home in homes]
        nearest_homes = [home for home, steps in zip(homes, shared, strict=True) if steps == max(shared)]
        if len(nearest_homes) != 1:
            return None
        place: Path = ()
        text = ""
        for step, own in zip_longest(nearest_homes[0], path[: max(shared)]):
            entries = self._entries(place)
            if step != ANY:
                place, text = (*place, step), f"{text}.{step}" if text else str(step)
            elif own is not None or len(entries) == 1:
                place = (*place, entries[0] if own is None else own)
                text = format_path(place, self._data)
            else:
                first = f".{entries[0]}" if entries and isinstance(entries[0], str) else "[…]"
                place, text = (*place, entries[0] if entries else ANY), f"{text}{first}"
        return place, text

    def _entries(self, path: Path) -> list[str | int]:
        """Return the steps into the map or list at a path; none where the file has neither."""
        value: Any = self._data
        for step in path:
            if isinstance(value, dict):
                exists = step in value
            else:
                exists = isinstance(value, tuple) and isinstance(step, int) and step < len(value)
            if not exists:
                return []
            value = value[step]
        return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, tuple) else []

    def _move(self, path: Path, home: Path, _text: str) -> None:
        """Read a key on where it belongs, so that nothing else is reported only because it isn't there."""
        key, value = str(path[-1]), _at(self._data, path)
        around = _at(self._data, path[:-1])
        self._data = _with(self._data, path[:-1], {name: each for name, each in around.items() if name != key})
        if home and self._entries(home) and key not in self._entries(home):
            self._data = _with(self._data, home, {**_at(self._data, home), key: value})

    def _is_environment(self, path: Path, known: Sequence[str]) -> bool:
        """Say whether what stands under an unknown key is an environment that is not in `environments`."""
        value, keys = _at(self._data, path), fields_at(("environments", ""))
        return "environments" in known and isinstance(value, dict) and len(value.keys() & set(keys)) > 1

    def _meant(self, path: Path, known: Sequence[str]) -> str | None:
        """Return the known key that an unknown one is likely to mean."""
        key, beside = str(path[-1]), _at(self._data, path[:-1])
        free = [each for each in known if each not in beside]
        # A list of one is often written as a value alone: publicCidr.
        if f"{key}s" in free:
            return f"{key}s"
        near = nearest(key, [each for each in known if self._suits(path, each)])
        if near and is_alike(key, near):
            return near
        # What has to be there and is not, if it takes just this value: `id` for `rule`, `expires` for `until`.
        missing = [each for each in required_at(path[:-1]) if each in free]
        fitting = [each for each in missing if self._takes(path, each, key=True)]
        return fitting[0] if len(missing) == 1 and fitting else near

    def _value_of_one(self, path: Path, known: Sequence[str]) -> tuple[str, Any] | None:
        """Return key and value that are meant by a line without a colon, or a map of one entry: nodeClassRef."""
        value, beside = _at(self._data, path), _at(self._data, path[:-1])
        name, space, rest = str(path[-1]).partition(" ")
        if space and value is None and name in known and name not in beside:
            # A line without its colon.
            return name, resolve(rest.strip())
        inner = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
        near = nearest(str(path[-1]), [each for each in known if each not in beside])
        if near is None or not isinstance(inner, (str, int, float)) or "map" in kinds_at((*path[:-1], near)):
            return None
        return near, inner

    def _suits(self, path: Path, name: str) -> bool:
        """Say whether a value is of the kind that a key takes: a map, a list or a single value."""
        value, takes = _at(self._data, path), kinds_at((*path[:-1], name))
        kind = "map" if isinstance(value, dict) else "list" if isinstance(value, tuple) else "value"
        return value is None or kind in takes

    def _problem(self, detail: ErrorDetails, path: Path) -> Problem:
        document, kind = self.document, detail["type"]
        if kind == "missing":
            here = format_path(path[:-1], document.data) or "the file"
            return Problem(
                "CFG003",
                path,
                f"`{path[-1]}` is missing in {here}",
                f"Add `{path[-1]}: …`. {description(path)}".strip(),
                document.locate(path[:-1]),
            )
        if detail["loc"] != path:
            of = format_path(path[:-1], document.data) or "the file"
            message = f"the key `{path[-1]}` in {of} is not one that it takes"
            return Problem("CFG002", path, message, self._fix(detail, path), document.locate(path, key=True))
        field = called(path)
        text = shown(document, path, detail["input"])
        hint = explained(detail["input"], key_of(path)) if kind in ("string_pattern_mismatch", "string_type") else None
        if hint and (not hint[2] or self._takes(path, hint[2])):
            return Problem("CFG002", path, f"{field} is {text}, {hint[0]}", hint[1], document.locate(path))
        several = f"{path[-1]}s"
        if (
            kind == "string_type"
            and isinstance(detail["input"], tuple)
            and detail["input"]
            and several in fields_at(path[:-1])
        ):
            message, fix = f"`{path[-1]}` is a list, and takes one", f"Did you mean `{several}`?"
            return Problem("CFG002", path, message, fix, document.locate(path, key=True))
        name = self._role_name(detail["input"], path) if kind in ("string_pattern_mismatch", "string_too_short") else ""
        wrong = "which is a role's name, not its ARN" if name else expected(detail)
        message = f"{field} is {text}, {wrong}"
        return Problem("CFG002", path, message, self._fix(detail, path), document.locate(path))

    def _fix(self, detail: ErrorDetails, path: Path) -> str:
        """Return the first value that may be meant and that the contract takes there, else what it takes."""
        value, kind = detail["input"], detail["type"]
        if kind.endswith("too_long"):
            unit = "characters" if kind.startswith("string") else "entries"
            return f"Shorten it: it has {len(value)} {unit}."
        if path[2:3] == ("addons",) and path[3:] and is_number(value) and path[4:] in ((), ("version",)):
            listed = f"`aws eks describe-addon-versions --addon-name {path[3]}` lists them."
            return f"Leave the version out, or take one that EKS has: {listed}"
        if kind == "tuple_type" and isinstance(value, dict) and self._takes(path, (value,)):
            return "It is a list: begin each entry with `- `."
        for candidate in self._candidates(detail, path):
            if self._takes(path, candidate, key=detail["loc"] != path):
                return f"Write `{written(candidate, resolve)}`."
        return self._described(detail, path)

    def _described(self, detail: ErrorDetails, path: Path) -> str:
        """Return what a key takes, in words."""
        value, kind = detail["input"], detail["type"]
        if kind == "literal_error":
            return f"Write one of {members_of(detail)}."
        if kind in ("model_type", "model_attributes_type"):
            return f"Write a map: {keys_of_map(path, value)}."
        if kind in _NUMBERS:
            return self._number(detail, path)
        if role := self._role_name(value, path):
            arn = f"arn:aws:iam::ACCOUNT:role/{role}"
            return f"Write the role's ARN: `{arn}`, with the account's 12 digits in place of ACCOUNT."
        # Where any text may stand, none is a time.
        lengths = [each for each in units(value) if self._takes(path, each) and not self._takes(path, "x")]
        if lengths:
            return f"Write it with its unit: {', '.join(lengths[:-1])} or {lengths[-1]}."
        return f"Expected: {description(path)}{example(path)}"

    def _number(self, detail: ErrorDetails, path: Path) -> str:
        """Return which numbers a key takes, in place of one that it doesn't; never another number that isn't meant."""
        value, kind, context = detail["input"], detail["type"], detail.get("ctx", {})
        if isinstance(value, float) and kind != "float_type" and math.isfinite(value) and not context:
            whole = [each for each in (math.floor(value), math.ceil(value)) if self._takes(path, each)]
            beside = [key for key in _PARTS_OF_INSTANCES if path[-1] == "count" and key in fields_at(path[:-1])]
            parts = (
                f" For part of an instance, write {', '.join(beside[:-1])}, or {beside[-1]} instead." if beside else ""
            )
            return f"Write {' or '.join(f'`{each}`' for each in whole)}.{parts}" if whole else "Write a whole number."
        number = "a number" if kind == "float_type" else "a whole number"
        if "ge" in context:
            number = f"{number} of at least {context['ge']}"
        if "le" in context:
            number = f"{number} of at most {context['le']}"
        return f"Write {number}. Expected: {description(path)}{example(path)}"

    def _role_name(self, value: Any, path: Path) -> str:
        """Return the name of a role that is written where its ARN belongs; empty for anything else."""
        name = value.strip().removeprefix("role/") if isinstance(value, str) else ""
        is_role = self._takes(path, f"arn:aws:iam::123456789012:role/{name}") and not self._takes(path, "arn:x")
        return name if re.fullmatch(r"[\w+=,.@-]{1,64}", name, re.ASCII) and is_role else ""

    def _candidates(self, detail: ErrorDetails, path: Path) -> Iterator[Any]:
        if detail["loc"] != path:
            yield from key_candidates(str(path[-1]))
            return
        context = detail.get("ctx", {})
        bounds = [context[key] for key in ("le",) if key in context]
        members = [resolve(each) for each in members_of(detail).split(", ")] if "expected" in context else []
        if path[2:3] == ("addons",) and detail["input"] in (None, True):
            yield {}
        raw, key = self.document.raw(path), key_of(path)
        yield from candidates(detail["input"], raw, key, bounds=bounds, members=members, accounts=self._accounts(path))
        if detail["type"] in ("model_type", "model_attributes_type"):
            yield from self._of_one_key(path, detail["input"])

    def _accounts(self, path: Path) -> tuple[str, ...]:
        """Return the account that a path is in: its environment's, or those of all environments in their order."""
        environments = self._data.get("environments")
        known = environments if isinstance(environments, dict) else {}
        specs = [known.get(path[1])] if path[0] == "environments" and len(path) > 1 else list(known.values())
        accounts = (str(spec.get("account")) for spec in specs if isinstance(spec, dict))
        return tuple(dict.fromkeys(account for account in accounts if re.fullmatch(r"[0-9]{12}", account)))

    def _of_one_key(self, path: Path, value: Any) -> Iterator[Any]:
        """Yield the map that a single value stands for: of the one key that takes it, and nothing else beside."""
        if not isinstance(value, (str, int, float)) or isinstance(value, bool) or isinstance(path[-1], int):
            return
        if not isinstance(value, str) and value <= 0:
            return
        keys = required_at(path) or list(fields_at(path))
        maps: list[dict[str, Any]] = [{key: value} for key in keys]
        taken = [each for each in maps if self._takes(path, each)] if len(keys) <= _MOST_SHORT else []
        yield from taken if len(taken) == 1 else ()

    def _takes(self, path: Path, value: Any, *, key: bool = False) -> bool:
        """Say whether the contract has nothing against a value, or a key, in place of the one at path."""
        # A short form, such as an add-on's version alone, stands above the place that its value has in the contract.
        if self._trials <= 0 or value == "" or not isinstance(_at(self._data, path[:-1]), (tuple, dict)):
            return False
        self._trials -= 1
        place = (*path[:-1], value) if key else path
        tried = _renamed(self._data, path, value) if key else _with(self._data, path, value)
        try:
            _validated(tried)
        except ValidationError as error:
            locs = [each["loc"] for each in error.errors(include_url=False, include_context=False, include_input=False)]
            return not any(loc[: len(place)] == place for loc in locs)
        return True


def _display_path(detail: ErrorDetails) -> Path:
    """Return the path that people know: an error of a key ends in "[key]", unless an unknown key is called so."""
    loc = detail["loc"]
    return loc[:-1] if loc[-1:] == ("[key]",) and detail["type"] != "extra_forbidden" else loc


def _validated(data: Any) -> Organization:
    """Return data as an organization; raises ValidationError. Keys are as files have them, never as Python has them."""
    return Organization.model_validate(data, by_alias=True, by_name=False)


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _with(data: Any, path: Path, value: Any) -> Any:
    """Copy data with another value at path; only the way to it is copied."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, tuple) and isinstance(step, int):
        return (*data[:step], _with(data[step], rest, value), *data[step + 1 :])
    return {**data, step: _with(data[step], rest, value)}


def _steps_in_common(home: Path, path: Path) -> int:
    """Return how many steps a section's path, whose entries are ANY, shares with another path."""
    count = 0
    for step, other in zip(home, path[:-1], strict=False):
        if step not in (ANY, other):
            break
        count += 1
    return count


def _renamed(data: Any, path: Path, key: str) -> Any:
    """Copy data with another key in place of the last one of path, at the same place among its neighbours."""
    entries = _at(data, path[:-1])
    return _with(data, path[:-1], {key if old == path[-1] else old: value for old, value in entries.items()})
