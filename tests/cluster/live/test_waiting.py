"""Kueue's conditions as text, and the state of a job from its Workload, pods and events.

test_platform.py and tests/cluster/field compare them with a real Kueue.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from hpkit.cluster.live.model import Warned
from hpkit.cluster.live.parse import task_of
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.waiting import preemption, preemptor, topology_mismatch, waiting_reason
from hpkit.cluster.live.why import explain
from tests.cluster.live.builders import GPU, KIND, NOW, observed, pod, queue, task

LARGE = (
    f"couldn't assign flavors to pod set main: insufficient quota for {GPU} in flavor {KIND}, previously considered "
    "podsets requests (0) + current podset request (24) > maximum capacity (8)"
)
LARGE_MEMORY = (
    f"insufficient quota for memory in flavor {KIND}, previously considered podsets requests (512Gi) + current podset "
    "request (1536Gi) > maximum capacity (1Ti)"
)
SHORT_MEMORY = (
    f"insufficient unused quota for memory in flavor {KIND}, 1Ti more needed, insufficient unused quota for cpu in "
    f"flavor {KIND}, 1500m more needed"
)
SHORT = f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor {KIND}, 8 more needed"
NEVER = f"it can never run: it requests 24 {GPU} of {KIND}, but the team's quota and what it can borrow together are 8"
MISMATCH = f"it can never run: {topology_mismatch([KIND], asks=True)}"
CLOSE = "pods fit as close together as requested; for free nodes, run `hpkit cluster status --topology`"
PREEMPTED = (
    "Preempted to accommodate a workload (UID: uid-own, JobUID: 1) due to reclamation within the cohort; "
    "preemptor path: /a; preemptee path: /b"
)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (LARGE, NEVER),
        (f"{LARGE_MEMORY}, {LARGE}", NEVER),
        (SHORT, f"at least 8 more {GPU} of {KIND} must become free"),
        (
            f"{SHORT}, insufficient unused quota for {GPU} in flavor ml.g4dn, 4 more needed",
            f"at least 8 more {GPU} of {KIND} must become free, or at least 4 more {GPU} of ml.g4dn must become free",
        ),
        (f"{LARGE}, insufficient unused quota for cpu in flavor {KIND}, 1 more needed", NEVER),
        (
            f"{LARGE}, insufficient unused quota for {GPU} in flavor ml.p5.48xlarge, 4 more needed",
            f"at least 4 more {GPU} of ml.p5.48xlarge must become free",
        ),
        (
            f"{SHORT}, insufficient unused quota for cpu in flavor {KIND}, 2 more needed",
            f"at least 8 more {GPU} and 2 more cpu of {KIND} must become free",
        ),
        (LARGE_MEMORY, NEVER.replace(f"24 {GPU}", "2048 GiB memory").replace("are 8", "are 1024 GiB")),
        (SHORT_MEMORY, f"at least 1024 GiB more memory and 1.5 more cpu of {KIND} must become free"),
        ("The workload has failed admission checks", "The workload has failed admission checks"),
        (f'Flavor "{KIND}" does not support TopologyAwareScheduling', MISMATCH),
        ('topology "hyperpod-default" allows to fit only 2 out of 4 pod(s)', f"only 2 of 4 {CLOSE}"),
        ('topology "hyperpod-default" doesn\'t allow to fit any of 4 pod(s)', f"only 0 of 4 {CLOSE}"),
    ],
)
def test_the_condition_says_why_it_waits(message, words):
    close = {"required": "topology.k8s.aws/network-node-layer-3"}
    waiting = task("john", "train", 6, topology=close, QuotaReserved=(False, "Pending", message))
    assert waiting_reason(waiting, queue("john", 4), NOW) == words


def test_kueue_that_says_nothing_is_waited_for_and_then_looked_for():
    new, old = task("john", "train", 6, minutes=1), task("john", "train", 6, minutes=2)
    assert waiting_reason(new, queue("john", 4), new.created) == "Kueue hasn't evaluated it yet"
    assert waiting_reason(old, queue("john", 4), NOW) == (
        "Kueue hasn't evaluated it for 120 s, so it may not be running. Check `kubectl get pods -n "
        "kueue-system`, then the events in `kubectl describe workload job-train -n hyperpod-ns-john`"
    )


def test_a_task_that_was_preempted_says_so_first():
    waiting = task(
        "smith", "train", 1, QuotaReserved=(False, "Pending", SHORT), Preempted=(True, "InCohortReclamation", PREEMPTED)
    )
    assert waiting_reason(waiting, queue("smith", 4), NOW) == (
        "it was preempted, because the team that lent the quota reclaimed it; "
        f"now at least 8 more {GPU} of {KIND} must become free"
    )
    assert preemptor(waiting) == ("uid-own", "a")
    assert preemptor(task("smith", "train", 1)) == (None, None)


def test_a_task_whose_pods_were_not_ready_in_time_says_so_and_when_it_is_retried():
    evicted = (True, "PodsReadyTimeout", "Exceeded the PodsReady timeout hyperpod-ns-john/job-train")
    requeued = (False, "PodsReadyTimeout", evicted[2])
    waiting = task("john", "train", 1, Evicted=evicted, Requeued=requeued, QuotaReserved=(False, "Pending", evicted[2]))
    said = "it was evicted, because its pods weren't all ready in time (gang scheduling)"
    events = "; for the cause, run `kubectl get events -n hyperpod-ns-john`"
    assert waiting_reason(waiting, queue("john", 4), NOW) == said + events
    seen = observed(queues=(queue("john", 4),), tasks=(waiting,))
    later = replace(waiting, retry_at=NOW + timedelta(minutes=2))
    found = explain(Jobs(seen), later, fair_sharing=None)
    assert (found.remedies, found.outlook) == (
        (), "Kueue retries it at 2026-11-22 12:02:00 UTC, and doesn't admit it earlier"
    )  # fmt: skip
    assert explain(Jobs(seen), replace(waiting, retry_at=NOW), fair_sharing=None).remedies != ()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "DeactivatedDueToRequeuingLimitExceeded",
            "and `gangScheduling.requeuingStrategy` allows no more retries. Fix",
        ),
        ("DeactivatedDueToMaximumExecutionTimeExceeded", "it ran longer than its label kueue.x-k8s.io/max-exec-time"),
        ("Deactivated", "it was stopped manually: spec.active of its Workload is false"),
    ],
)
def test_a_task_that_kueue_deactivated_is_not_said_to_be_stopped_by_hand(reason, words):
    stopped = replace(task("john", "train", 1, Evicted=(True, reason, "The workload is deactivated")), active=False)
    seen = observed(queues=(queue("john", 4),), tasks=(stopped,))
    found = Jobs(seen).state(stopped).reason
    assert words in found
    assert ("kubectl patch workload job-train -n hyperpod-ns-john" in found) == (reason != "Deactivated")


def test_the_time_of_a_retry_is_read():
    workload = {
        "metadata": {"name": "a", "namespace": "b", "uid": "c", "creationTimestamp": "2026-11-22T11:00:00Z"},
        "spec": {"podSets": []},
        "status": {"requeueState": {"count": 2, "requeueAt": "2026-11-22T12:02:00Z"}},
    }
    assert task_of(workload, {}).retry_at == NOW + timedelta(minutes=2)


def test_a_task_that_runs_again_still_says_why_and_by_whom_it_was_preempted():
    path = "preemptor path: /hyperpod-cohort/hyperpod-ns-john-clusterqueue; preemptee path: /hyperpod-cohort/x"
    why = "due to reclamation within the cohort"
    said = f"Previously: Preempted to accommodate a workload (UID: uid-own, JobUID: 1) {why}; {path}"
    back = task("smith", "train", 1, runs=True, Preempted=(False, "QuotaReserved", said))
    assert preemption(back) == "it was preempted, because the team that lent the quota reclaimed it"
    assert preemptor(back) == ("uid-own", "hyperpod-ns-john-clusterqueue")
    never = task("smith", "train", 1, runs=True, Preempted=(False, "QuotaReserved", ""))
    assert (preemption(never), preemptor(never)) == ("", (None, None))


def test_a_queue_that_does_not_exist_is_the_reason():
    assert waiting_reason(task("john", "train", 1), None, NOW) == (
        "it has no queue: LocalQueue hyperpod-ns-john-localqueue doesn't exist in hyperpod-ns-john"
    )


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
        ([mine("a", phase="Failed", ready=False)], {}, "blocked", 0, "PodsFailed", "1 pod failed, and the next"),
        ([], {"seconds": 90}, "blocked", 0, "NoPods", "Check whether the controller for Job runs"),
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


def test_a_warning_belongs_to_the_deployment_of_its_replicaset_alone():
    warned = [
        Warned(JOHN, kind, name, "FailedCreate", "no", NOW)
        for kind, name in (("ReplicaSet", "vllm-new-7f"), ("HorizontalPodAutoscaler", "vllm"))
    ]
    jobs = Jobs(observed(warnings=tuple(warned)))
    assert [jobs.warning(JOHN, name) for name in ("vllm", "vllm-new", "vllm-new-7f")] == [None, warned[0], warned[0]]
