"""The engine's steps between two recordings of one stack: create, update, replace, delete, with reasons.

It follows the engine's own procedure (`pulumi`, pkg/resource/deploy/step_generator.go). Resources are identified by
URN. The outputs of a replaced resource are unknown until it is created, so everything that uses them changes too. If
the old resource must be deleted first, everything that can't exist without it is deleted with it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hpkit.catalog.differences import UNKNOWN, adds_subnets, differences, has_unknown
from hpkit.changes.compare import Recorded, RecordedResource, deletes_first, facts_of, with_unknown

__all__ = [
    "Action",
    "Cause",
    "Step",
    "describe",
    "is_plain",
    "place_text",
    "root_causes",
    "steps_of",
    "texts_in",
    "value_text",
]

Action = Literal["replace", "delete", "update", "create"]
_ORDER: tuple[Action, ...] = ("replace", "delete", "update", "create")
_HOLDS_NOTHING = ("pulumi:providers:", "hyperpod:index:ChangeGuard", "hyperpod:index:Readiness")
# An existing group keeps its subnets.
_KEPT: Final = tuple(f"{groups}.overrideVpcConfig.subnets" for groups in ("instanceGroups", "restrictedInstanceGroups"))
Resources = Mapping[str, RecordedResource]


@dataclass(frozen=True, slots=True)
class Cause:
    """One property that differs; because: URNs of replaced or new resources, if they are the cause.

    Its path can be empty.

    place: the path with the names or numbers of entries. made_up: the recording invented its values, because only AWS
    knows them.
    """

    path: str
    place: str
    before: Any
    after: Any
    because: tuple[str, ...]
    replaces: bool
    made_up: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One resource that does not stay as it is.

    retained: it is only forgotten, and stays where it is. custom: it is a plugin's resource, not a component.
    """

    action: Action
    urn: str
    type: str
    name: str
    causes: tuple[Cause, ...]
    retained: bool
    custom: bool

    @property
    def holds(self) -> bool:
        """Return whether it's a resource that users see, not a component, a provider or a guard."""
        return self.custom and not self.type.startswith(_HOLDS_NOTHING)

    @property
    def lost(self) -> bool:
        """Return whether an existing resource is deleted."""
        return self.holds and not self.retained and self.action in ("replace", "delete")


def steps_of(before: Recorded | None, after: Recorded | None) -> tuple[Step, ...]:
    """Return the steps, replacements first; None is a missing stack, and a removed stack isn't deployed."""
    if after is None:
        return ()
    run = _Run(before.resources if before is not None else {}, after.resources)
    # Resources are registered side by side, in another order each time.
    return tuple(sorted(run.steps(), key=lambda step: (_ORDER.index(step.action), step.type, step.name)))


class _Run:
    """One comparison: replacements are propagated until nothing changes."""

    def __init__(self, old: Resources, new: Resources) -> None:
        self._old, self._new = old, new
        self._created = {urn for urn in new if urn not in old}
        self._replaced: set[str] = set()
        self._dependents: dict[str, tuple[Cause, ...]] = {}
        size = -1
        while size != len(self._replaced):
            size = len(self._replaced)
            for urn in new:
                if urn in old and urn not in self._replaced and any(each.replaces for each in self._causes(urn)):
                    self._replace(urn)

    def steps(self) -> Iterator[Step]:
        for urn, resource in self._new.items():
            if urn in self._created:
                yield _step("create", resource, ())
            elif causes := self._causes(urn):
                yield _step("replace" if urn in self._replaced else "update", resource, causes)
        for urn, resource in reversed(list(self._old.items())):
            if urn not in self._new:
                yield _step("delete", resource, ())

    def _causes(self, urn: str) -> tuple[Cause, ...]:
        old, new = self._old[urn], self._new[urn]
        if not new.custom:
            return ()
        causes = list(self._dependents.get(urn, ()))
        if new.provider in self._replaced or new.provider != old.provider:
            causes.append(Cause("", "", None, None, (new.provider,), replaces=True))
        with_it = sorted(self._replaced & {*new.replace_with})
        causes += [Cause("", "", None, None, (each,), replaces=True) for each in with_it]
        away = self._replaced | self._created
        inputs = {name: self._known(new, name, value, away) for name, value in new.inputs.items()}
        for difference in differences(facts_of(new), old.inputs, inputs):
            if difference.path in _KEPT and adds_subnets(difference.before, difference.after):
                continue
            name = difference.path.partition(".")[0].partition("[")[0]
            used = new.uses.get(name, frozenset()) if has_unknown(difference.after) else frozenset()
            because = tuple(sorted(used & away))
            made_up = self._made_up(old, name, difference.before, self._old) or self._made_up(
                new, name, difference.after, self._new
            )
            sides = difference.before, difference.after
            causes.append(Cause(difference.path, difference.place, *sides, because, difference.replaces, made_up))
        return tuple(causes)

    @staticmethod
    def _made_up(resource: RecordedResource, name: str, value: Any, side: Resources) -> bool:
        """Return whether a property's value contains invented values of the resources that it uses."""
        used = resource.uses.get(name, frozenset())
        marks = {mark for urn in used if urn in side for mark in texts_in(side[urn].made) if mark}
        return any(mark in text for text in texts_in(value) for mark in marks)

    def _known(self, resource: RecordedResource, name: str, value: Any, away: set[str]) -> Any:
        """Return the value as a preview knows it: a resource that doesn't exist yet has no ID."""
        used = resource.uses.get(name, frozenset()) & away
        marks = {text for urn in used if urn in self._new for text in texts_in(self._new[urn].made)}
        return with_unknown(value, sorted(marks)) if marks else value

    def _replace(self, urn: str) -> None:
        self._replaced.add(urn)
        if not deletes_first(self._old[urn], self._new[urn]):
            return
        # While it's deleted, resources that can't exist without it are deleted too, even if the program keeps them.
        going = {urn}
        for dependent, resource in self._old.items():
            affected = sorted(name for name, used in resource.uses.items() if used & going)
            stated = {name: UNKNOWN if name in affected else value for name, value in resource.inputs.items()}
            causes = [
                Cause(
                    difference.path,
                    difference.place,
                    difference.before,
                    UNKNOWN,
                    tuple(sorted(resource.uses[difference.path] & going)),
                    replaces=True,
                )
                for difference in differences(facts_of(resource), resource.inputs, stated)
                if difference.replaces and difference.path in affected
            ]
            with_it = {*resource.replace_with, *([resource.provider] if resource.custom else [])}
            causes += [Cause("", "", None, None, (each,), replaces=True) for each in sorted(with_it & going)]
            if causes and dependent not in going:
                going.add(dependent)
                if dependent in self._new:
                    self._replaced.add(dependent)
                    self._dependents[dependent] = tuple(causes)


