"""The objects that task governance creates for quotas and a policy, on an instance without a stack.

Nodes for topologies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hpkit.kueue.model import Node, per_unit
from hpkit_local.aws.services.sagemaker.quota import stored_config
from hpkit_local.aws.snapshot import Snapshot
from hpkit_local.controllers.objects import KINDS, MANAGED, Manifest
from hpkit_local.controllers.policy import ADDON, governance

__all__ = ["REHEARSED", "node_objects", "path_of", "team_objects"]

REHEARSED = {"hpkit.local/rehearsal": "true"}
"""The label of all that a rehearsal makes."""

_TYPE = "node.kubernetes.io/instance-type"
_SINCE = "2026-01-01T00:00:00Z"
# From the add-on: only the settings that Kueue follows, without its pods and admission policies.
_KINDS = (
    *("Namespace", "ConfigMap", "Topology", "ResourceFlavor", "WorkloadPriorityClass", "ClusterQueue", "LocalQueue"),
)
Document = Mapping[str, Any]


def team_objects(
    quotas: Iterable[Document], policy: Document | None, instances: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the objects in the order of their creation.

    quotas: parameters of CreateComputeQuota. policy: the SchedulerConfig of CreateClusterSchedulerConfig. instances:
    number of running nodes of each instance type, which determines the queue of idle capacity.
    """
    nodes = [
        {"InstanceType": instance_type, "InstanceStatus": {"Status": "Running"}}
        for instance_type, count in instances.items()
        for _ in range(count)
    ]
    snapshot = Snapshot(
        eks={},
        addons={f"rehearsal|{ADDON}": {}},
        clusters={},
        nodes={"rehearsal": nodes},
        entries=[],
        quotas={each["Name"]: _stored(each) for each in quotas},
        policies={} if policy is None else {"policy": {"SchedulerConfig": policy}},
        subnets={},
        cut_off=set(),
    )
    made = [each for each in governance(snapshot).items if each.kind.kind in _KINDS]
    return [_own(each) for each in sorted(made, key=lambda each: _KINDS.index(each.kind.kind))]


def node_objects(nodes: Sequence[Node]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the Node objects of a topology, each with its status; nothing ever runs on them."""
    for node in nodes:
        quantities = {name: _written(name, amount) for name, amount in node.allocatable.items()}
        ready = {"type": "Ready", "status": "True", "reason": "Rehearsed", "message": "", "lastTransitionTime": _SINCE}
        labels = {_TYPE if name == "type" else name: value for name, value in node.labels.items()}
        metadata = {"name": node.name, "labels": {**labels, **REHEARSED}}
        document = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        yield document, {"status": {"capacity": quantities, "allocatable": quantities, "conditions": [ready]}}


def _stored(quota: Document) -> dict[str, Any]:
    """Return a quota as the service stores it: fractions filled in, and its default limit on borrowing."""
    return {**quota, "ComputeQuotaId": quota["Name"], "ComputeQuotaConfig": stored_config(quota["ComputeQuotaConfig"])}


def _own(manifest: Manifest) -> dict[str, Any]:
    document = manifest.document()
    labels = document["metadata"]["labels"]
    # What has the controllers' own label and no quota behind it, they would delete.
    document["metadata"]["labels"] = {name: labels[name] for name in labels if name not in MANAGED} | REHEARSED
    return document


def _written(resource: str, amount: int) -> str:
    return f"{amount}m" if per_unit(resource) == 1000 else str(amount)


def path_of(document: Document) -> str:
    """Return where an object is."""
    metadata = document["metadata"]
    return KINDS[document["kind"]].path(metadata.get("namespace", ""), metadata["name"])
