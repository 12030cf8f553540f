"""The kinds of jobs that task governance queues, and where each holds its pods.

Sources: the kinds' own APIs: batch/v1, kubeflow.org/v1, jobset.x-k8s.io/v1alpha2, ray.io/v1, apps/v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["KINDS", "QUEUED", "PodTemplate", "mapping", "mappings", "templates"]

Path = tuple[str | int, ...]
# Kinds that `hpkit job new` writes.
KINDS: Final = ("job", "pytorchjob", "jobset", "rayjob")
_REPLICA_SPECS: Final = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
}
# Kinds that Kueue queues by a label of their own.
QUEUED: Final = (
    "Job", *_REPLICA_SPECS, "JobSet", "RayJob", "RayCluster", "Pod", "Deployment", "StatefulSet", "LeaderWorkerSet",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """So many equal pods of a job; path leads to their template in the document."""

    path: Path
    count: int
    template: Mapping[str, Any]


def templates(document: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """Return the pod templates of a document of one of the kinds; nothing of what has none, or is not yet complete."""
    kind, spec = document.get("kind"), document.get("spec")
    if kind == "Pod":
        yield PodTemplate((), 1, document)
    elif not isinstance(spec, Mapping):
        return
    elif kind == "JobSet":
        yield from _job_set(spec)
    elif kind in ("RayJob", "RayCluster"):
        inside = kind == "RayJob"
        cluster = spec.get("rayClusterSpec") if inside else spec
        if isinstance(cluster, Mapping):
            yield from _ray(cluster, ("spec", "rayClusterSpec") if inside else ("spec",))
    elif kind in _REPLICA_SPECS:
        yield from _replicas(spec, _REPLICA_SPECS[kind])
    elif isinstance(spec.get("template"), Mapping):
        count = spec.get("parallelism", 1) if kind == "Job" else spec.get("replicas", 1)
        yield PodTemplate(("spec", "template"), _whole(count), spec["template"])


def _replicas(spec: Mapping[str, Any], key: str) -> Iterator[PodTemplate]:
    for name, each in mapping(spec.get(key)).items():
        if isinstance(mapping(each).get("template"), Mapping):
            yield PodTemplate(("spec", key, name, "template"), _whole(each.get("replicas", 1)), each["template"])


def _job_set(spec: Mapping[str, Any]) -> Iterator[PodTemplate]:
    for number, each in enumerate(mappings(spec.get("replicatedJobs"))):
        job = mapping(mapping(each.get("template")).get("spec"))
        if isinstance(job.get("template"), Mapping):
            path = ("spec", "replicatedJobs", number, "template", "spec", "template")
            count = _whole(each.get("replicas", 1)) * _whole(job.get("parallelism", 1))
            yield PodTemplate(path, count, job["template"])


def _ray(cluster: Mapping[str, Any], path: Path) -> Iterator[PodTemplate]:
    head = mapping(cluster.get("headGroupSpec")).get("template")
    if isinstance(head, Mapping):
        yield PodTemplate((*path, "headGroupSpec", "template"), 1, head)
    for number, each in enumerate(mappings(cluster.get("workerGroupSpecs"))):
        if isinstance(each.get("template"), Mapping):
            where = (*path, "workerGroupSpecs", number, "template")
            yield PodTemplate(where, _whole(each.get("replicas", 1)), each["template"])


def mapping(value: Any) -> Mapping[Any, Any]:
    """Return a mapping of a document that a person wrote; an empty one where something else stands there."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[Any, Any]]:
    """Return the mappings of a list of a document that a person wrote; what else stands in it counts as empty ones."""
    return [mapping(each) for each in value] if isinstance(value, list) else []


def _whole(value: Any) -> int:
    """Return a count; what is none counts as one, since the API server says what is wrong with it."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1
