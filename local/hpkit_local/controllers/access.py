"""Access policies of EKS access entries as RBAC: bindings to a group that represents the entry.

EKS has its own authorizer for access policies, and `kubectl auth can-i --list` doesn't show them. Here they are
bindings. Policies of features that the local cloud doesn't have (inference) give no permissions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from hpkit_local.aws.controllers import Snapshot
from hpkit_local.controllers.objects import KINDS, Manifest, Manifests

__all__ = ["access", "group_of"]

_RBAC = "rbac.authorization.k8s.io"
# Source: EKS user guide, "Access policy permissions"; the roles are Kubernetes' own user-facing ones.
_ROLES = {
    "AmazonEKSClusterAdminPolicy": "cluster-admin",
    "AmazonEKSAdminPolicy": "admin",
    "AmazonEKSEditPolicy": "edit",
    "AmazonEKSViewPolicy": "view",
}
_READ = ["get", "list", "watch"]
_OWN_RULES: dict[str, list[dict[str, Any]]] = {
    "AmazonEKSAdminViewPolicy": [{"apiGroups": ["*"], "resources": ["*"], "verbs": _READ}],
    "AmazonSagemakerHyperpodTrainingPolicy": [
        {"apiGroups": ["ray.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["sagemaker.amazonaws.com"], "resources": ["hyperpodpytorchjobs"], "verbs": ["*"]},
        {"apiGroups": ["sagemaker.amazonaws.com"], "resources": ["hyperpodpytorchjobs/status"], "verbs": ["*"]},
        {"apiGroups": ["kubeflow.org"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["*"]},
        {
            "apiGroups": [""],
            "resources": ["pods/log", "configmaps", "events", "services", "serviceaccounts", "resourcequotas"],
            "verbs": _READ,
        },
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets", "replicasets"], "verbs": _READ},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues", "workloads"], "verbs": _READ},
    ],
    "AmazonSagemakerHyperpodSpacePolicy": [
        {"apiGroups": ["workspace.jupyter.org"], "resources": ["workspaces"], "verbs": ["*"]},
        {
            "apiGroups": ["workspace.jupyter.org"],
            "resources": ["workspacetemplates", "workspaceaccessstrategies"],
            "verbs": _READ,
        },
        {
            "apiGroups": ["connection.workspace.jupyter.org"],
            "resources": ["workspaceconnections"],
            "verbs": ["create"],
        },
        {
            "apiGroups": [""],
            "resources": ["pods", "services", "serviceaccounts", "persistentvolumeclaims", "events", "resourcequotas"],
            "verbs": _READ,
        },
        {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments", "replicasets"], "verbs": _READ},
    ],
    "AmazonSagemakerHyperpodSpaceTemplatePolicy": [
        {"apiGroups": ["workspace.jupyter.org"], "resources": ["workspacetemplates"], "verbs": _READ},
    ],
    "AmazonSagemakerHyperpodUserClusterPolicy": [
        {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": _READ},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
        {
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["clusterqueues", "resourceflavors", "workloadpriorityclasses"],
            "verbs": _READ,
        },
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews"],
            "verbs": ["create"],
        },
    ],
}


def group_of(principal: str) -> str:
    """Return the group of an access entry; EKS doesn't allow users to name groups with this prefix."""
    return f"eks:access-entry:{principal}"


def access(snapshot: Snapshot, namespaces: Collection[str]) -> Manifests:
    """Return roles and bindings; where a namespace doesn't exist yet, its binding follows when it is."""
    items: list[Manifest] = []
    for entry in snapshot.entries:
        for association in entry["policies"]:
            items.extend(_bindings(entry, association, namespaces))
    bound_roles = {item.content["roleRef"]["name"] for item in items}
    roles = [
        Manifest(KINDS["ClusterRole"], _own_role(policy), {"rules": rules})
        for policy, rules in _OWN_RULES.items()
        if _own_role(policy) in bound_roles
    ]
    return Manifests((*roles, *items))


def _own_role(policy: str) -> str:
    return f"eks:{policy}"


def _bindings(entry: Mapping[str, Any], association: Mapping[str, Any], namespaces: Collection[str]) -> list[Manifest]:
    policy = association["policyArn"].rpartition("/")[2]
    role = _ROLES.get(policy) or (_own_role(policy) if policy in _OWN_RULES else "")
    if not role:
        return []
    principal = entry["principalArn"]
    digest = sha256(f"{principal}|{policy}".encode()).hexdigest()[:16]
    content = {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group_of(principal)}],
    }
    note = {"eks.amazonaws.com/principal-arn": principal}
    name = f"eks:access-entry:{policy}:{digest}"
    if association["accessScope"]["type"] == "cluster":
        return [Manifest(KINDS["ClusterRoleBinding"], name, content, annotations=note)]
    return [
        Manifest(KINDS["RoleBinding"], name, content, namespace=namespace, annotations=note)
        for namespace in association["accessScope"]["namespaces"]
        if namespace in namespaces
    ]
