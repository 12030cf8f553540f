"""Derives the state of each job from its Workload, pods, warning events and owner.

`hpkit job why`, `hpkit cluster status` and their JSON documents show it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, Literal

from hpkit.cluster.live.flavors import oversized
from hpkit.cluster.live.model import Observed, Pod, Queue, Task, Warned
from hpkit.cluster.live.waiting import HELD, NEVER, deactivation, message_words, preemption, waiting_reason
from hpkit.text.formatting import listing, plural

__all__ = ["RETRIED", "JobState", "Jobs", "State"]

State = Literal[
    "pending", "evicted", "admitted", "starting", "running", "ending", "blocked", "stopped", "succeeded", "failed"
]
# An operator creates pods within seconds.
_CREATION: Final = timedelta(seconds=60)
# Controllers retry, and repeat the event, at least this often.
RETRIED: Final = timedelta(minutes=15)
# A CronJob appends the scheduled time in minutes since 1970 to the names of its Jobs (Kubernetes, CronJob).
_OF_CRON_JOB: Final = re.compile(r"-\d{8,10}")
_NO_CLAIM: Final = re.compile(r'persistentvolumeclaim "[^"]+" not found')
# Events that don't explain missing pods: Kueue's own.
_NOT_CAUSES: Final = ("Pending", "ErrWorkloadCompose")
# Causes of pods without a node.
_UNPLACED: Final = ("MissingClaim", "Unschedulable")


@dataclass(frozen=True, slots=True)
class JobState:
    """A job's state and the reason as text.

    - kind, name: the user's object, such as a Deployment whose pods are tasks.
    - pods: how many should run; running: how many are ready, None if pods couldn't be read.
    - cause: Kubernetes' or Kueue's reason for an eviction or a block, such as `Unschedulable`.
    """

    state: State
    reason: str
    kind: str
    name: str
    pods: int
    running: int | None = None
    cause: str = ""

    @property
    def owner(self) -> str:
        """Return kind and name of the user's object."""
        return f"{self.kind} {self.name}"


