"""Objects of the APIs as the model: pure, and forgiving where a field is not set yet."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeVar

from hpkit.catalog import NETWORK_LAYERS
from hpkit.catalog.training_plans import ends_soon
from hpkit.cluster.live.model import (
    AddonHealth,
    ClusterEvent,
    ClusterNode,
    Condition,
    Flavor,
    Group,
    KubernetesNode,
    NodePool,
    Platform,
    Pod,
    Queue,
    Quota,
    SchedulerPolicy,
    Task,
    TaskPods,
    TopologyAsked,
    Warned,
)
from hpkit.plan.capacity import quantity
from hpkit.plan.pods import pod_requests
from hpkit.text.formatting import seconds_in

__all__ = [
    "SLICES",
    "assigned_of",
    "failed_streams",
    "flavor_of",
    "group_of",
    "log_group_of",
    "node_of",
    "node_pool_of",
    "number",
    "owner_of",
    "platform_of",
    "pod_of",
    "project_of",
    "queue_of",
    "task_of",
    "topology_asked",
    "usage_of",
    "warned_of",
]

Amounts = dict[str, Decimal]
Key = TypeVar("Key", bound=Hashable)
# How long a pod of the local cloud runs; ignored elsewhere.
_LOCAL_RUN = "hpkit.local/run"
# Keys of a PodSetTopologyRequest: how close all pods must be, and its other parts.
_LEVELS: Final = ("required", "preferred")
# The last part of each slice field's annotation.
SLICES: Final = {
    "podSetSliceRequiredTopology": "required-topology",
    "podSetSliceSize": "size",
    "podsetSliceRequiredTopologyConstraints": "required-topology-constraints",
}
_GROUP: Final = "podSetGroupName"
_OWNER_KIND: Final = "kueue.x-k8s.io/job-owner-gvk"
_OWNER_NAME: Final = "kueue.x-k8s.io/job-owner-name"
# Reasons of a container that waits without a fault.
_STARTING: Final = ("ContainerCreating", "PodInitializing")
# Reasons of DisruptionTarget (Kubernetes, "Disruptions": pod disruption conditions).
_DISRUPTED: Final = {
    "PreemptionByScheduler": "a pod with a higher priority needed its node",
    "DeletionByTaintManager": "its node isn't ready, isn't reachable, or has a taint that it doesn't tolerate",
    "EvictionByEvictionAPI": "its node was drained",
    "DeletionByPodGC": "its node no longer exists",
}
_PART_OF: Final = "app.kubernetes.io/part-of"
_NODE_HEALTH: Final = "sagemaker.amazonaws.com/node-health-status"
_FAULTS: Final = {
    "sagemaker.amazonaws.com/fault-types": "fault types",
    "sagemaker.amazonaws.com/fault-reasons": "fault reasons",
}


def platform_of(
    cluster: Mapping[str, Any],
    nodes: Iterable[Mapping[str, Any]],
    policy: Mapping[str, Any] | None,
    addons: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    *,
    kubernetes: str = "",
    logs: Mapping[str, Sequence[str]] = MappingProxyType({}),
    training_plans: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    unread: frozenset[str] = frozenset(),
) -> Platform:
    """Return AWS's data, from the responses of DescribeCluster, ListClusterNodes and the others.

    logs: the last lines of lifecycle scripts, by stream. training_plans: responses of DescribeTrainingPlan, by group.
    """
    instances = (_instance(each) for each in nodes)
    groups = [*(cluster.get("InstanceGroups") or ()), *(cluster.get("RestrictedInstanceGroups") or ())]
    scaling = cluster.get("AutoScaling") or {}
    return Platform(
        name=cluster["ClusterName"],
        status=cluster["ClusterStatus"],
        message=cluster.get("FailureMessage") or "",
        groups=tuple(group_of(each) for each in groups),
        nodes=tuple(replace(each, log=tuple(logs.get(each.log_stream, ()))) for each in instances),
        log_group=log_group_of(cluster),
        policy=None if policy is None else _policy(policy),
        addons=tuple(_addon(each) for each in addons),
        events=tuple(sorted(map(_event, events), key=lambda each: each.time, reverse=True)),
        kubernetes=kubernetes,
        node_recovery=cluster.get("NodeRecovery") or "",
        karpenter=scaling.get("Mode") or "Disable",
        karpenter_failure=scaling.get("FailureMessage") or "Failed" if scaling.get("Status") == "Failed" else "",
        ending={group: end for group, each in training_plans.items() if (end := ends_soon(each, datetime.now(tz=UTC)))},
        unread=unread,
    )


def failed_streams(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the log streams of the lifecycle scripts of failed instances."""
    return [each.log_stream for each in map(_instance, nodes) if each.status == "Failure"]


