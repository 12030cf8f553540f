"""Facts about each resource type: changes that replace a resource, and API calls of a deployment."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hpkit.catalog.instances import read_data

__all__ = [
    "TypeCalls",
    "TypeFacts",
    "frozen_of_groups",
    "losses",
    "object_facts",
    "program_calls",
    "sticky_of_groups",
    "type_calls",
    "type_facts",
]


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One type, with properties named by their path without indexes.

    - immutable: a change replaces the resource.
    - kept: removing it replaces the resource.
    - grows: a lower number or version replaces the resource.
    - optional: omitting it is no difference.
    - undisclosed: the service has a default that it doesn't document, so setting it for the first time, or omitting it
      again, isn't known to be a difference.
    - silent: kept in the state only, and never a difference.
    - present: only its presence counts, not its value.
    - sets: lists whose order has no meaning.
    - entries: lists whose entries are identified by that member.
    - defaults: the values of omitted properties.
    - autoname: the name that the plugin generates if the program omits it.
    - deletes_first: a replacement always deletes the old resource first.
    - literal: false, and an empty map, list or text, differ from omitting the property.
    """

    immutable: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    grows: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    undisclosed: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    entries: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    autoname: str = ""
    deletes_first: bool = False
    literal: bool = False

    def replaces(self, path: str, old: Any, new: Any) -> bool:
        """Return whether a difference in a property replaces the resource."""
        removed = path in self.kept and new in (None, "", [], {})
        return removed or path in self.immutable or (path in self.grows and _is_lower(new, old))

    def deletes_before_create(self, stated: Container[str]) -> bool:
        """Return whether a replacement deletes the old resource before it creates the new one.

        stated: the properties that the program sets. A name that the program sets has this effect even if it changes.
        Source: pulumi-terraform-bridge 3.136.0, pkg/tfbridge/schema.go, nameRequiresDeleteBeforeReplace.
        """
        return self.deletes_first or (self.autoname != "" and self.autoname in stated)


@dataclass(frozen=True, slots=True)
class TypeCalls:
    """The calls that create, read, change and delete a type: operations of `api`.

    - calls: those recorded on the local cloud.
    - more: those that the source of the released plugin adds.
    - service: IAM actions that the services need from the caller.
    - source: the file of the plugin's source.
    """

    api: str
    calls: tuple[str, ...]
    more: tuple[str, ...]
    service: tuple[str, ...]
    source: str

    def operations(self) -> set[str]:
        """Return all of its API operations as `api:Operation`."""
        return {f"{self.api}:{operation}" for operation in (*self.calls, *self.more)}


@cache
def _data() -> Any:
    return read_data("resource_types.json")


@cache
def _hyperpod() -> Any:
    return read_data("hyperpod.json")


@cache
def type_facts(token: str) -> TypeFacts:
    """Return the facts of a type; empty facts if it isn't in the catalog."""
    facts = {**_data()["types"], **_hyperpod()["types"]}.get(token, {})
    names = ("immutable", "kept", "grows", "optional", "undisclosed", "silent", "present", "sets")
    sets = {key: frozenset(facts.get(key, ())) for key in names}
    return TypeFacts(
        **sets,
        entries=facts.get("entries", {}),
        defaults=facts.get("defaults", {}),
        autoname=facts.get("autoname", ""),
        deletes_first=facts.get("deletesFirst", False),
        literal=facts.get("literal", False),
    )


@cache
def type_calls() -> Mapping[str, TypeCalls]:
    """Return the calls of each type, by its token."""
    return {
        token: TypeCalls(
            entry["api"],
            tuple(entry["calls"]),
            tuple(entry.get("more", ())),
            tuple(entry.get("service", ())),
            entry["source"],
        )
        for token, entry in _data()["types"].items()
        if "api" in entry
    }


def losses() -> Mapping[str, str]:
    """Return what a replacement or deletion loses, by the token of each type that is lost without a guard."""
    return {token: entry["loss"] for token, entry in _data()["types"].items() if "loss" in entry}


def program_calls() -> frozenset[str]:
    """Return the calls that the program makes before it registers anything, as `api:Operation`."""
    return frozenset(_data()["always"])


@cache
def object_facts(api_version: str, object_kind: str, *, patch: bool) -> TypeFacts:
    """Return the facts of a kind of Kubernetes object; a patch can change any field of an object that others own."""
    group = api_version.partition("/")[0] if "/" in api_version else ""
    fields = _data()["kubernetes"]
    own = () if patch else fields.get(f"{group}/{object_kind}" if group else object_kind, ())
    # The API server's own default may be true, such as that of automountServiceAccountToken.
    return TypeFacts(immutable=frozenset({*fields["*"], *own}), literal=True)


def frozen_of_groups() -> tuple[str, ...]:
    """Return the members of an instance group that UpdateCluster won't change on a group that exists."""
    return tuple(_hyperpod()["groups"]["frozen"])


def sticky_of_groups() -> tuple[str, ...]:
    """Return the members of an instance group that can change but not be taken away."""
    return tuple(_hyperpod()["groups"]["sticky"])


def other_volume_keys(old: Sequence[Any], new: Sequence[Any]) -> list[str]:
    """Return the volumes of an instance group whose KMS key differs, which an existing group can't change.

    old, new: instanceStorageConfigs. A root volume that isn't listed has AWS's key. Source: HyperPod developer guide,
    "Customer managed AWS KMS key encryption for SageMaker HyperPod": "KMS key transition isn't currently supported". It
    doesn't state whether a volume with AWS's key counts.
    """
    before, after = _volume_keys(old), _volume_keys(new)
    return [volume for volume in before if volume in after and before[volume] != after[volume]]


def _volume_keys(configs: Sequence[Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {"root volume": None}
    for volume in (config["ebsVolumeConfig"] for config in configs if config.get("ebsVolumeConfig")):
        name = "root volume" if volume.get("rootVolume") else "additional volume"
        # A key's ID is the last part of its ARN.
        keys[name] = (volume.get("volumeKmsKeyId") or "").rpartition("/")[2] or None
    return keys


def _is_lower(value: Any, reference: Any) -> bool:
    if all(isinstance(each, str) and each.replace(".", "").isdecimal() for each in (value, reference)):
        value, reference = (tuple(map(int, each.split("."))) for each in (value, reference))
    elif not all(isinstance(each, int | float) for each in (value, reference)):
        return False
    return bool(value < reference)
