"""Finds a job on a running platform: its object, its pods by rank, and the reasons of its last failure.

Sources of labels and conditions:
- batch/v1, and the Kubernetes documentation, "Well-Known Labels".
- kubeflow.org: training-operator 1.7, pkg/apis/kubeflow.org/v1/common_types.go; mpi-operator labels alike.
- JobSet 0.8, api/jobset/v1alpha2; KubeRay 1.3, ray-operator/controllers/ray/utils/constant.go.
- HyperPod's operator: the HyperPod CLI 3.12.0, which selects pods by HPJob.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubernetes.client import ApiException

from hpkit.cluster.jobs.kinds import mapping, mappings
from hpkit.cluster.live.kubernetes import CONFLICT, FORBIDDEN, NOT_FOUND, Kubernetes, message_of
from hpkit.cluster.live.model import team_of
from hpkit.cluster.live.parse import task_of
from hpkit.cluster.live.waiting import deactivation, eviction, message_words, preemption
from hpkit.errors import SelectionError, ToolError
from hpkit.kueue.jobs import JOB_RESOURCES
from hpkit.text.formatting import listing, span

__all__ = ["Job", "Rank", "find_job", "history", "owner_of", "pods_of", "ranks_of", "refreshed", "stop"]

# Kind → the label of its pods that has its name; _TRAINING for kinds of kubeflow.org.
_LABELS: Final[Mapping[str, str]] = {
    "Job": "batch.kubernetes.io/job-name",
    "HyperPodPyTorchJob": "HPJob",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "RayJob": "ray.io/cluster",
    "RayCluster": "ray.io/cluster",
}
_TRAINING: Final = "training.kubeflow.org"
_ROLES: Final = (f"{_TRAINING}/job-role", f"{_TRAINING}/replica-type", "ray.io/node-type")
_INDEXES: Final = (f"{_TRAINING}/replica-index", "batch.kubernetes.io/job-completion-index")
_JOB_OF_SET: Final = "jobset.sigs.k8s.io/job-global-index"
# Replicas of which a job has one, and which is its first rank.
_LEADS: Final = ("master", "launcher", "chief", "head")
_UNNUMBERED: Final = sys.maxsize
_NUMBER: Final = re.compile(r"(.*)-(\d+)")
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_ENDS: Final = ("Complete", "Completed", "Succeeded", "Failed", "Finished")
_PARALLEL: Final = 8
_SHOWN: Final = 5
_GRACE: Final = 30
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its API has it; path: of the object."""

    kind: str
    path: str
    document: Document

    @property
    def name(self) -> str:
        """Return its name."""
        return str(self.document["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        return str(self.document["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        """Return its UID."""
        return str(self.document["metadata"]["uid"])

    @property
    def words(self) -> str:
        """Return kind, name and team as text."""
        return f"{self.kind} {self.name} of {team_of(self.namespace)}"

    @property
    def failure(self) -> str:
        """Return why the job as a whole failed, or ""."""
        status = mapping(self.document.get("status"))
        for condition in mappings(status.get("conditions")):
            if condition.get("type") == "Failed" and condition.get("status") == "True":
                return _reason(condition) or "Failed"
        if status.get("jobStatus") == "FAILED" or status.get("jobDeploymentStatus") == "Failed":
            return str(status.get("message") or status.get("reason") or "Failed")
        return ""

    @property
    def has_ended(self) -> bool:
        """Return whether it has succeeded or failed."""
        status = mapping(self.document.get("status"))
        return status.get("jobDeploymentStatus") in _ENDS or any(
            condition.get("type") in _ENDS and condition.get("status") == "True"
            for condition in mappings(status.get("conditions"))
        )


@dataclass(frozen=True, slots=True)
class Rank:
    """The newest pod in one place of a job, by number; the first is 0."""

    number: int
    pod: Document

    @property
    def name(self) -> str:
        """Return the pod's name."""
        return str(self.pod["metadata"]["name"])

    @property
    def container(self) -> str:
        """Return its main container: the one that kubectl uses by default."""
        chosen = mapping(self.pod["metadata"].get("annotations")).get(_DEFAULT_CONTAINER)
        return str(chosen or self.pod["spec"]["containers"][0]["name"])

    @property
    def attempt(self) -> tuple[str, int]:
        """Return the pod's UID and how often its main container has restarted."""
        return str(self.pod["metadata"]["uid"]), int(self._status.get("restartCount") or 0)

    @property
    def is_running(self) -> bool:
        """Return whether its main container runs."""
        return "running" in mapping(self._status.get("state"))

    @property
    def waits(self) -> str:
        """Return why its main container hasn't started yet; "" if it has."""
        state = mapping(self._status.get("state"))
        if "running" in state or "terminated" in state or self._status.get("restartCount"):
            return ""
        waiting = mapping(state.get("waiting"))
        status = mapping(self.pod.get("status"))
        unplaced = next(
            (
                str(condition.get("message") or "")
                for condition in mappings(status.get("conditions"))
                if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
            ),
            "",
        )
        return _reason(waiting) or unplaced or str(status.get("phase") or "Pending")

    @property
    def _status(self) -> Mapping[Any, Any]:
        statuses = mappings(mapping(self.pod.get("status")).get("containerStatuses"))
        return next((each for each in statuses if each.get("name") == self.container), {})


def _reason(state: Mapping[Any, Any]) -> str:
    """Return the reason and the message of a condition or state, as far as it has them."""
    return ": ".join(str(state[key]) for key in ("reason", "message") if state.get(key))


def find_job(api: Kubernetes, namespaces: Sequence[str], name: str) -> Job:
    """Return the job of a name, or of KIND/NAME, in one of some namespaces.

    Raises SelectionError if no job or several have the name, and ToolError if the caller can't read any of them.
    """
    kind, _, bare = name.rpartition("/")
    kinds = [each for each in JOB_RESOURCES if kind.lower().rstrip("s") in ("", each.lower())]
    if not kinds:
        raise SelectionError(f"{kind} isn't a kind of job; use one of {', '.join(JOB_RESOURCES)}")
    places = [(namespace, each) for namespace in namespaces for each in kinds]

    def read(place: tuple[str, str]) -> Job | ApiException | None:
        namespace, kind = place
        version, plural = JOB_RESOURCES[kind]
        path = f"/apis/{version}/namespaces/{namespace}/{plural}/{bare}"
        try:
            document = api.find(path)
        except ApiException as error:
            if error.status != FORBIDDEN:
                raise
            return error
        return None if document is None else Job(kind, path, document)

    with ThreadPoolExecutor(max_workers=_PARALLEL) as pool:
        answers = dict(zip(places, pool.map(read, places), strict=True))
    jobs = [each for each in answers.values() if isinstance(each, Job)]
    if len(jobs) == 1:
        return jobs[0]
    if jobs:
        words = ", ".join(each.words for each in jobs)
        raise SelectionError(f"several jobs have the name {bare}: {words}. Choose one with KIND/NAME or --team")
    refused = {place: each for place, each in answers.items() if isinstance(each, ApiException)}
    closed = [each for each in namespaces if all((each, kind) in refused for kind in kinds)]
    if len(closed) == len(namespaces) and closed:
        raise ToolError(
            f"jobs of {listing([*map(team_of, closed)])} can't be read: "
            f"{message_of(next(iter(refused.values())))}. Use a role of the team's members"
        )
    teams = listing([team_of(each) for each in namespaces if each not in closed]) or "no team"
    unread = f"; jobs of {listing([*map(team_of, closed)])} couldn't be read" if closed else ""
    raise SelectionError(f"{teams} has no job {name}{unread}. `hpkit job list` lists jobs")


def refreshed(api: Kubernetes, job: Job) -> Job | None:
    """Return the current state of a job, None if it was deleted."""
    document = api.find(job.path)
    return None if document is None or document["metadata"]["uid"] != job.uid else Job(job.kind, job.path, document)


def pods_of(api: Kubernetes, job: Job) -> list[Document]:
    """Return all existing pods of a job, also those of earlier attempts."""
    name = job.name
    if job.kind == "RayJob":
        name = str(mapping(job.document.get("status")).get("rayClusterName") or "")
    if job.kind == "Deployment":
        labels = mapping(mapping(job.document["spec"].get("selector")).get("matchLabels"))
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
    else:
        selector = f"{_LABELS.get(job.kind, f'{_TRAINING}/job-name')}={name}"
    path = f"/api/v1/namespaces/{job.namespace}/pods"
    return list(api.pages(path, (("labelSelector", selector),))) if name and selector else []


def ranks_of(job: Job, pods: Iterable[Document]) -> list[Rank]:
    """Return the newest pod of each place, in the order of ranks.

    A master, launcher, chief or head is rank 0, and workers follow. Pods without an index are numbered by their names.
    """
    newest = {_place(job, pod): pod for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))}
    places = sorted(newest)
    lead = int(_has_lead(job))
    plain = len({group for role, group, *_ in places if role}) <= 1
    numbered = plain and all(role <= 1 and index != _UNNUMBERED for role, _, index, _ in places)
    return [
        Rank((index + lead * role) if numbered else position, newest[place])
        for position, place in enumerate(places)
        for role, _, index, _ in [place]
    ]


