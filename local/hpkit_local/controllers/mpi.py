"""A fake of Kubeflow's MPI operator: launcher and workers of each MPIJob that Kueue doesn't suspend.

Names, labels and statuses are those of mpi-operator 0.5, which the dependencies chart installs
(pkg/controller/mpi_job_controller.go). Kueue suspends and resumes the jobs itself.

It doesn't create the Service, host file and SSH keys that MPI's processes use, or apply time limits of workers.
"""

from __future__ import annotations

from typing import Any

from hpkit_local.controllers.objects import owner_reference
from hpkit_local.controllers.training import Document, conditions_of, delete, is_owned_by, is_ready, is_true, written
from hpkit_local.kubernetes.api import Api, RefusedError

__all__ = ["run_mpi"]

_VERSION, _KIND = "kubeflow.org/v2beta1", "MPIJob"
_JOBS = f"/apis/{_VERSION}"
_LABEL = "training.kubeflow.org"
_RUN = "hpkit.local/run"
# A worker is an SSH server, which doesn't end by itself.
_FOREVER = "87600h"
_POLICIES = {"Launcher": "OnFailure", "Worker": "Never"}


def run_mpi(api: Api) -> None:
    """Advance each MPIJob by one step, while the operator's pod runs."""
    jobs = [each for each in api.items(f"{_JOBS}/mpijobs") if "deletionTimestamp" not in each["metadata"]]
    if not jobs or not any(map(_runs, api.items("/api/v1/pods", labels="app=mpi-operator"))):
        return
    pods = api.items("/api/v1/pods", labels=f"{_LABEL}/operator-name=mpi-operator")
    for job in jobs:
        path = f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs/{job['metadata']['name']}-launcher"
        launcher = api.find(path)
        owners = [job] if launcher is None else [job, launcher]
        own = [pod for pod in pods if any(is_owned_by(pod, owner) for owner in owners)]
        try:
            conditions = _step(api, job, launcher, path, own)
        except RefusedError as error:
            conditions = {"Running": written("Running", "False", "MPIJobFailed", str(error))}
        _say(api, job, conditions, own)