def _step(action: Action, resource: RecordedResource, causes: tuple[Cause, ...]) -> Step:
    retained = resource.retain_on_delete and action in ("replace", "delete")
    unique = {(each.place, each.because): each for each in reversed(causes)}
    ordered = tuple(reversed(unique.values()))
    return Step(action, resource.urn, resource.type, resource.name, ordered, retained, resource.custom)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text inside a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


# A list entry without a name is identified by its index.
_NUMBERED: Final = re.compile(r"\[\d+\]")
_LONGEST: Final = 120
# Characters in programs, policy documents and settings files, but not in short values that people write.
_MACHINE: Final = ("\n", "==", "&&", "||")


def root_causes(step: Step, steps: Sequence[Step]) -> list[str]:
    """Return where a replacement begins: the properties that a person changed, however far away."""
    by_urn = {each.urn: each for each in steps}
    causes: dict[str, None] = {}
    seen: set[str] = set()
    todo = [step]
    while todo:
        current = todo.pop(0)
        if current.urn in seen:
            continue
        seen.add(current.urn)
        for cause in current.causes:
            if not cause.because and cause.replaces:
                causes[("" if current is step else f"{_name(current)}: ") + describe(cause)] = None
            todo += [by_urn[urn] for urn in cause.because if cause.replaces and urn in by_urn]
    return list(causes)[:3]


def describe(cause: Cause) -> str:
    """Return a difference as text: `cidrBlock 10.1.0.0/16 → 10.2.0.0/16`; only the path for generated values."""
    if cause.because:
        return f"{place_text(cause.place)} known only later"
    if cause.made_up or not is_plain(cause.place, cause.before, cause.after):
        return place_text(cause.place)
    return f"{cause.place} {value_text(cause.before, cause.place)} → {value_text(cause.after, cause.place)}"


def place_text(place: str) -> str:
    """Return a place as far as it has names: up to the first entry that has only a number."""
    return _NUMBERED.split(place, maxsplit=1)[0]


def is_plain(place: str, *values: object) -> bool:
    """Return whether a setting is readable: it has a name, and one-line values without generated text."""
    short = sum(len(value_text(each)) for each in values) <= _LONGEST
    return not _NUMBERED.search(place) and short and not any(map(_is_of_a_machine, values))


def _is_of_a_machine(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(each, Mapping) or _is_of_a_machine(each) for each in value)
    return isinstance(value, str) and (value.startswith(("{", "[")) or any(mark in value for mark in _MACHINE))


def _name(step: Step) -> str:
    if step.type.startswith("pulumi:providers:"):
        return f"provider {step.name}"
    kind = step.type.rpartition(":")[2]
    return kind if kind.lower() == step.name.lower() else f"{kind} {step.name}"


def value_text(value: object, place: str = "") -> str:
    """Return a value on one line, as people write it: `{key: a, effect: NoSchedule}`, and memory at a place in Gi."""
    if value is None:
        return "unset"
    if place.endswith(".memory") and str(value).isdigit():
        return f"{round(int(str(value)) / 2**30, 2):.12g}Gi"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(each) for each in value) or "none"
    return str(value)
