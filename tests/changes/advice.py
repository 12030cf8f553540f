"""The printed advice about a blocked change, followed as a user would: the runs of `pulumi up`, as files."""

import copy
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import yaml

__all__ = ["runs"]

Data = Any
_NEW_PLACE = "elsewhere"


def runs(base: Data, head: Data, environment: str, advice: Iterable[tuple[str, str]]) -> list[tuple[Data, Data]]:
    """Return each run as the file before and after it; AssertionError if nobody could follow the advice.

    advice: each rejection's subject and message.
    """
    first, last = copy.deepcopy(base), copy.deepcopy(head)
    between: list[Data] = []
    for subject, message in advice:
        for pattern, follow in _FOLLOW.items():
            match = re.search(pattern, message)
            if match:
                between += follow(subject, match, first, last, environment)
                break
        else:
            raise AssertionError(f"no advice in: {message}")
    steps = [base, *([first] if first != base else []), *between, last]
    return list(itertools.pairwise(steps))


def _write(snippets: str, environment: Data) -> None:
    """Write every `key: value` that a text has in backquotes."""
    found = re.findall(r"`(\w+: [^`]+)`", snippets)
    assert found, snippets
    for snippet in found:
        environment.update(yaml.safe_load(snippet))


def _allow(_: str, match: re.Match[str], first: Data, last: Data, environment: str) -> Iterator[Data]:
    if match["first"]:
        _write(match["first"], first["environments"][environment])
    _write(match["all"], last["environments"][environment])
    yield from ()


def _replace_group(subject: str, match: re.Match[str], _: Data, last: Data, environment: str) -> Iterator[Data]:
    data = last["environments"][environment]
    for members in ("instanceGroups", "restrictedInstanceGroups"):
        for group in data["cluster"].get(members, ()):
            group["name"] = match["name"] if group["name"] == subject else group["name"]
    for node_class in data.get("autoscaling", {}).get("nodeClasses", ()):
        named = subject in node_class["instanceGroups"]
        assert bool(match["there"]) >= named, "its NodeClass names it"
        node_class["instanceGroups"] = [
            match["name"] if each == subject else each for each in node_class["instanceGroups"]
        ]
    if match["all"]:
        _write(match["all"], data)
    yield from ()


def _version(_: str, match: re.Match[str], __: Data, last: Data, environment: str) -> Iterator[Data]:
    if match["first"]:
        between = copy.deepcopy(last)
        between["environments"][environment]["eks"]["version"] = match["version"]
        yield between
    else:
        last["environments"][environment]["eks"]["version"] = match["version"]


def _elsewhere(_: str, match: re.Match[str], first: Data, last: Data, environment: str) -> Iterator[Data]:
    """Describe another environment next to the unchanged one, then remove the original."""
    assert match["environment"] == environment
    both = copy.deepcopy(last)
    both["environments"] |= {
        environment: first["environments"][environment],
        _NEW_PLACE: last["environments"][environment],
    }
    last["environments"][_NEW_PLACE] = last["environments"].pop(environment)
    yield both


def _without_karpenter(_: str, match: re.Match[str], first: Data, __: Data, environment: str) -> Iterator[Data]:
    data = first["environments"][environment]
    del data["autoscaling"]
    for team, rows in data["governance"]["allocations"].items():
        data["governance"]["allocations"][team] = [row for row in rows if not row.get("elastic")]
    _write(match["all"], data)
    yield from ()


# Each kind of advice as text, and how to follow it.
_FOLLOW: dict[str, Callable[[str, re.Match[str], Data, Data, str], Iterator[Data]]] = {
    r"to allow it once, set(?P<first>) (?P<all>`.*`) in the environment$": _allow,
    r"to allow it once, first run `pulumi up` with (?P<first>`.*`) in the environment and without this change, then "
    r"make this change with (?P<all>`.*`)$": _allow,
    r"to replace the group, write `name: (?P<name>\S+)`(?P<there> there and in its NodeClass)?"
    r"(?: and (?P<all>`.*`))?$": _replace_group,
    r'write `version: "(?P<version>[\d.]+)"`(?P<first> first, run `pulumi up`, then continue)?$': _version,
    r"keep \S+ in environments\.(?P<environment>\w+), and describe another environment for": _elsewhere,
    r"first run `pulumi up` without `autoscaling` and elastic quota, with (?P<all>`.*`); then add both again": (
        _without_karpenter
    ),
}
