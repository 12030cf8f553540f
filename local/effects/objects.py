"""Kubernetes objects as the effects make them: kinds, in the order in which they are made, and single items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["KINDS", "MANAGED", "Item", "Kind", "Plan"]

# Every object made here carries it: what has it and is no longer wanted goes.
MANAGED = {"app.kubernetes.io/managed-by": "hpkit-local"}
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Kind:
    """A kind and where its objects are; `/api/v1` or `/apis/<group>/<version>`."""

    kind: str
    api: str
    plural: str
    namespaced: bool = False

    def folder(self, namespace: str = "") -> str:
        """Return the path of a namespace's objects, or of all."""
        return f"{self.api}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.api}/{self.plural}"


KINDS = {
    kind.kind: kind
    for kind in (
        Kind("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
        Kind("Node", "/api/v1", "nodes"),
        Kind("Namespace", "/api/v1", "namespaces"),
        Kind("ConfigMap", "/api/v1", "configmaps", namespaced=True),
        Kind("Deployment", "/apis/apps/v1", "deployments", namespaced=True),
        Kind("ClusterRole", _RBAC, "clusterroles"),
        Kind("ClusterRoleBinding", _RBAC, "clusterrolebindings"),
        Kind("RoleBinding", _RBAC, "rolebindings", namespaced=True),
        Kind("ValidatingAdmissionPolicy", _ADMISSION, "validatingadmissionpolicies"),
        Kind("ValidatingAdmissionPolicyBinding", _ADMISSION, "validatingadmissionpolicybindings"),
        Kind("Topology", _KUEUE, "topologies"),
        Kind("ResourceFlavor", _KUEUE, "resourceflavors"),
        Kind("WorkloadPriorityClass", _KUEUE, "workloadpriorityclasses"),
        Kind("ClusterQueue", _KUEUE, "clusterqueues"),
        Kind("LocalQueue", _KUEUE, "localqueues", namespaced=True),
    )
}


@dataclass(frozen=True)
class Item:
    """One object as it should be; `owners` are the changes that wait for it, such as `quota/<id>`."""

    kind: Kind
    name: str
    content: Mapping[str, Any]
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, Any] | None = None
    owners: frozenset[str] = frozenset()

    @property
    def path(self) -> str:
        """Where the object is."""
        return f"{self.kind.folder(self.namespace)}/{self.name}"

    def document(self) -> dict[str, Any]:
        """Return the manifest, without status."""
        metadata: dict[str, Any] = {"name": self.name, "labels": {**self.labels, **MANAGED}}
        if self.namespace:
            metadata["namespace"] = self.namespace
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        version = self.kind.api.removeprefix("/apis/").removeprefix("/api/")
        return {"apiVersion": version, "kind": self.kind.kind, "metadata": metadata, **self.content}

    def digest(self) -> str:
        """Return what differs when the manifest does."""
        text = json.dumps([self.document(), self.status], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Plan:
    """All objects that should be, and why changes cannot be carried out: by owner."""

    items: tuple[Item, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: Plan) -> Plan:
        """Return both."""
        return Plan((*self.items, *other.items), {**self.refused, **other.refused})
