"""NodeClaims: nodes that the fake Karpenter requests from HyperPod, watches, and returns.

It calls the service's BatchAddClusterNodes and BatchDeleteClusterNodes, with the groups in the node class. A claim
holds a finalizer until its node is deleted, so that deleting a NodePool deletes its nodes.
"""

import http.client
import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hpkit.plan.pods import matches_all
from hpkit_local.aws.api import BackendView
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.errors import ServiceError
from hpkit_local.controllers.karpenter.conditions import (
    CAPACITY_LABEL,
    CLASSES,
    POOL_LABEL,
    POOLS,
    TYPE_LABEL,
    ZONE_LABEL,
    set_conditions,
)
from hpkit_local.controllers.karpenter.scheduling import (
    Claimed,
    Launch,
    Offering,
    Room,
    amounts_of,
    is_daemons,
    launches,
    requests,
    surplus,
    waits_for_node,
)
from hpkit_local.controllers.nodes import (
    READY,
    NodeMark,
    capacity_of,
    group_labels,
    group_taints,
    node_name,
    provider_id,
)
from hpkit_local.kubernetes.api import Api, RejectedError

__all__ = ["CLAIMS", "Provisioner", "marks"]

_log = logging.getLogger(__name__)
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_LOGICAL, _EMPTY = "hpkit.local/node-logical-id", "hpkit.local/empty"
_FINALIZER = "karpenter.sh/termination"
# So that evicted pods don't come back.
_DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
# A rejected request isn't repeated during this time; Karpenter waits three minutes.
_REJECTED_SECONDS = 180.0
_ENDED = ("Succeeded", "Failed")
Document = Mapping[str, Any]
# Cluster and NodeDetails, by logical id.
_Instances = Mapping[str, tuple[Document, Document]]


def marks(claims: Iterable[Document]) -> dict[str, NodeMark]:
    """Return what claims add to nodes, by the nodes' logical IDs."""
    return {
        _annotation(claim, _LOGICAL): NodeMark(
            {**claim["metadata"].get("labels", {}), "karpenter.sh/registered": "true"},
            [*(claim["spec"].get("taints") or []), *([_DISRUPTED] if "deletionTimestamp" in claim["metadata"] else [])],
        )
        for claim in claims
        if _annotation(claim, _LOGICAL)
    }


