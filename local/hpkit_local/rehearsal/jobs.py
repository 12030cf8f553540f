"""Workloads as Jobs, and the state of Jobs as their controller would write it: no pods are created."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hpkit.catalog import find_instance_type
from hpkit.kueue.model import UNCONSTRAINED, Node, PodSet, PodSetAssignment, Workload, per_unit
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.services.sagemaker.quota import stored_config
from hpkit_local.controllers.objects import KINDS, MANAGED, Manifest
from hpkit_local.controllers.policy import ADDON, governance
from hpkit_local.kubernetes.api import ApiResource

__all__ = [
    "JOBS",
    "REHEARSED",
    "assignments",
    "controlled",
    "job_of",
    "namespace_of",
    "node_objects",
    "path_of",
    "status_of_ended",
    "team_objects",
]

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


JOBS = ApiResource("batch/v1", "Job", "jobs", namespaced=True)
TASK = "hpkit.local/task"
"""The annotation with the task's name, which need not be one that Kubernetes allows."""

_QUEUE = "kueue.x-k8s.io/queue-name"
_PRIORITY = "kueue.x-k8s.io/priority-class"
_TOPOLOGY = "kueue.x-k8s.io/podset-{mode}-topology"
# The manager of these Jobs, so that Kubernetes' own controller ignores them.
_CONTROLLER = "hpkit.local/rehearsal"
# Devices are set as limits; Kubernetes uses them as requests too.
_BASIC = ("cpu", "memory")


def namespace_of(workload: Workload) -> str:
    """Return the namespace of a workload's team."""
    return workload.queue.removesuffix("-clusterqueue")


def job_of(workload: Workload, number: int, *, priority_class: str | None) -> dict[str, Any]:
    """Return the Job that a workload of one pod set is."""
    (pods,) = workload.pod_sets
    namespace = namespace_of(workload)
    labels = {_QUEUE: f"{namespace}-localqueue"} | ({_PRIORITY: priority_class} if priority_class else {})
    # A scenario's task uses one instance type, or has all flavors of its queue.
    instance_type = next(iter(pods.flavors)) if pods.flavors is not None and len(pods.flavors) == 1 else None
    template = {
        "metadata": {"labels": labels, "annotations": _placement(pods, instance_type)},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "rehearsed", "resources": _resources(pods)}],
            **({"nodeSelector": {_TYPE: instance_type}} if instance_type else {}),
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"rehearsed-{number}",
            "namespace": namespace,
            "labels": {**labels, **REHEARSED},
            "annotations": {TASK: workload.name},
        },
        "spec": {
            "parallelism": pods.count,
            "completions": pods.count,
            "suspend": True,
            "managedBy": _CONTROLLER,
            "template": template,
        },
    }


def _resources(pods: PodSet) -> dict[str, dict[str, str]]:
    amounts = {
        name: f"{amount}m" if per_unit(name) == 1000 else str(amount) for name, amount in pods.per_pod.items() if amount
    }
    return {
        "requests": {name: text for name, text in amounts.items() if name in _BASIC},
        "limits": {name: text for name, text in amounts.items() if name not in _BASIC},
    }


def _placement(pods: PodSet, instance_type: str | None) -> dict[str, str]:
    request = pods.topology
    if request is None:
        # Its flavor has a topology even if the scenario has none.
        details = find_instance_type(instance_type or "")
        return {UNCONSTRAINED: "true"} if details is not None and details.network_layers else {}
    return {_TOPOLOGY.format(mode=request.mode): request.level or "true"}


def controlled(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the status that the controller writes when a Job was suspended or resumed; None if it has it."""
    status, spec = job.get("status", {}), job["spec"]
    if any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in status.get("conditions", ())
    ):
        return None
    active = int(status.get("active", 0))
    if spec.get("suspend"):
        return {"active": 0, "ready": 0, "startTime": None} if active else None
    if active:
        return None
    return {"active": spec["parallelism"], "ready": spec["parallelism"], "startTime": _now()}


def status_of_ended(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a Job whose pods have all ended well."""
    now = _now()
    conditions = [
        {
            "type": condition_type,
            "status": "True",
            "reason": "CompletionsReached",
            "message": "",
            "lastTransitionTime": now,
        }
        for condition_type in ("SuccessCriteriaMet", "Complete")
    ]
    return {
        "active": 0,
        "ready": 0,
        "succeeded": job["spec"]["completions"],
        "startTime": job["status"]["startTime"],
        "completionTime": now,
        "conditions": [*job["status"].get("conditions", ()), *conditions],
    }


def assignments(workload: Mapping[str, Any]) -> tuple[PodSetAssignment, ...]:
    """Return an admitted Workload's assignment: flavors, counts, and the nodes if a topology assigns them."""
    return tuple(
        PodSetAssignment(
            assignment["name"], assignment["count"], assignment.get("flavors", {}), {}, _domains(assignment)
        )
        for assignment in workload["status"]["admission"]["podSetAssignments"]
    )


def _domains(assigned: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    topology = assigned.get("topologyAssignment") or {}
    return tuple((each["values"][-1], each["count"]) for each in topology.get("domains", ()))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
