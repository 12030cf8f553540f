"""What a controller manager would do, as the local cloud has none: the namespace, garbage and role loops.

Namespaces that are deleted get emptied and finalized; workloads of deleted jobs go; roles that aggregate others do.
"""

from __future__ import annotations

import http.client
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from local.kubernetes.api import Api, RefusedError

__all__ = ["aggregate_roles", "collect_workloads", "empty", "finish_namespaces"]

_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
Document = Mapping[str, Any]


def finish_namespaces(api: Api) -> bool:
    """Empty and finalize namespaces that are being deleted, and say whether any is left."""
    left = False
    for namespace in api.items("/api/v1/namespaces"):
        if "deletionTimestamp" not in namespace["metadata"]:
            continue
        left = True
        name = namespace["metadata"]["name"]
        if not empty(api, name):
            namespace["spec"]["finalizers"] = []
            api.replace(f"/api/v1/namespaces/{name}/finalize", namespace)
    return left


def empty(api: Api, namespace: str, *, keep: Collection[str] = ()) -> bool:
    """Delete all that is in a namespace but what is named; say whether anything else still is there."""
    left = False
    for folder in _namespaced(api):
        path = folder.format(namespace=namespace)
        for each in api.items(path, bare=True):
            if each["metadata"]["name"] not in keep:
                left = True
                _remove(api, f"{path}/{each['metadata']['name']}", each["metadata"])
    return left


def _remove(api: Api, path: str, metadata: Mapping[str, Any]) -> None:
    if "deletionTimestamp" not in metadata:
        api.delete(path)
        return
    # Who would take finalizers away may be gone with its namespace; Kueue does it within one look.
    if metadata.get("finalizers"):
        try:
            api.merge(path, {"metadata": {"finalizers": None}})
        except RefusedError as error:
            if error.status != http.client.NOT_FOUND:
                raise


def _namespaced(api: Api) -> Iterator[str]:
    """Yield the folder of every kind that lives in namespaces, with `{namespace}` in it."""
    groups = api.read("/apis")["groups"]
    apis = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    for root in apis:
        for resource in api.read(root).get("resources", []):
            deletable = {"list", "delete"} <= set(resource["verbs"])
            if resource["namespaced"] and deletable and "/" not in resource["name"]:
                yield f"{root}/namespaces/{{namespace}}/{resource['name']}"


def collect_workloads(api: Api) -> None:
    """Delete Kueue's workloads whose job is gone, which otherwise keep their quota."""
    workloads = api.items(f"{_KUEUE}/workloads")
    if not workloads:
        return
    jobs = {job["metadata"]["uid"] for job in api.items("/apis/batch/v1/jobs")}
    for workload in workloads:
        metadata = workload["metadata"]
        owners = metadata.get("ownerReferences", [])
        if owners and all(owner["kind"] == "Job" and owner["uid"] not in jobs for owner in owners):
            _remove(api, f"{_KUEUE}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}", metadata)


def aggregate_roles(api: Api) -> None:
    """Give every ClusterRole that aggregates others their rules: admin, edit and view are such."""
    roles = sorted(api.items(_ROLES), key=lambda role: str(role["metadata"]["name"]))
    changed = True
    # What aggregates may itself be aggregated: view by edit, edit by admin.
    while changed:
        changed = False
        for role in roles:
            selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors", [])
            rules = _gathered(role, roles, selectors)
            if selectors and rules != (role.get("rules") or []):
                role["rules"] = rules
                api.merge(f"{_ROLES}/{role['metadata']['name']}", {"rules": rules})
                changed = True


def _gathered(role: Document, roles: Iterable[Document], selectors: Iterable[Document]) -> list[Any]:
    rules: list[Any] = []
    for other in roles:
        if other is not role and any(_matches(selector, other) for selector in selectors):
            rules.extend(rule for rule in other.get("rules") or [] if rule not in rules)
    return rules


def _matches(selector: Mapping[str, Any], role: Mapping[str, Any]) -> bool:
    labels = role["metadata"].get("labels", {})
    wanted = selector.get("matchLabels", {})
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())