def log_group_of(cluster: Mapping[str, Any]) -> str:
    """Return the log group of a cluster's lifecycle scripts (SageMaker HyperPod developer guide)."""
    return f"/aws/sagemaker/Clusters/{cluster['ClusterName']}/{str(cluster.get('ClusterArn')).rpartition('/')[2]}"


def _policy(policy: Mapping[str, Any]) -> SchedulerPolicy:
    config = policy.get("SchedulerConfig") or {}
    return SchedulerPolicy(
        policy.get("Name") or "",
        policy["Status"],
        policy.get("FailureReason") or "",
        config.get("FairShare") or "",
        config.get("IdleResourceSharing") or "",
        {each["Name"]: each["Weight"] for each in config.get("PriorityClasses") or ()},
    )


def group_of(group: Mapping[str, Any]) -> Group:
    """Return an instance group; one with requirements has several types."""
    requirements = group.get("InstanceRequirements") or {}
    types = [group["InstanceType"]] if group.get("InstanceType") else requirements.get("DesiredInstanceTypes", ())
    return Group(
        group["InstanceGroupName"],
        tuple(types),
        group.get("TargetCount") or 0,
        group.get("CurrentCount") or 0,
        group.get("Status") or "",
    )


def _instance(node: Mapping[str, Any]) -> ClusterNode:
    status = node.get("InstanceStatus") or {}
    return ClusterNode(
        node.get("InstanceId") or node.get("NodeLogicalId") or "",
        node["InstanceGroupName"],
        node.get("InstanceType") or "",
        status.get("Status") or "",
        status.get("Message") or "",
        node.get("CurrentImageReleaseVersion") or "",
        node.get("ImageVersionStatus") or "",
        node.get("LaunchTime"),
    )


def _event(event: Mapping[str, Any]) -> ClusterEvent:
    about = event.get("InstanceId") or event.get("InstanceGroupName") or event.get("ClusterName") or ""
    return ClusterEvent(event["EventTime"], event.get("EventLevel") or "Info", about, event.get("Description") or "")


def _addon(addon: Mapping[str, Any]) -> AddonHealth:
    issues = (addon.get("health") or {}).get("issues") or ()
    said = tuple(f"{each.get('code', '')}: {each.get('message', '')}" for each in issues)
    return AddonHealth(addon["addonName"], addon.get("addonVersion") or "", addon.get("status") or "", said)


