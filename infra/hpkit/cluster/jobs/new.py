"""A manifest for a team: namespace, queue, priority, topology, and pods as large as an instance."""

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from hpkit.catalog import ACCELERATOR_RESOURCES, EFA, InstanceType, find_instance_type, kubelet_reserved
from hpkit.cluster.jobs.checkpoints import Checkpoints
from hpkit.cluster.jobs.fits import Fit, fit
from hpkit.cluster.jobs.kinds import PRIORITY, QUEUE, RUN_TIME, TOPOLOGY, WORKLOADS, PodTemplate, templates, units
from hpkit.cluster.jobs.operators import INIT_IMAGE, missing_operator
from hpkit.cluster.jobs.placement import NOT_DISRUPTED, is_by_karpenter, untolerated
from hpkit.cluster.jobs.pod_security import SHARED_MEMORY
from hpkit.cluster.jobs.resources import pod_sets_of, types_by_topology
from hpkit.config.models.governance import Workload
from hpkit.errors import SelectionError
from hpkit.kueue.model import UNCONSTRAINED
from hpkit.plan.capacity import INSTANCE_TYPE_KEY, quantity
from hpkit.plan.model import Plan, TeamPlan
from hpkit.text.spelling import hint

__all__ = ["manifest", "priorities_of", "resources_of", "service_of", "team_of", "verdict", "workload_of"]

_GROUP: Final = "kueue.x-k8s.io/podset-group-name"
# Capacity for the DaemonSets of the dependencies chart and the add-ons, in addition to the kubelet's: hpkit's choice.
_SHARE: Final = 0.9
_WHOLE: Final = 2
_INFERENCE: Final = "inference.sagemaker.aws.amazon.com/v1"
Document = dict[str, Any]


def team_of(plan: Plan, name: str) -> TeamPlan:
    """Return a team of a plan by name; raises SelectionError with the nearest name if it doesn't exist."""
    teams = {team.name: team for team in plan.teams}
    if name in teams:
        return teams[name]
    raise SelectionError(f"{plan.stack} has no team {name}; {hint(name, teams)}")


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
    checkpoints: Checkpoints | None = None,
) -> Document:
    """Return a job with count pods, each with all resources of an instance that pods can use.

    priority: a priority class of the cluster policy, without `-priority`. topology: required or preferred, and a label
    of NETWORK_LAYERS. Raises SelectionError for what the stack doesn't have.
    """
    _require_startable(plan, kind, count, checkpoints)
    _require_type(plan, instance_type)
    if workload_of(kind) not in team.spec.workloads:
        theirs = (name for name in _NAMES if workload_of(name) in team.spec.workloads)
        others = " or ".join(name for name in theirs if missing_operator(_NAMES[name], plan) is None)
        raise SelectionError(
            f"{team.name} can't run {_NAMES[kind]}s: its workloads are {', '.join(team.spec.workloads)}; "
            + (f"use --kind {others}" if others else "this command writes no other kind for them")
        )
    labels = {QUEUE: team.local_queue}
    if priority is not None:
        labels[PRIORITY] = _priority(plan, team, priority)
    if team.run_seconds is not None and workload_of(kind) == "training":
        labels[RUN_TIME] = str(team.run_seconds[0])
    annotations = _topology(plan, team, instance_type, topology)
    resources = resources_of(instance_type)
    container = {
        "name": "pytorch" if kind == "pytorchjob" else "main",
        "image": image,
        "command": ["python", "train.py" if workload_of(kind) == "training" else "serve.py"],
        # The user has no home folder, and no name in the image, which PyTorch looks up for its caches.
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "USER", "value": team.name}],  # noqa: S108 - in the pod
        "resources": resources,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    user = team.user_ids.start
    # With the container's, everything that the Pod Security level `restricted` requires.
    pod: Document = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "nodeSelector": {"node.kubernetes.io/instance-type": instance_type},
        "containers": [container],
    }
    # KubeRay mounts one by itself.
    if (
        kind != "rayjob"
        and sum(each for name, each in resources["limits"].items() if name in ACCELERATOR_RESOURCES.values()) > 1
    ):
        pod = _with_shared_memory(pod, quantity(str(resources["limits"]["memory"])))
    if checkpoints is not None:
        pod = checkpoints.pod(pod)
    # The add-on's admission policy rejects every pod that names no queue.
    metadata: Document = {"labels": {QUEUE: team.local_queue}, **({"annotations": annotations} if annotations else {})}
    template: Document = {"metadata": metadata, "spec": pod}
    if workload_of(kind) == "training" and is_by_karpenter({"spec": pod}, plan):
        metadata.setdefault("annotations", {})[NOT_DISRUPTED] = "true"
    if taints := untolerated(PodTemplate((), count, template), plan, team):
        pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in {each["key"]: None for each in taints}]
    head = {"name": name, "namespace": team.namespace, "labels": labels}
    document = _BUILDERS[kind](head, template, count)
    if kind == "inferenceendpointconfig":
        document["spec"]["modelSourceConfig"]["s3Storage"]["region"] = plan.spec.region
    return document


