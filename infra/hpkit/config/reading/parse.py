"""From a document to the typed organization, with everything that is wrong with its form.

It doesn't stop at the first error. Unknown keys are left out and the rest is checked; an environment
with a wrong value is left out and the others are checked.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hpkit.config.messages.suggest import (
    ON_WHEN_EMPTY,
    candidates,
    explained,
    is_size,
    key_candidates,
    nearest,
    units,
    written,
)
from hpkit.config.messages.wording import (
    EXPRESSIONS,
    beginning_of,
    called,
    example,
    expected,
    is_number,
    key_of,
    members_of,
    root_errors,
    shown,
)
from hpkit.config.models.organization import Organization
from hpkit.config.reading.compose import is_default
from hpkit.config.reading.document import Document, Mark, Path, Problem, format_path, value_at, with_value
from hpkit.config.reading.load import IN_CURLY_QUOTES, resolve
from hpkit.config.schema.contract import ANY, description, fields_at, homes_of, kinds_at, literals_at, required_at
from hpkit.text.formatting import plural
from hpkit.text.spelling import alike

__all__ = ["Parsed", "parse"]

# Each hint tries values in place of another; for a file with many wrong values, hints aren't worth the time.
_MOST_TRIALS = 400
_NAME_ONE = "Name an organization file: it starts with `organization: <name>`, and is in stacks/."
# A longer value isn't written in one line.
_MOST_CHARACTERS = 200
# A single value can't mean a map with more keys.
_MOST_SHORT = 4
_QUOTA_WORDS = ("allocation", "allocations", "quota", "quotas")
# A file with one of these keys, or a similar key, is meant for hpkit.
_MAIN_KEYS = ("clusterPolicy", "environments", "organization", "teams")
_NUMBERS = {"int_type", "float_type", "greater_than_equal", "less_than_equal", "greater_than"}
# Keys that allow losses, or open what is closed by default: no hint suggests one that wasn't written.
_LOWERING = ("allowDelete", "allowReplace", "manageTags", "publish", "tolerations", "volumes", "waivers")
# What reserves less than a whole instance.
_PARTS_OF_INSTANCES = ("accelerators", "vCpu", "memoryInGiB")
# Words of other tools for amounts of quota.
_OTHER_NAMES = {"gpu": "accelerators", "gpus": "accelerators", "instances": "count", "nodes": "count"}
# Spaces of a level, where nothing else in the section shows it.
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Parsed:
    """An organization, as far as it could be read.

    unread holds the paths of parts that were omitted because their format is wrong; no other rule has checked them.
    organization is None if nothing could be read. document is what was read, with misspelled keys under the names that
    they were taken for.
    """

    organization: Organization | None
    problems: tuple[Problem, ...]
    document: Document
    unread: tuple[Path, ...] = ()


def parse(document: Document) -> Parsed:
    """Validate a document against the config contract; reports CFG001–CFG005, never raises."""
    if document.data is None or not isinstance(document.data, dict):
        return Parsed(None, document.problems or (_not_a_mapping(document),), document)
    if message := _other_file(document.data):
        problem = Problem("CFG005", (), message, _NAME_ONE, document.locate(()))
        return Parsed(None, (problem,), document, ((),))
    if unnamed := _unnamed_environment(document.data):
        mark = document.locate(("environments",), key=True)
        message = (
            f"environments contains the keys of an environment ({', '.join(unnamed)}) without an environment's name "
            "above them"
        )
        fix = "Add a name under `environments:`, such as `dev:`, and indent the keys below it."
        return Parsed(
            None, (*document.problems, Problem("CFG003", ("environments",), message, fix, mark)), document, ((),)
        )
    reading = _Reading(document)
    organization = reading.organization()
    # For a word that could be a boolean, the type's message is better; otherwise, the reader's is more precise.
    typed = {problem.path for problem in reading.problems}
    # A list in place of a map, such as `- dev:`, is one error.
    nothing = [each for each in _nothing_behind(reading.document) if not typed & {each.path, each.path[:1]}]
    nothing += _in_untaken(document)
    read = [each for each in document.problems if each.rule != "CFG002" or each.path not in typed]
    fixes = {problem.path: problem.fix for problem in reading.problems}
    read = [
        replace(problem, fix=fixes[problem.path])
        if problem.path in fixes and _is_curly_value(document, problem)
        else problem
        for problem in read
    ]
    said = {problem.path for problem in read}
    twice = tuple(problem.path for problem in read if problem.rule == "CFG004")
    # A key that was taken for `name` names its entry in all messages.
    problems = [
        replace(problem, message=_unknown(problem.path, reading.document))
        if problem.message.startswith("unknown key `")
        else problem
        for problem in reading.problems
        if problem.path not in said and not any(problem.path[: len(path)] == path for path in twice)
    ]
    if not document.is_whole:
        # What an unreadable file contains isn't missing.
        problems = [problem for problem in problems if problem.rule != "CFG003"]
        return Parsed(None, (*read, *problems, *nothing), reading.document, ((),))
    return Parsed(organization, (*read, *problems, *nothing), reading.document, tuple(reading.unread))


def _in_untaken(document: Document) -> list[Problem]:
    """Return what is wrong with defaults that everything overrides: the next environment, or file, takes them."""
    if document.with_untaken is None:
        return []
    reading = _Reading(document.with_untaken)
    reading.organization()
    reported_marks = {problem.mark for problem in document.problems}
    problems = [
        (each, path) for each in reading.problems for path in document.untaken if each.path[: len(path)] == path
    ]
    # Items of the list that is used have other indexes, so an item isn't named.
    return [
        replace(
            problem, path=path if any(isinstance(step, int) for step in problem.path[len(path) :]) else problem.path
        )
        for problem, path in problems
        if problem.mark not in reported_marks
    ]


def _is_curly_value(document: Document, problem: Problem) -> bool:
    """Return whether a problem is a value in curly quotes: the contract knows whether it's text."""
    return problem.message.endswith(IN_CURLY_QUOTES) and problem.mark == document.locate(problem.path)


