"""What goes with an EKS cluster: everything in the API server that is not the local cloud's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.kubernetes.api import Api

__all__ = ["wipe"]

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_FOLDERS = (
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    f"{_RBAC}/clusterrolebindings",
    f"{_RBAC}/clusterroles",
    f"{_HOOKS}/validatingwebhookconfigurations",
    f"{_HOOKS}/mutatingwebhookconfigurations",
    f"{_HOOKS}/validatingadmissionpolicies",
    f"{_HOOKS}/validatingadmissionpolicybindings",
    f"{_KUEUE}/clusterqueues",
    f"{_KUEUE}/cohorts",
    f"{_KUEUE}/resourceflavors",
    f"{_KUEUE}/workloadpriorityclasses",
    f"{_KUEUE}/topologies",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
)
_KEPT_PREFIXES = ("kube-", "kueue-", "system:", "system-")
_KEPT = ("default",)


def wipe(api: Api) -> bool:
    """Delete it, and say whether some of it is still there."""
    left = False
    for folder in _FOLDERS:
        for each in api.items(folder, bare=True):
            metadata = each["metadata"]
            if _own(metadata):
                continue
            left = True
            if "deletionTimestamp" not in metadata:
                api.delete(f"{folder}/{metadata['name']}")
    return _empty_default(api) or left


def _own(metadata: Mapping[str, Any]) -> bool:
    name = metadata["name"]
    born = "kubernetes.io/bootstrapping" in metadata.get("labels", {})
    return born or name in _KEPT or name.startswith(_KEPT_PREFIXES) or name.endswith(".kueue.x-k8s.io")


def _empty_default(api: Api) -> bool:
    """Namespace default cannot be deleted: what people put there can."""
    left = False
    for folder in ("/apis/batch/v1/namespaces/default/jobs", "/apis/apps/v1/namespaces/default/deployments"):
        for each in api.items(folder, bare=True):
            left = True
            api.delete(f"{folder}/{each['metadata']['name']}")
    return left