def _require_startable(plan: Plan, kind: str, count: int, checkpoints: Checkpoints | None) -> None:
    if (key := missing_operator(_NAMES[kind], plan)) is not None:
        raise SelectionError(
            f"{plan.stack} doesn't install the operator of a {_NAMES[kind]}; add `{key}` to "
            f"`environments.{plan.environment}`"
        )
    if checkpoints is not None and workload_of(kind) == "inference":
        raise SelectionError(f"a {_NAMES[kind]} doesn't resume; omit --checkpoint, or use a --kind that trains")
    if kind == "pytorchjob" and checkpoints is not None and checkpoints.user is not None:
        raise SelectionError(
            "the training operator starts no pod of a PyTorchJob on the shared file system, because it leaves out "
            "supplementalGroupsPolicy; use --kind job or jobset, or a bucket"
        )
    if kind == "pytorchjob" and count > 1 and plan.spec.network.closed:
        raise SelectionError(
            f"workers of a PyTorchJob wait in a container of the image {INIT_IMAGE}, which nodes in the closed network "
            f"of {plan.stack} can't pull; use --kind job or jobset"
        )


def _with_shared_memory(pod: Document, memory: int | Fraction) -> Document:
    """Return a pod with half of its memory at /dev/shm, through which processes of a node exchange data."""
    (container,) = pod["containers"]
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{int(memory / 2 / 2**30)}Gi"}}
    mount = {"name": "shm", "mountPath": SHARED_MEMORY}
    return {**pod, "volumes": [volume], "containers": [{**container, "volumeMounts": [mount]}]}


def _job(head: Document, template: Document, count: int) -> Document:
    if count > 1:
        template["spec"]["subdomain"] = head["name"]
    spec = {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": _once(template)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": head, "spec": spec}


def service_of(document: Mapping[str, Any]) -> Document | None:
    """Return the headless Service by which pods of a Job find each other; None if other kinds or one pod need none.

    Source: Kubernetes, "Job with Pod-to-Pod Communication".
    """
    head = document["metadata"]
    if document["kind"] != "Job" or "subdomain" not in document["spec"]["template"]["spec"]:
        return None
    metadata = {"name": head["name"], "namespace": head["namespace"]}
    selector = {"batch.kubernetes.io/job-name": head["name"]}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _pytorch_job(head: Document, template: Document, count: int) -> Document:
    # Without a Master, the operator doesn't tell pods the address of the first one or their number (1.7.0, envvar.go).
    replicas = {"Master": 1, **({"Worker": count - 1} if count > 1 else {})}
    if count > 1 and {*TOPOLOGY.values()} & template["metadata"].get("annotations", {}).keys():
        # Else each of the two would be placed by itself (Kueue, Topology Aware Scheduling, "PodSet groups").
        template["metadata"]["annotations"][_GROUP] = head["name"]
    specs = {
        name: {"replicas": replica_count, "restartPolicy": "Never", "template": copy.deepcopy(template)}
        for name, replica_count in replicas.items()
    }
    spec = {"pytorchReplicaSpecs": specs}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": head, "spec": spec}


def _job_set(head: Document, template: Document, count: int) -> Document:
    job = {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": _once(template)}
    child = {"metadata": {"labels": dict(template["metadata"]["labels"])}, "spec": job}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": child}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": head, "spec": spec}


