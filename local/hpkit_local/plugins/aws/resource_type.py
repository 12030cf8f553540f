"""What is written down about a type: its properties, its calls, its tags. A type is one `ResourceType` in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpkit_provider.engine.values import Props

if TYPE_CHECKING:
    from hpkit_local.plugins.aws.calls import Calls

__all__ = ["REGION", "Change", "Prop", "ResourceType", "Tagging", "defaults"]


@dataclass(frozen=True)
class Prop:
    """One input, in the words of the real provider.

    `kind` is string, integer, number, boolean, list, set, map, object, policy (IAM's documents as
    text, where a list of one is its entry and order is nothing), url or asset.
    `computed`: the service fills it in when the program leaves it out, so that leaving it out is no difference.
    `default`: what the real provider takes by itself. `write_only`: AWS never tells it. `only_grows`: a lower number
    takes a new resource.
    """

    name: str
    kind: str = "string"
    required: bool = False
    immutable: bool = False
    computed: bool = False
    write_only: bool = False
    only_grows: bool = False
    default: Any = None
    members: tuple[Prop, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Prop]:
        """The members of an object, or of each object in a list."""
        return {member.name: member for member in self.members}


REGION = Prop("region", immutable=True, computed=True)  # every type takes it since version 7 of the real provider


@dataclass(frozen=True)
class Change:
    """What an update is to bring about."""

    old: Props
    new: Props
    names: frozenset[str]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def among(self, *names: str) -> bool:
        """Whether any of these differ."""
        return not self.names.isdisjoint(names)


@dataclass(frozen=True)
class Tagging:
    """How a service's tags are changed: `change(call, resource id, live, tags to set, keys to drop)`."""

    change: Callable[[Calls, str, Props, dict[str, str], list[str]], None]
    calls: str


Create = Callable[["Calls", Props], str]
Read = Callable[["Calls", str, Props], Props | None]
Update = Callable[["Calls", str, Change], None]
Delete = Callable[["Calls", str, Props], None]


@dataclass(frozen=True)
class ResourceType:
    """One type of the real provider.

    `create` returns the id as soon as something exists; `later` names what it cannot set, which `update` then does.
    `read` is given what is known (nothing at import) and returns inputs and outputs as they are, `id` among them where
    it differs from what was asked for. `update` gets what changed; `wait` follows `create` and `update`.
    `autoname` is the input that is made up when the program leaves it out, `identity` the inputs that no two of the
    kind can share, `volatile` the outputs that any update may change. `calls` lists every operation that may be used.
    """

    token: str
    service: str
    props: tuple[Prop, ...]
    calls: str
    create: Create
    read: Read
    delete: Delete
    update: Update | None = None
    wait: Update | None = None
    later: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    tagging: Tagging | None = None
    autoname: str | None = None
    longest_name: int = 64
    identity: tuple[str, ...] = ()
    seconds: float = 3600.0
    note: str = ""
    spec: Prop = field(init=False)

    def __post_init__(self) -> None:
        tags = (Prop("tags", kind="map"),) if self.tagging else ()
        object.__setattr__(self, "spec", Prop("", kind="object", members=(*self.props, *tags, REGION)))

    @cached_property
    def allowed(self) -> frozenset[str]:
        """The operations of the API this type may call."""
        return frozenset(f"{self.calls} {self.tagging.calls if self.tagging else ''}".split())

    @cached_property
    def write_only_inputs(self) -> frozenset[str]:
        """The inputs that AWS never tells."""
        return frozenset(prop.name for prop in self.props if prop.write_only)

    @property
    def computed(self) -> tuple[str, ...]:
        """What is only known once the resource exists."""
        tagged = ("tagsAll",) if self.tagging else ()
        return (*self.outputs, *(prop.name for prop in self.spec.members if prop.computed), *tagged)


def defaults(spec: Prop) -> Props:
    """Return what the real provider takes for what a program leaves out."""
    return {prop.name: prop.default for prop in spec.members if prop.default is not None}