def _has_lead(job: Job) -> bool:
    if job.kind in ("RayJob", "RayCluster"):
        return True
    replicas = (value for key, value in job.document["spec"].items() if key.endswith("ReplicaSpecs"))
    return any(name.lower() in _LEADS for each in replicas for name in mapping(each))


def _place(job: Job, pod: Document) -> tuple[int, str, int, str]:
    """Return role, group, index, and for pods without an index, the name: equal for attempts of the same rank."""
    metadata = pod["metadata"]
    labels = {**mapping(metadata.get("annotations")), **mapping(metadata.get("labels"))}
    role = next((str(labels[key]).lower() for key in _ROLES if key in labels), "worker")
    if role in _LEADS:
        return 0, "", 0, ""
    other = 1 if role == "worker" else 2
    group = str(labels.get(_JOB_OF_SET, "")).zfill(6) if _JOB_OF_SET in labels else role
    index = next((str(labels[key]) for key in _INDEXES if key in labels), "")
    if index.isdigit():
        return other, group, int(index), ""
    found = _NUMBER.fullmatch(metadata["name"]) if job.kind == "HyperPodPyTorchJob" else None
    return (other, found[1], int(found[2]), "") if found else (other, group, _UNNUMBERED, str(metadata["name"]))


def history(api: Kubernetes, job: Job, ranks: Sequence[Rank], pods: Sequence[Document]) -> list[str]:
    """Return why the job last failed, was preempted or waits, and its latest warnings; empty if there are none."""
    now = datetime.now(tz=UTC)
    kueue = api.version_of("kueue.x-k8s.io")
    workloads = [] if kueue is None else list(_workloads(api, kueue, job))
    lines = [f"it failed: {job.failure}"] if job.failure else []
    failures = sorted(_failures(ranks)) or sorted(_failures([Rank(-1, pod) for pod in pods]))
    lines += [f"{words}, {span(_ago(time, now))} ago" for time, words in failures[:1]]
    if len(failures) > 1:
        lines.append(f"{len(failures) - 1} more failed after it")
    for workload in workloads:
        task = task_of(workload, {})
        if not task.active:
            lines.append(deactivation(task))
        elif task.state == "pending" and not any(each.is_running for each in ranks):
            lines.append(message_words(task, now))
        else:
            lines += [words for words in (preemption(task), eviction(task)) if words]
    uids = {job.uid, *(each["metadata"]["uid"] for each in (*pods, *workloads))}
    lines += _warnings(api, job, uids, now)
    return lines


