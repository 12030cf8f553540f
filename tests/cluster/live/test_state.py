"""The state of a job from its Workload, pods and events; tests/cluster/field compares it with a real cluster."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hpkit.cluster.live.model import Warned
from hpkit.cluster.live.state import Jobs
from tests.cluster.live.builders import NOW, observed, pod, queue, task

JOHN = "hyperpod-ns-john"
EVICTED = {"Evicted": (True, "Preempted", ""), "QuotaReserved": (False, "Pending", "")}
GROUP = "kueue.x-k8s.io/managed"


def unplaced(message):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"status": {"conditions": [condition]}, "phase": "Pending"}


def waiting(reason, message=""):
    state = {"state": {"waiting": {"reason": reason, "message": message}}}
    return {"status": {"containerStatuses": [state]}, "ready": False}


def state_of(pods, *, count=2, warnings=(), runs=True, seconds=0, **parts):
    mine = task("john", "train", count, runs=runs, **parts)
    seen = observed(queues=(queue("john", 12),), tasks=(mine,), pods=tuple(pods), warnings=warnings)
    return Jobs(replace(seen, time=mine.created + timedelta(seconds=seconds))).state(mine)


def mine(on, **parts):
    return pod("john", "train", on, **parts)


FAILED = Warned(JOHN, "Job", "train", "FailedCreate", "pods is forbidden: violates PodSecurity.", NOW)
GONE = {"deletionTimestamp": "2026-11-22T11:00:00Z", "finalizers": [GROUP]}
ENDING = {"deletionTimestamp": "2026-11-22T13:00:00Z"}
LOW = {"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}
OUT = {"containerStatuses": [{"name": "main", "state": {"terminated": {"reason": "OOMKilled"}}}]}
BOTH = [mine("a"), mine("b")]
FINISHED = {"Finished": (True, "Failed", "Backoff.")}
DRAINED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]}


@pytest.mark.parametrize(
    ("pods", "parts", "state", "running", "cause", "words"),
    [
        ([mine("a"), mine("b")], {}, "running", 2, "", "all 2 pods run"),
        ([mine("a"), mine("b", ready=False)], {}, "running", 1, "", "1 of 2 pods runs"),
        ([mine("a", ready=False)], {"count": 1}, "starting", 0, "", "its pod doesn't run yet"),
        ([], {}, "admitted", 0, "", "no pod exists yet"),
        ([], {"seconds": 90}, "blocked", 0, "NoPods", "Check whether the operator for Job runs"),
        ([], {"warnings": (FAILED,)}, "blocked", 0, "FailedCreate", "Job train: pods is forbidden: violates"),
        ([mine("a")], {"warnings": (FAILED,)}, "blocked", 1, "FailedCreate", "1 of 2 pods runs: Job train: pods"),
        (
            [mine("a"), mine(None, **unplaced("0/5 nodes are available: 5 Insufficient cpu. no new"))],
            {}, "blocked", 1, "Unschedulable", "1 pod has no node: 0/5 nodes are available: 5 Insufficient cpu",
        ),
        (
            [mine(None, **unplaced('0/5 nodes are available: persistentvolumeclaim "fsx" not found.'))],
            {"count": 1}, "blocked", 0, "MissingClaim", '1 pod has no node: persistentvolumeclaim "fsx" not found',
        ),
        ([mine("a", **waiting("ErrImagePull", "not found"))], {"count": 1}, "blocked", 0, "ErrImagePull", "not found"),
        ([mine("a", **waiting("ContainerCreating"))], {"count": 1}, "starting", 0, "", "its pod doesn't run yet"),
        ([mine("a", phase="Failed", status=LOW), mine("b")], {}, "running", 1, "", "resource: ephemeral-storage"),
        ([mine("c", phase="Failed", status=OUT), *BOTH], {}, "running", 2, "", "main exceeded its memory"),
        ([mine("a", phase="Failed", status=DRAINED), mine("b")], {}, "running", 1, "", "its node isn't ready"),
        ([mine("a", **GONE)], {"count": 1, "seconds": 3600}, "blocked", 0, "Finalizer", f"the finalizer {GROUP}"),
        ([mine("a", **ENDING)], {"count": 1}, "ending", 0, "", "train-a is still ending"),
        ([mine("a", **ENDING)], {"runs": False, **EVICTED}, "ending", 0, "Preempted", "train-a is still ending"),
        ([], {"runs": False, **EVICTED}, "evicted", 0, "Preempted", ""),
        ([], {"runs": False}, "pending", 0, "", "Kueue hasn't evaluated it yet"),
        ([mine("a", phase="Failed", status=LOW)], FINISHED, "failed", 0, "Failed", "failed: Backoff. 1 pod was ended"),
        ([], {"Finished": (True, "Succeeded", "")}, "succeeded", 0, "Succeeded", "it has finished"),
    ],
)  # fmt: skip
def test_a_job_stands_where_its_pods_do(pods, parts, state, running, cause, words):
    found = state_of(pods, **parts)
    assert (found.state, found.running, found.cause) == (state, running, cause)
    assert words in found.reason


def test_pods_that_ended_well_are_not_missed():
    job = replace(task("john", "train", 2, runs=True), reclaimed=1)
    assert Jobs(observed(tasks=(job,), pods=(mine("a"),))).state(job).reason == "its pod runs"


def test_pods_that_could_not_be_read_are_not_said_to_be_missing():
    job = task("john", "train", 2, runs=True)
    found = Jobs(observed(tasks=(job,), unread=frozenset({"pods"}))).state(job)
    assert (found.state, found.running, found.reason) == (
        "admitted",
        None,
        "it's admitted, and its pods couldn't be read",
    )


def test_preemptions_are_counted():
    evicted = {"Preempted": (True, "InCohortReclamation", "Preempted to accommodate a workload"), **EVICTED}
    job = replace(task("john", "train", 1, **evicted), evictions={"Preempted": 3})
    reason = Jobs(observed(queues=(queue("john", 4),), tasks=(job,))).state(job).reason
    assert reason.startswith(
        "it was preempted 3 times, most recently because the team that lent the quota reclaimed it"
    )
