"""The kinds of jobs that task governance queues, and the position of their pods.

Sources:
- The kinds' own APIs: batch/v1, kubeflow.org/v1, jobset.x-k8s.io/v1alpha2, ray.io/v1, apps/v1,
  leaderworkerset.x-k8s.io/v1, workload.codeflare.dev/v1beta2, sagemaker.amazonaws.com/v1.
- The number of pods that Kueue counts: its pkg/controller/jobs, version 0.19.2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hpkit.config.models.governance import Workload
from hpkit.kueue.configuration import JOB_RESOURCES
from hpkit.plan.pods import mapping, mappings
from hpkit.plan.team_limits import REPLICA_TYPES

__all__ = [
    "CREATABLE",
    "KINDS",
    "LEAST",
    "PRIORITY",
    "QUEUE",
    "RUN_TIME",
    "TOPOLOGY",
    "WORKLOADS",
    "Path",
    "PodTemplate",
    "Unit",
    "is_paused",
    "parts",
    "templates",
    "units",
]

Path = tuple[str | int, ...]
# Kinds that `hpkit job new` writes.
KINDS: Final = (
    *("job", "pytorchjob", "jobset", "rayjob"),
    *("deployment", "leaderworkerset", "inferenceendpointconfig", "jumpstartmodel"),
)
_REPLICA_SPECS: Final = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
}
# Kinds that Kueue queues by a label on themselves.
_QUEUED: Final = (
    "Job", *_REPLICA_SPECS, "JobSet", "RayJob", "RayCluster", "RayService", "Pod", "Deployment", "StatefulSet",
    "LeaderWorkerSet", "AppWrapper", "HyperPodPyTorchJob", "InferenceEndpointConfig", "JumpStartModel",
)  # fmt: skip
# Kind → the entry of a team's `workloads` without which its members can't create it.
WORKLOADS: Final[Mapping[str, Workload]] = {
    **dict.fromkeys(
        ("Job", *_REPLICA_SPECS, "JobSet", "RayJob", "RayCluster", "RayService", "HyperPodPyTorchJob"), "training"
    ),
    **dict.fromkeys(("Deployment", "LeaderWorkerSet", "InferenceEndpointConfig", "JumpStartModel"), "inference"),
}
# Kinds that members of every team can create, or (with an entry) of teams with that entry in `workloads`.
CREATABLE: Final[Mapping[str, Workload | None]] = {
    **WORKLOADS,
    **dict.fromkeys(("ConfigMap", "PersistentVolumeClaim", "Pod", "Secret", "Service")),
    "HorizontalPodAutoscaler": "inference",
    "ScaledObject": "inference",
    "Workspace": "spaces",
    "WorkspaceConnection": "spaces",
}
_GROUPS: Final = {
    **{kind: version.partition("/")[0] for kind, (version, _) in JOB_RESOURCES.items()},
    "Pod": "v1",
    "StatefulSet": "apps",
    "AppWrapper": "workload.codeflare.dev",
    "CronJob": "batch",
}
# The container that KubeRay adds to submit a job (Kueue 0.19.2, rayjob_controller.go, defaultSubmitterResources).
_SUBMITTER: Final = {
    "name": "ray-job-submitter",
    "resources": {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
}
LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
QUEUE: Final = "kueue.x-k8s.io/queue-name"
RUN_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
PRIORITY: Final = "kueue.x-k8s.io/priority-class"
TOPOLOGY: Final[Mapping[str, str]] = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
}
# Kinds that the add-on's admission policy checks.
_GUARDED: Final = ("Pod", "Deployment", "StatefulSet", "Job", "RayCluster")


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A number of identical pods of a job; path is their template's position in the document.

    labelled: everything except the document that must have the queue label for these pods to be created. alone: whether
    Kueue admits them one by one. least: how few of them are enough for Kueue to start the job (partial admission).
    """

    path: Path
    count: int
    template: Mapping[str, Any]
    labelled: tuple[Path, ...] = ()
    alone: bool = False
    least: int | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """A queued part of a document: the document, an item of a List, or the Jobs of a CronJob; path is its position.

    namespaced: the position of its namespace, which for a CronJob's Jobs is the CronJob.
    """

    path: Path
    kind: str
    content: Mapping[str, Any]
    namespaced: Path


