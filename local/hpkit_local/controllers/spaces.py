"""A fake of SageMaker Spaces: its kinds, and for each Workspace the Deployment that its controller creates.

A Deployment has the Workspace's labels and annotations, and so do its pods: Kueue admits them by these. Source:
jupyter-infra/jupyter-k8s, internal/controller/deployment_builder.go and state_machine.go.

It doesn't apply templates and access strategies, create volumes, Services and connections, or detect idle spaces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from hpkit.catalog import SPACES
from hpkit_local.aws.snapshot import Snapshot
from hpkit_local.controllers.karpenter.conditions import set_conditions
from hpkit_local.controllers.objects import KINDS, Manifest, Manifests, addon_owners, custom_kind, owner_reference
from hpkit_local.kubernetes.api import Api, RefusedError

__all__ = ["run_spaces", "spaces"]

_GROUP, _VERSION = "workspace.jupyter.org", "v1alpha1"
_WORKSPACES = f"/apis/{_GROUP}/{_VERSION}/workspaces"
_NAME = f"{_GROUP}/workspace-name"
_DIGEST = "hpkit.local/digest"
_NAMESPACE = "jupyter-k8s-system"
# The controller's defaults (constants.go).
_IMAGE, _REQUESTS = "jupyter", {"cpu": "100m", "memory": "128Mi"}
# Fields that a Workspace shares with a pod.
_OF_POD = ("affinity", "initContainers", "nodeSelector", "serviceAccountName", "tolerations")
_ANY: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPECS: dict[str, dict[str, Any]] = {
    "Workspace": {
        **_ANY,
        "required": ["displayName"],
        "properties": {
            "displayName": {"type": "string"},
            "desiredStatus": {"type": "string", "enum": ["Running", "Stopped"]},
            "ownershipType": {"type": "string", "enum": ["Public", "OwnerOnly"]},
            "accessType": {"type": "string", "enum": ["Public", "OwnerOnly"]},
        },
    },
    "WorkspaceTemplate": _ANY,
    "WorkspaceAccessStrategy": _ANY,
}
Document = Mapping[str, Any]


def spaces(snapshot: Snapshot) -> Manifests:
    """Return the kinds and the namespace of the add-on, while it is installed."""
    owners = addon_owners(snapshot.addons, SPACES)
    if not owners:
        return Manifests()
    kinds = (
        custom_kind(
            f"{_GROUP}/{_VERSION}",
            kind,
            _plural(kind),
            {"type": "object", "properties": {"spec": spec, "status": _ANY}, "required": ["spec"]},
            owners,
        )
        for kind, spec in _SPECS.items()
    )
    return Manifests((*kinds, Manifest(KINDS["Namespace"], _NAMESPACE, {}, owners=owners)))


def run_spaces(api: Api, snapshot: Snapshot) -> None:
    """Create, change or delete the Deployment of each Workspace, and write the Workspace's conditions."""
    if not addon_owners(snapshot.addons, SPACES):
        return
    for each in api.items(_WORKSPACES):
        if "deletionTimestamp" not in each["metadata"]:
            _run(api, each)


def _run(api: Api, workspace: Document) -> None:
    metadata = workspace["metadata"]
    path = KINDS["Deployment"].path(metadata["namespace"], f"workspace-{metadata['name']}")
    deployment = api.find(path)
    own = f"{_WORKSPACES.rpartition('/')[0]}/namespaces/{metadata['namespace']}/workspaces/{metadata['name']}"
    stopped = workspace["spec"].get("desiredStatus", "Running") == "Stopped"
    why = ""
    if stopped and deployment is not None:
        api.delete(path)
    elif not stopped:
        desired = _deployment(workspace)
        digest = desired["metadata"]["annotations"][_DIGEST]
        if deployment is None or deployment["metadata"].get("annotations", {}).get(_DIGEST) != digest:
            try:
                deployment = api.apply(path, desired)
            except RefusedError as error:
                why = str(error)
    ready = deployment is not None and bool(deployment.get("status", {}).get("readyReplicas"))
    conditions = {
        "Available": (ready and not stopped, "ResourcesReady" if ready else "ComputeNotReady", ""),
        "Progressing": (not ready and not stopped and not why, "ComputeNotReady", ""),
        "Degraded": (bool(why), "DeploymentError" if why else "NoError", why),
        "Stopped": (stopped and deployment is None, "DesiredStateStopped" if stopped else "DesiredStateRunning", ""),
    }
    set_conditions(api, own, workspace, conditions, {} if stopped else {"deploymentName": path.rpartition("/")[2]})


def _deployment(workspace: Document) -> dict[str, Any]:
    metadata, spec = workspace["metadata"], workspace["spec"]
    own = {"app": "jupyter", _NAME: metadata["name"]}
    labels = {**own, **metadata.get("labels", {})}
    annotations = metadata.get("annotations", {})
    container = {
        "name": "workspace",
        "image": spec.get("image") or _IMAGE,
        "resources": spec.get("resources") or {"requests": _REQUESTS, "limits": _REQUESTS},
        **({"securityContext": spec["containerSecurityContext"]} if "containerSecurityContext" in spec else {}),
    }
    pod = {name: spec[name] for name in _OF_POD if name in spec} | {"containers": [container]}
    if "podSecurityContext" in spec:
        pod["securityContext"] = spec["podSecurityContext"]
    deployment = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": own},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }
    digest = hashlib.sha256(json.dumps([labels, annotations, deployment], sort_keys=True).encode()).hexdigest()
    return {
        "apiVersion": KINDS["Deployment"].api_version,
        "kind": "Deployment",
        "metadata": {
            "name": f"workspace-{metadata['name']}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {**annotations, _DIGEST: digest},
            "ownerReferences": [owner_reference(f"{_GROUP}/{_VERSION}", "Workspace", workspace)],
        },
        "spec": deployment,
    }


def _plural(kind: str) -> str:
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