def _nothing_behind(document: Document, path: Path = ()) -> Iterator[Problem]:
    """Yield keys with nothing behind them where that passes for not written: `keda:` is off, `keda: {}` is on."""
    data = _at(document.data, path)
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, tuple) else ()
    for step, value in entries:
        child_path = (*path, step)
        if value is None and document.raw(child_path) == "" and isinstance(step, str):
            on = (
                f"Set `{step}: {{}}`, or remove the line."
                if step in ON_WHEN_EMPTY
                else "Add a value, or remove the line."
            )
            message = f"`{step}` has no value, so it has no effect"
            yield Problem("CFG013", child_path, message, on, document.locate(child_path, key=True), "warning")
        elif isinstance(value, (dict, tuple)) and not (path == () and str(step).startswith("x-")):
            yield from _nothing_behind(document, child_path)


def _unnamed_environment(data: dict[str, Any]) -> list[str]:
    """Return the keys of an environment in place of environment names; none if there is only one, or an environment."""
    environments = _mapping_at(data, ("environments",))
    if any(isinstance(each, dict) and "region" in each for each in environments.values()):
        return []
    here = [key for key in fields_at(("environments", "")) if key in environments]
    return here if len(here) > 1 else []


def _other_file(data: Mapping[str, Any]) -> str:
    """Return that a file isn't an organization file, if none of its keys is, or is similar to, one of its main keys."""
    if not data or any(alike(key, own) for key in data for own in _MAIN_KEYS):
        return ""
    keys = ", ".join(list(data)[:_MOST_SHORT]) + (", …" if len(data) > _MOST_SHORT else "")
    return f"this isn't an organization file: it has {keys}, but neither organization nor environments"


def _not_a_mapping(document: Document) -> Problem:
    if document.data is None:
        message = "the file is empty"
    else:
        data = document.data
        kind = "a list" if isinstance(data, tuple) else "text" if isinstance(data, str) else "a single value"
        message = f"the file contains {kind}; it must be a map"
    return Problem("CFG005", (), message, "Start with `organization: <name>`.", document.locate(()))