def _ray_job(head: Document, template: Document, count: int) -> Document:
    (container,) = template["spec"]["containers"]
    pod = {**template["spec"], "containers": [{key: each for key, each in container.items() if key != "command"}]}
    # The head computes nothing, so it needs no separate instance.
    small = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    head_pod = copy.deepcopy({key: each for key, each in pod.items() if key != "nodeSelector"})
    head_container = head_pod["containers"][0]
    head_container["resources"] = small
    # A pod that requests no GPU sees all GPUs of its node, and Ray would give them to tasks.
    head_container["env"].insert(0, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    # Only the workers must be close to each other, but the head goes to a type that they use.
    annotations = template["metadata"].get("annotations", {})
    own = {key: each for key, each in annotations.items() if key == NOT_DISRUPTED}
    if {*TOPOLOGY.values(), UNCONSTRAINED} & annotations.keys():
        own[UNCONSTRAINED] = "true"
    head_metadata = {"labels": dict(template["metadata"]["labels"]), **({"annotations": own} if own else {})}
    cluster = {
        "headGroupSpec": {
            "rayStartParams": {"num-gpus": "0"},
            "template": {"metadata": head_metadata, "spec": head_pod},
        },
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
    # By HTTP KubeRay submits it itself; the Job that it would make to do so names no queue, and is rejected.
    spec = {
        "entrypoint": "python train.py",
        "submissionMode": "HTTPMode",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": cluster,
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": head, "spec": spec}


def _deployment(head: Document, template: Document, count: int) -> Document:
    own = {"app": head["name"]}
    template["metadata"]["labels"] |= own
    # With a full quota, a new version gets the place of an old pod; by default, it would need one more.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    spec = {"replicas": count, "strategy": strategy, "selector": {"matchLabels": own}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": head, "spec": spec}


def _leader_workers(head: Document, template: Document, count: int) -> Document:
    # Kueue writes an empty type where it's missing; without LeaderWorkerSet's webhook, API servers reject that.
    rollout = {"rolloutStrategy": {"type": "RollingUpdate"}}
    spec = {"replicas": 1, **rollout, "leaderWorkerTemplate": {"size": count, "workerTemplate": template}}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": head, "spec": spec}


def _endpoint(head: Document, template: Document, count: int) -> Document:
    (container,) = template["spec"]["containers"]
    spec = {
        "modelName": head["name"],
        "instanceType": _selected(template),
        "replicas": count,
        "modelSourceConfig": {
            "modelSourceType": "s3",
            "modelLocation": "PREFIX",
            "s3Storage": {"bucketName": "BUCKET"},
        },
        "worker": {
            "image": container["image"],
            "resources": container["resources"],
            "modelInvocationPort": {"containerPort": 8080, "name": "http"},
            "modelVolumeMount": {"name": "model-weights", "mountPath": "/opt/ml/model"},
        },
    }
    return {"apiVersion": _INFERENCE, "kind": "InferenceEndpointConfig", "metadata": head, "spec": spec}


def _model(head: Document, template: Document, count: int) -> Document:
    spec = {"model": {"modelId": "MODEL"}, "server": {"instanceType": _selected(template)}, "replicas": count}
    return {"apiVersion": _INFERENCE, "kind": "JumpStartModel", "metadata": head, "spec": spec}


def _selected(template: Document) -> str:
    return str(template["spec"]["nodeSelector"][INSTANCE_TYPE_KEY])


def _once(template: Document) -> Document:
    return {**template, "spec": {"restartPolicy": "Never", **template["spec"]}}


_BUILDERS: Final = {
    "job": _job,
    "pytorchjob": _pytorch_job,
    "jobset": _job_set,
    "rayjob": _ray_job,
    "deployment": _deployment,
    "leaderworkerset": _leader_workers,
    "inferenceendpointconfig": _endpoint,
    "jumpstartmodel": _model,
}
_NAMES: Final = {name.lower(): name for name in WORKLOADS if name.lower() in _BUILDERS}


def workload_of(kind: str) -> Workload:
    """Return the entry of a team's `workloads` that a kind of `hpkit job new` requires."""
    return WORKLOADS[_NAMES[kind]]


def verdict(plan: Plan, team: TeamPlan, document: Mapping[str, Any]) -> Fit:
    """Return whether a job would be admitted for a team."""
    (unit,) = units(document)
    if not any(templates(unit)):
        return Fit("quota", "the operator chooses what its pods request, so compare it with the team's quota")
    return fit(plan, team, pod_sets_of(tuple(templates(unit)), plan))


def resources_of(instance_type: str) -> Document:
    """Return requests and limits of a pod that uses a whole instance.

    These are all accelerators and EFA interfaces, and the CPUs and memory that the kubelet leaves, less a part for
    DaemonSets. Raises SelectionError if the type isn't in the catalog.
    """
    details = find_instance_type(instance_type)
    if details is None or details.vcpu is None or details.memory_gib is None:
        raise SelectionError(f"the vCPUs or memory of {instance_type} aren't known; set its resources by hand")
    taken_cpu, taken_memory = kubelet_reserved(details.vcpu, details.memory_gib)
    cpu = _written((details.vcpu - taken_cpu) * _SHARE, "", 1000, "m")
    memory = _written((details.memory_gib - taken_memory) * _SHARE, "Gi", 1024, "Mi")
    devices = _devices(details)
    return {"requests": {"cpu": cpu, "memory": memory, **devices}, "limits": {"memory": memory, **devices}}


def _written(amount: float, unit: str, parts: int, smaller: str) -> str:
    """Return an amount rounded down: whole where little is lost by it, else in smaller units."""
    return f"{math.floor(amount)}{unit}" if amount >= _WHOLE else f"{math.floor(amount * parts)}{smaller}"


def _devices(details: InstanceType) -> dict[str, int]:
    devices = {}
    if details.accelerators and details.accelerator_resource:
        devices[details.accelerator_resource] = details.accelerators
    if details.efa_interfaces:
        devices[EFA] = details.efa_interfaces
    return devices


def _require_type(plan: Plan, instance_type: str) -> None:
    types = list(plan.capacity)
    if instance_type not in types:
        # An existing type is meant as written: one with a similar name has other accelerators, or none.
        meant = hint("" if find_instance_type(instance_type) else instance_type, types)
        raise SelectionError(f"{plan.stack} has no instances of {instance_type}; {meant}")


def _topology(plan: Plan, team: TeamPlan, instance_type: str, asked: tuple[str, str] | None) -> dict[str, str]:
    """Return the annotations with which Kueue admits pods on an instance type, as close together as asked."""
    if asked is None:
        # Where Kueue doesn't place pods by topology, the annotation has no effect.
        assumed = plan if plan.manages_topology else replace(plan, topology_aware_scheduling=True)
        asking, others = (types_by_topology(assumed, team, asks=asks) for asks in (True, False))
        return {UNCONSTRAINED: "true"} if instance_type in asking - others else {}
    if plan.manages_topology and not plan.topology_aware_scheduling:
        stated = plan.spec.governance is not None and plan.spec.governance.topology_aware_scheduling is not None
        raise SelectionError(
            f"{plan.stack} doesn't schedule by topology: governance.topologyAwareScheduling is Disabled"
            f"{'' if stated else ', the default with `autoscaling`'}; remove --topology"
        )
    kind = find_instance_type(instance_type)
    if kind is not None and not kind.network_layers:
        raise SelectionError(
            f"EC2 reports no network position for {instance_type}, so Kueue never admits pods that request a "
            "topology there; remove --topology"
        )
    return {TOPOLOGY[asked[0]]: asked[1]}


def priorities_of(plan: Plan, team: TeamPlan) -> list[str]:
    """Return the priority classes that a team's members may name, as the cluster policy has them."""
    known = [] if plan.policy is None else [each.name for each in plan.policy.priority_classes]
    return [name for name in known if not team.spec.priority_classes or name in team.spec.priority_classes]


def _priority(plan: Plan, team: TeamPlan, priority: str) -> str:
    class_names = [] if plan.policy is None else [each.name for each in plan.policy.priority_classes]
    name = priority.removesuffix("-priority")
    if name not in class_names:
        raise SelectionError(f"{plan.stack} has no priority class {priority}; {hint(name, class_names)}")
    mine = priorities_of(plan, team)
    if name not in mine:
        raise SelectionError(
            f"{team.name} can't use the priority class {name}: its priorityClasses are {', '.join(mine)}"
        )
    return f"{name}-priority"
