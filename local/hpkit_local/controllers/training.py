"""A fake of HyperPod's training operator: its kind, and for each HyperPodPyTorchJob a Workload and pods.

The operator isn't published. Its fields and defaults are those of the HyperPod CLI (sagemaker-hyperpod 3.12.0,
training/config), which finds a job's pods by the label HPJob. For Kueue, the kind is an external framework: the
operator creates Workloads itself. It handles them as Kueue 0.19 does for its built-in kinds
(pkg/controller/jobframework/reconciler.go).

It doesn't restart pods or jobs, read logs, keep spares, scale elastically, or apply time limits.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from hpkit_local.aws.controllers import Snapshot
from hpkit_local.controllers.objects import Manifests, addon_owners, custom_kind, owner_reference
from hpkit_local.kubernetes.api import Api, RejectedError

__all__ = ["TRAINING", "run_training", "training"]

TRAINING = "amazon-sagemaker-hyperpod-training-operator"
_GROUP, _VERSION, _KIND, _PLURAL = "sagemaker.amazonaws.com", "v1", "HyperPodPyTorchJob", "hyperpodpytorchjobs"
_JOBS = f"/apis/{_GROUP}/{_VERSION}"
_KUEUE = "kueue.x-k8s.io"
_WORKLOADS = f"/apis/{_KUEUE}/v1beta2"
_OF_JOB = "HPJob"
_DIGEST = "hpkit.local/digest"
_QUEUE, _CLASS = f"{_KUEUE}/queue-name", f"{_KUEUE}/priority-class"
_MODES = {mode: f"{_KUEUE}/podset-{mode}-topology" for mode in ("required", "preferred", "unconstrained")}
# Reasons of evictions after which Kueue requeues a job immediately (WorkloadEvicted).
_REQUEUED = ("Preempted", "NodeFailures")
_ENDED = ("Succeeded", "Failed")
_MOST_NAME = 52
_ANY: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_COUNT = {"type": "integer", "format": "int32", "minimum": 0}
_SPEC: dict[str, Any] = {
    **_ANY,
    "properties": {
        "nprocPerNode": {"type": "string", "default": "auto"},
        "replicaSpecs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "replicas": {**_COUNT, "default": 1},
                    "spares": _COUNT,
                    "maxReplicas": _COUNT,
                    "template": _ANY,
                },
            },
        },
        "runPolicy": {
            **_ANY,
            "properties": {"cleanPodPolicy": {"type": "string", "default": "All"}, "suspend": {"type": "boolean"}},
        },
        "elasticPolicy": _ANY,
    },
}
_Document = Mapping[str, Any]


def training(snapshot: Snapshot) -> Manifests:
    """Return the kind of the add-on, while it is installed."""
    owners = addon_owners(snapshot.addons, TRAINING)
    schema = {"type": "object", "properties": {"spec": _SPEC, "status": _ANY}}
    kind = custom_kind(f"{_GROUP}/{_VERSION}", _KIND, _PLURAL, schema, owners)
    return Manifests((kind,) if owners else ())


def run_training(api: Api, snapshot: Snapshot) -> None:
    """Advance each HyperPodPyTorchJob by one step: its Workload, its pods, and its status."""
    if not addon_owners(snapshot.addons, TRAINING):
        return
    jobs = [each for each in api.items(f"{_JOBS}/{_PLURAL}") if "deletionTimestamp" not in each["metadata"]]
    pods = api.items("/api/v1/pods", labels=_OF_JOB) if jobs else []
    for job in jobs:
        own = [pod for pod in pods if _is_owned_by(pod, job)]
        said = _conditions_of(job)
        if _is_true(said, "Completed") or _is_true(said, "Failed"):
            if job["spec"].get("runPolicy", {}).get("cleanPodPolicy", "All") == "All":
                _delete(api, own)
            continue
        try:
            _step(api, job, own)
        except RejectedError as error:
            _say(api, job, "Suspended", str(error))


def _step(api: Api, job: _Document, pods: list[dict[str, Any]]) -> None:
    queue = job["metadata"].get("labels", {}).get(_QUEUE)
    if not queue:
        # As with other kinds, Kueue ignores a job without a queue.
        if not job["spec"].get("runPolicy", {}).get("suspend"):
            _make(api, job, pods, {}, "")
            _follow(api, job, pods, None)
        return
    desired = _workload(api, job, queue)
    path = f"{_WORKLOADS}/namespaces/{job['metadata']['namespace']}/workloads/{desired['metadata']['name']}"
    workload = api.find(path)
    if (
        workload is not None
        and workload["metadata"]["annotations"].get(_DIGEST) != desired["metadata"]["annotations"][_DIGEST]
    ):
        # The job has changed: it starts again, as another one.
        _delete(api, pods)
        api.delete(path)
        return
    if workload is None:
        workload = api.create(path.rpartition("/")[0], desired)
    elif workload["spec"].get("priority") != desired["spec"]["priority"]:
        rank = {key: desired["spec"].get(key) for key in ("priority", "priorityClassRef")}
        workload = api.merge(path, {"spec": rank})
    status = workload.get("status", {})
    conditions = _conditions_of(workload)
    if _is_true(conditions, "Evicted"):
        _delete(api, pods)
        if not pods and "admission" in status:
            _give_back(api, path, workload, conditions)
        _say(api, job, "Suspended", conditions["Evicted"]["message"])
    elif _is_true(conditions, "Admitted"):
        _make(api, job, pods, _places(api, status["admission"]), desired["metadata"]["name"])
        _follow(api, job, pods, path)
    else:
        _say(api, job, "Suspended", conditions.get("QuotaReserved", {}).get("message", ""))


def _workload(api: Api, job: _Document, queue: str) -> dict[str, Any]:
    """Return the Workload of a job; RejectedError if its priority class doesn't exist."""
    metadata = job["metadata"]
    spec: dict[str, Any] = {"queueName": queue, "podSets": [_pod_set(each) for each in _replicas(job)]}
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
    rank = metadata.get("labels", {}).get(_CLASS)
    spec["priority"] = 0
    if rank:
        spec["priority"] = api.read(f"{_WORKLOADS}/workloadpriorityclasses/{rank}")["value"]
        spec["priorityClassRef"] = {"group": _KUEUE, "kind": "WorkloadPriorityClass", "name": rank}
    name = f"{_KIND.lower()}-{metadata['name']}"[:_MOST_NAME].rstrip("-.")
    return {
        "apiVersion": f"{_KUEUE}/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": f"{name}-{hashlib.sha256(metadata['uid'].encode()).hexdigest()[:5]}",
            "namespace": metadata["namespace"],
            "labels": {f"{_KUEUE}/job-uid": metadata["uid"]},
            "annotations": {_DIGEST: digest},
            "ownerReferences": [owner_reference(f"{_GROUP}/{_VERSION}", _KIND, job)],
        },
        "spec": spec,
    }