def queue_of(document: Mapping[str, Any]) -> Queue:
    """Return a ClusterQueue with its quotas and their usage."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    used = {
        (flavor["name"], resource["name"]): resource
        for flavor in status.get("flavorsReservation") or ()
        for resource in flavor.get("resources") or ()
    }
    quotas = {}
    for flavor in (each for group in spec.get("resourceGroups") or () for each in group["flavors"]):
        for resource in flavor["resources"]:
            key = (flavor["name"], resource["name"])
            usage = used.get(key, {})
            quotas[key] = Quota(
                nominal=_quantity(resource["nominalQuota"]),
                borrowing_limit=_limit(resource.get("borrowingLimit")),
                lending_limit=_limit(resource.get("lendingLimit")),
                used=_quantity(usage.get("total", 0)),
                borrowed=_quantity(usage.get("borrowed", 0)),
            )
    active = _conditions(status).get("Active")
    preemption = spec.get("preemption") or {}
    return Queue(
        name=document["metadata"]["name"],
        # v1beta1 has `cohort`.
        cohort=spec.get("cohortName") or spec.get("cohort"),
        weight=_quantity((spec.get("fairSharing") or {}).get("weight", 1)),
        active=active is not None and active.status,
        message="" if active is None else active.message.rstrip("."),
        within=preemption.get("withinClusterQueue") or "Never",
        reclaim=preemption.get("reclaimWithinCohort") or "Never",
        stopped=(spec.get("stopPolicy") or "None") != "None",
        quotas=quotas,
    )


def _limit(value: Any) -> Decimal | None:
    return None if value is None else _quantity(value)


def _conditions(status: Mapping[str, Any]) -> dict[str, Condition]:
    return {
        condition["type"]: Condition(
            condition["status"] == "True",
            condition.get("reason") or "",
            condition.get("message") or "",
            _time(condition.get("lastTransitionTime")),
        )
        for condition in status.get("conditions") or ()
    }


@lru_cache(maxsize=10_000)
def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def task_of(document: Mapping[str, Any], queues: Mapping[tuple[str, str], str]) -> Task:
    """Return a Workload; queues: (namespace, LocalQueue) → ClusterQueue."""
    metadata, spec, status = document["metadata"], document["spec"], document.get("status") or {}
    owner_kind, owner_name = owner_of(metadata)
    admission = status.get("admission") or {}
    local_queue = spec.get("queueName") or ""
    return Task(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        owner_kind=owner_kind,
        owner_name=owner_name,
        local_queue=local_queue,
        queue=admission.get("clusterQueue") or queues.get((metadata["namespace"], local_queue), ""),
        priority=spec.get("priority") or 0,
        # v1beta1 has `priorityClassName`.
        priority_class=(spec.get("priorityClassRef") or {}).get("name") or spec.get("priorityClassName"),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        # With partial admission, fewer than its pod sets have.
        pods=sum(each["count"] for each in admission.get("podSetAssignments") or spec["podSets"]),
        active=spec.get("active", True),
        requests=_requests(spec["podSets"], status),
        usage=usage_of(assigned_of(admission)),
        conditions=_conditions(status),
        pod_sets=tuple(_pods(each, status) for each in spec["podSets"]),
        longest=_longest(spec),
        limit=spec.get("maximumExecutionTimeSeconds"),
        retry_at=_time((status.get("requeueState") or {}).get("requeueAt")),
        project=project_of(spec["podSets"]),
        evictions=_evictions(status),
        reclaimed=sum(each.get("count") or 0 for each in status.get("reclaimablePods") or ()),
    )


def _evictions(status: Mapping[str, Any]) -> dict[str, int]:
    counts: defaultdict[str, int] = defaultdict(int)
    for each in (status.get("schedulingStats") or {}).get("evictions") or ():
        counts[each["reason"]] += each["count"]
    return dict(counts)


def owner_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Return kind and name of the user's object for a Workload: its controller, otherwise the Workload itself.

    Kueue 0.19 annotates the Workloads of StatefulSets and LeaderWorkerSets, which have no controller.
    """
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return owner["kind"], owner["name"]
    annotations = metadata.get("annotations") or {}
    kind, name = str(annotations.get(_OWNER_KIND, "")).rpartition("Kind=")[2], annotations.get(_OWNER_NAME)
    return (kind, str(name)) if kind and name else ("Workload", metadata["name"])


def project_of(pod_sets: Iterable[Mapping[str, Any]]) -> str:
    """Return the first pods' label for the application that they are part of (Kubernetes, "Recommended Labels")."""
    labels = ((each["template"].get("metadata") or {}).get("labels") or {} for each in pod_sets)
    return next((str(each[_PART_OF]) for each in labels if each.get(_PART_OF)), "")


def _pods(pod_set: Mapping[str, Any], status: Mapping[str, Any]) -> TaskPods:
    """Return pods with the requests of one: as Kueue counted them, otherwise by their template."""
    template, name, count = pod_set["template"], pod_set.get("name") or "main", pod_set["count"]
    counted = next((each for each in status.get("resourceRequests") or () if each.get("name") == name), None)
    requests = (
        _pod_requests(template["spec"])
        if counted is None or not count
        else {key: _quantity(amount) / count for key, amount in (counted.get("resources") or {}).items()}
    )
    asked = topology_asked(pod_set.get("topologyRequest") or {})
    return TaskPods(name, count, requests, template["spec"], asked, pod_set.get("minCount"))


def topology_asked(request: Mapping[str, Any]) -> TopologyAsked | None:
    """Return a PodSetTopologyRequest's contents; None for one with only labels, which Kueue itself writes.

    Source: Kueue 0.19, PodSetTopologyRequest in workload_types.go, and IsExplicitlyRequestingTAS.
    """
    slices = [key for key in SLICES if request.get(key)]
    unsupported = tuple(slices + [_GROUP] * bool(request.get(_GROUP)))
    for mode in _LEVELS:
        if request.get(mode):
            return TopologyAsked(mode, request[mode], unsupported)
    if request.get("unconstrained"):
        return TopologyAsked("unconstrained", None, unsupported)
    return TopologyAsked(None, None, unsupported) if slices else None


