"""Kubernetes objects that a killed run created: those with the field manager of Pulumi's plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from hpkit.adopt.imports import object_name
from hpkit.adopt.pending import Unfinished, is_object
from hpkit.clients.kubernetes import dynamic_client

if TYPE_CHECKING:
    import boto3

__all__ = ["find_objects"]

# The plugin creates objects with this field manager, or applies them with one that has random digits behind it.
_MANAGER: Final = "pulumi-kubernetes"
_RELEASE: Final = "kubernetes:helm.sh/v3:Release"


def find_objects(
    session: boto3.Session, eks: Mapping[str, Any], creations: Sequence[Unfinished]
) -> dict[str, Mapping[str, Any]]:
    """Return URN → outputs of the objects and releases that exist. Raises KUBERNETES_ERRORS.

    eks: the `cluster` of EKS's DescribeCluster. The outputs contain the field manager: if another one applied the
    object, every later change would conflict with the first.
    """
    found = {}
    with dynamic_client(session, eks) as client:
        for creation in creations:
            if creation.recorded_id or not is_object(creation.type):
                continue
            outputs = _release(client, creation) if creation.type == _RELEASE else _object(client, creation)
            if outputs is not None:
                found[creation.urn] = outputs
    return found


def _object(client: Any, creation: Unfinished) -> Mapping[str, Any] | None:
    inputs = creation.inputs
    live = _get(client, inputs["apiVersion"], inputs["kind"], object_name(inputs))
    if live is None:
        return None
    managers = [str(entry["manager"]) for entry in live["metadata"].get("managedFields") or ()]
    managers = [manager for manager in managers if manager.startswith(_MANAGER)]
    if not managers:
        return None
    manager = max(managers)
    applied = {"__fieldManager": manager, "__initialApiVersion": inputs["apiVersion"]} if manager != _MANAGER else {}
    return {**inputs, **applied}


def _release(client: Any, creation: Unfinished) -> Mapping[str, Any] | None:
    """Return the outputs of an installed release. The plugin repeats an installation that didn't end."""
    namespace, _, name = object_name(creation.inputs).rpartition("/")
    secrets = client.resources.get(api_version="v1", kind="Secret")
    selector = f"owner=helm,name={name},status=deployed"
    return {} if secrets.get(namespace=namespace, label_selector=selector).to_dict()["items"] else None


def _get(client: Any, api_version: str, kind: str, name: str) -> Mapping[str, Any] | None:
    namespace, _, name = name.rpartition("/")
    try:
        resource = client.resources.get(api_version=api_version, kind=kind)
        live: Mapping[str, Any] = resource.get(name=name, namespace=namespace or None).to_dict()
    except (ApiException, ResourceNotFoundError) as error:
        if isinstance(error, ResourceNotFoundError) or error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    return live