def _replicas(job: _Document) -> list[dict[str, Any]]:
    return [each for each in job["spec"].get("replicaSpecs") or () if each.get("replicas", 1)]


def _pod_set(replica: _Document) -> dict[str, Any]:
    template = _template(replica)
    stated = template["metadata"].get("annotations", {})
    request = {mode: stated[key] for mode, key in _MODES.items() if key in stated}
    if "unconstrained" in request:
        request["unconstrained"] = request["unconstrained"] == "true"
    pod_set = {"name": replica["name"].lower(), "count": replica.get("replicas", 1), "template": template}
    return {**pod_set, "topologyRequest": request} if request else pod_set


def _template(replica: _Document) -> dict[str, Any]:
    """Return a replica's pod template as a pod has it: only with labels and annotations, and a restart policy."""
    template = replica.get("template") or {}
    metadata = template.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    return {"metadata": kept, "spec": {"restartPolicy": "Never", **template.get("spec", {})}}


def _places(api: Api, admission: _Document) -> dict[str, dict[str, Any]]:
    """Return by pod set what its pods get from their flavors: nodeSelector and tolerations, and a topology's gate."""
    places: dict[str, dict[str, Any]] = {}
    for assignment in admission["podSetAssignments"]:
        place: dict[str, Any] = {"nodeSelector": {}, "tolerations": []}
        for flavor in sorted(set(assignment.get("flavors", {}).values())):
            spec = api.read(f"{_WORKLOADS}/resourceflavors/{flavor}").get("spec", {})
            place["nodeSelector"] |= spec.get("nodeLabels", {})
            place["tolerations"] += spec.get("tolerations", [])
        if "topologyAssignment" in assignment:
            place["schedulingGates"] = [{"name": f"{_KUEUE}/topology"}]
        places[assignment["name"]] = place
    return places


def _make(api: Api, job: _Document, pods: list[dict[str, Any]], places: Mapping[str, _Document], workload: str) -> None:
    """Create the pods that are missing."""
    metadata, existing = job["metadata"], {pod["metadata"]["name"] for pod in pods}
    for replica in _replicas(job):
        template, pod_set = _template(replica), replica["name"].lower()
        place, spec = places.get(pod_set, {}), template["spec"]
        for index in range(replica.get("replicas", 1)):
            name = f"{metadata['name']}-{pod_set}-{index}"
            if name in existing:
                continue
            own = {f"{_KUEUE}/workload": workload} if workload else {}
            queued = {f"{_KUEUE}/podset": pod_set} if workload else {}
            document = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": {**template["metadata"].get("labels", {}), _OF_JOB: metadata["name"], **queued},
                    "annotations": {**template["metadata"].get("annotations", {}), **own},
                    "ownerReferences": [owner_reference(f"{_GROUP}/{_VERSION}", _KIND, job)],
                },
                "spec": {
                    **spec,
                    **place,
                    "nodeSelector": {**spec.get("nodeSelector", {}), **place.get("nodeSelector", {})},
                    "tolerations": [*spec.get("tolerations", []), *place.get("tolerations", [])],
                },
            }
            pods.append(api.create(f"/api/v1/namespaces/{metadata['namespace']}/pods", document))