class Provisioner:
    """Watches pods, NodePools, and claims, and creates or ends nodes; its whole state is in the API server."""

    def __init__(self, view: BackendView) -> None:
        self._view = view
        # What AWS had no room for, until when.
        self._rejected: dict[tuple[str, str, str], float] = {}

    def step(self, api: Api, snapshot: Snapshot, claims: Sequence[Document]) -> bool:
        """Make one pass; return whether nodes are being added or removed."""
        pools = {each["metadata"]["name"]: each for each in api.items(POOLS)} if _scales(snapshot) else {}
        if not pools and not claims:
            return False
        instances = {
            details["NodeLogicalId"]: (snapshot.clusters[cluster], details)
            for cluster, cluster_nodes in snapshot.nodes.items()
            for details in cluster_nodes
        }
        pods = api.items("/api/v1/pods")
        busy = False
        for claim in claims:
            busy = self._follow(api, claim, instances, pods, snapshot) or busy
        self._end_surplus(api, pools, claims, instances)
        return self._launch(api, snapshot, pools, claims, pods, instances) or busy

    def _follow(
        self, api: Api, claim: Document, instances: _Instances, pods: Iterable[Document], snapshot: Snapshot
    ) -> bool:
        """Update or end a claim by its node's state; return whether it's changing."""
        metadata = claim["metadata"]
        logical = _annotation(claim, _LOGICAL)
        path = f"{CLAIMS}/{metadata['name']}"
        cluster, details = instances.get(logical, ({}, {}))
        status = details.get("InstanceStatus", {}).get("Status", "")
        if "deletionTimestamp" in metadata:
            if not details:
                api.merge(path, {"metadata": {"finalizers": None}})
            # A node that can't be reached can't be drained: its kubelet stops no pod.
            elif (
                status != "ShuttingDown"
                and details["InstanceId"] not in snapshot.cut_off
                and _is_drained(api, node_name(details["InstanceId"]), pods)
            ):
                self._call(cluster, "BatchDeleteClusterNodes", NodeLogicalIds=[logical])
            return True
        if not details:
            # The node was deleted without Karpenter: by a user, or by a replacement in HyperPod.
            api.delete(path)
            return True
        capacity, allocatable = capacity_of(details)
        running = status in READY and details["InstanceId"] not in snapshot.joining
        name = node_name(details["InstanceId"])
        empty = running and not any(_counts(pod, name) for pod in pods)
        before = claim.get("status") or {}
        was_empty = _annotation(claim, _EMPTY) == "true"
        since = before.get("lastPodEventTime")
        if since is None or was_empty != empty:
            since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            api.merge(path, {"metadata": {"annotations": {_EMPTY: str(empty).lower()}}})
        conditions = {
            "Launched": (True, "Launched", ""),
            "Registered": (running, "Registered" if running else "NodeNotFound", ""),
            "Initialized": (running, "Initialized" if running else "NodeNotReady", ""),
            "Ready": (running, "Ready" if running else "NodeNotReady", ""),
        }
        status_fields = {
            "nodeName": name,
            "providerID": provider_id(details),
            "capacity": capacity,
            "allocatable": allocatable,
            "lastPodEventTime": since,
        }
        set_conditions(api, path, claim, conditions, status_fields)
        return not running

    def _end_surplus(
        self, api: Api, pools: Mapping[str, Document], claims: Sequence[Document], instances: _Instances
    ) -> None:
        """Delete claims of empty nodes, as each pool's disruption settings have it."""
        now, factor = datetime.now(UTC), self._view.latency_factor
        for name, pool in pools.items():
            mine = [claim for claim in claims if claim["metadata"].get("labels", {}).get(POOL_LABEL) == name]
            nodes = [_claimed(claim) for claim in mine if _annotation(claim, _LOGICAL) in instances]
            for each in surplus(pool, nodes, now=now, factor=factor):
                api.delete(f"{CLAIMS}/{each}")

    def _launch(
        self,
        api: Api,
        snapshot: Snapshot,
        pools: Mapping[str, Document],
        claims: Sequence[Document],
        pods: Sequence[Document],
        instances: _Instances,
    ) -> bool:
        """Request nodes for pending pods; return whether there are such pods."""
        waiting = [pod for pod in pods if waits_for_node(pod)]
        if not waiting or not pools:
            return False
        classes = {each["metadata"]["name"]: each for each in api.items(CLASSES)}
        now = time.monotonic()
        offerings = [
            offering
            for pool in pools.values()
            for offering in _offerings(pool, classes, snapshot)
            if self._rejected.get((offering.group, offering.instance_type, offering.zone), 0.0) <= now
        ]
        launched = [claim for claim in claims if _annotation(claim, _LOGICAL) in instances]
        staying = [claim for claim in launched if "deletionTimestamp" not in claim["metadata"]]
        used: dict[str, dict[str, Any]] = {}
        for claim in launched:
            mine = used.setdefault(claim["metadata"].get("labels", {}).get(POOL_LABEL, ""), {})
            _, details = instances[_annotation(claim, _LOGICAL)]
            for name, amount in amounts_of(capacity_of(details)[0]).items():
                mine[name] = mine.get(name, 0) + amount
        needed = launches(
            waiting,
            rooms=[_room(claim, *instances[_annotation(claim, _LOGICAL)], pods) for claim in staying],
            offerings=offerings,
            used=used,
            limits={name: amounts_of(pool["spec"].get("limits") or {}) for name, pool in pools.items()},
        )
        for launch in needed:
            self._claim(api, pools[launch.offering.pool], launch, snapshot)
        return bool(needed)

    def _claim(self, api: Api, pool: Document, launch: Launch, snapshot: Snapshot) -> None:
        """Ask AWS for a node, and write down whose it is."""
        offering = launch.offering
        entry = {
            "InstanceGroupName": offering.group,
            "IncrementTargetCountBy": 1,
            "InstanceTypes": [offering.instance_type],
            "AvailabilityZones": [offering.zone],
        }
        answer = self._call(snapshot.clusters[offering.cluster], "BatchAddClusterNodes", NodesToAdd=[entry])
        if not answer.get("Successful"):
            key = (offering.group, offering.instance_type, offering.zone)
            self._rejected[key] = time.monotonic() + max(1.0, _REJECTED_SECONDS * self._view.latency_factor)
            return
        spec = pool["spec"]["template"]["spec"]
        document = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": f"{offering.pool}-{secrets.token_hex(3)}",
                "labels": {
                    **(pool["spec"]["template"].get("metadata") or {}).get("labels", {}),
                    POOL_LABEL: offering.pool,
                    **{key: offering.labels[key] for key in (CAPACITY_LABEL, TYPE_LABEL, ZONE_LABEL)},
                },
                "annotations": {_LOGICAL: answer["Successful"][0]["NodeLogicalId"]},
                "finalizers": [_FINALIZER],
                "ownerReferences": [
                    {
                        "apiVersion": "karpenter.sh/v1",
                        "kind": "NodePool",
                        "name": offering.pool,
                        "uid": pool["metadata"]["uid"],
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {
                "nodeClassRef": spec["nodeClassRef"],
                "requirements": [{"key": TYPE_LABEL, "operator": "In", "values": [offering.instance_type]}],
                "taints": spec.get("taints") or [],
            },
        }
        api.create(CLAIMS, document)
        _log.info("node of group %s for %s", offering.group, ", ".join(launch.pods))

    def _call(self, cluster: Document, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call SageMaker for a cluster; rejected calls are retried later."""
        region = cluster["ClusterArn"].split(":")[3]
        try:
            return self._view.call(region, "sagemaker", operation, ClusterName=cluster["ClusterName"], **parameters)
        except ServiceError as error:
            _log.info("%s: %s", operation, error)
            return {}


def _scales(snapshot: Snapshot) -> bool:
    return any("AutoScaling" in cluster for cluster in snapshot.clusters.values())


def _offerings(pool: Document, classes: Mapping[str, Document], snapshot: Snapshot) -> Iterable[Offering]:
    """Yield what a pool can launch: every type and zone of its class's groups that its requirements allow."""
    spec = pool["spec"]["template"]["spec"]
    node_class = classes.get(spec["nodeClassRef"]["name"])
    ready = {each["type"]: each["status"] for each in (pool.get("status") or {}).get("conditions", [])}
    if node_class is None or ready.get("Ready") != "True" or "deletionTimestamp" in pool["metadata"]:
        return
    name = pool["metadata"]["name"]
    template = (pool["spec"]["template"].get("metadata") or {}).get("labels", {})
    group_statuses = {each["name"]: each for each in (node_class.get("status") or {}).get("instanceGroups", [])}
    own_groups = [
        (cluster, group, group_statuses[group["InstanceGroupName"]])
        for cluster in snapshot.clusters.values()
        for group in cluster.get("InstanceGroups", [])
        if group["InstanceGroupName"] in group_statuses
    ]
    for cluster, group, ready_group in own_groups:
        for instance_type in ready_group["instanceTypes"] if ready_group["subnets"] else ():
            zone = ready_group["subnets"][0]["zone"]
            capacity, allocatable = capacity_of(
                {"InstanceType": instance_type, "ThreadsPerCore": group.get("ThreadsPerCore")}
            )
            labels = {
                **group_labels(cluster, group, instance_type, zone),
                **template,
                POOL_LABEL: name,
                CAPACITY_LABEL: "spot" if "Spot" in ready_group["capacities"] else "on-demand",
            }
            if not matches_all(spec.get("requirements") or [], labels):
                continue
            yield Offering(
                pool=name,
                cluster=cluster["ClusterName"],
                group=group["InstanceGroupName"],
                instance_type=instance_type,
                zone=zone,
                labels=labels,
                taints=[*(spec.get("taints") or []), *group_taints(group)],
                allocatable=amounts_of(allocatable),
                capacity=amounts_of(capacity),
                weight=int(pool["spec"].get("weight", 0)),
            )


def _room(claim: Document, cluster: Document, details: Document, pods: Iterable[Document]) -> Room:
    """Return the free resources of a claim's node, which might not exist yet."""
    free = amounts_of(capacity_of(details)[1])
    name = node_name(details["InstanceId"])
    for pod in pods:
        if _is_on(pod, name):
            for resource, amount in requests(pod).items():
                free[resource] = free.get(resource, Decimal()) - amount
    zone = details["Placement"]["AvailabilityZone"]
    labels = {**group_labels(cluster, details, details["InstanceType"], zone), **claim["metadata"].get("labels", {})}
    return Room(labels, [*(claim["spec"].get("taints") or []), *group_taints(details)], free)


def _claimed(claim: Document) -> Claimed:
    status = claim.get("status") or {}
    since = status.get("lastPodEventTime")
    return Claimed(
        name=claim["metadata"]["name"],
        empty=_annotation(claim, _EMPTY) == "true",
        since=datetime.fromisoformat(since) if since else datetime.now(UTC),
        going="deletionTimestamp" in claim["metadata"],
    )


def _counts(pod: Document, node: str) -> bool:
    """Return whether a pod keeps its node: it runs there, and doesn't belong to a DaemonSet."""
    return _is_on(pod, node) and not is_daemons(pod)


def _is_drained(api: Api, node: str, pods: Iterable[Document]) -> bool:
    """Evict the pods of a node, as far as budgets allow, and return whether none is left.

    Source: Karpenter documentation, "Disruption", "Termination controller": it waits for a blocked pod until the node's
    terminationGracePeriod, which a NodePool must set. That period isn't simulated.
    """
    staying = [pod["metadata"] for pod in pods if _counts(pod, node)]
    for metadata in staying:
        if "deletionTimestamp" in metadata:
            continue
        eviction = {key: metadata[key] for key in ("name", "namespace")}
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
        try:
            api.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": eviction})
        except RejectedError as error:
            if error.status not in (http.client.NOT_FOUND, http.client.TOO_MANY_REQUESTS):
                raise
    return not staying


def _is_on(pod: Document, node: str) -> bool:
    return pod["spec"].get("nodeName") == node and pod["status"].get("phase") not in _ENDED


def _annotation(claim: Document, name: str) -> str:
    return str(claim["metadata"].get("annotations", {}).get(name, ""))
