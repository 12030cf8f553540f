"""The definition of a type: its properties, its calls, its tags. A type is one `ResourceType` in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hpkit.catalog import TypeFacts, type_calls, type_facts
from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_provider.engine.values import Props

__all__ = [
    "ChangeTags",
    "Create",
    "Delete",
    "Function",
    "PlannedUpdate",
    "Prop",
    "Read",
    "ResourceType",
    "Update",
    "defaults",
    "properties",
]


@dataclass(frozen=True)
class Prop:
    """One input, in the words of the real provider.

    `kind` is string, integer, number, boolean, list, map, object, policy, url, or asset. A policy is an IAM document as
    text, in which a list of one entry equals its entry and order doesn't matter. `write_only`: AWS never returns it.
    `computed`: leaving it out isn't a difference. The rest comes from the catalog, by the property's `path` in the
    type.
    """

    name: str
    kind: str = "string"
    required: bool = False
    write_only: bool = False
    members: tuple[Prop, ...] = ()
    path: str = ""
    facts: TypeFacts = field(default_factory=TypeFacts)

    @property
    def immutable(self) -> bool:
        """Return whether any change replaces the resource."""
        return self.path in self.facts.immutable

    @property
    def computed(self) -> bool:
        """Return whether the service sets it if the program omits it."""
        return self.path in self.facts.optional

    @property
    def default(self) -> Any:
        """Return the real provider's default."""
        return self.facts.defaults.get(self.path)

    def within(self, facts: TypeFacts, above: str = "") -> Prop:
        """Return it with the facts of its type, and so its members."""
        path = f"{above}.{self.name}" if above else self.name
        return replace(self, path=path, facts=facts, members=tuple(each.within(facts, path) for each in self.members))

    @cached_property
    def by_name(self) -> Mapping[str, Prop]:
        """The members of an object, or of each object in a list."""
        return {member.name: member for member in self.members}


def properties(words: str, **members: tuple[Prop, ...]) -> tuple[Prop, ...]:
    """Return the properties that words name.

    words: `name` or `name:kind` each, with `!` at the end if it's required, and `*` if it's write-only; members: of
    objects, and of objects in a list.
    """
    found = []
    for word in words.split():
        name, _, kind = word.rstrip("!*").partition(":")
        inner = members.get(name, ())
        found.append(Prop(name, kind or "string", word.endswith("!"), word.endswith("*"), inner))
    return tuple(found)


# Every type takes it since version 7 of the real provider; the region of a resource is its provider's.
REGION = Prop("region").within(TypeFacts(immutable=frozenset({"region"}), optional=frozenset({"region"})))


@dataclass(frozen=True)
class PlannedUpdate:
    """The intended result of an update."""

    old: Props
    new: Props
    names: frozenset[str]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def among(self, *names: str) -> bool:
        """Return whether any of these differ."""
        return not self.names.isdisjoint(names)


Create = Callable[[Calls, Props], str]
Read = Callable[[Calls, str, Props], Props | None]
Update = Callable[[Calls, str, PlannedUpdate], None]
Delete = Callable[[Calls, str, Props], None]
# Changes the tags of a resource: its ID, its state, the tags to set, and the keys to remove.
ChangeTags = Callable[[Calls, str, Props, dict[str, str], list[str]], None]


@dataclass(frozen=True)
class ResourceType:
    """One type of the real provider.

    `create` returns the ID as soon as something exists; `later` names what it can't set, which `update` then does.
    `read` gets the known state (nothing at import) and returns the current inputs and outputs, and `id` if it differs
    from the requested one. `update` gets what changed; `wait` follows `create` and `update`. `volatile` are the outputs
    that any update may change. It can call the operations in its catalog entry, and `other_calls`, which no stack of
    hpkit needs. `lowercase`: its names have no capitals.

    As in terraform-provider-aws 6.58.0: `imported` are values that Terraform's importer sets, `minutes` the time limits
    of create, update and delete, and `retries` the errors of operations that are waited out.
    """

    token: str
    props: tuple[Prop, ...]
    create: Create
    read: Read
    delete: Delete
    update: Update | None = None
    wait: Update | None = None
    later: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    tagging: ChangeTags | None = None
    other_calls: str = ""
    longest_name: int = 64
    lowercase: bool = False
    imported: Mapping[str, Any] = field(default_factory=dict)
    minutes: tuple[int, int, int] = (20, 20, 20)
    retries: Mapping[str, Retry] = field(default_factory=dict)

    @cached_property
    def facts(self) -> TypeFacts:
        """Return the catalog's facts about it."""
        return type_facts(self.token)

    @cached_property
    def spec(self) -> Prop:
        """Everything that it takes, as one object."""
        tags = (Prop("tags", kind="map"),) if self.tagging else ()
        members = tuple(prop.within(self.facts) for prop in (*self.props, *tags))
        return Prop("", kind="object", members=(*members, REGION))

    @property
    def autoname(self) -> str:
        """Return the input that is generated if the program omits it, or ""."""
        return self.facts.autoname

    @property
    def service(self) -> str:
        """Return the API that it calls, as boto3 names it."""
        return type_calls()[self.token].api

    @cached_property
    def allowed(self) -> frozenset[str]:
        """Return the operations of the API that this type may call."""
        calls = type_calls()[self.token]
        return frozenset((*calls.calls, *calls.more, *self.other_calls.split()))

    @cached_property
    def write_only_inputs(self) -> frozenset[str]:
        """Return the inputs that AWS never returns."""
        return frozenset(prop.name for prop in self.spec.members if prop.write_only)

    @property
    def computed(self) -> tuple[str, ...]:
        """Return the outputs that are only known once the resource exists."""
        tagged = ("tagsAll",) if self.tagging else ()
        return (*self.outputs, *(prop.name for prop in self.spec.members if prop.computed), *tagged)


def defaults(spec: Prop) -> Props:
    """Return the real provider's values for omitted inputs."""
    return {prop.name: prop.default for prop in spec.members if prop.default is not None}


@dataclass(frozen=True)
class Function:
    """One function: its arguments, its calls, and its result."""

    token: str
    service: str
    takes: tuple[str, ...]
    calls: str
    answer: Callable[[Calls, Props], Props]
