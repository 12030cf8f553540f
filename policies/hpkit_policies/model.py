"""A policy and its inputs, as plain frozen data that doesn't depend on Pulumi."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal

__all__ = [
    "POLICY_FILE",
    "UNKNOWN",
    "Level",
    "Parameter",
    "Policy",
    "Resource",
    "Results",
    "Settings",
    "Undecided",
    "Unknown",
    "UnknownInputError",
    "Violation",
    "is_known",
    "of_type",
    "unknown_as_undecided",
]

# An organization's settings of the pack. What reports findings of one file names that organization's.
POLICY_FILE: Final = "stacks/<organization>.policy.json"
Level = Literal["advisory", "mandatory", "remediate", "disabled"]
Settings = Mapping[str, Any]


class Unknown(Enum):
    """The single value that represents an input that is unknown before its resource is created."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


class UnknownInputError(Exception):
    """A rule requested an input that isn't known yet."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} isn't known before the update")


@dataclass(frozen=True, slots=True)
class Resource:
    """A registered resource: its inputs for resource policies, its outputs for stack policies.

    ignored: inputs whose changes the engine ignores, as the program states.

    property_dependencies: input → URNs that it depends on; the engine passes it to stack policies only. inputs: the
    registered inputs, if props has outputs.
    """

    type: str
    name: str
    urn: str
    props: Mapping[str, Any]
    protect: bool = False
    ignored: tuple[str, ...] = ()
    provider: Mapping[str, Any] = field(default_factory=dict)
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: Mapping[str, Any] | None = None

    def is_stated(self, name: str) -> bool:
        """Return whether the program sets a property; AWS sets others, which only outputs have."""
        return (self.props if self.inputs is None else self.inputs).get(name) is not None

    def get(self, path: str, default: Any = None) -> Any:
        """Return the input at a dotted path, or default. Raises UnknownInputError if part of it isn't known yet."""
        value = self.get_or_unknown(path, default)
        if not is_known(value):
            raise UnknownInputError(path)
        return value

    def get_or_unknown(self, path: str, default: Any = None) -> Any:
        """Return the input at a dotted path, or UNKNOWN; if a parent is unknown, so are its children."""
        value: Any = self.props
        for step in path.split("."):
            if value is UNKNOWN:
                return UNKNOWN
            if not isinstance(value, Mapping) or value.get(step) is None:
                return default
            value = value[step]
        return value


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation: the problem with its values, and how to fix it.

    resource: the violating resource, in a stack policy. property_path: the violating input, with list items by name,
    such as `instanceGroups[gpu].instanceCount`; empty for the whole resource. cause: the resource that has this input,
    if it's another one.
    """

    message: str
    fix: str
    resource: Resource | None = None
    property_path: str = ""
    cause: Resource | None = None


@dataclass(frozen=True, slots=True)
class Undecided:
    """A check that couldn't run, and why. It's reported as advice, never as a violation."""

    message: str
    resource: Resource | None = None


Results = Iterator[Violation | Undecided]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a policy: its JSON schema, by default a list of names, with the default of the pack."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "array", "items": {"type": "string"}})
    default: Any = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as data, with either validate (for one resource) or validate_stack (for all resources).

    types are the resource types that validate is called for; empty for all. remediate returns the inputs to set, for
    organizations that choose the level `remediate`. join combines all violations of validate_stack that aren't waived.
    """

    name: str
    description: str
    level: Level = "mandatory"
    types: tuple[str, ...] = ()
    validate: Callable[[Resource, Settings], Results] | None = None
    validate_stack: Callable[[Sequence[Resource], Settings], Results] | None = None
    remediate: Callable[[Resource, Settings], Mapping[str, Any]] | None = None
    parameters: tuple[Parameter, ...] = ()
    waivable: bool = True
    join: Callable[[Sequence[Violation]], Violation] | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """Return parameter → default."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def advice(self, fix: str) -> str:
        """Return a fix, and where the organization writes exceptions to the policy."""
        names = [*(parameter.name for parameter in self.parameters), *(("waivers",) if self.waivable else ())]
        where = f" Exceptions: {', '.join(f'`{name}`' for name in names)} of {self.name} in {POLICY_FILE}."
        return f"{fix}{where if names else ''}"

    def applies_to(self, type_: str) -> bool:
        """Return whether resources of a type are checked."""
        return not self.types or type_ in self.types


def is_known(value: Any) -> bool:
    """Return whether a value and everything in it are known."""
    if isinstance(value, Mapping):
        return all(is_known(inner) for inner in value.values())
    if isinstance(value, list):
        return all(is_known(inner) for inner in value)
    return value is not UNKNOWN


def of_type(resources: Iterable[Resource], *types: str) -> list[Resource]:
    """Return the resources of some types, in the order of registration."""
    return [resource for resource in resources if resource.type in types]


def unknown_as_undecided(results: Iterable[Violation | Undecided], resource: Resource | None = None) -> Results:
    """Pass on results; an unknown input ends them as undecided, for the given resource."""
    try:
        yield from results
    except UnknownInputError as unknown:
        yield Undecided(f"{resource.name}: {unknown}" if resource else str(unknown), resource)
