"""What the namespace controller does when a namespace is deleted: it empties it, then lets it go.

The controller manager, of which it is a part, does not run in the local cloud. Where one runs, both come to the same.
"""

from http import HTTPStatus
from typing import Any

from local.plugins.kubernetes.api import Api, ApiError, Kind
from provider.task import Task
from provider.values import Props

__all__ = ["finish"]

_SHOWN = 3


def finish(api: Api, task: Task, namespace: Props) -> str:
    """Delete what is left in it; once it is empty, take the namespace's own finalizer off. Return what holds it."""
    name = namespace["metadata"]["name"]
    held: list[str] = []
    for kind in _kinds(api, task):
        for item in _listed(api, task, kind, name):
            path = kind.path(name, item["metadata"]["name"])
            held.append(_spoken(kind, item))
            if not item["metadata"].get("deletionTimestamp"):
                _delete(api, task, path)
    if held:
        more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
        return "what is in it: " + ", ".join(held[:_SHOWN]) + more
    finalizers = namespace["metadata"].get("finalizers", [])
    if namespace["spec"].get("finalizers"):
        _finalize(api, task, namespace)
    return "finalizers " + (", ".join(finalizers) or "kubernetes")


def _kinds(api: Api, task: Task) -> list[Kind]:
    """Return every kind of objects in namespaces that can be listed and deleted, in its preferred version."""
    versions = ["v1"]
    groups: list[dict[str, Any]] = api.ask(task, "GET", "/apis").get("groups", [])
    versions += [group["preferredVersion"]["groupVersion"] for group in groups]
    found = [kind for version in versions for kind in api.kinds(task, version)]
    return [kind for kind in found if kind.namespaced and {"list", "delete"} <= set(kind.verbs)]


def _listed(api: Api, task: Task, kind: Kind, namespace: str) -> list[Props]:
    try:
        items: list[Props] = api.ask(task, "GET", kind.folder(namespace)).get("items") or []
    except ApiError as error:
        if error.code in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return []
        raise
    return items


def _delete(api: Api, task: Task, path: str) -> None:
    try:
        api.ask(task, "DELETE", path, {"propagationPolicy": "Background"})
    except ApiError as error:
        if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise


def _finalize(api: Api, task: Task, namespace: Props) -> None:
    left = [each for each in namespace["spec"]["finalizers"] if each != "kubernetes"]
    document = {**namespace, "spec": {**namespace["spec"], "finalizers": left}}
    try:
        api.ask(task, "PUT", f"/api/v1/namespaces/{namespace['metadata']['name']}/finalize", document)
    except ApiError as error:
        # Someone else changed it or was faster; the next look tells.
        if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise


def _spoken(kind: Kind, item: Props) -> str:
    finalizers = item["metadata"].get("finalizers", [])
    return f"{kind.name} {item['metadata']['name']}" + (f" (finalizers {', '.join(finalizers)})" if finalizers else "")
