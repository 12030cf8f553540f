"""Determines which resources Terraform or CloudFormation must release, in which order, and how.

It runs nothing, and doesn't decide what is imported.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NotRequired, TypedDict

from hpkit.adopt.cloudformation import STACK, cloudformation_steps, is_handler, nested
from hpkit.adopt.handover_model import AdoptedResource, ManagedResource, Step
from hpkit.adopt.resource_types import RESOURCE_TYPES, parent_id
from hpkit.adopt.terraform import terraform_steps

__all__ = ["Handover", "HandoverPlan", "Match", "as_data", "handover", "lines", "steps"]

_WIDTH = 100


class _Managed(TypedDict):
    """A resource of another tool."""

    tool: str
    address: str
    type: str
    ids: list[str]


class _Adopted(TypedDict):
    """A resource of the stack."""

    type: str
    name: str
    ids: list[str]
    owner: str
    mayBe: NotRequired[Annotated[list[str], "Addresses in the other tool, if several match."]]


class _Match(TypedDict):
    """A resource of another tool, and its role in the stack."""

    tool: str
    address: str
    type: str
    ids: list[str]
    taken: list[_Adopted]


class _Step(TypedDict):
    when: str
    say: str
    run: list[str]


class HandoverPlan(TypedDict):
    """The resources that Terraform or CloudFormation must release, and the steps."""

    letGo: Annotated[list[_Match], "Resources that the other tool must release."]
    stays: Annotated[list[_Match], "Resources that stay with the other tool."]
    parts: Annotated[list[_Match], "Imported parts of resources that stay."]
    unknown: Annotated[list[_Managed], "Resources that aren't in the stack."]
    handlers: Annotated[list[_Managed], "Custom resources of CloudFormation."]
    free: Annotated[list[_Adopted], "Imported resources that no other tool has."]
    unclear: Annotated[list[_Adopted], "Imported resources that several resources match."]
    steps: list[_Step]


@dataclass(frozen=True, slots=True)
class Match:
    """A resource of another tool, and the adopted resources that it represents."""

    managed: ManagedResource
    adopted: tuple[AdoptedResource, ...]


@dataclass(frozen=True, slots=True)
class Handover:
    """Which tool keeps which resource.

    - released: from the other tool to Pulumi, in this order.
    - stays: with the other tool; the file only refers to it.
    - parts: imported although they are part of a resource that stays, which is impossible.
    - unknown: in the other tool but not in the adoption.
    - handlers: custom resources of the stacks.
    - free: imported, and in no other tool.
    - unclear: imported, and several resources have its name.
    - stacks: the resource that represents each nested stack, by the stack's name.
    """

    released: tuple[Match, ...]
    stays: tuple[Match, ...]
    parts: tuple[Match, ...]
    unknown: tuple[ManagedResource, ...]
    handlers: tuple[ManagedResource, ...]
    free: tuple[AdoptedResource, ...]
    unclear: tuple[tuple[AdoptedResource, tuple[ManagedResource, ...]], ...]
    stacks: tuple[tuple[str, ManagedResource], ...]


def handover(managed: Sequence[ManagedResource], adopted: Sequence[AdoptedResource]) -> Handover:
    """Return which tool keeps which resource; one that the file only refers to is never released.

    Resources are matched by type and by ARN or ID; by name only if neither side has a matching ID.
    """
    managed_resources = [each for each in dict.fromkeys(managed) if each.type != STACK]
    matches, unclear = _matches(managed_resources, list(dict.fromkeys(adopted)))
    matched = [Match(resource, tuple(known)) for resource, known in matches.items() if known]
    kept = [each for each in matched if any(known.owner == "existing" for known in each.adopted)]
    parts = [Match(each.managed, tuple(known for known in each.adopted if known.owner == "imported")) for each in kept]
    matched_resources = {known for each in matched for known in each.adopted} | unclear.keys()
    return Handover(
        released=tuple(sorted((each for each in matched if each not in kept), key=_order)),
        stays=tuple(kept),
        parts=tuple(each for each in parts if each.adopted),
        unknown=tuple(resource for resource, known in matches.items() if not known),
        handlers=tuple(resource for resource in managed_resources if is_handler(resource)),
        free=tuple(
            each for each in dict.fromkeys(adopted) if each.owner == "imported" and each not in matched_resources
        ),
        unclear=tuple((each, several) for each, several in unclear.items() if each.owner == "imported"),
        stacks=tuple(sorted(nested(managed).items())),
    )


def _matches(
    managed_resources: Sequence[ManagedResource], adopted: Sequence[AdoptedResource]
) -> tuple[dict[ManagedResource, list[AdoptedResource]], dict[AdoptedResource, tuple[ManagedResource, ...]]]:
    """Return the adopted resources that each managed one represents, and those whose name alone matches several."""
    matches = {resource: [each for each in adopted if _same_id(resource, each)] for resource in managed_resources}
    taken = {each for found in matches.values() for each in found}
    left = [resource for resource, found in matches.items() if not found]
    unclear = {}
    for resource_left in adopted:
        alike = tuple(
            resource for resource in left if resource_left not in taken and _same_name(resource, resource_left)
        )
        if len(alike) == 1:
            matches[alike[0]].append(resource_left)
        elif alike:
            unclear[resource_left] = alike
    return matches, unclear


def _order(match: Match) -> tuple[int, str]:
    ranks = [RESOURCE_TYPES[each.type_token].rank for each in match.adopted if each.type_token in RESOURCE_TYPES]
    return (min(ranks, default=max(types.rank for types in RESOURCE_TYPES.values())), match.managed.address)


def _same_id(managed: ManagedResource, adopted: AdoptedResource) -> bool:
    """Compare by ID; ARNs on both sides decide, so that equal names in two regions are two resources."""
    types = RESOURCE_TYPES.get(adopted.type_token)
    if types is None:
        return bool(_arns(managed.ids) & _arns(adopted.ids))
    if managed.type in (*types.terraform, *types.cloudformation):
        theirs, ours = _arns(managed.ids), _arns(adopted.ids)
        if theirs and ours:
            return bool(theirs & ours)
        return bool(managed.ids & (adopted.ids | _tails(adopted.ids)) or _tails(managed.ids) & adopted.ids)
    if managed.type in types.parents:
        return bool((managed.ids | _tails(managed.ids)) & {parent_id(adopted.type_token, each) for each in adopted.ids})
    return False


def _same_name(managed: ManagedResource, adopted: AdoptedResource) -> bool:
    """Compare by name where ids cannot decide: not both sides have an ARN."""
    types = RESOURCE_TYPES.get(adopted.type_token)
    if types is None or managed.type not in (*types.terraform, *types.cloudformation):
        return False
    return adopted.name in managed.ids and not (_arns(managed.ids) and _arns(adopted.ids))


def _arns(ids: frozenset[str]) -> frozenset[str]:
    # Only DescribeLogGroups ends an ARN with `:*`.
    return frozenset(each.removesuffix(":*") for each in ids if each.startswith("arn:"))


def _tails(ids: frozenset[str]) -> frozenset[str]:
    """Return the names at the end of ARNs; for many types, CloudFormation knows only these."""
    return frozenset(each.split(":", 5)[-1].rpartition("/")[2] for each in _arns(ids))


def steps(plan: Handover) -> list[Step]:
    """Return the steps in order: those before the import, then those after it."""
    theirs = [each.managed for each in plan.released]
    keeps = [*(each.managed for each in plan.stays), *plan.unknown]
    both = terraform_steps(
        [each for each in theirs if each.tool == "terraform"], kept=[each for each in keeps if each.tool == "terraform"]
    )
    both += cloudformation_steps(
        [each for each in theirs if each.tool == "cloudformation"],
        kept=[each for each in keeps if each.tool == "cloudformation"],
        above=dict(plan.stacks),
    )
    return [each for when in ("before import", "after import") for each in both if each.when == when]


def lines(plan: Handover) -> list[str]:
    """Return the handover as text for a terminal: comments begin with `#`, all other lines can be run."""
    out = list(_summary(plan))
    due = steps(plan)
    for when, title in (
        ("before import", "Before `pulumi import`:"),
        ("after import", "After `pulumi import` succeeds, before the first `pulumi up`:"),
    ):
        those = [each for each in due if each.when == when]
        if those:
            out += ["", f"# {title}"]
        for number, each in enumerate(those, 1):
            out += [*_wrapped(f"{number}. ", each.description), *each.commands]
    if due:
        out += ["", "# Don't let Terraform, CloudFormation or Pulumi change anything in between."]
    return out


def _wrapped(head: str, text: str) -> Iterator[str]:
    """Yield comment lines; indented lines are code and are not wrapped."""
    for line in text.splitlines():
        pieces = [line] if line.startswith(" ") else textwrap.wrap(line, _WIDTH, break_on_hyphens=False)
        for piece in pieces:
            yield f"# {head}{piece}"
            head = " " * len(head)


def _summary(plan: Handover) -> Iterator[str]:
    yield f"# {len(plan.released)} to release, {len(plan.stays)} stay, {len(plan.unknown)} unknown to hpkit"
    for match in plan.released:
        yield f"# release: {match.managed.address} ({match.managed.type}) -> {_names(match.adopted)}"
    for match in plan.parts:
        whole = f"{match.managed.address}, which stays"
        yield f"# impossible: {_names(match.adopted)} is part of {whole}; import both or neither"
    for adopted, several in plan.unclear:
        names = ", ".join(each.address for each in several)
        yield f"# unclear: {adopted.type_token} {adopted.name} may be any of {names}"
    for match in plan.stays:
        yield f"# stays: {match.managed.address} ({match.managed.type})"
    for adopted in plan.free:
        yield f"# not managed by another tool: {adopted.type_token} {adopted.name}"


def _names(adopted: Sequence[AdoptedResource]) -> str:
    return ", ".join(f"{each.type_token} {each.name}" for each in adopted)


def as_data(plan: Handover) -> HandoverPlan:
    """Return the handover as JSON's types, for other programs."""
    return {
        "letGo": [_match_data(each) for each in plan.released],
        "stays": [_match_data(each) for each in plan.stays],
        "parts": [_match_data(each) for each in plan.parts],
        "unknown": [_managed_data(each) for each in plan.unknown],
        "handlers": [_managed_data(each) for each in plan.handlers],
        "free": [_adopted_data(each) for each in plan.free],
        "unclear": [
            {**_adopted_data(each), "mayBe": [one.address for one in several]} for each, several in plan.unclear
        ],
        "steps": [{"when": each.when, "say": each.description, "run": list(each.commands)} for each in steps(plan)],
    }


def _managed_data(managed: ManagedResource) -> _Managed:
    return {"tool": managed.tool, "address": managed.address, "type": managed.type, "ids": sorted(managed.ids)}


def _adopted_data(adopted: AdoptedResource) -> _Adopted:
    return {"type": adopted.type_token, "name": adopted.name, "ids": sorted(adopted.ids), "owner": adopted.owner}


def _match_data(match: Match) -> _Match:
    return {**_managed_data(match.managed), "taken": [_adopted_data(each) for each in match.adopted]}