class _Reading:
    """One document on its way to an organization; collects the errors of its form."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.unread: list[Path] = []
        self._data = {key: value for key, value in document.data.items() if not key.startswith("x-")}
        self._trials = _MOST_TRIALS

    @property
    def _environments(self) -> Mapping[str, Any] | None:
        """Return the map of environments, which is empty if it's missing; None if its value isn't a map."""
        value = self._data.get("environments", {})
        return value if isinstance(value, dict) else None

    def organization(self) -> Organization | None:
        """Return the organization as far as it can be read."""
        while True:
            try:
                return _validated(self._data)
            except ValidationError as error:
                details = error.errors(include_url=False, include_context=True, include_input=True)
            # Unknown keys come first, because other problems can be consequences of a misspelled key.
            unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
            sections = self._sections_as_environments()
            for path, environment in sections:
                self._section_as_environment(path, ("environments", environment))
            if sections:
                continue
            misplaced = self._misplaced()
            for path in misplaced:
                message, mark = f"`{path[-1]}` isn't an environment", self.document.locate(path, key=True)
                self.problems.append(Problem("CFG001", path, message, self._moved(path, (), ""), mark))
            if misplaced:
                continue
            for path in unknown:
                if path[-1] in _at(self._data, path[:-1]):
                    self._unknown_key(path)
            if not unknown and not self._leave_out(root_errors(details)):
                return None

    def _sections_as_environments(self) -> list[tuple[Path, str]]:
        """Return the keys under `environments` that belong in the environment above them, and its name."""
        own = fields_at(("environments", ""))
        misplaced: list[tuple[Path, str]] = []
        above = ""
        for name, value in (self._environments or {}).items():
            keys = (
                {key for key in value if not self._is_default(("environments", name, key))}
                if isinstance(value, dict)
                else set()
            )
            inner = set(fields_at(("environments", "", name))) if name in own else set()
            if above and keys & inner and "region" not in keys and name not in self._entries(("environments", above)):
                misplaced.append((("environments", name), above))
            elif "region" in keys or name not in own:
                above = name
        return misplaced

    def _section_as_environment(self, path: Path, home: Path) -> None:
        """Report a section that isn't indented far enough; read it, and what follows it, in its environment."""
        mark, inner = self.document.locate(path, key=True), fields_at((*home, path[-1]))
        columns = [
            self.document.locate(own, key=True).column
            for own in ((*home, key) for key in self._entries(home))
            if not self._is_default(own)
        ]
        spaces = max(min(columns, default=mark.column + _INDENT) - mark.column, 1)
        fix = (
            f"Indent it and its lines by {plural(spaces, 'space')}: it belongs under `{format_path(home, self._data)}`."
        )
        self.problems.append(Problem("CFG001", path, f"`{path[-1]}` isn't an environment", fix, mark))
        for key in [key for key in self._entries(path) if key not in inner and key in fields_at(home)]:
            self._moved((*path, key), home, "")
        self._moved(path, home, "")

    def _misplaced(self) -> list[Path]:
        """Return the keys under `environments` that belong at the top level, such as a list of teams."""
        paths: list[Path] = []
        for key in (self._environments or {}).keys() & set(fields_at(())):
            path = ("environments", key)
            own = value = _at(self._data, path)
            if isinstance(value, dict):
                own = {name: each for name, each in value.items() if not self._is_default((*path, name))}
                # Names of environments have no capitals, so `environmentDefaults` is never one.
                if key.islower() and ("region" in value or own.keys() & set(fields_at(path))):
                    continue
            paths.append(path)
            self._data = with_value(self._data, path, own)
        return paths

    def _is_default(self, path: Path) -> bool:
        return is_default(self.document, path, self.document.locate(path, key=True))

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
        self.unread.extend(("environments", name) for name in sorted(wrong))
        left = {name: value for name, value in (self._environments or {}).items() if name not in wrong}
        self._data = {**self._data, "environments": left}
        return bool(left)

    def _unknown_key(self, path: Path) -> None:
        """Report a key; continue with the key that it probably means, or without it."""
        key, key_names = str(path[-1]), fields_at(path[:-1])
        siblings = _at(self._data, path[:-1])
        message, mark = _unknown(path, self.document), self.document.locate(path, key=True)
        if path[:-1] and self._environments is not None and self._is_environment(path, ("environments",)):
            self.problems.append(
                Problem("CFG001", path, message, self._moved(path, ("environments",), "environments"), mark)
            )
            return
        if found := self._value_of_one(path, key_names):
            name, inner = found
            one = "; it takes one value" if isinstance(siblings[key], tuple) else ""
            fix = f"Set `{name}: {written(inner, resolve)}`{one}."
            self.problems.append(Problem("CFG001", path, message, fix, mark))
            self._data = _renamed(with_value(self._data, path, inner), path, name)
            return
        if elsewhere := self._other_name(path):
            self.problems.append(Problem("CFG001", path, message, elsewhere, mark))
            self._data = self._without(path[:-2] if "instanceStorageConfigs" in path else path)
            return
        near = self._nearest_key(path, key_names)
        home = self._home(path, near)
        if home is not None:
            self._gather(path, home[0])
            self.problems.append(Problem("CFG001", path, message, self._moved(path, *home), mark))
            return
        if near and near in siblings and alike(key, near):
            fix = f"Remove it: `{near}` already exists."
        elif near and near not in siblings:
            fix = f"Did you mean `{near}`?"
        else:
            fix = self._indented(path, key_names) or f"Known keys: {', '.join(key_names) or 'none'}."
        self.problems.append(Problem("CFG001", path, message, fix, mark))
        if near and near not in siblings:
            self._data = _renamed(self._data, path, near)
            self.document = self.document.renamed(path, near)
            return
        rest = {name: value for name, value in siblings.items() if name != path[-1]}
        if self._is_environment(path, key_names) and self._environments is not None:
            rest["environments"] = {key: siblings[path[-1]], **self._environments}
            self.document = self.document.moved(path, ("environments",))
        for inner in _mapping_at(self._data, path) if self._is_around_all(path) else ():
            rest[inner] = siblings[path[-1]][inner]
            self.document = self.document.moved((*path, inner), ())
        self._data = with_value(self._data, path[:-1], rest)

    def _gather(self, path: Path, home: Path) -> None:
        """Read the lines next to a misplaced key without a value below it: only the key itself is indented wrong."""
        siblings = _at(self._data, path[:-1])
        inner = {name: siblings[name] for name in fields_at((*home, path[-1])) if name in siblings}
        if self.document.raw(path) == "" and not inner.keys() & set(fields_at(path[:-1])):
            rest = {name: value for name, value in siblings.items() if name not in inner}
            self._data = with_value(self._data, path[:-1], {**rest, path[-1]: inner or None})
            for name in inner:
                self.document = self.document.moved((*path[:-1], name), path)

    def _is_around_all(self, path: Path) -> bool:
        """Return whether a key at the top level has the environments below it."""
        return not path[:-1] and "environments" in _mapping_at(self._data, path) and "environments" not in self._data

    def _indented(self, path: Path, key_names: Sequence[str]) -> str:
        """Return how to indent an environment at the top level, or the whole file below a key; "" for other keys."""
        if self._is_environment(path, key_names):
            if self._data.get("environments"):
                return "Move it below `environments:`, and indent it by two more spaces."
            return "Add `environments:` above it, and indent it and everything below it."
        if self._is_around_all(path):
            return "Remove this line, and indent the lines below it by two spaces less."
        return ""

    @staticmethod
    def _is_near(key: str, name: str) -> bool:
        """Return whether a key more likely means a known one next to it than the same key in another section."""
        return alike(key, name) or name.lower().endswith(key.lower()) or name.lower().startswith(key.lower())

    def _other_name(self, path: Path) -> str | None:
        """Return how to write a key that means another section, or that includes its value after an equals sign."""
        key = str(path[-1])
        if "=" in key and (before := key.partition("=")[0].strip()) in fields_at(path[:-1]):
            return f"Replace the `=` after `{before}` with a colon and a space."
        if path[0] == "teams" and key in _QUOTA_WORDS:
            name = _mapping_at(self._data, path[:-1]).get("name")
            homes = [("environments", each, "governance", "allocations") for each in self._entries(("environments",))]
            there = [home for home in homes if name in _mapping_at(self._data, home)]
            nearest_home = ".".join(map(str, (there or homes)[0])) if homes else "governance.allocations"
            place = f"{nearest_home}.{name}"
            return f"Remove it: the file has `{place}`." if there else f"Move its entries to `{place}`."
        if "allocations" in path[:-1] and key == "weight":
            return "Remove it, and set `fairShareWeight` of the team."
        if "instanceStorageConfigs" in path and key.lower().startswith("fsx"):
            # The API can attach file systems to instances. The file has no key for that.
            return "Remove the entry: pods mount file systems by claims, for example of `storage.lustre`."
        return None

    def _home(self, path: Path, near: str | None) -> tuple[Path, str] | None:
        """Return the section that an unknown key belongs to, as a path and as text; None if several fit.

        The order is: a section next to the key, the top level of the file, the nearest section. near: the similar known
        key, which takes precedence over a section further away.
        """
        key, around = str(path[-1]), path[:-1]
        next_to_it = [(*around, each) for each in fields_at(around) if key in fields_at((*around, each))]
        sections = self._sections(path, next_to_it, suited=True)
        if len(sections) == 1:
            return sections[0], str(sections[0][-1])
        if sections or (near and alike(key, near)):
            return None
        if around and key in fields_at(()):
            return (), ""
        if near and self._is_near(key, near):
            return None
        homes = self._sections(path, homes_of(key), suited=True) or self._sections(path, next_to_it, suited=False)
        places = [self._place(home, path) for home in homes]
        in_the_file = [place for place in places if self._entries(place[0])]
        if near and not in_the_file:
            return None
        in_the_file = in_the_file or places
        # The nearest section has the most path steps in common with the key's own place.
        shared = [_steps_in_common(place, path) for place, _ in in_the_file]
        nearest_homes = [each for each, steps in zip(in_the_file, shared, strict=True) if steps == max(shared)]
        # Entries of lists describe different things: a key of one isn't meant for an entry of another list.
        return nearest_homes[0] if len(nearest_homes) == 1 and not _are_entries(around, nearest_homes[0][0]) else None

    def _sections(self, path: Path, homes: Iterable[Path], *, suited: bool) -> list[Path]:
        """Return the sections that a key can be moved to; suited: those that accept the type of its value."""
        key, value = str(path[-1]), _at(self._data, path)
        safe = [home for home in homes if not _lowers_protection(home, key) or _is_within(path, home)]
        found = [home for home in safe if not suited or self._suits(value, (*home, key))]
        fitting = [home for home in found if len(found) > 1 and self._fits(path, home)]
        return fitting if len(fitting) == 1 else found

    def _place(self, home: Path, path: Path) -> tuple[Path, str]:
        """Return a section's path in this file, and its text for people."""
        place: Path = ()
        text = ""
        for step, own in zip_longest(home, path[: _steps_in_common(home, path)]):
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

    def _fits(self, path: Path, home: Path) -> bool:
        """Return whether a section of this file accepts a key's value."""
        place, _ = self._place(home, path)
        if self._trials <= 0 or not isinstance(self._section(place), dict):
            return False
        self._trials -= 1
        key = str(path[-1])
        try:
            _validated(self._with_key(self._without(path), place, key, _at(self._data, path)))
        except ValidationError as error:
            locs = [each["loc"] for each in error.errors(include_url=False, include_context=False, include_input=False)]
            return not any(loc[: len(place) + 1] == (*place, key) for loc in locs)
        return True

    def _entries(self, path: Path) -> list[str | int]:
        """Return the steps into the map or list at a path; none where the file has neither."""
        value = self._section(path)
        return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, tuple) else []

    def _section(self, path: Path) -> Any:
        """Return the value at a path; an empty map if only its last key is missing, None otherwise."""
        value: Any = self._data
        for index, step in enumerate(path):
            if isinstance(value, dict) and step not in value and index == len(path) - 1:
                return {}
            exists = (
                step in value
                if isinstance(value, dict)
                else isinstance(value, tuple) and isinstance(step, int) and step < len(value)
            )
            if not exists:
                return None
            value = value[step]
        return value

    @staticmethod
    def _with_key(data: Any, section: Path, key: str, value: Any) -> Any:
        """Return data with an additional key in a section, which is created if only its own key is missing."""
        around = _at(data, section[:-1])
        if section and isinstance(around, dict) and section[-1] not in around:
            return with_value(data, section[:-1], {**around, section[-1]: {key: value}})
        return with_value(data, section, {**_at(data, section), key: value})

    def _without(self, path: Path) -> Any:
        """Return the file's data without a key."""
        around = _at(self._data, path[:-1])
        return with_value(self._data, path[:-1], {name: each for name, each in around.items() if name != path[-1]})

    def _moved(self, path: Path, home: Path, text: str) -> str:
        """Read a key where it belongs, and state how to move it there."""
        key, value, section = str(path[-1]), _at(self._data, path), self._section(home)
        is_there = isinstance(section, dict) and key in section
        self._data = self._without(path)
        if is_there:
            place = f"`{text}.{key}`" if text else f"`{key}` at the top level"
            is_more = value and isinstance(value, (dict, tuple)) and type(value) is type(section[key])
            return f"Move its entries to {place}." if is_more else f"Remove it: the file has {place}."
        is_next_to_it = home[:-1] == path[:-1]
        if home and section is None and home[-1] in _mapping_at(self._data, home[:-1]):
            # The key of the section has nothing behind it.
            section, self._data = {}, with_value(self._data, home, {})
        if isinstance(section, dict) and (section or is_next_to_it):
            self._data = self._with_key(self._data, home, key, value)
            self.document = self.document.moved(path, home)
        if not text:
            return "Move it to the top level of the file, next to `environments`."
        if is_next_to_it and text == home[-1]:
            return f"Move it into `{text}: {{{key}: …}}`."
        return f"Move it: `{key}` belongs under `{text}`."

    def _is_environment(self, path: Path, key_names: Sequence[str]) -> bool:
        """Return whether the value of an unknown key is an environment that isn't in `environments`."""
        value, keys = _at(self._data, path), fields_at(("environments", ""))
        return "environments" in key_names and isinstance(value, dict) and len(value.keys() & set(keys)) > 1

    def _nearest_key(self, path: Path, key_names: Sequence[str]) -> str | None:
        """Return the known key that an unknown one probably means."""
        key, beside, value = str(path[-1]), _at(self._data, path[:-1]), _at(self._data, path)
        free = [each for each in key_names if each not in beside]
        # A list with one entry is often written as a single value: publicCidr.
        if f"{key}s" in free:
            return f"{key}s"
        suited = [each for each in key_names if self._suits(value, (*path[:-1], each))]
        if (other := _OTHER_NAMES.get(key.lower())) in free and other in suited:
            return other
        if (near := nearest(key, suited)) and alike(key, near):
            return near
        near = nearest(key, [each for each in suited if each not in _LOWERING])
        # What has to be there and is not, if it takes just this value: `id` for `rule`, `expires` for `until`.
        missing = [each for each in required_at(path[:-1]) if each in free]
        fitting = [each for each in missing if self._takes(path, each, key=True)]
        return fitting[0] if len(missing) == 1 and fitting else near

    def _value_of_one(self, path: Path, key_names: Sequence[str]) -> tuple[str, Any] | None:
        """Return key and value that a line without a colon, or a map with one entry, probably means."""
        value, siblings = _at(self._data, path), _at(self._data, path[:-1])
        name, *rest = re.split(r"\s*=\s*|\s", str(path[-1]), maxsplit=1)
        if rest and value is None and name in key_names and name not in siblings:
            # A line without its colon.
            return name, resolve(rest[0].strip())
        if (pair := self._unspaced(path)) and pair[0] in key_names and pair[0] not in siblings:
            return pair[0], resolve(pair[1])
        single = name.removesuffix("s")
        if isinstance(value, tuple) and value and single in key_names and single not in siblings:
            return single, value[0]
        inner = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
        near = nearest(name, [each for each in key_names if each not in siblings and each not in _LOWERING])
        if (
            near is None
            or homes_of(name)
            or not isinstance(inner, (str, int, float))
            or "map" in kinds_at((*path[:-1], near))
        ):
            return None
        return near, inner

    def _unspaced(self, path: Path) -> tuple[str, str] | None:
        """Return key and value of a key that is both, since no space follows its colon: `{name:gpu}`."""
        text, name = str(path[-1]), self.document.locate(path, key=True)
        place = self.document.locate(path)
        key, colon, value = text.partition(":")
        is_one = self.document.raw(path) == "" and place == Mark(name.line, name.column + len(text))
        return (key, value.strip("“”„‟«»‘’‚‛\"'")) if colon and value and is_one else None

    @staticmethod
    def _suits(value: Any, place: Path) -> bool:
        """Return whether a value has a type that a position accepts: a map, a list or a single value."""
        kind = "map" if isinstance(value, dict) else "list" if isinstance(value, tuple) else "value"
        return value is None or kind in kinds_at(place)

    def _problem(self, detail: ErrorDetails, path: Path) -> Problem:
        document, error_type = self.document, detail["type"]
        if error_type == "missing":
            parent = format_path(path[:-1], document.data) or "the file"
            return Problem(
                "CFG003",
                path,
                f"`{path[-1]}` is missing in {parent}",
                f"Add `{path[-1]}: {'` or `'.join(map(str, literals_at(path))) or '…'}`. {description(path)}".strip(),
                document.locate(path[:-1]),
            )
        if pair := self._unspaced(path):
            message, mark = f"a space is missing after the colon in `{path[-1]}`", document.locate(path, key=True)
            return Problem("CFG002", path, message, f"Set `{pair[0]}: {written(pair[1], resolve)}`.", mark)
        if detail["loc"] != path:
            of = format_path(path[:-1], document.data) or "the file"
            form = expected(detail) if error_type == "string_pattern_mismatch" else ""
            message = f"the key `{path[-1]}` isn't valid in {of}{form if form.startswith(';') else ''}"
            return Problem("CFG002", path, message, self._fix(detail, path), document.locate(path, key=True))
        field = called(path)
        text = shown(document, path, detail["input"])
        hint = (
            explained(detail["input"], key_of(path))
            if error_type in ("string_pattern_mismatch", "string_too_short", "string_type")
            else None
        )
        if hint and (not hint[2] or self._takes(path, hint[2])):
            return Problem("CFG002", path, f"{field} is {text}, {hint[0]}", hint[1], document.locate(path))
        if path[-1] == "count" and _is_share(detail["input"]) and "share" in fields_at(path[:-1]):
            message = f"`count` is `{detail['input']}`; it must be a whole number"
            return Problem("CFG002", path, message, f"Set `share: {detail['input']}` instead.", document.locate(path))
        if (
            error_type == "tuple_type"
            and isinstance(detail["input"], dict)
            and str([*detail["input"], ""][0])[:1] == "-"
        ):
            message, mark = (
                "a space is missing after the hyphen",
                document.locate((*path, next(iter(detail["input"]))), key=True),
            )
            return Problem("CFG002", path, message, "Add a space after each `-`.", mark)
        several = f"{path[-1]}s"
        if (
            error_type == "string_type"
            and isinstance(detail["input"], tuple)
            and detail["input"]
            and several in fields_at(path[:-1])
        ):
            message, fix = f"`{path[-1]}` is a list; it must be a single value", f"Did you mean `{several}`?"
            return Problem("CFG002", path, message, fix, document.locate(path, key=True))
        name = (
            self._role_name(detail["input"], path)
            if error_type in ("string_pattern_mismatch", "string_too_short")
            else ""
        )
        wrong = "; it must be the ARN of a role, not its name" if name else expected(detail)
        message = f"{field} is {text}{wrong}"
        return Problem("CFG002", path, message, self._fix(detail, path), document.locate(path))

    def _fix(self, detail: ErrorDetails, path: Path) -> str:
        """Return the first probable value that the contract accepts, or else what the position accepts."""
        value, error_type = detail["input"], detail["type"]
        is_optional = path[-1] in fields_at(path[:-1]) and path[-1] not in required_at(path[:-1])
        if value is None and path[:1] == ("environments",) and is_optional and self.document.raw(path) != "":
            return f"Remove it: `null` only turns a default off, and `{path[-1]}` has none."
        if error_type.endswith("too_long"):
            unit = "characters" if error_type.startswith("string") else "entries"
            return f"Shorten it: it has {len(value)} {unit}."
        if path[2:3] == ("addons",) and path[3:] and is_number(value) and path[4:] in ((), ("version",)):
            listed = f"`aws eks describe-addon-versions --addon-name {path[3]}` lists them."
            return f"Remove the version, or choose one that EKS offers: {listed}"
        if error_type == "tuple_type" and isinstance(value, dict) and self._takes(path, (value,)):
            # On the line of its key, a map is in braces, and `- ` in front of it isn't YAML.
            if self.document.locate(path).line == self.document.locate(path, key=True).line:
                return f"Use `{written((value,), resolve)}`."
            return "Write a list: begin each entry with `- `."
        if error_type == "too_short" and value == ():
            return (
                f"Add an entry, or remove `{path[-1]}`." if path[-1] not in required_at(path[:-1]) else "Add an entry."
            )
        for candidate in self._candidates(detail, path):
            if self._takes(path, candidate, key=detail["loc"] != path):
                has_unit = isinstance(value, str) and is_size(key_of(path))
                text = written(candidate, resolve)
                if len(text) > _MOST_CHARACTERS and isinstance(value, (dict, tuple)):
                    break
                return f"Use `{text}`{'; the unit is GiB' if has_unit else ''}."
        return self._described(detail, path)

    def _described(self, detail: ErrorDetails, path: Path) -> str:
        """Return the accepted values of a key as text."""
        value, error_type = detail["input"], detail["type"]
        if error_type == "literal_error":
            return "Write one of these values."
        if error_type == "bool_type":
            return "Use `true` or `false`."
        if beginning := beginning_of(detail, path, lambda tried: self._takes(path, tried)):
            return beginning
        if error_type == "dict_type" and isinstance(value, tuple):
            return "Write a map: a key and its value on each line, without `- `."
        if error_type in _NUMBERS:
            return self._number(detail, path)
        if role := self._role_name(value, path):
            return f"Use the ARN that `aws iam get-role --role-name {role} --query Role.Arn` prints."
        # If any text is accepted, none of them means a time.
        lengths = [each for each in units(value) if self._takes(path, each) and not self._takes(path, "x")]
        if lengths:
            return f"Add the unit: {', '.join(lengths[:-1])} or {lengths[-1]}."
        is_optional = path[-1] in fields_at(path[:-1]) and path[-1] not in required_at(path[:-1])
        remove = "Add a value, or remove the line. " if is_optional and self.document.raw(path) == "" else ""
        return f"{remove}Expected: {description(path)}{example(path)}"

    def _number(self, detail: ErrorDetails, path: Path) -> str:
        """Return the accepted numbers of a key, as a fix for a rejected one; never a different number as a guess."""
        value, error_type, context = detail["input"], detail["type"], detail.get("ctx", {})
        if isinstance(value, float) and error_type != "float_type" and math.isfinite(value) and not context:
            whole = [each for each in (math.floor(value), math.ceil(value)) if self._takes(path, each)]
            beside = [key for key in _PARTS_OF_INSTANCES if path[-1] == "count" and key in fields_at(path[:-1])]
            parts = (
                f" For part of an instance, set {', '.join(beside[:-1])}, or {beside[-1]} instead." if beside else ""
            )
            return f"Use {' or '.join(f'`{each}`' for each in whole)}.{parts}" if whole else "Use a whole number."
        number = "a number" if error_type == "float_type" else "a whole number"
        if "ge" in context:
            number = f"{number} of at least {context['ge']}"
        if "le" in context:
            number = f"{number} of at most {context['le']}"
        return f"Use {number}. Expected: {description(path)}{example(path)}"

    def _role_name(self, value: Any, path: Path) -> str:
        """Return the role's name in a value that should be its ARN, or ""."""
        name = value.strip().removeprefix("role/") if isinstance(value, str) else ""
        is_role = self._takes(path, f"arn:aws:iam::123456789012:role/{name}") and not self._takes(path, "arn:x")
        return name if re.fullmatch(r"[\w+=,.-]{1,64}", name, re.ASCII) and is_role else ""

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
        if key in ("subjects", "image") or detail["type"] == "bucket_name":
            # A similar text would be accepted, and admit other tokens, or be an image or a bucket that doesn't exist.
            return
        yield from candidates(detail["input"], raw, key, bounds=bounds, members=members)
        if detail["type"] in ("model_type", "model_attributes_type"):
            yield from self._of_one_key(path, detail["input"])

    def _of_one_key(self, path: Path, value: Any) -> Iterator[Any]:
        """Yield the map that a single value probably means: the one key that accepts it."""
        if not isinstance(value, (str, int, float)) or isinstance(value, bool) or isinstance(path[-1], int):
            return
        if not isinstance(value, str) and value <= 0:
            return
        keys = required_at(path) or list(fields_at(path))
        maps: list[dict[str, Any]] = [{key: value} for key in keys if key not in EXPRESSIONS]
        taken = [each for each in maps if self._takes(path, each)] if len(keys) <= _MOST_SHORT else []
        yield from taken if len(taken) == 1 else ()

    def _takes(self, path: Path, value: Any, *, key: bool = False) -> bool:
        """Return whether the contract accepts a value, or a key, in place of the one at path."""
        # A short form, such as an add-on's version alone, is one level above its value in the contract.
        if self._trials <= 0 or value == "" or not isinstance(_at(self._data, path[:-1]), (tuple, dict)):
            return False
        self._trials -= 1
        place = (*path[:-1], value) if key else path
        tried = _renamed(self._data, path, value) if key else with_value(self._data, path, value)
        try:
            _validated(tried)
        except ValidationError as error:
            locs = [each["loc"] for each in error.errors(include_url=False, include_context=False, include_input=False)]
            return not any(loc[: len(place)] == place for loc in locs)
        return True


