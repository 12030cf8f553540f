"""The definition of a property and of a resource: its path, its allowed values, whether it can change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hpkit.catalog import TypeFacts
from hpkit_provider.engine.values import Props

__all__ = ["Behavior", "Field", "ResourceTable", "with_resets"]


@dataclass(frozen=True, kw_only=True)
class Behavior:
    """The service's behavior with a property, as far as its API model doesn't define it."""

    default: Any = None  # what the service takes where a request leaves the property out
    reset_to: Any = None  # what is sent when it is not stated any more: the API keeps what is left out
    watched: bool = False  # a live value other than the default is a difference although the program states none
    service_owned: bool = False  # changed by the service itself: what the program states is kept
    frozen: bool = False  # cannot change on an instance group that exists
    undisclosed: bool = False  # no page names a default: without a value, on either side, nothing is known to differ
    sticky: bool = False  # cannot be taken away from an instance group that exists: the API has no empty value


@dataclass(frozen=True)
class Field(Behavior):
    """One property: its path, its allowed values, whether it can change."""

    name: str
    api: str
    kind: str
    required: bool = False
    immutable: bool = False
    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    members: tuple[Field, ...] = ()
    item: Field | None = None
    key: Field | None = None
    union: bool = False  # exactly one member
    silent: bool = False  # kept in the state, never a difference by itself
    identity: str = ""  # of a list: the member that names an entry; "*" = a set, order does not matter

    @cached_property
    def facts(self) -> TypeFacts:
        """The facts that decide whether two values differ, and whether that replaces the resource."""
        fields = list(_fields(self, ""))
        return TypeFacts(
            immutable=frozenset(path for path, each in fields if each.immutable),
            sets=frozenset(path for path, each in fields if each.identity == "*"),
            present=frozenset(path for path, each in fields if each.kind == "object" and not each.members),
            undisclosed=frozenset(path for path, each in fields if each.undisclosed),
            silent=frozenset(path for path, each in fields if each.silent),
            entries={path: each.identity for path, each in fields if each.identity not in ("", "*")},
            defaults={path: each.default for path, each in fields if each.default is not None},
            deletes_first=True,
        )

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """Members by property name."""
        return {member.name: member for member in self.members}

    @cached_property
    def by_api(self) -> dict[str, Field]:
        """Members by API name."""
        return {member.api: member for member in self.members}


@dataclass(frozen=True)
class ResourceTable:
    """One resource: the operation that its inputs come from (none: extra has all), and facts outside the model."""

    name: str
    operation: str
    replacing: frozenset[str]
    outputs: tuple[Field, ...]
    extra: tuple[Field, ...] = ()
    omitted: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    identities: Mapping[str, str] = field(default_factory=dict)
    behaviors: Mapping[str, Behavior] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """The Pulumi type token."""
        return f"hyperpod:index:{self.name}"


def _fields(spec: Field, path: str) -> Iterator[tuple[str, Field]]:
    yield path, spec
    for member in spec.item.members if spec.item else spec.members:
        yield from _fields(member, f"{path}.{member.name}" if path else member.name)


def with_resets(spec: Field, inputs: Props) -> Props:
    """Write defaults explicitly for unset inputs, so that the service resets them."""
    full = dict(inputs)
    for member in spec.members:
        if member.name not in full and member.reset_to is not None:
            full[member.name] = member.reset_to
        value = full.get(member.name)
        if member.kind == "object" and isinstance(value, dict):
            full[member.name] = with_resets(member, value)
    return full
