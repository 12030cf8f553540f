"""The Pulumi package schema, derived from the field table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from hpkit_provider import VERSION
from hpkit_provider.schema.field_table import RESOURCES, Field, ResourceTable, table
from hpkit_provider.schema.provider_settings import SETTINGS

__all__ = ["GET_CLUSTER", "package_schema", "schema_text"]

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