@dataclass(slots=True)
class Jobs:
    """The jobs of a platform, with their pods and events."""

    observed: Observed
    _pods: dict[tuple[str, str], list[Pod]] = field(init=False)
    _by_name: dict[tuple[str, str], Pod] = field(init=False)
    _warnings: dict[tuple[str, str], list[Warned]] = field(init=False)
    _queues: dict[str, Queue] = field(init=False)

    def __post_init__(self) -> None:
        self._pods, self._warnings = defaultdict(list), defaultdict(list)
        for pod in self.observed.pods:
            for name in dict.fromkeys((pod.task or "", pod.owner_name)):
                self._pods[pod.namespace, name].append(pod)
        for warning in self.observed.warnings:
            if warning.reason in _NOT_CAUSES or warning.kind in ("Pod", "Workload", "HorizontalPodAutoscaler"):
                continue
            # Under its own name, and the names from which a controller could have derived it. A ReplicaSet's name is
            # its Deployment's with one more part.
            names = [warning.name[: dash.start()] for dash in re.finditer("-|$", warning.name)]
            for name in names[-2:] if warning.kind == "ReplicaSet" else names:
                self._warnings[warning.namespace, name].append(warning)
        self._by_name = {(pod.namespace, pod.name): pod for pod in self.observed.pods}
        self._queues = {queue.name: queue for queue in self.observed.queues}

    def pods(self, task: Task) -> list[Pod]:
        """Return the pods of a task, by Kueue's annotation or by their owner."""
        if task.owner_kind == "Pod":
            pod = self._by_name.get((task.namespace, task.owner_name))
            return [] if pod is None else [pod]
        return self._pods.get((task.namespace, task.name)) or self._pods.get((task.namespace, task.owner_name)) or []

    def owner(self, task: Task) -> tuple[str, str]:
        """Return kind and name of the object that the user created."""
        pod = next(iter(self.pods(task)), None)
        if task.owner_kind == "Pod" and pod is not None and pod.owner_kind == "ReplicaSet" and pod.template:
            return "Deployment", pod.owner_name.removesuffix(f"-{pod.template}")
        return task.owner_kind, task.owner_name

    def named(self, name: str) -> list[Task]:
        """Return the tasks of a name: of their Workload, their job, or the object that created that."""
        return [
            task
            for task in self.observed.tasks
            if name in (task.name, task.owner_name, self.owner(task)[1])
            or (
                task.owner_kind == "Job"
                and task.owner_name.startswith(name)
                and _OF_CRON_JOB.fullmatch(task.owner_name[len(name) :])
            )
        ]

    def siblings(self, task: Task) -> list[Task]:
        """Return the other tasks of the same Deployment that hold quota."""
        owner = self.owner(task)
        if owner[0] != "Deployment":
            return []
        return [
            each
            for each in self.observed.tasks
            if each.uid != task.uid and each.namespace == task.namespace and each.holds and self.owner(each) == owner
        ]

    def is_older(self, sibling: Task, task: Task) -> bool:
        """Return whether a task's sibling is a pod from before the Deployment's last change."""
        templates = {pod.template for each in (sibling, task) for pod in self.pods(each)}
        return len(templates) > 1 and sibling.created <= task.created

    def without(self, uids: Collection[str]) -> Observed:
        """Return what was read without some tasks and their pods."""
        tasks, pods = self.observed.tasks, self.observed.pods
        gone = {(pod.namespace, pod.name) for task in tasks if task.uid in uids for pod in self.pods(task)}
        left = tuple(pod for pod in pods if (pod.namespace, pod.name) not in gone)
        return replace(self.observed, tasks=tuple(task for task in tasks if task.uid not in uids), pods=left)

    def warning(self, namespace: str, name: str) -> Warned | None:
        """Return the latest warning about an object, or one that a controller created for it, without Kueue's own."""
        return max(self._warnings.get((namespace, name), ()), key=lambda warning: warning.time, default=None)

    def state(self, task: Task) -> JobState:
        """Return the state of a task."""
        kind, name = self.owner(task)
        pods = self.pods(task)
        is_read = self.observed.sees(task.namespace, "pods")
        running = sum(pod.phase == "Running" and pod.ready and pod.deleted is None for pod in pods)
        state, reason, cause = self._state(task, pods, running, is_read=is_read)
        return JobState(
            state, reason, kind, name, max(0, task.pods - task.reclaimed), running if is_read else None, cause
        )

    def _state(self, task: Task, pods: Sequence[Pod], running: int, *, is_read: bool) -> tuple[State, str, str]:
        evicted = [pod for pod in pods if pod.evicted]
        lost = _lost(evicted)
        eviction, finished = task.conditions.get("Evicted"), task.conditions.get("Finished")
        if eviction is not None and self.is_over(task):
            words = message_words(task, self.observed.time).partition("; now ")[0]
            again = "Nothing creates a pod again that has no controller; submit it again as a Job"
            return "ending", f"{words}. {again}. {self._leftover(task, pods)}", eviction.reason
        if task.has("Finished") and finished is not None:
            failed = finished.reason == "Failed"
            details = f": {finished.message.rstrip('.')}" if finished.message else ""
            words = f"it has {'failed' if failed else 'finished'}{details}{lost}{_before(task)}"
            state: State = "failed" if failed else "stopped" if finished.reason == "OwnerNotFound" else "succeeded"
            return state, words, finished.reason
        if not task.active:
            return "stopped", deactivation(task), "Deactivated"
        if task.waits or (eviction is not None and eviction.status):
            reason = self._waiting(task)
            cause = eviction.reason if eviction is not None and eviction.status else ""
            left = self._leftover(task, [pod for pod in pods if pod.deleted is not None])
            if left:
                return "ending", f"{reason}{lost}; {left}", cause
            return ("evicted" if cause else "pending"), f"{reason}{lost}", cause
        state, words, cause = self._admitted(task, pods, running, is_read=is_read)
        asked = sum(each.count for each in task.pod_sets)
        partly = (
            f". Kueue admitted it with {task.pods} of {asked} pods (partial admission)" if task.pods < asked else ""
        )
        return state, f"{words}{partly}{lost}{_before(task)}", cause

    def is_over(self, task: Task) -> bool:
        """Return whether a task is a user's own pod that Kueue evicts, which deletes it for good."""
        pods = self.pods(task) if task.owner_kind == "Pod" and task.has("Evicted") else ()
        return bool(pods) and not any(pod.owner_kind for pod in pods)

    def never(self, task: Task) -> str:
        """Return why no node can ever hold a task's pods, and what Kueue does with it; "" if nodes can."""
        queue = self._queues.get(task.queue)
        return "" if queue is None else oversized(self.observed, task, queue)

    def _waiting(self, task: Task) -> str:
        queue = self._queues.get(task.queue)
        if queue is None and self.observed.unread & {"localqueues", "clusterqueues"}:
            return message_words(task, self.observed.time)
        return self.observed.stop(task) or waiting_reason(task, queue, self.observed.time, self.never(task))

    def _admitted(self, task: Task, pods: Sequence[Pod], running: int, *, is_read: bool) -> tuple[State, str, str]:
        if not is_read:
            is_ready = task.has("PodsReady")
            words = "all of its pods have started" if is_ready else "its pods couldn't be read"
            return ("running" if is_ready else "admitted"), f"it's admitted, and {words}", ""
        usable = [pod for pod in pods if pod.deleted is None and pod.phase != "Failed"]
        expected = max(0, task.pods - task.reclaimed)
        if running and running >= expected:
            return "running", "its pod runs" if running == 1 else f"all {running} pods run", ""
        count = f"{running} of {expected} pods {'runs' if running == 1 else 'run'}"
        if not running:
            count = "its pod doesn't run" if expected == 1 else f"none of its {expected} pods runs"
        leaving = [pod for pod in pods if pod.deleted is not None]
        if leaving and not usable:
            is_stuck = all(map(self._is_held, leaving))
            words = f"it's admitted and holds quota, but {self._leftover(task, leaving)}"
            return ("blocked", words, "Finalizer") if is_stuck else ("ending", words, "")
        obstacle = _obstacle(usable) or _failed(pods, usable) or self._uncreated(task, usable, expected)
        if obstacle is not None:
            never = self.never(task) if obstacle[0] == "Unschedulable" else ""
            more = f". {NEVER.capitalize()}{never.removesuffix(HELD)}" if never else ""
            return "blocked", f"it's admitted and holds quota, but {count}: {obstacle[1]}{more}", obstacle[0]
        if not usable:
            return "admitted", "it's admitted, but no pod exists yet", ""
        if running:
            return "running", count, ""
        return "starting", f"it's admitted, but {count} yet", ""

    def _leftover(self, task: Task, pods: Sequence[Pod]) -> str:
        """Return why deleted pods of a task still exist, or ""."""
        if not pods:
            return ""
        names = listing(sorted(pod.name for pod in pods))
        if not all(map(self._is_held, pods)):
            return f"{names} {'is' if len(pods) == 1 else 'are'} still ending"
        finalizers = listing(sorted({each for pod in pods for each in pod.finalizers}))
        verbs = ("has", "waits") if len(pods) == 1 else ("have", "wait")
        words = f"{names} {verbs[0]} ended and only {verbs[1]} for the finalizer "
        if task.owner_kind != "Workload":
            return f"{words}{finalizers}, which Kueue removes"
        return (
            f"{words}{finalizers}. Kueue keeps it until the group has replacements: create pods with other names "
            f"in the group, or have an administrator run `kubectl delete workload {task.name} -n {task.namespace}`"
        )

    def _is_held(self, pod: Pod) -> bool:
        """Return whether a deleted pod only waits for its finalizers: its grace period is over."""
        return bool(pod.finalizers) and pod.deleted is not None and pod.deleted <= self.observed.time

    def _uncreated(self, task: Task, usable: Sequence[Pod], expected: int) -> tuple[str, str] | None:
        """Return the reason why pods of an admitted task don't exist, by the owner's events."""
        if len(usable) >= expected:
            return None
        admitted = task.conditions.get("Admitted")
        since = admitted.since if admitted is not None and admitted.since is not None else task.created
        warning = self.warning(task.namespace, task.owner_name)
        oldest = self.observed.time - RETRIED if usable else since
        if warning is not None and warning.time >= oldest:
            return warning.reason, f"{warning.kind} {warning.name}: {warning.message.rstrip('.')}"
        if usable or self.observed.time - since < _CREATION:
            return None
        return "NoPods", (
            "no pod exists, and no event explains it. After a failure, it can take 6 minutes until pods are created "
            f"again. Check whether the controller for {task.owner_kind} runs (or the one in `spec.managedBy`), "
            f"and run `kubectl describe {task.owner_kind.lower()} {task.owner_name} -n {task.namespace}`"
        )