def _longest(spec: Mapping[str, Any]) -> float | None:
    """Return the seconds after which a task has ended for certain: Kueue or the kubelet ends it, or its pods do.

    Kueue: maximumExecutionTimeSeconds of the Workload; the kubelet: activeDeadlineSeconds of a pod, if all have one.
    """
    limit = spec.get("maximumExecutionTimeSeconds")
    of_pods = [_longest_pod(each["template"]) for each in spec["podSets"]]
    bounded = [each for each in of_pods if each is not None]
    limits = [float(limit)] if limit is not None else []
    if bounded and len(bounded) == len(of_pods):
        limits.append(max(bounded))
    return min(limits, default=None)


def _longest_pod(template: Mapping[str, Any]) -> float | None:
    deadline = (template.get("spec") or {}).get("activeDeadlineSeconds")
    text = ((template.get("metadata") or {}).get("annotations") or {}).get(_LOCAL_RUN)
    deadlines = [] if deadline is None else [float(deadline)]
    if text is not None:
        with suppress(ValueError):
            deadlines.append(seconds_in(str(text)))
    return min(deadlines, default=None)


def flavor_of(document: Mapping[str, Any]) -> Flavor:
    """Return a ResourceFlavor."""
    spec = document.get("spec") or {}
    return Flavor(
        document["metadata"]["name"],
        dict(spec.get("nodeLabels") or {}),
        bool(spec.get("topologyName")),
        tuple(spec.get("tolerations") or ()),
    )


def _requests(pod_sets: Iterable[Mapping[str, Any]], status: Mapping[str, Any]) -> Amounts:
    """Return the requests of all pods: as Kueue counted them, otherwise by their templates."""
    assigned = (status.get("admission") or {}).get("podSetAssignments") or ()
    counted = [each.get("resources") for each in status.get("resourceRequests") or ()] or [
        each.get("resourceUsage") for each in assigned
    ]
    if counted:
        return _sum((name, _quantity(amount)) for each in counted for name, amount in (each or {}).items())
    return _sum(
        (name, amount * pod_set["count"])
        for pod_set in pod_sets
        for name, amount in _pod_requests(pod_set["template"]["spec"]).items()
    )


def _sum(amounts: Iterable[tuple[Key, Decimal]]) -> dict[Key, Decimal]:
    total: defaultdict[Key, Decimal] = defaultdict(Decimal)
    for name, amount in amounts:
        total[name] += amount
    return dict(total)


def assigned_of(admission: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return what a Workload's admission assigned to its pods: flavor, resource and amount, as in the document."""
    return tuple(
        (flavors[name], name, str(amount))
        for assignment in admission.get("podSetAssignments") or ()
        if (flavors := assignment.get("flavors"))
        for name, amount in (assignment.get("resourceUsage") or {}).items()
        if name in flavors
    )


def usage_of(assigned: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], Decimal]:
    """Return the sums of what was assigned, by (flavor, resource)."""
    return _sum(((flavor, name), number(amount)) for flavor, name, amount in assigned)


def _pod_requests(spec: Mapping[str, Any]) -> Amounts:
    return pod_requests(spec, lambda _name, amount: _quantity(amount))


def node_of(document: Mapping[str, Any]) -> KubernetesNode:
    """Return a node with its place in the network."""
    metadata, status = document["metadata"], document.get("status") or {}
    labels = metadata.get("labels") or {}
    layers = []
    for label in NETWORK_LAYERS:
        if label not in labels:
            break
        layers.append(labels[label])
    ready = _conditions(status).get("Ready")
    return KubernetesNode(
        name=metadata["name"],
        group=labels.get("sagemaker.amazonaws.com/instance-group-name", ""),
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        pool=labels.get("karpenter.sh/nodepool"),
        layers=tuple(layers),
        ready=ready is not None and ready.status,
        cordoned=bool((document.get("spec") or {}).get("unschedulable")),
        allocatable={name: _quantity(each) for name, each in (status.get("allocatable") or {}).items()},
        labels=labels,
        taints=tuple((document.get("spec") or {}).get("taints") or ()),
        trouble=_trouble(labels, status),
    )


def _trouble(labels: Mapping[str, str], status: Mapping[str, Any]) -> str:
    """Return why HyperPod or Kubernetes keeps pods away from a node, or replaces it.

    Source: SageMaker HyperPod developer guide, "Resilience-related Kubernetes labels". The health-monitoring agent also
    sets conditions, such as NvidiaErrorReboot, which are True if the fault was found.
    """
    health = labels.get(_NODE_HEALTH, "Schedulable")
    parts = [] if health == "Schedulable" else [f"HyperPod marks it {health}"]
    parts += [f"{name}: {labels[key]}" for key, name in _FAULTS.items() if labels.get(key)]
    for each in status.get("conditions") or ():
        ready = each["type"] == "Ready"
        if (each["status"] == "True") != ready and (ready or each["status"] == "True"):
            said = ": ".join(filter(None, (each.get("reason"), each.get("message"))))
            parts.append(
                f"{each['type']} is {each['status']} ({said})" if said else f"{each['type']} is {each['status']}"
            )
    return "; ".join(parts)


