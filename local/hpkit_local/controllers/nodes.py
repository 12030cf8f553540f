"""Node objects for the nodes of HyperPod clusters.

kwok is their kubelet. A node is Ready while HyperPod shows it Running, and not Ready while it is rebooted or shut down.
Once its network is cut, the status is Unknown. Nodes get the taints that the node lifecycle controller would give them.
"""

import hashlib
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpkit.catalog import EFA, NETWORK_LAYERS, InstanceType, find_instance_type, kubelet_reserved
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.controllers.objects import KINDS, Manifest, Manifests
from hpkit_local.kubernetes.control_plane import KUBELET_ADDRESS, NODE_ANNOTATION, UNREACHABLE

__all__ = ["READY", "NodeMark", "capacity_of", "group_labels", "group_taints", "node_name", "nodes", "provider_id"]

Document = Mapping[str, Any]

# Which nodes are near each other is EC2's affair; here it is those whose addresses are.
# How many addresses a network node of each layer spans.
_INSTANCES = (64, 16, 4)
_SINCE = "2026-01-01T00:00:00Z"
_HEALTH = "sagemaker.amazonaws.com/node-health-status"
READY = ("Running", "DeepHealthCheckInProgress")
_EFFECTS = ("NoSchedule", "NoExecute")
_SHOWN = (*READY, "SystemUpdating", "Failure")


@dataclass(frozen=True)
class NodeMark:
    """What Karpenter itself adds to a node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Document] = ()


def nodes(
    snapshot: Snapshot, registered: Collection[str], marks: Mapping[str, NodeMark], *, kubelet_port: int
) -> Manifests:
    """Return the nodes of all clusters that run, or have run and still exist.

    `registered` are the names of existing ones; `marks` what NodeClaims add, by logical ID; `kubelet_port`
    the port of kwok, which is every node's kubelet.
    """
    items = [
        _node(
            snapshot.clusters[name],
            details,
            marks.get(details["NodeLogicalId"], NodeMark()),
            cut_off=details["InstanceId"] in snapshot.cut_off,
            kubelet_port=kubelet_port,
        )
        for name, cluster_nodes in snapshot.nodes.items()
        for details in cluster_nodes
        if (details["InstanceStatus"]["Status"] in _SHOWN and details["InstanceId"] not in snapshot.joining)
        or node_name(details["InstanceId"]) in registered
    ]
    return Manifests(tuple(items))


def node_name(instance_id: str) -> str:
    """Return the name under which HyperPod registers an instance."""
    return f"hyperpod-{instance_id}"


def provider_id(details: Document) -> str:
    """Return a node's labels and data from its instance."""
    zone = details["Placement"]["AvailabilityZoneId"]
    return f"aws:///{zone}/sagemaker/cluster/{node_name(details['InstanceId'])}"


def group_labels(cluster: Document, group: Document, instance_type: str, zone: str) -> dict[str, str]:
    """Return the labels that every node of a type and zone has in an instance group."""
    details = find_instance_type(instance_type)
    return {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64" if details is not None and details.architecture == "arm64" else "amd64",
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": zone[:-1],
        "sagemaker.amazonaws.com/cluster-name": cluster["ClusterName"],
        "sagemaker.amazonaws.com/instance-group-name": group["InstanceGroupName"],
        "sagemaker.amazonaws.com/compute-type": "hyperpod",
        **group.get("KubernetesConfig", {}).get("CurrentLabels", {}),
    }


def group_taints(group: Document) -> list[dict[str, str]]:
    """Return the taints that a group, or a node of it, has from its settings."""
    return [
        {"key": taint["Key"], **({"value": taint["Value"]} if taint.get("Value") else {}), "effect": taint["Effect"]}
        for taint in group.get("KubernetesConfig", {}).get("CurrentTaints", [])
    ]


def capacity_of(details: Document) -> tuple[dict[str, str], dict[str, str]]:
    """Return capacity and allocatable of a node, without values that aren't in the catalog."""
    return _amounts(find_instance_type(details["InstanceType"]), details.get("ThreadsPerCore"))