def _failed(pods: Sequence[Pod], usable: Sequence[Pod]) -> tuple[str, str] | None:
    """Return that all pods of a task have failed, while its controller waits before it creates the next one."""
    failed = sum(pod.phase == "Failed" and pod.deleted is None and not pod.evicted for pod in pods)
    if usable or not failed:
        return None
    return (
        "PodsFailed",
        f"{plural(failed, 'pod')} failed, and the next one is created after a delay. See `kubectl logs`",
    )


def _lost(evicted: Sequence[Pod]) -> str:
    if not evicted:
        return ""
    reasons = listing(list(dict.fromkeys(pod.evicted for pod in evicted)))
    return f". {plural(len(evicted), 'pod')} {'was' if len(evicted) == 1 else 'were'} ended: {reasons}"


def _before(task: Task) -> str:
    before = preemption(task)
    return f". Before, {before}" if before else ""


def _obstacle(pods: Iterable[Pod]) -> tuple[str, str] | None:
    """Return why pods that exist can't run: Kubernetes' reason, and a text."""
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for pod in pods:
        if pod.node is None and pod.unplaced:
            claim = _NO_CLAIM.search(pod.unplaced)
            # What follows the first sentence is about preemption by the scheduler.
            words = pod.unplaced.partition(". ")[0]
            found[("MissingClaim", claim[0]) if claim else ("Unschedulable", words)] += 1
        elif pod.stuck is not None:
            found[pod.stuck] += 1
    if not found:
        return None
    (reason, message), count = max(found.items(), key=lambda each: each[1])
    pods_words = f"{plural(count, 'pod')} {'has' if count == 1 else 'have'} no node" if reason in _UNPLACED else reason
    return reason, f"{pods_words}: {message.rstrip('. ')}" if message else pods_words
