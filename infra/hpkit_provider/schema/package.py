"""The Pulumi package schema, derived from the field table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from hpkit_provider import VERSION
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props, is_unknown
from hpkit_provider.schema.field_table import RESOURCES, Field, ResourceTable, table

__all__ = [
    "GET_CLUSTER",
    "SETTINGS",
    "allows_replacement",
    "changed_settings",
    "leaving_teams",
    "package_schema",
    "schema_text",
]

# Another region or account is rejected, because everything would be left behind. When a provider is replaced, the
# engine replaces all of its resources without asking for their Diff. It asks no resource for its account either. So
# this is the only place where such a change can be rejected before it begins.
SETTINGS: Final = {
    "region": "AWS region. Default: aws:region, or the region in the environment variables.",
    "endpoint": "URL of the SageMaker API, for a local cloud.",
    "profile": "Named profile. Default: aws:profile, or the profile in the environment variables.",
    "accountId": "Required account of the credentials. With credentials of another account, nothing is read or "
    "changed.",
    "assumeRoleArn": "Role to assume for each call.",
    "allowReplace": "`true` allows changes that replace clusters.",
    "contents": "What a move to another account or region would delete, for messages.",
    "where": "Where to allow the loss of a cluster or instance group, for messages. Default: on the Cluster.",
    "leavingTeams": "Comma-separated teams whose quotas this run deletes. They are set to 0 if the service rejects an "
    "increase of another quota.",
    "capacityWaitSeconds": "Seconds during which an increase that the service rejects is tried again (300).",
}
# Never a difference by themselves: they only appear in messages.
_MESSAGE_TEXTS: Final = frozenset({"contents", "where"})
# Settings that determine the location of everything: the setting, its name in the organization file, and the effect of
# another value.
_PLACES: Final = (
    ("accountId", "account", "leave everything in {} without a stack, while it keeps costing money"),
    ("region", "region", "REPLACE everything in {}"),
)


def allows_replacement(settings: Props) -> bool:
    """Return whether settings allow a change to replace clusters."""
    return str(settings.get("allowReplace", "")).lower() == "true"


def leaving_teams(settings: Props) -> frozenset[str]:
    """Return the teams whose quotas this run deletes."""
    return frozenset(str(settings.get("leavingTeams", "")).split(",")) - {""}


def changed_settings(old: Props, new: Props) -> list[str]:
    """Return the settings that differ; raises RejectedError for another account or region."""
    contents = old.get("contents")
    lost = f": {contents}" if isinstance(contents, str) else ""
    for name, word, effect in _PLACES:
        if _moves(name, old, new):
            before, after = old[name], new[name]
            raise RejectedError(
                f"{name}: {before} → {after} would {effect.format(before)}{lost}.\nTo fix: set {name} to {before} "
                f"again (hpkit: `{word}` of the environment). For another {word}, create another stack (hpkit: "
                "describe another environment). When it runs, delete this one (hpkit: `hpkit aws destroy`)."
            )
    return sorted(name for name in SETTINGS.keys() - _MESSAGE_TEXTS if old.get(name) != new.get(name))


def _moves(name: str, old: Props, new: Props) -> bool:
    """Return whether a setting that determines the location changes; an unset one doesn't count."""
    before, after = old.get(name), new.get(name)
    return before is not None and after is not None and not is_unknown(after) and before != after


GET_CLUSTER: Final = "hyperpod:index:getCluster"

_SCALARS = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "timestamp": "string"}


def package_schema() -> dict[str, Any]:
    """Return the schema as the engine and SDK generators read it."""
    types: dict[str, Any] = {}
    resources = {resource.token: _resource(resource, types) for resource in RESOURCES.values()}
    settings = {name: {"type": "string", "description": text} for name, text in SETTINGS.items()}
    return {
        "name": "hyperpod",
        "version": VERSION,
        "description": "Amazon SageMaker HyperPod on EKS: clusters, team quotas, cluster policies.",
        "license": "Apache-2.0",
        "config": {"variables": settings},
        "provider": {"inputProperties": settings},
        "types": types,
        "resources": resources,
        "functions": {GET_CLUSTER: _get_cluster(resources["hyperpod:index:Cluster"])},
    }


def schema_text() -> str:
    """Return the schema as JSON."""
    return json.dumps(package_schema(), sort_keys=True)


def _get_cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function for a cluster that no resource of the program describes."""
    outputs = ("clusterArn", "clusterName", "orchestrator", "instanceGroups", "restrictedInstanceGroups")
    return {
        "description": "Return an existing HyperPod cluster.",
        "inputs": {"properties": {"clusterName": {"type": "string"}}, "required": ["clusterName"]},
        "outputs": {"properties": {name: cluster["properties"][name] for name in outputs}, "required": ["clusterArn"]},
    }


def _resource(resource: ResourceTable, types: dict[str, Any]) -> dict[str, Any]:
    root = table(resource.name)
    inputs = {member.name: _property(member, types) for member in root.members}
    required = sorted(member.name for member in root.members if member.required)
    outputs = {output.name: _property(output, types) for output in resource.outputs}
    always = [output.name for output in resource.outputs if output.name.endswith(("Arn", "Id", "tatus", "Version"))]
    return {
        "description": resource.text,
        "inputProperties": inputs,
        "requiredInputs": required,
        "properties": {**inputs, **outputs},
        "required": sorted([*required, *always]),
    }


def _property(member: Field, types: dict[str, Any]) -> dict[str, Any]:
    definition = _type(member, types)
    if member.text:
        definition["description"] = member.text
    if member.immutable:
        definition["willReplaceOnChanges"] = True
    if member.secret:
        definition["secret"] = True
    return definition


def _type(member: Field, types: dict[str, Any]) -> dict[str, Any]:
    if member.kind == "object":
        token = f"hyperpod:index:{member.shape}"
        if token not in types:
            types[token] = {}  # reserved before its members are read, because a shape can contain itself
            types[token] = {
                "type": "object",
                "description": member.text,
                "properties": {inner.name: _property(inner, types) for inner in member.members},
                "required": sorted(inner.name for inner in member.members if inner.required),
            }
        return {"$ref": f"#/types/{token}"}
    if member.kind == "list" and member.item:
        return {"type": "array", "items": _type(member.item, types)}
    if member.kind == "map" and member.item:
        return {"type": "object", "additionalProperties": _type(member.item, types)}
    if member.enum:
        token = f"hyperpod:index:{member.shape}"
        types.setdefault(token, {"type": "string", "enum": [{"value": value} for value in member.enum]})
        return {"$ref": f"#/types/{token}"}
    return {"type": _SCALARS[member.kind]}
