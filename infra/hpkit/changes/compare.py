"""The catalog's facts about a recorded resource: whether it's deleted first, and what is unknown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from hpkit.catalog import UNKNOWN, TypeFacts, object_facts, type_facts
from hpkit.plan.model import Plan

__all__ = ["Recorded", "RecordedResource", "deletes_first", "facts_of", "with_unknown"]


class RecordedResource(Protocol):
    """One registration in hpkit.program.recording."""

    @property
    def urn(self) -> str:
        """Its URN, which contains its type, its parents' types and its name."""

    @property
    def type(self) -> str:
        """Type token, such as `aws:ec2/vpc:Vpc`."""

    @property
    def name(self) -> str:
        """Name in the program."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The program's inputs."""

    @property
    def provider(self) -> str:
        """URN of its provider; empty for none."""

    @property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """Property → URNs of the resources whose outputs are in it."""

    @property
    def protect(self) -> bool:
        """Whether the engine won't delete it."""

    @property
    def custom(self) -> bool:
        """Whether it's a resource of a plugin, not a component."""

    @property
    def retain_on_delete(self) -> bool:
        """Whether it's kept when the program no longer registers it."""

    @property
    def replace_on_changes(self) -> Sequence[str]:
        """Inputs whose changes replace it, in addition to those of its type."""

    @property
    def replace_with(self) -> Sequence[str]:
        """URNs of the resources whose replacement replaces it too."""

    @property
    def delete_before_replace(self) -> bool | None:
        """Whether a replacement deletes it first; None leaves it to its plugin."""

    @property
    def made(self) -> Mapping[str, Any]:
        """Invented values that only AWS could assign."""


class Recorded(Protocol):
    """Everything that a plan registers, by URN, in the order in which it was registered."""

    @property
    def plan(self) -> Plan:
        """The plan from which the resources were registered."""

    @property
    def resources(self) -> Mapping[str, RecordedResource]:
        """URN → registration."""


_RELEASE = "kubernetes:helm.sh/v3:Release"


def facts_of(resource: RecordedResource) -> TypeFacts:
    """Return the facts of a resource's type, or of a Kubernetes object's kind, and what the program adds to them."""
    facts = _facts_of_type(resource)
    return replace(facts, immutable=facts.immutable.union(resource.replace_on_changes))


def _facts_of_type(resource: RecordedResource) -> TypeFacts:
    if not resource.type.startswith("kubernetes:") or resource.type == _RELEASE:
        return type_facts(resource.type)
    version, kind = str(resource.inputs.get("apiVersion", "")), str(resource.inputs.get("kind", ""))
    return object_facts(version, kind, patch=resource.type.endswith(f":{kind}Patch"))


def deletes_first(old: RecordedResource, new: RecordedResource) -> bool:
    """Return whether a replacement deletes the old resource before it creates the new one."""
    if new.delete_before_replace is not None:
        return new.delete_before_replace
    if new.type.startswith("kubernetes:"):
        sides = [side.inputs.get("metadata") or {} for side in (old, new)]
        return new.type != _RELEASE and all(sides[0].get(key) == sides[1].get(key) for key in ("name", "namespace"))
    return facts_of(new).deletes_before_create(new.inputs)


def with_unknown(value: Any, marks: Iterable[str]) -> Any:
    """Return the value, as unknown wherever a text contains one of the marks."""
    alternatives = "|".join(re.escape(mark) for mark in marks)
    return (
        _with_pattern_unknown(value, re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])")) if alternatives else value
    )


def _with_pattern_unknown(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return UNKNOWN if pattern.search(value) else value
    if isinstance(value, Mapping):
        return {key: _with_pattern_unknown(item, pattern) for key, item in value.items()}
    return [_with_pattern_unknown(item, pattern) for item in value] if isinstance(value, list | tuple) else value