def _step(
    api: Api, job: Document, launcher: dict[str, Any] | None, path: str, pods: list[dict[str, Any]]
) -> dict[str, dict[str, str]]:
    """Create or delete what a job needs now; return the resulting conditions."""
    policy = job["spec"].get("runPolicy", {})
    workers = [pod for pod in pods if pod["metadata"]["labels"][f"{_LABEL}/job-role"] == "worker"]
    clean = policy.get("cleanPodPolicy", "None")
    unended = [pod for pod in workers if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    before = conditions_of(job)
    if is_true(before, "Succeeded") or is_true(before, "Failed"):
        delete(api, {"All": workers, "Running": unended}.get(clean, []))
        return {}
    ended = {} if launcher is None else conditions_of(launcher)
    for condition_type, end in (("Complete", "Succeeded"), ("Failed", "Failed")):
        if is_true(ended, condition_type):
            reason = ended[condition_type].get("reason", f"MPIJob{end}")
            message = ended[condition_type].get("message") or f"MPIJob {end.lower()}"
            return {end: written(end, "True", reason, message), "Running": written("Running", "False", reason, message)}
    suspended = bool(policy.get("suspend"))
    if suspended:
        delete(api, unended if clean == "Running" else workers)
    else:
        workers += _missing_workers(api, job, workers)
    if launcher is None:
        waits = job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
        if not waits or all(is_ready(pod) for pod in workers):
            api.create(path.rpartition("/")[0], _launcher(job, suspended=suspended))
    elif bool(launcher["spec"].get("suspend")) != suspended:
        api.merge(path, {"spec": {"suspend": suspended}})
    if suspended:
        states = [("Suspended", "True", "MPIJobSuspended"), ("Running", "False", "MPIJobSuspended")]
    else:
        launchers = [pod for pod in pods if pod not in workers]
        running = any(map(_runs, launchers)) and all(map(_runs, workers))
        states = [("Suspended", "False", "MPIJobResumed")] if "Suspended" in before else []
        states += [("Running", "True", "MPIJobRunning")] if running else []
    return {kind: written(kind, status, reason, "") for kind, status, reason in states}


def _missing_workers(api: Api, job: Document, workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Create the workers that a job lacks."""
    metadata, existing = job["metadata"], {pod["metadata"]["name"] for pod in workers}
    created = []
    for index in range(job["spec"]["mpiReplicaSpecs"].get("Worker", {}).get("replicas", 0)):
        name = f"{metadata['name']}-worker-{index}"
        if name in existing:
            continue
        pod = _template(job, "Worker", name)
        pod["metadata"] |= {"name": name, "namespace": metadata["namespace"], "ownerReferences": [_owner(job)]}
        pod["metadata"]["labels"][f"{_LABEL}/replica-index"] = str(index)
        pod["metadata"]["annotations"].setdefault(_RUN, _FOREVER)
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        created.append(api.create(path, {"apiVersion": "v1", "kind": "Pod", **pod}))
    return created


def _launcher(job: Document, *, suspended: bool) -> dict[str, Any]:
    """Return the Job of a launcher, which has no queue: the MPIJob's quota counts its pod."""
    name, policy = job["metadata"]["name"], job["spec"].get("runPolicy", {})
    passed = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-launcher", "labels": {"app": name}, "ownerReferences": [_owner(job)]},
        "spec": {
            **{key: policy[key] for key in passed if key in policy},
            "suspend": suspended,
            "template": _template(job, "Launcher", f"{name}-launcher"),
        },
    }


def _template(job: Document, role: str, hostname: str) -> dict[str, Any]:
    """Return metadata and spec of the pods of a role."""
    replica = job["spec"]["mpiReplicaSpecs"][role]
    metadata = replica["template"].get("metadata") or {}
    name = job["metadata"]["name"]
    own = {"operator-name": "mpi-operator", "job-name": name, "job-role": role.lower()}
    labels = {**metadata.get("labels", {}), **{f"{_LABEL}/{key}": value for key, value in own.items()}}
    restart = replica.get("restartPolicy") or _POLICIES[role]
    spec = {**replica["template"]["spec"], "hostname": hostname, "subdomain": name}
    spec["restartPolicy"] = "Never" if restart == "ExitCode" else restart
    return {"metadata": {"labels": labels, "annotations": {**metadata.get("annotations", {})}}, "spec": spec}


def _say(api: Api, job: Document, conditions: dict[str, dict[str, str]], pods: list[dict[str, Any]]) -> None:
    """Write conditions that have changed, and how many pods of each role run and have ended."""
    before = conditions_of(job)
    created = {"Created": written("Created", "True", "MPIJobCreated", "")}
    new = {
        condition_type: condition
        for condition_type, condition in (created | conditions).items()
        if before.get(condition_type, {}).get("status") != condition["status"]
    }
    counts = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
    phases: dict[str, list[str]] = {"Launcher": [], "Worker": []}
    for pod in pods:
        role = pod["metadata"]["labels"][f"{_LABEL}/job-role"].capitalize()
        phases[role].append(pod.get("status", {}).get("phase", ""))
    replicas = {role: {key: found.count(phase) for key, phase in counts.items()} for role, found in phases.items()}
    status: dict[str, Any] = {"conditions": list({**before, **new}.values()), "replicaStatuses": replicas}
    if {"Succeeded", "Failed"} & new.keys():
        status["completionTime"] = created["Created"]["lastTransitionTime"]
    if new or replicas != job.get("status", {}).get("replicaStatuses"):
        metadata = job["metadata"]
        api.merge(f"{_JOBS}/namespaces/{metadata['namespace']}/mpijobs/{metadata['name']}/status", {"status": status})


def _owner(job: Document) -> dict[str, Any]:
    return owner_reference(_VERSION, _KIND, job)


def _runs(pod: Document) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")