def _node(cluster: Document, details: Document, mark: NodeMark, *, cut_off: bool, kubelet_port: int) -> Manifest:
    status = details["InstanceStatus"]["Status"]
    schedulable = status == "Running"
    taints = [*group_taints(details), *mark.taints]
    if not schedulable:
        taints.append({"key": _HEALTH, "value": "Unschedulable", "effect": "NoSchedule"})
    if cut_off:
        taints += [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in _EFFECTS]
    elif status not in READY:
        taints += [{"key": "node.kubernetes.io/not-ready", "effect": effect} for effect in _EFFECTS]
    zone, name = details["Placement"], node_name(details["InstanceId"])
    labels = {
        "kubernetes.io/hostname": name,
        "topology.k8s.aws/zone-id": zone["AvailabilityZoneId"],
        _HEALTH: "Schedulable" if schedulable else "Unschedulable",
        **group_labels(cluster, details, details["InstanceType"], zone["AvailabilityZone"]),
        **_network_nodes(details),
        **mark.labels,
    }
    if status == "DeepHealthCheckInProgress":
        labels["sagemaker.amazonaws.com/deep-health-check-status"] = "InProgress"
    return Manifest(
        KINDS["Node"],
        name,
        {"spec": {"taints": taints, "providerID": provider_id(details)}},
        annotations=NODE_ANNOTATION,
        labels=labels,
        status=_status(details, name, ready=status in READY, cut_off=cut_off, kubelet_port=kubelet_port),
    )


def _network_nodes(details: Document) -> dict[str, str]:
    """Return the network node of each layer above an instance, if EC2 reports them for its type."""
    instance_type = find_instance_type(details["InstanceType"])
    if instance_type is None or not instance_type.network_layers:
        return {}
    zone, number = details["Placement"]["AvailabilityZone"], int(ipaddress.ip_address(details["PrivatePrimaryIp"]))
    above = {label: f"{zone}/{size}/{number // size}" for label, size in zip(NETWORK_LAYERS, _INSTANCES, strict=True)}
    return {label: f"nn-{hashlib.sha256(path.encode()).hexdigest()[:17]}" for label, path in above.items()}


def _status(details: Document, name: str, *, ready: bool, cut_off: bool, kubelet_port: int) -> dict[str, Any]:
    capacity, allocatable = capacity_of(details)
    state = ("True", "KubeletReady") if ready else ("False", "HyperPodNodeFailure")
    message = details["InstanceStatus"].get("Message", "") or "HyperPod says so"
    if cut_off:
        # What the node lifecycle controller sets on a node that doesn't report.
        state, message = ("Unknown", UNREACHABLE), "Kubelet stopped posting node status."
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
        "addresses": [
            {"type": "InternalIP", "address": details["PrivatePrimaryIp"]},
            {"type": "Hostname", "address": name},
            KUBELET_ADDRESS,
        ],
        "conditions": [
            {
                "type": "Ready",
                "status": state[0],
                "reason": state[1],
                "message": message,
                "lastHeartbeatTime": _SINCE,
                "lastTransitionTime": _SINCE,
            }
        ],
    }


def _amounts(instance_type: InstanceType | None, threads: int | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return capacity and allocatable, without values that aren't in the catalog."""
    if instance_type is None or instance_type.vcpu is None or instance_type.memory_gib is None:
        return {}, {}
    # The CPUs that the operating system sees with this number of threads per core.
    vcpu = instance_type.with_threads(threads).vcpu or instance_type.vcpu
    counted = {"pods": str(instance_type.max_pods)} if instance_type.max_pods else {}
    if instance_type.accelerators and instance_type.accelerator_resource:
        counted[instance_type.accelerator_resource] = str(instance_type.accelerators)
    if instance_type.efa_interfaces:
        counted[EFA] = str(instance_type.efa_interfaces)
    cpu, memory = kubelet_reserved(vcpu, instance_type.memory_gib)
    capacity = {"cpu": str(vcpu), "memory": f"{instance_type.memory_gib}Gi", **counted}
    left = {"cpu": f"{round((vcpu - cpu) * 1000)}m", "memory": f"{round((instance_type.memory_gib - memory) * 1024)}Mi"}
    return capacity, {**left, **counted}