def _follow(api: Api, job: _Document, pods: list[dict[str, Any]], workload: str | None) -> None:
    """Write the state of the pods to the job and its Workload."""
    phases = [pod.get("status", {}).get("phase") for pod in pods]
    failed = next((pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Failed"), None)
    if failed is not None or all(phase == "Succeeded" for phase in phases):
        message = f"pod {failed} failed" if failed else "all pods succeeded"
        if workload is not None:
            _condition(api, workload, "Finished", "True", "Failed" if failed else "Succeeded", message)
        _say(api, job, "Failed" if failed else "Completed", message)
        return
    ready = all(_is_ready(pod) for pod in pods)
    if workload is not None:
        reason, message = (
            ("Started", "All pods reached readiness") if ready else ("WaitForStart", "Not all pods are ready")
        )
        _condition(api, workload, "PodsReady", "True" if ready else "False", reason, message)
    _say(api, job, "Running" if ready else "PodsScheduled", "")


def _give_back(api: Api, path: str, workload: _Document, conditions: dict[str, _Document]) -> None:
    """Remove the quota of an evicted job without pods, so that Kueue can queue it again."""
    evicted = conditions["Evicted"]
    requeued = "True" if evicted["reason"] in _REQUEUED else "False"
    changed = {
        "Requeued": _written("Requeued", requeued, evicted["reason"], evicted["message"]),
        "QuotaReserved": _written("QuotaReserved", "False", "Pending", evicted["message"]),
        "Admitted": _written("Admitted", "False", "NoReservation", "The workload has no reservation"),
    }
    status = {"admission": None, "conditions": list({**conditions, **changed}.values())}
    api.merge(f"{path}/status", {"metadata": _version(workload), "status": status})


def _condition(api: Api, path: str, condition_type: str, status: str, reason: str, message: str) -> None:
    workload = api.read(path)
    conditions = _conditions_of(workload)
    if conditions.get(condition_type, {}).get("status") != status:
        conditions[condition_type] = _written(condition_type, status, reason, message)
        document = {"metadata": _version(workload), "status": {"conditions": list(conditions.values())}}
        api.merge(f"{path}/status", document)


def _say(api: Api, job: _Document, condition_type: str, message: str) -> None:
    """Write the conditions of a job, of which the last true one is its state; what was true before is so no more."""
    before = _conditions_of(job)
    if before.get(condition_type, {}).get("status") == "True" and before[condition_type]["message"] == message:
        return
    was = {
        name: {**each, "status": "False"} for name, each in before.items() if name not in ("Created", condition_type)
    }
    created = before.get("Created") or _written("Created", "True", "JobCreated", "")
    status: dict[str, Any] = {
        "conditions": [created, *was.values(), _written(condition_type, "True", condition_type, message)]
    }
    if condition_type in ("Completed", "Failed"):
        status["completionTime"] = _now()
    path = f"{_JOBS}/namespaces/{job['metadata']['namespace']}/{_PLURAL}/{job['metadata']['name']}/status"
    api.merge(path, {"status": status})


def _is_owned_by(pod: _Document, job: _Document) -> bool:
    """Return whether a job created a pod."""
    return any(each["uid"] == job["metadata"]["uid"] for each in pod["metadata"].get("ownerReferences", ()))


def _conditions_of(thing: _Document) -> dict[str, _Document]:
    """Return the conditions of an object by type."""
    return {each["type"]: each for each in thing.get("status", {}).get("conditions", [])}


def _is_true(conditions: Mapping[str, _Document], kind: str) -> bool:
    """Return whether a condition is true."""
    return conditions.get(kind, {}).get("status") == "True"


def _is_ready(pod: _Document) -> bool:
    """Return whether a pod is ready, or has ended."""
    conditions = _conditions_of(pod)
    return pod.get("status", {}).get("phase") in _ENDED or _is_true(conditions, "Ready")


def _delete(api: Api, pods: Iterable[_Document]) -> None:
    """Delete pods."""
    for pod in pods:
        api.delete(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}")


def _version(thing: _Document) -> dict[str, str]:
    """Return what makes a change fail if another writer has changed the object since."""
    return {"resourceVersion": thing["metadata"]["resourceVersion"]}


def _written(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    """Return a condition that changes now."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
