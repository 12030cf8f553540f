"""Managed Karpenter: its kinds while it's on, and conditions on node classes and node pools.

Conditions are those of the SageMaker developer guide ("Create a NodeClass", "Create a NodePool"); the texts of reasons
are hpkit's.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from hpkit.catalog import find_instance_type
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.controllers.karpenter.scheduling import amounts_of
from hpkit_local.controllers.objects import KINDS, Manifest, Manifests
from hpkit_local.kubernetes.api import Api, crds_in
from hpkit_local.toolchain import tool_path

__all__ = [
    "CAPACITY_LABEL",
    "CLASSES",
    "POOLS",
    "POOL_LABEL",
    "TYPE_LABEL",
    "ZONE_LABEL",
    "kinds",
    "set_conditions",
    "update_status",
]

CLASSES = "/apis/karpenter.sagemaker.amazonaws.com/v1/hyperpodnodeclasses"
POOLS = "/apis/karpenter.sh/v1/nodepools"
POOL_LABEL = "karpenter.sh/nodepool"
_GROUP = CLASSES.split("/")[2]
TYPE_LABEL, _ARCH = "node.kubernetes.io/instance-type", "kubernetes.io/arch"
ZONE_LABEL, CAPACITY_LABEL = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
# The capacity type can be set and is ignored, because the group determines it.
_KEYS = (TYPE_LABEL, ZONE_LABEL, _ARCH, CAPACITY_LABEL)
Document = Mapping[str, Any]
_OWN = Path(__file__).parent / "manifests"
# Karpenter reports these even without nodes.
_COUNTED = ("cpu", "memory", "pods", "ephemeral-storage", "nodes")


def kinds(snapshot: Snapshot) -> Manifests:
    """Return NodePool, NodeClaim and HyperpodNodeClass, while a cluster has autoscaling."""
    owners = frozenset(f"autoscaling/{name}" for name, cluster in snapshot.clusters.items() if "AutoScaling" in cluster)
    crd_kind = KINDS["CustomResourceDefinition"]
    items = [
        Manifest(
            crd_kind,
            crd["metadata"]["name"],
            {"spec": crd["spec"]},
            annotations=crd["metadata"].get("annotations", {}),
            owners=owners,
        )
        for crd in _crds()
    ]
    return Manifests(tuple(items)) if owners else Manifests()


@cache
def _crds() -> tuple[dict[str, Any], ...]:
    return tuple(crd for folder in (tool_path("karpenter-crds"), _OWN) for crd in crds_in(folder))


def update_status(api: Api, snapshot: Snapshot, claims: Sequence[Document]) -> None:
    """Write what differs in the status of every NodeClass and NodePool."""
    clusters = [cluster for cluster in snapshot.clusters.values() if "AutoScaling" in cluster]
    if not clusters:
        return
    groups = {
        group["InstanceGroupName"]: (cluster, group) for cluster in clusters for group in cluster["InstanceGroups"]
    }
    ready: dict[str, bool] = {}
    for node_class in api.items(CLASSES):
        name = node_class["metadata"]["name"]
        conditions, status = _class_status(node_class, groups, snapshot)
        ready[name] = all(fine for fine, _, _ in conditions.values())
        set_conditions(api, f"{CLASSES}/{name}", node_class, _with_ready(conditions), status)
    for pool in api.items(POOLS):
        name = pool["metadata"]["name"]
        total = _provisioned(claim for claim in claims if claim["metadata"].get("labels", {}).get(POOL_LABEL) == name)
        fields = {"nodes": int(total["nodes"]), "resources": {key: f"{amount:f}" for key, amount in total.items()}}
        set_conditions(api, f"{POOLS}/{name}", pool, _with_ready(_pool_conditions(pool, ready)), fields)


def _provisioned(claims: Iterable[Document]) -> dict[str, Decimal]:
    """Return the capacity of claims' nodes, from their launch until their deletion begins.

    Source: Karpenter's pkg/controllers/nodepool/counter, and updateNodePoolResources in pkg/controllers/state.
    """
    total = dict.fromkeys(_COUNTED, Decimal())
    for claim in claims:
        capacity = claim.get("status", {}).get("capacity")
        if capacity and "deletionTimestamp" not in claim["metadata"]:
            for resource, amount in amounts_of({**capacity, "nodes": "1"}).items():
                total[resource] = total.get(resource, Decimal()) + amount
    return total


_Conditions = dict[str, tuple[bool, str, str]]


def _class_status(
    node_class: Document, groups: Mapping[str, tuple[Document, Document]], snapshot: Snapshot
) -> tuple[_Conditions, dict[str, Any]]:
    names = node_class["spec"]["instanceGroups"]
    missing = [name for name in names if name not in groups]
    group_statuses = [_shown(*groups[name], snapshot) for name in names if name in groups]
    if not names:
        group_ready = (False, "NoInstanceGroups", "spec.instanceGroups is empty")
    elif missing:
        group_names = ", ".join(groups) or "none"
        group_ready = (
            False,
            "InstanceGroupNotFound",
            f"not groups of the cluster: {', '.join(missing)}; it has {group_names}",
        )
    else:
        group_ready = (True, "InstanceGroupReady", "")
    without_subnets = [each["name"] for each in group_statuses if not each["subnets"]]
    wide = [each["name"] for each in group_statuses if len({subnet["zone"] for subnet in each["subnets"]}) > 1]
    if without_subnets or not group_statuses:
        subnets_ready = (
            False,
            "SubnetsNotFound",
            f"no subnets of instance groups {', '.join(without_subnets) or 'at all'}",
        )
    elif wide:
        text = f"subnets span Availability Zones in instance groups {', '.join(wide)}; a group is for one zone"
        subnets_ready = (False, "SubnetsSpanZones", text)
    else:
        subnets_ready = (True, "SubnetsReady", "")
    return {"InstanceGroupReady": group_ready, "SubnetsReady": subnets_ready}, {"instanceGroups": group_statuses}


def _shown(cluster: Document, group: Document, snapshot: Snapshot) -> dict[str, Any]:
    """Return a group's data for status.instanceGroups."""
    config = group.get("OverrideVpcConfig") or cluster.get("VpcConfig", {})
    types = group.get("InstanceRequirements", {}).get("CurrentInstanceTypes") or [group["InstanceType"]]
    labels = group.get("KubernetesConfig", {}).get("DesiredLabels", {})
    capacity = "Spot" if "Spot" in group.get("CapacityRequirements", {}) else "OnDemand"
    return {
        "name": group["InstanceGroupName"],
        "instanceTypes": list(types),
        "subnets": [
            {"id": subnet, **snapshot.subnets[subnet]}
            for subnet in config.get("Subnets", [])
            if subnet in snapshot.subnets
        ],
        "desiredLabels": [{"key": key, "value": value} for key, value in labels.items()],
        "capacities": {capacity: {}},
    }


