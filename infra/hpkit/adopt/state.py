"""What of a program is only in Pulumi's state: the stack, its components and its providers, written into that state.

`pulumi import` can make neither a provider with settings nor use one that is not in the state; and resources that are
imported under default providers would have those deleted by the first `up`. So the state is given, before the import,
exactly what the program registers of them. Nothing of it exists anywhere else.
After the import, what AWS never tells of a resource is added as the program states it: it was never anything but a word
to the API, and would be the only difference that the first preview shows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from hpkit.adopt.imports import is_bookkeeping
from hpkit.recording import PROJECT, RecordedResource, Recording

__all__ = ["strangers", "with_bookkeeping", "with_write_only"]

_STACK: Final = "pulumi:pulumi:Stack"
# Inputs that no answer of AWS holds: who wins when a call conflicts (EKS API, CreateAddon and UpdateAddon), and which
# groups are Karpenter's, which only the Kubernetes API knows, by its NodeClasses.
_WRITE_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "aws:eks/addon:Addon": ("resolveConflictsOnCreate", "resolveConflictsOnUpdate"),
    "hyperpod:index:Cluster": ("autoscaledInstanceGroups",),
}


def with_bookkeeping(exported: Mapping[str, Any], recording: Recording) -> dict[str, Any]:
    """Return what `pulumi stack export` said, with the components and providers that are missing."""
    deployment = dict(exported["deployment"] or {})
    resources = list(deployment.get("resources") or [])
    there = {each["urn"] for each in resources}
    stack = _stack_urn(recording)
    if stack not in there:
        resources.insert(0, {"urn": stack, "custom": False, "type": _STACK})
    wanted = [each for each in recording.resources.values() if is_bookkeeping(each)]
    resources += [_entry(each, stack) for each in wanted if each.urn not in there]
    return {**exported, "deployment": {**deployment, "resources": _parents_first(resources)}}


def with_write_only(exported: Mapping[str, Any], recording: Recording) -> dict[str, Any]:
    """Return what `pulumi stack export` said, with the program's own inputs where AWS could tell none."""

    def filled(each: Mapping[str, Any]) -> Mapping[str, Any]:
        names, stated = _WRITE_ONLY.get(each["type"], ()), recording.resources.get(each["urn"])
        if stated is None:
            return each
        never_told = {name: stated.inputs[name] for name in names if name in stated.inputs}
        sides = {side: {**never_told, **each[side]} for side in ("inputs", "outputs") if never_told and side in each}
        return {**each, **sides}

    deployment = exported["deployment"]
    return {**exported, "deployment": {**deployment, "resources": [filled(each) for each in deployment["resources"]]}}


def strangers(exported: Mapping[str, Any], recording: Recording) -> list[str]:
    """Return the URNs of what is in the state and not in the program: an `up` would delete them."""
    known = {*recording.resources, _stack_urn(recording)}
    resources = (exported["deployment"] or {}).get("resources") or []
    return [each["urn"] for each in resources if each["urn"] not in known and not each.get("external")]


def _stack_urn(recording: Recording) -> str:
    name = recording.plan.stack
    return f"urn:pulumi:{name}::{PROJECT}::{_STACK}::{PROJECT}-{name}"


def _entry(resource: RecordedResource, stack: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "urn": resource.urn,
        "custom": resource.custom,
        "type": resource.type,
        "parent": resource.parent or stack,
    }
    if resource.custom:
        version = {"version": resource.version} if resource.version else {}
        inputs = {**resource.inputs, **version}
        entry |= {"id": str(uuid.uuid4()), "inputs": inputs, "outputs": inputs}
    return entry


def _parents_first(resources: list[Any]) -> list[Any]:
    """Return the resources so that each stands after its parent and its provider, as Pulumi wants its state."""
    depth: dict[str, int] = {}
    by_urn = {each["urn"]: each for each in resources}

    def of(urn: str) -> int:
        if urn not in depth:
            parent = by_urn.get(urn, {}).get("parent", "")
            depth[urn] = of(parent) + 1 if parent in by_urn else 0
        return depth[urn]

    bookkeeping = [each for each in resources if not each["custom"] or each["type"].startswith("pulumi:providers:")]
    others = [each for each in resources if each not in bookkeeping]
    return [*sorted(bookkeeping, key=lambda each: of(each["urn"])), *others]