def pod_of(document: Mapping[str, Any]) -> Pod:
    """Return a pod."""
    metadata, spec, status = document["metadata"], document["spec"], document.get("status") or {}
    owner: Mapping[str, Any] = next(
        (each for each in metadata.get("ownerReferences") or () if each.get("controller")), {}
    )
    conditions = _conditions(status)
    placed = conditions.get("PodScheduled")
    return Pod(
        name=metadata["name"],
        namespace=metadata["namespace"],
        node=spec.get("nodeName"),
        task=(metadata.get("annotations") or {}).get("kueue.x-k8s.io/workload"),
        requests=_pod_requests(spec),
        priority=spec.get("priority") or 0,
        owner_kind=owner.get("kind", ""),
        owner_name=owner.get("name", ""),
        template=(metadata.get("labels") or {}).get("pod-template-hash", ""),
        phase=status.get("phase") or "Pending",
        ready="Ready" in conditions and conditions["Ready"].status,
        deleted=_time(metadata.get("deletionTimestamp")),
        finalizers=tuple(metadata.get("finalizers") or ()),
        # A pod that Kueue hasn't admitted is gated.
        unplaced="" if placed is None or placed.status or placed.reason != "Unschedulable" else placed.message,
        stuck=_stuck(status) or _unscheduled(spec),
        evicted=_evicted(status, conditions.get("DisruptionTarget")),
    )


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(key) or ()


def _unscheduled(spec: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why the scheduler doesn't even consider a pod: a gate that isn't Kueue's, or another scheduler."""
    names = [each["name"] for each in spec.get("schedulingGates") or ()]
    gates = ", ".join(each for each in names if not each.startswith("kueue.x-k8s.io/"))
    scheduler = spec.get("schedulerName") or "default-scheduler"
    if spec.get("nodeName"):
        return None
    if gates:
        return "SchedulingGated", f"the scheduling gate {gates} holds it"
    if scheduler != "default-scheduler" and not names:
        return "OtherScheduler", f"the scheduler {scheduler} hasn't placed it; check whether it runs"
    return None


def _stuck(status: Mapping[str, Any]) -> tuple[str, str] | None:
    for container in _containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in _STARTING:
            return waiting["reason"], waiting.get("message") or ""
    return None


def _evicted(status: Mapping[str, Any], target: Condition | None) -> str:
    """Return why a pod was ended: by the kubelet, with its message, or by another part of Kubernetes."""
    if status.get("reason") == "Evicted" and status.get("message"):
        return str(status["message"]).rstrip(". ")
    if target is not None and target.status:
        return _DISRUPTED.get(target.reason) or target.message.rstrip(". ") or target.reason
    for container in _containers(status):
        for key in ("state", "lastState"):
            ended = (container.get(key) or {}).get("terminated") or {}
            if ended.get("reason") == "OOMKilled":
                return f"container {container.get('name', '')} exceeded its memory limit (OOMKilled)"
    return ""


def warned_of(document: Mapping[str, Any]) -> Warned | None:
    """Return a warning event; None if it has no time."""
    about = document["involvedObject"]
    when = document.get("lastTimestamp") or document.get("eventTime") or document.get("firstTimestamp")
    if when is None:
        return None
    return Warned(
        about.get("namespace") or "",
        about.get("kind") or "",
        about.get("name") or "",
        document.get("reason") or "",
        document.get("message") or "",
        datetime.fromisoformat(when),
    )


def node_pool_of(document: Mapping[str, Any]) -> NodePool:
    """Return a NodePool of Karpenter."""
    status = document.get("status") or {}
    ready = _conditions(status).get("Ready")
    return NodePool(
        name=document["metadata"]["name"],
        ready=ready is None or ready.status,
        message="" if ready is None else ready.message,
        limits={name: _quantity(each) for name, each in (document["spec"].get("limits") or {}).items()},
        used={name: _quantity(each) for name, each in (status.get("resources") or {}).items()},
    )


def _quantity(value: Any) -> Decimal:
    return number(str(value))


@lru_cache(maxsize=10_000)
def number(text: str) -> Decimal:
    """Return a Kubernetes quantity as a number: 1536Gi, 250m."""
    value = Fraction(quantity(text))
    return Decimal(value.numerator) / value.denominator
