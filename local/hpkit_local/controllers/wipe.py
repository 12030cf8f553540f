"""Deletes namespaces, and what belongs to an EKS cluster: all that isn't the local cloud's own."""

import http.client
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from hpkit_local.kubernetes.api import Api, RejectedError

__all__ = ["delete_unserved", "end_namespaces", "wipe"]

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_FOLDERS = (
    # First: while one of them is not served, no namespace ends.
    _API_SERVICES,
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
# Objects of the API server itself, and APIServices of its own APIs.
_BORN = {"kubernetes.io/bootstrapping", "kube-aggregator.kubernetes.io/automanaged"}
# In Kueue's own namespace, which stays.
_FOREIGN = "/apis/apps/v1/namespaces/kueue-system/deployments"


def delete_unserved(api: Api) -> None:
    """Delete APIServices and webhooks behind a Service: simulated pods don't answer.

    An APIService that doesn't answer would block the deletion of namespaces, and a webhook would delay each request.
    """
    for each in api.items(_API_SERVICES, cached=True):
        if each["spec"].get("service"):
            api.delete(f"{_API_SERVICES}/{each['metadata']['name']}")
    for kind in ("validating", "mutating"):
        folder = f"{_HOOKS}/{kind}webhookconfigurations"
        for each in api.items(folder, cached=True):
            if any("service" in webhook["clientConfig"] for webhook in each.get("webhooks") or ()):
                api.delete(f"{folder}/{each['metadata']['name']}")


def end_namespaces(api: Api, names: Collection[str]) -> None:
    """Empty namespaces that are being deleted, and finalize those that are empty.

    Kubernetes' own controller first waits five seconds for other API servers, of which the local cloud has none.
    Source: namespaceDeletionGracePeriod in pkg/controller/namespace/namespace_controller.go.
    """
    left = set()
    for folder in _namespaced(api) if names else ():
        for live in api.items(folder.replace("/namespaces/{namespace}", ""), metadata_only=True):
            metadata = live["metadata"]
            if metadata["namespace"] in names:
                left.add(metadata["namespace"])
                # A pod that was bound to a node that is gone has no kubelet that ends it.
                if "deletionTimestamp" not in metadata or folder.endswith("/pods"):
                    api.delete(f"{folder.format(namespace=metadata['namespace'])}/{metadata['name']}")
    for name in set(names) - left:
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
        api.replace(f"/api/v1/namespaces/{name}/finalize", document)


def wipe(api: Api) -> bool:
    """Delete it, and return whether some of it still exists."""
    is_left = False
    for folder in _FOLDERS:
        for live in api.items(folder, metadata_only=True):
            metadata = live["metadata"]
            if _own(metadata):
                continue
            is_left = True
            if "deletionTimestamp" not in metadata:
                api.delete(f"{folder}/{metadata['name']}")
    for live in api.items(_FOREIGN, metadata_only=True):
        is_left = True
        api.delete(f"{_FOREIGN}/{live['metadata']['name']}")
    # The namespace default can't be deleted, and the API server's own Service in it is recreated.
    return _empty(api, "default", keep=("kubernetes", "default", "kube-root-ca.crt")) or is_left


def _own(metadata: Mapping[str, Any]) -> bool:
    name = metadata["name"]
    born = not _BORN.isdisjoint(metadata.get("labels", {}))
    return born or name in _KEPT or name.startswith(_KEPT_PREFIXES) or name.endswith(".kueue.x-k8s.io")


def _empty(api: Api, namespace: str, *, keep: Collection[str]) -> bool:
    """Delete everything in a namespace except what is named; return whether anything else still exists."""
    is_left = False
    for folder in _namespaced(api):
        path = folder.format(namespace=namespace)
        for live in api.items(path, metadata_only=True):
            if live["metadata"]["name"] not in keep:
                is_left = True
                _remove(api, f"{path}/{live['metadata']['name']}", live["metadata"])
    return is_left


def _remove(api: Api, path: str, metadata: Mapping[str, Any]) -> None:
    if "deletionTimestamp" not in metadata:
        api.delete(path)
        return
    # The controller of a finalizer might be deleted with its namespace; Kueue removes its own within one pass.
    if metadata.get("finalizers"):
        try:
            api.merge(path, {"metadata": {"finalizers": None}})
        except RejectedError as error:
            if error.status != http.client.NOT_FOUND:
                raise


def _namespaced(api: Api) -> Iterator[str]:
    """Yield the folder of every kind that lives in namespaces, with `{namespace}` in it."""
    groups = api.read("/apis")["groups"]
    apis = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    for root in apis:
        try:
            resources = api.read(root).get("resources", [])
        except RejectedError:
            # An API that a chart brought, and that is on its way out.
            continue
        for resource in resources:
            deletable = {"list", "delete"} <= set(resource["verbs"])
            if resource["namespaced"] and deletable and "/" not in resource["name"]:
                yield f"{root}/namespaces/{{namespace}}/{resource['name']}"
