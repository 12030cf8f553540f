"""Kubernetes objects as the controllers make them: their kinds, in the order of creation, and their manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpkit_local.kubernetes.api import ApiResource

__all__ = [
    "KINDS",
    "MANAGED",
    "SHIPPED_ANNOTATION",
    "Manifest",
    "Manifests",
    "addon_owners",
    "custom_kind",
    "owner_reference",
]

# Every object made here carries this label: what has it and is no longer desired is deleted.
# On what may be edited: which text was written here last.
SHIPPED_ANNOTATION = "hpkit.local/shipped"
MANAGED = {"app.kubernetes.io/managed-by": "hpkit-local"}
_KUEUE = "kueue.x-k8s.io/v1beta2"
_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"


KINDS = {
    kind.kind: kind
    for kind in (
        ApiResource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
        ApiResource("v1", "Node", "nodes"),
        ApiResource("v1", "Namespace", "namespaces"),
        ApiResource("v1", "ConfigMap", "configmaps", namespaced=True),
        ApiResource("apps/v1", "Deployment", "deployments", namespaced=True),
        ApiResource(_RBAC, "ClusterRole", "clusterroles"),
        ApiResource(_RBAC, "ClusterRoleBinding", "clusterrolebindings"),
        ApiResource(_RBAC, "RoleBinding", "rolebindings", namespaced=True),
        ApiResource(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ApiResource(_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        ApiResource(_KUEUE, "Topology", "topologies"),
        ApiResource(_KUEUE, "ResourceFlavor", "resourceflavors"),
        ApiResource(_KUEUE, "WorkloadPriorityClass", "workloadpriorityclasses"),
        ApiResource(_KUEUE, "ClusterQueue", "clusterqueues"),
        ApiResource(_KUEUE, "LocalQueue", "localqueues", namespaced=True),
    )
}


@dataclass(frozen=True)
class Manifest:
    """One object as it should be; `owners` are the pending changes that wait for it, such as `quota/<id>`."""

    kind: ApiResource
    name: str
    content: Mapping[str, Any]
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, Any] | None = None
    owners: frozenset[str] = frozenset()

    @property
    def path(self) -> str:
        """Return the object's path."""
        return self.kind.path(self.namespace, self.name)

    def document(self) -> dict[str, Any]:
        """Return the manifest, without status."""
        metadata: dict[str, Any] = {"name": self.name, "labels": {**self.labels, **MANAGED}}
        if self.namespace:
            metadata["namespace"] = self.namespace
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata, **self.content}

    def digest(self) -> str:
        """Return a value that differs if the manifest does."""
        text = json.dumps([self.document(), self.status], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def addon_owners(addons: Iterable[str], name: str) -> frozenset[str]:
    """Return what waits for the objects of an add-on, none while it isn't installed; addons: the snapshot's keys."""
    return frozenset(f"addon/{key}" for key in addons if key.rpartition("|")[2] == name)


def custom_kind(
    api_version: str, kind: str, plural: str, schema: Mapping[str, Any], owners: frozenset[str]
) -> Manifest:
    """Return the CRD of a namespaced kind with a status; schema: that of its whole objects."""
    group, _, version = api_version.partition("/")
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
    return Manifest(KINDS["CustomResourceDefinition"], f"{plural}.{group}", {"spec": spec}, owners=owners)


def owner_reference(api_version: str, kind: str, owner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner reference for objects that an object's controller creates."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


@dataclass(frozen=True)
class Manifests:
    """All objects that should exist, and by owner, why pending changes cannot be carried out."""

    items: tuple[Manifest, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: Manifests) -> Manifests:
        """Return both."""
        return Manifests((*self.items, *other.items), {**self.rejected, **other.rejected})