def parts(document: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[Any, Any]]]:
    """Yield the objects of a document with their positions: the items of a List, otherwise the document."""
    if document.get("kind") != "List":
        yield (), document
        return
    for number, item in enumerate(mappings(document.get("items"))):
        for path, inner in parts(item):
            yield ("items", number, *path), inner


def units(document: Mapping[str, Any]) -> Iterator[Unit]:
    """Return the parts of a document that Kueue queues; empty for other kinds."""
    for path, each in parts(document):
        kind = each.get("kind")
        if not isinstance(kind, str) or str(each.get("apiVersion", "")).partition("/")[0] not in (
            "",
            _GROUPS.get(kind),
        ):
            continue
        job = mapping(each.get("spec")).get("jobTemplate")
        if kind == "CronJob" and isinstance(job, Mapping):
            yield Unit((*path, "spec", "jobTemplate"), "Job", _labelled(job), path)
        elif kind in _QUEUED:
            yield Unit(path, kind, _labelled(each) if kind == "Job" else each, path)


def _labelled(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a Job with its pods' labels if it has none, as the API server does (SetDefaults_Job)."""
    metadata, pods = mapping(job.get("metadata")), mapping(mapping(job.get("spec")).get("template"))
    labels = mapping(mapping(pods.get("metadata")).get("labels"))
    return {**job, "metadata": {**metadata, "labels": labels}} if labels and not metadata.get("labels") else job


def templates(unit: Unit) -> Iterator[PodTemplate]:
    """Return the pod templates of a queued part; empty if it has none or is incomplete."""
    if unit.kind == "Pod":
        yield PodTemplate((), 1, unit.content)
        return
    spec = unit.content.get("spec")
    if unit.kind == "InferenceEndpointConfig" and isinstance(spec, Mapping):
        yield _endpoint(unit.content, spec)
        return
    if isinstance(spec, Mapping):
        stated = str(mapping(mapping(unit.content.get("metadata")).get("annotations")).get(LEAST, ""))
        for pods in _READERS.get(unit.kind, _replicas)(unit.kind, spec):
            partial = unit.kind == "Job" and stated.isdecimal() and 0 < int(stated) < pods.count
            yield replace(pods, least=int(stated)) if partial else pods


def is_paused(unit: Unit) -> bool:
    """Return whether a Deployment's pods stay as they are, of which a new one has none (Kubernetes, Deployments)."""
    return unit.kind == "Deployment" and mapping(unit.content.get("spec")).get("paused") is True


def _endpoint(content: Mapping[str, Any], spec: Mapping[str, Any]) -> PodTemplate:
    """Return the pods of the Deployment that the inference operator creates, as far as its CRD tells."""
    container = {**mapping(spec.get("worker")), "name": "worker"}
    chosen = {"node.kubernetes.io/instance-type": spec["instanceType"]} if spec.get("instanceType") else {}
    pod = {"containers": [container], "nodeSelector": chosen}
    # The CRD has no annotations for pods.
    template = {"metadata": {"labels": mapping(mapping(content.get("metadata")).get("labels"))}, "spec": pod}
    return PodTemplate((), _whole(spec.get("replicas", 1)), template, alone=True)


def _job(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    yield from _made(("spec", "template"), _at_once(spec), spec.get("template"))


def _stays_up(kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    # Kueue writes the queue into the templates of a Deployment and a StatefulSet itself.
    if isinstance(spec.get("template"), Mapping):
        count = _whole(spec.get("replicas", 1))
        yield PodTemplate(("spec", "template"), count, spec["template"], alone=kind == "Deployment")


def _replicas(kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    key = _REPLICA_SPECS[kind]
    types = mapping(spec.get(key))
    # In Kueue's order.
    for name in sorted(types, key=lambda each: ((*REPLICA_TYPES[key], each).index(each), str(each))):
        given = mapping(types[name])
        yield from _made(("spec", key, name, "template"), _whole(given.get("replicas", 1)), given.get("template"))


def _job_set(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    for number, replicated_job in enumerate(mappings(spec.get("replicatedJobs"))):
        job = mapping(mapping(replicated_job.get("template")).get("spec"))
        above: Path = ("spec", "replicatedJobs", number, "template")
        count = _whole(replicated_job.get("replicas", 1)) * _at_once(job)
        yield from _made((*above, "spec", "template"), count, job.get("template"), above)


def _ray_job(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    mode = spec.get("submissionMode") or "K8sJobMode"
    for pods in _ray(mapping(spec.get("rayClusterSpec")), ("spec", "rayClusterSpec")):
        inner = mapping(pods.template.get("spec"))
        if mode == "SidecarMode" and "headGroupSpec" in pods.path:
            added = {**inner, "containers": [*mappings(inner.get("containers")), _SUBMITTER]}
            yield replace(pods, template={**pods.template, "spec": added})
        else:
            yield pods
    if mode == "K8sJobMode":
        own = spec.get("submitterPodTemplate")
        path: Path = ("spec", "submitterPodTemplate") if isinstance(own, Mapping) else ("spec",)
        yield PodTemplate(path, 1, own if isinstance(own, Mapping) else {"spec": {"containers": [_SUBMITTER]}})


def _ray_cluster(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    yield from _ray(spec, ("spec",))


def _ray_service(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    yield from _ray(mapping(spec.get("rayClusterConfig")), ("spec", "rayClusterConfig"))


def _model(_kind: str, _spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """Return no pods: the inference operator chooses what a model of JumpStart requests."""
    yield from ()


def _ray(cluster: Mapping[str, Any], path: Path) -> Iterator[PodTemplate]:
    yield from _made((*path, "headGroupSpec", "template"), 1, mapping(cluster.get("headGroupSpec")).get("template"))
    for number, each in enumerate(mappings(cluster.get("workerGroupSpecs"))):
        # Kueue would count 1, but the API server adds the default of KubeRay's CRD (1.6.2) before.
        count = _whole(each.get("replicas", 0)) * max(1, _whole(each.get("numOfHosts", 1)))
        yield from _made((*path, "workerGroupSpecs", number, "template"), count, each.get("template"))


def _leader_workers(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """Return leader and workers of one group: Kueue admits each group by itself, and labels the pods."""
    inside = mapping(spec.get("leaderWorkerTemplate"))
    size = _whole(inside.get("size", 1))
    leader, worker = inside.get("leaderTemplate"), inside.get("workerTemplate")
    path: Path = ("spec", "leaderWorkerTemplate")
    if isinstance(leader, Mapping):
        yield PodTemplate((*path, "leaderTemplate"), 1, leader)
        size -= 1
    if isinstance(worker, Mapping):
        yield PodTemplate((*path, "workerTemplate"), max(0, size), worker)


def _wrapped(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    for number, component in enumerate(mappings(spec.get("components"))):
        above: Path = ("spec", "components", number, "template")
        for unit in units(mapping(component.get("template"))):
            for template in templates(unit):
                inside = ((*above, *unit.path, *path) for path in template.labelled)
                labelled = (*([(*above, *unit.path)] if unit.kind in _GUARDED else []), *inside)
                yield replace(template, path=(*above, *unit.path, *template.path), labelled=labelled, alone=False)


def _hyperpod(_kind: str, spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    # The add-on's policy excludes objects of a HyperPodPyTorchJob.
    for number, replica_spec in enumerate(mappings(spec.get("replicaSpecs"))):
        if isinstance(replica_spec.get("template"), Mapping):
            path: Path = ("spec", "replicaSpecs", number, "template")
            yield PodTemplate(path, _whole(replica_spec.get("replicas", 1)), replica_spec["template"])


_READERS: Final = {
    "Job": _job,
    "Deployment": _stays_up,
    "StatefulSet": _stays_up,
    "JobSet": _job_set,
    "RayJob": _ray_job,
    "RayCluster": _ray_cluster,
    "RayService": _ray_service,
    "JumpStartModel": _model,
    "LeaderWorkerSet": _leader_workers,
    "AppWrapper": _wrapped,
    "HyperPodPyTorchJob": _hyperpod,
}


def _made(path: Path, count: int, template: Any, *above: Path) -> Iterator[PodTemplate]:
    """Return pods that a controller creates from an unchanged template, which must have the queue label."""
    if isinstance(template, Mapping):
        yield PodTemplate(path, count, template, (*above, path))


def _at_once(job: Mapping[str, Any]) -> int:
    """Return how many pods of a Job Kueue counts: those that run in parallel, at most its completions."""
    side_by_side = _whole(job.get("parallelism", 1))
    return min(side_by_side, _whole(job.get("completions"), side_by_side))


def _whole(value: Any, otherwise: int = 1) -> int:
    """Return a count; an invalid one counts as one, since the API server reports the problem."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