def _unknown(path: Path, document: Document) -> str:
    return f"unknown key `{path[-1] if path else ''}` in {format_path(path[:-1], document.data) or 'the file'}"


def _is_share(value: Any) -> bool:
    """Return whether a value is a percentage, which `share` takes."""
    return isinstance(value, str) and re.fullmatch(r"[1-9][0-9]?%|100%", value) is not None


def _display_path(detail: ErrorDetails) -> Path:
    """Return the displayed path: the path of a key's error ends in "[key]", unless that is an unknown key's name."""
    loc = detail["loc"]
    return loc[:-1] if loc[-1:] == ("[key]",) and detail["type"] != "extra_forbidden" else loc


def _validated(data: Any) -> Organization:
    """Return data as an organization; raises ValidationError. Keys are as files have them, never as Python has them."""
    return Organization.model_validate(data, by_alias=True, by_name=False)


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _mapping_at(data: Any, path: Path) -> Mapping[str, Any]:
    """Return the map at a path; an empty one if something else is there, or nothing."""
    value = value_at(data, path)
    return value if isinstance(value, dict) else {}


def _lowers_protection(home: Path, key: str) -> bool:
    return bool({*home, *([key] if "teamLimits" in home else ())} & {*_LOWERING})


def _is_within(path: Path, home: Path) -> bool:
    """Return whether a path is in a part that reduces protection already, on purpose."""
    return bool({*path[:-1]} & {*home} & {*_LOWERING})


def _are_entries(path: Path, home: Path) -> bool:
    """Return whether two paths are entries of different lists."""
    return bool(path and home) and isinstance(path[-1], int) and home[-1] in (0, ANY) and path[:-1] != home[:-1]


def _steps_in_common(home: Path, path: Path) -> int:
    """Return how many steps a section's path, whose entries are ANY, has in common with another path."""
    count = 0
    for step, other in zip(home, path[:-1], strict=False):
        if step not in (ANY, other):
            break
        count += 1
    return count


def _renamed(data: Any, path: Path, key: str) -> Any:
    """Copy data with another key in place of the last one of path, at the same place among its neighbours."""
    entries = _at(data, path[:-1])
    return with_value(data, path[:-1], {key if old == path[-1] else old: value for old, value in entries.items()})
