"""Two tools must never own one thing: which resources Terraform or CloudFormation lets go of, in which order, and how.

Does not: run anything, nor decide what is imported.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hpkit.adopt.cloudformation import STACK, cloudformation_steps, is_handler, nested
from hpkit.adopt.kinds import KINDS, parent
from hpkit.adopt.owned import Owned, Step, Taken
from hpkit.adopt.terraform import terraform_steps

__all__ = ["Handover", "Held", "as_data", "handover", "lines", "steps"]

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Held:
    """A resource of another tool, and what it is to hpkit."""

    owned: Owned
    taken: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class Handover:
    """Who keeps what.

    let_go: the other tool's, and Pulumi shall own it, in the order of letting go; stays: named in the file, and the
    other tool's for good; parts: Pulumi shall own a part of what stays, which cannot be; unknown: the other tool's,
    and nothing to hpkit; handlers: custom resources of the stacks that let go; free: imported, and nobody else's;
    unclear: imported, and several things have its name; stacks: what stands for each nested stack.
    """

    let_go: tuple[Held, ...]
    stays: tuple[Held, ...]
    parts: tuple[Held, ...]
    unknown: tuple[Owned, ...]
    handlers: tuple[Owned, ...]
    free: tuple[Taken, ...]
    unclear: tuple[tuple[Taken, tuple[Owned, ...]], ...]
    stacks: tuple[tuple[str, Owned], ...]


def handover(owned: Sequence[Owned], taken: Sequence[Taken]) -> Handover:
    """Return who lets go of what; a thing that the file only names is never let go of.

    Things are matched by type and ARN or id. Only what no id names, on either side, is matched by its name.
    """
    things = [each for each in dict.fromkeys(owned) if each.type != STACK]
    matches, unclear = _matches(things, list(dict.fromkeys(taken)))
    held = [Held(thing, tuple(known)) for thing, known in matches.items() if known]
    kept = [each for each in held if any(known.owner == "existing" for known in each.taken)]
    parts = [Held(each.owned, tuple(known for known in each.taken if known.owner == "imported")) for each in kept]
    found = {known for each in held for known in each.taken} | unclear.keys()
    return Handover(
        let_go=tuple(sorted((each for each in held if each not in kept), key=_order)),
        stays=tuple(kept),
        parts=tuple(each for each in parts if each.taken),
        unknown=tuple(thing for thing, known in matches.items() if not known),
        handlers=tuple(thing for thing in things if is_handler(thing)),
        free=tuple(each for each in dict.fromkeys(taken) if each.owner == "imported" and each not in found),
        unclear=tuple((each, several) for each, several in unclear.items() if each.owner == "imported"),
        stacks=tuple(sorted(nested(owned).items())),
    )


def _matches(
    things: Sequence[Owned], taken: Sequence[Taken]
) -> tuple[dict[Owned, list[Taken]], dict[Taken, tuple[Owned, ...]]]:
    """Return what each thing is to hpkit, and what several things could be by name alone."""
    matches = {thing: [each for each in taken if _same(thing, each)] for thing in things}
    known = {each for found in matches.values() for each in found}
    left = [thing for thing, found in matches.items() if not found]
    unclear = {}
    for each in taken:
        alike = tuple(thing for thing in left if each not in known and _named(thing, each))
        if len(alike) == 1:
            matches[alike[0]].append(each)
        elif alike:
            unclear[each] = alike
    return matches, unclear


def _order(held: Held) -> tuple[int, str]:
    ranks = [KINDS[each.type_token].rank for each in held.taken if each.type_token in KINDS]
    return (min(ranks, default=max(kind.rank for kind in KINDS.values())), held.owned.address)


def _same(owned: Owned, taken: Taken) -> bool:
    """Tell by ids; an ARN on both sides decides, so that namesakes of two regions are two things."""
    kind = KINDS.get(taken.type_token)
    if kind is None:
        return bool(_arns(owned.ids) & _arns(taken.ids))
    if owned.type in (*kind.terraform, *kind.cloudformation):
        theirs, ours = _arns(owned.ids), _arns(taken.ids)
        if theirs and ours:
            return bool(theirs & ours)
        return bool(owned.ids & (taken.ids | _tails(taken.ids)) or _tails(owned.ids) & taken.ids)
    if owned.type in kind.within:
        return bool((owned.ids | _tails(owned.ids)) & {parent(taken.type_token, each) for each in taken.ids})
    return False


def _named(owned: Owned, taken: Taken) -> bool:
    """Tell by name, where ids cannot: neither side has an ARN that the other could contradict."""
    kind = KINDS.get(taken.type_token)
    if kind is None or owned.type not in (*kind.terraform, *kind.cloudformation):
        return False
    return taken.name in owned.ids and not (_arns(owned.ids) and _arns(taken.ids))


def _arns(ids: frozenset[str]) -> frozenset[str]:
    # DescribeLogGroups alone ends an ARN in `:*`.
    return frozenset(each.removesuffix(":*") for each in ids if each.startswith("arn:"))


def _tails(ids: frozenset[str]) -> frozenset[str]:
    """Return the names that ARNs end in; CloudFormation knows many things by these alone."""
    return frozenset(each.split(":", 5)[-1].rpartition("/")[2] for each in _arns(ids))


def steps(found: Handover) -> list[Step]:
    """Return what to do, in order: all that comes before the import, then all that comes after it."""
    theirs = [each.owned for each in found.let_go]
    keeps = [*(each.owned for each in found.stays), *found.unknown]
    both = terraform_steps(
        [each for each in theirs if each.tool == "terraform"], kept=[each for each in keeps if each.tool == "terraform"]
    )
    both += cloudformation_steps(
        [each for each in theirs if each.tool == "cloudformation"],
        kept=[each for each in keeps if each.tool == "cloudformation"],
        above=dict(found.stacks),
    )
    return [each for when in ("before import", "after import") for each in both if each.when == when]


def lines(found: Handover) -> list[str]:
    """Return the handover as text for a terminal; comments begin with `#`, all else can be run."""
    out = list(_summary(found))
    due = steps(found)
    for when, title in (
        ("before import", "Before `pulumi import`:"),
        ("after import", "After `pulumi import` succeeded, before the first `pulumi up`:"),
    ):
        those = [each for each in due if each.when == when]
        if those:
            out += ["", f"# {title}"]
        for number, each in enumerate(those, 1):
            out += [*_wrapped(f"{number}. ", each.say), *each.run]
    if due:
        out += ["", "# Let neither Terraform, CloudFormation nor Pulumi change anything in between."]
    return out


def _wrapped(head: str, say: str) -> Iterator[str]:
    """Yield comment lines; what is indented is code, and stays as it is."""
    for line in say.splitlines():
        pieces = [line] if line.startswith(" ") else textwrap.wrap(line, _WIDTH, break_on_hyphens=False)
        for piece in pieces:
            yield f"# {head}{piece}"
            head = " " * len(head)


def _summary(found: Handover) -> Iterator[str]:
    yield f"# {len(found.let_go)} to let go of, {len(found.stays)} stay, {len(found.unknown)} unknown to hpkit"
    for each in found.let_go:
        yield f"# let go: {each.owned.address} ({each.owned.type}) -> {_names(each.taken)}"
    for each in found.parts:
        yield f"# cannot be: {_names(each.taken)} is of {each.owned.address}, which stays; import both or neither"
    for taken, several in found.unclear:
        yield f"# unclear: {taken.type_token} {taken.name} may be any of {', '.join(each.address for each in several)}"
    for each in found.stays:
        yield f"# stays: {each.owned.address} ({each.owned.type})"
    for taken in found.free:
        yield f"# nobody else's: {taken.type_token} {taken.name}"


def _names(taken: Sequence[Taken]) -> str:
    return ", ".join(f"{each.type_token} {each.name}" for each in taken)


def as_data(found: Handover) -> dict[str, Any]:
    """Return the handover as JSON's types, for other programs."""
    return {
        "letGo": [_held(each) for each in found.let_go],
        "stays": [_held(each) for each in found.stays],
        "parts": [_held(each) for each in found.parts],
        "unknown": [_owned(each) for each in found.unknown],
        "handlers": [_owned(each) for each in found.handlers],
        "free": [_taken(each) for each in found.free],
        "unclear": [_taken(each) | {"mayBe": [one.address for one in several]} for each, several in found.unclear],
        "steps": [{"when": each.when, "say": each.say, "run": list(each.run)} for each in steps(found)],
    }


def _owned(owned: Owned) -> dict[str, Any]:
    return {"tool": owned.tool, "address": owned.address, "type": owned.type, "ids": sorted(owned.ids)}


def _taken(taken: Taken) -> dict[str, Any]:
    return {"type": taken.type_token, "name": taken.name, "ids": sorted(taken.ids), "owner": taken.owner}


def _held(held: Held) -> dict[str, Any]:
    return _owned(held.owned) | {"taken": [_taken(each) for each in held.taken]}