def _pool_conditions(pool: Document, ready: Mapping[str, bool]) -> _Conditions:
    spec = pool["spec"]["template"]["spec"]
    reference = spec["nodeClassRef"]
    name = reference["name"]
    fault = _fault(spec.get("requirements") or [])
    if reference["group"] != _GROUP or reference["kind"] != "HyperpodNodeClass":
        text = f"nodeClassRef names {reference['kind']}.{reference['group']}; HyperPod has HyperpodNodeClass.{_GROUP}"
        class_ready = (False, "NodeClassNotSupported", text)
    elif name not in ready:
        class_ready = (False, "NodeClassNotFound", f"HyperpodNodeClass {name} not found")
    elif not ready[name]:
        class_ready = (False, "NodeClassNotReady", f"HyperpodNodeClass {name} is not Ready")
    else:
        class_ready = (True, "NodeClassReady", "")
    valid = (False, "NodePoolValidationFailed", fault) if fault else (True, "ValidationSucceeded", "")
    return {"ValidationSucceeded": valid, "NodeClassReady": class_ready}


def _fault(requirements: Iterable[Document]) -> str:
    """Return why HyperPod does not take the requirements, or nothing."""
    for requirement in requirements:
        key, values = requirement["key"], requirement.get("values") or []
        if key not in _KEYS:
            return f"requirement key {key} is not supported; supported: {', '.join(_KEYS)}"
        if key == _ARCH and requirement["operator"] == "In" and "amd64" not in values:
            return f"{_ARCH} {', '.join(values)} is not supported; supported: amd64"
        if key == TYPE_LABEL and (unknown := [value for value in values if find_instance_type(value) is None]):
            return f"{TYPE_LABEL} {', '.join(unknown)}: no instance type of HyperPod (they begin with ml.)"
    return ""


def _with_ready(conditions: _Conditions) -> _Conditions:
    wrong = [kind for kind, (fine, _, _) in conditions.items() if not fine]
    verdict = (False, "UnhealthyDependents", f"not true: {', '.join(wrong)}") if wrong else (True, "Ready", "")
    return {**conditions, "Ready": verdict}


def set_conditions(api: Api, path: str, live: Document, conditions: _Conditions, status_fields: dict[str, Any]) -> None:
    """Write an object's conditions, each as (true or not, reason, message), and more of its status, if they differ."""
    status = live.get("status", {})
    before = {each["type"]: each for each in status.get("conditions", [])}
    generation = live["metadata"]["generation"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    after = []
    for condition_type, (fine, reason, message) in conditions.items():
        old = before.get(condition_type, {})
        truth = "True" if fine else "False"
        since = old["lastTransitionTime"] if old.get("status") == truth else now
        condition = {"type": condition_type, "status": truth, "reason": reason, "message": message}
        after.append({**condition, "lastTransitionTime": since, "observedGeneration": generation})
    # The server might drop an empty message.
    current = [{"message": "", **before.get(kind, {})} for kind in conditions]
    if current == after and all(status.get(key) == value for key, value in status_fields.items()):
        return
    document = {
        "apiVersion": live.get("apiVersion"),
        "kind": live.get("kind"),
        "metadata": {"name": path.rpartition("/")[2]},
    }
    api.apply(f"{path}/status", {**document, "status": {"conditions": after, **status_fields}})
