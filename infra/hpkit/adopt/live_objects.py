"""Kubernetes objects that a killed run created: those with the field manager of Pulumi's plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from hpkit.adopt.imports import object_name
from hpkit.adopt.pending import Unfinished, default_tags_of, find_ids, is_looked_for, is_object, own_tags_of
from hpkit.clients.kubernetes import dynamic_client
from hpkit.program.recording import RecordedResource, Recording

if TYPE_CHECKING:
    import boto3
    from boto3 import Session

__all__ = ["default_egress_rules", "find_objects", "unrecorded"]

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


# If a plugin is killed and the engine isn't, the engine drops the unfinished creation from its state. Only the program
# and the account show that the resource might exist. A resource can only exist if everything that it uses is in the
# state. Its tags must be the stack's, because another tool might have created one with the same name.
_Props = Mapping[str, Any]
_STACK: Final = "pulumi:pulumi:Stack"


def unrecorded(state: Mapping[str, Any], recording: Recording) -> tuple[Unfinished, ...]:
    """Return the resources that could have been created, but aren't in an exported state."""
    deployment = state["deployment"]
    resources = {entry["urn"]: entry for entry in deployment["resources"] if not entry.get("delete")}
    pending = {operation["resource"]["urn"] for operation in deployment.get("pending_operations") or ()}
    root = next((entry["urn"] for entry in deployment["resources"] if entry["type"] == _STACK), "")
    return tuple(
        _unfinished(resource, recording, resources, root)
        for resource in recording.resources.values()
        if resource.urn not in resources.keys() | pending
        and is_looked_for(resource.type)
        and {resource.provider, *resource.after} <= resources.keys()
    )


def default_egress_rules(
    session: Session, state: Mapping[str, Any], recording: Recording
) -> tuple[list[Unfinished], Mapping[str, str]]:
    """Return the program's rules that exist only because AWS gives them to each new security group, and their IDs.

    The aws plugin removes such a rule right after it creates the group. If it was killed in between, it couldn't create
    the program's own. Raises botocore's ClientError.
    """
    rules = [each for each in unrecorded(state, recording) if each.type.endswith(":SecurityGroupEgressRule")]
    ids = find_ids(session, rules, state)
    return [each for each in rules if each.urn in ids], ids


def _unfinished(
    resource: RecordedResource, recording: Recording, resources: Mapping[str, Any], root: str
) -> Unfinished:
    def live_input(name: str, value: Any) -> Any:
        used = sorted(resource.uses.get(name, ()))
        return _replaced(
            value, dict(pair for urn in used for pair in _live_values(recording.resources[urn], resources[urn]))
        )

    inputs = {name: live_input(name, value) for name, value in resource.inputs.items()}
    provider = resources[resource.provider]
    entry = {
        "urn": resource.urn,
        "custom": True,
        "type": resource.type,
        "inputs": inputs,
        "parent": resource.parent or root,
        "provider": f"{provider['urn']}::{provider['id']}",
        "dependencies": sorted(resource.after),
        "propertyDependencies": {name: sorted(urns) for name, urns in resource.uses.items()},
        "protect": resource.protect,
    }
    tags = {**default_tags_of(provider.get("inputs") or {}), **own_tags_of(inputs)}
    return Unfinished(resource.urn, resource.type, inputs, tags, entry, is_pending=False)


def _live_values(resource: RecordedResource, entry: _Props) -> Iterator[tuple[str, str]]:
    """Yield each invented value of a recorded resource, with the one that AWS assigned."""
    live = {**entry.get("outputs", {}), "id": entry.get("id")}
    for name, invented in resource.made.items():
        if isinstance(invented, str) and isinstance(live.get(name), str):
            yield invented, live[name]


def _replaced(value: Any, live_values: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(inner, live_values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, live_values) for inner in value]
    if isinstance(value, str):
        # An invented ID can be the end of another.
        for invented in sorted(live_values, key=len, reverse=True):
            value = value.replace(invented, live_values[invented])
    return value