def _workloads(api: Kubernetes, kueue: str, job: Job) -> Iterator[Document]:
    for workload in api.pages(f"{kueue}/namespaces/{job.namespace}/workloads"):
        if any(owner.get("uid") == job.uid for owner in workload["metadata"].get("ownerReferences") or ()):
            yield workload


def _failures(ranks: Iterable[Rank]) -> Iterator[tuple[str, str]]:
    """Yield time and reason of each pod's last failure."""
    for rank in ranks:
        rank_name = rank.name if rank.number < 0 else f"rank {rank.number} ({rank.name})"
        status = mapping(rank.pod.get("status"))
        node = rank.pod["spec"].get("nodeName")
        on = f" on {node}" if node else ""
        ends = [
            (str(end.get("finishedAt") or ""), str(container_status["name"]), end)
            for key in ("initContainerStatuses", "containerStatuses")
            for container_status in mappings(status.get(key))
            for end in (
                mapping(mapping(container_status.get(state)).get("terminated")) for state in ("state", "lastState")
            )
            if end.get("exitCode")
        ]
        if ends:
            time, container, end = max(ends, key=lambda each: each[0])
            reason = f" ({end['reason']})" if end.get("reason") not in (None, "", "Error") else ""
            message = f": {str(end['message']).strip()}" if end.get("message") else ""
            yield time, f"{rank_name}{on} failed: container {container} exited with {end['exitCode']}{reason}{message}"
        elif status.get("phase") == "Failed":
            yield (
                str(rank.pod["metadata"]["creationTimestamp"]),
                f"{rank_name}{on} failed: {_reason(status) or 'Failed'}",
            )


def _warnings(api: Kubernetes, job: Job, uids: set[Any], now: datetime) -> list[str]:
    """Return the latest warnings about some objects, newest first."""
    path = f"/api/v1/namespaces/{job.namespace}/events"
    latest: dict[tuple[str, str], str] = {}
    for event in api.pages(path, (("fieldSelector", "type=Warning"),)):
        about = event["involvedObject"]
        if about.get("uid") in uids:
            series = mapping(event.get("series"))
            time = str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
            key = (f"{about['kind']} {about['name']}", f"{event.get('reason')}: {event.get('message')}")
            latest[key] = max(time, latest.get(key, ""))
    newest = sorted(latest.items(), key=lambda each: each[1], reverse=True)[:_SHOWN]
    return [f"{about}: {words}, {span(_ago(time, now))} ago" for (about, words), time in newest]


def _ago(time: str, now: datetime) -> float | None:
    try:
        return max(0.0, (now - datetime.fromisoformat(time)).total_seconds())
    except ValueError:
        return None


def stop(api: Kubernetes, job: Job, pods: Sequence[Document]) -> str:
    """Delete a job with its pods, and return a text about it. Other objects with its name aren't deleted."""
    try:
        api.delete(job.path, {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}})
    except ApiException as error:
        if error.status == NOT_FOUND:
            return f"{job.words} no longer exists"
        if error.status == CONFLICT:
            raise ToolError(f"{job.words} was replaced by a new one, which wasn't deleted; run it again") from None
        raise
    grace = max((each["spec"].get("terminationGracePeriodSeconds", _GRACE) for each in pods), default=0)
    return f"deleted {job.words}" + (f"; its pods end within {span(grace)}" if pods else "")


def owner_of(job: Job) -> str:
    """Return kind and name of the job that created this one, or ""."""
    owners = job.document["metadata"].get("ownerReferences") or ()
    return next((f"{each['kind']} {each['name']}" for each in owners if each.get("controller")), "")
