"""A manifest for a team: namespace, queue, priority, topology, and pods as large as an instance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hpkit.catalog import InstanceType, find_instance_type, kubelet_reserved
from hpkit.errors import SelectionError
from hpkit.jobs.fits import Fit, fit
from hpkit.jobs.kinds import templates
from hpkit.jobs.resources import pod_sets_of
from hpkit.plan.model import Plan, TeamPlan
from hpkit.spelling import hint
from hpkit.whatif import EFA

__all__ = ["PRIORITY", "QUEUE", "TOPOLOGY", "manifest", "resources_of", "team_of", "verdict"]

QUEUE: Final = "kueue.x-k8s.io/queue-name"
PRIORITY: Final = "kueue.x-k8s.io/priority-class"
TOPOLOGY: Final[Mapping[str, str]] = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
}
# What is left beside the kubelet for the DaemonSets of the dependencies chart and the add-ons: the kit's own choice.
_SHARE: Final = 0.9
_WHOLE: Final = 2
Document = dict[str, Any]


def team_of(plan: Plan, name: str) -> TeamPlan:
    """Return a team of a plan by name; SelectionError with the nearest name where there is none."""
    known = {team.name: team for team in plan.teams}
    if name in known:
        return known[name]
    raise SelectionError(f"{plan.stack} has no team {name}; {hint(name, known)}")


def manifest(
    plan: Plan,
    team: TeamPlan,
    *,
    kind: str,
    name: str,
    instance_type: str,
    count: int,
    priority: str | None,
    topology: tuple[str, str] | None,
    image: str,
) -> Document:
    """Return a job of count pods, each with all that an instance of the type gives to pods.

    priority: a priority class of the cluster policy, without `-priority`. topology: required or preferred, and a label
    of NETWORK_LAYERS. SelectionError for what the stack does not have.
    """
    _require_type(plan, instance_type)
    labels = {QUEUE: team.local_queue}
    if priority is not None:
        labels[PRIORITY] = _priority(plan, priority)
    annotations = {}
    if topology is not None:
        if not plan.topology_aware_scheduling:
            raise SelectionError(
                f"{plan.stack} does not schedule by topology: governance.topologyAwareScheduling is Disabled"
            )
        annotations[TOPOLOGY[topology[0]]] = topology[1]
    resources = resources_of(instance_type)
    container = {
        "name": "pytorch" if kind == "pytorchjob" else "main",
        "image": image,
        "command": ["python", "train.py"],
        "resources": resources,
    }
    pod: Document = {
        "nodeSelector": {"node.kubernetes.io/instance-type": instance_type},
        "containers": [container],
    }
    template: Document = {**({"metadata": {"annotations": annotations}} if annotations else {}), "spec": pod}
    head = {"name": name, "namespace": team.namespace, "labels": labels}
    return _BUILDERS[kind](head, template, count)


def _job(head: Document, template: Document, count: int) -> Document:
    spec = {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": _once(template)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": head, "spec": spec}


def _pytorch_job(head: Document, template: Document, count: int) -> Document:
    worker = {"replicas": count, "restartPolicy": "Never", "template": template}
    spec = {"pytorchReplicaSpecs": {"Worker": worker}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": head, "spec": spec}


def _job_set(head: Document, template: Document, count: int) -> Document:
    job = {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": _once(template)}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": head, "spec": spec}


def _ray_job(head: Document, template: Document, count: int) -> Document:
    (container,) = template["spec"]["containers"]
    pod = {**template["spec"], "containers": [{key: each for key, each in container.items() if key != "command"}]}
    # The head computes nothing: it takes no instance of its own.
    small = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    head_pod = {"containers": [{**pod["containers"][0], "resources": small}]}
    cluster = {
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": head_pod}},
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": count,
                "minReplicas": count,
                "maxReplicas": count,
                "rayStartParams": {},
                "template": {**template, "spec": pod},
            }
        ],
    }
    spec = {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True, "rayClusterSpec": cluster}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": head, "spec": spec}


def _once(template: Document) -> Document:
    return {**template, "spec": {"restartPolicy": "Never", **template["spec"]}}


_BUILDERS: Final = {"job": _job, "pytorchjob": _pytorch_job, "jobset": _job_set, "rayjob": _ray_job}


def verdict(plan: Plan, team: TeamPlan, document: Mapping[str, Any]) -> Fit:
    """Return whether a job would be admitted for a team."""
    return fit(plan, team, pod_sets_of(tuple(templates(document)), plan))


def resources_of(instance_type: str) -> Document:
    """Return requests and limits of a pod that has an instance to itself.

    All accelerators and EFA interfaces, and of CPUs and memory what the kubelet leaves, less a part for DaemonSets.
    SelectionError where the catalog does not know what the type has.
    """
    kind = find_instance_type(instance_type)
    if kind is None or kind.vcpu is None or kind.memory_gib is None:
        raise SelectionError(f"vCPUs or memory of {instance_type} are not known; write its resources by hand")
    taken_cpu, taken_memory = kubelet_reserved(kind.vcpu, kind.memory_gib)
    cpu = _written((kind.vcpu - taken_cpu) * _SHARE, "", 1000, "m")
    memory = _written((kind.memory_gib - taken_memory) * _SHARE, "Gi", 1024, "Mi")
    devices = _devices(kind)
    return {"requests": {"cpu": cpu, "memory": memory, **devices}, "limits": {"memory": memory, **devices}}


def _written(amount: float, unit: str, parts: int, smaller: str) -> str:
    """Return an amount rounded down: whole where little is lost by it, else in smaller units."""
    return f"{math.floor(amount)}{unit}" if amount >= _WHOLE else f"{math.floor(amount * parts)}{smaller}"


def _devices(kind: InstanceType) -> dict[str, int]:
    found = {}
    if kind.accelerators and kind.accelerator_resource:
        found[kind.accelerator_resource] = kind.accelerators
    if kind.efa_interfaces:
        found[EFA] = kind.efa_interfaces
    return found


def _require_type(plan: Plan, instance_type: str) -> None:
    known = list(plan.capacity)
    if instance_type not in known:
        raise SelectionError(f"{plan.stack} has no instances of {instance_type}; {hint(instance_type, known)}")


def _priority(plan: Plan, priority: str) -> str:
    known = [] if plan.policy is None else [each.name for each in plan.policy.priority_classes]
    name = priority.removesuffix("-priority")
    if name not in known:
        raise SelectionError(f"{plan.stack} has no priority class {priority}; {hint(name, known)}")
    return f"{name}-priority"
