"""What Kueue would do with a job now: it starts, borrows, waits, or never runs; each with its reason."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from hpkit.cluster.jobs.forecast import predict_all, tasks_of, within_plans
from hpkit.cluster.live.model import Flavor, Quota
from hpkit.cluster.live.without_task import MOST_STARTS
from hpkit.project import load_stack
from tests.cluster.live.builders import GPU, KIND, NOW, node, observed, pod, queue, task

PLAN = load_stack("handson-dev").plans["dev"]
TEAMS = (queue("john", 12, limit=6), queue("smith", 4, limit=4))
FLAVORS = {KIND: Flavor(KIND, {"node.kubernetes.io/instance-type": KIND}, topology=False)}
FAIR = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


def job(team, name, pods, *, kind="Job", gpus=4, priority=None, **spec):
    labels = {"kueue.x-k8s.io/priority-class": priority} if priority else {}
    metadata = {"name": name, "namespace": f"hyperpod-ns-{team}", "labels": labels}
    # The queues here count only GPUs.
    resources = {"requests": {"cpu": 0, "memory": 0}, "limits": {GPU: gpus}}
    template = {"spec": {"containers": [{"resources": resources}], **spec}}
    counts = {"replicas": pods} if kind == "Deployment" else {"parallelism": pods}
    return {"kind": kind, "metadata": metadata, "spec": {**counts, "template": template}}


def predicted(*jobs, running=(), queues=TEAMS, fair=FAIR, **more):
    nodes = {"flavors": FLAVORS, "nodes": [node(f"n{number}") for number in range(9)]}
    seen = observed(queues=queues, tasks=running, **{**nodes, **more})
    return list(predict_all(seen, tasks_of(jobs, PLAN, seen), fair_sharing=fair))


def test_a_job_within_its_quota_starts_at_once_and_preempts_who_borrowed_it():
    (alone,) = predicted(job("john", "train", 3))
    assert (alone.fate, alone.reason, alone.preempts) == ("now", "it fits the own quota of john", ())
    borrowing = task("smith", "lent", 2, runs=True, minutes=1)
    (reclaims,) = predicted(job("john", "train", 3), running=(borrowing,))
    assert (reclaims.fate, reclaims.preempts) == ("now", ("lent of smith",))
    assert reclaims.may_be_preempted_by == ("tasks of its own team with a higher priority",)


def test_a_job_that_waits_although_it_preempts_says_whom():
    """After john's quota was lowered, the one that gets its quota back first leaves too little."""
    running = (task("john", "large", 2, runs=True), task("john", "small", 1, gpus=1, runs=True))
    queues = (queue("john", 4, limit=2, weight="0"), queue("smith", 4, limit=4))
    (found,) = predicted(job("smith", "train", 2), running=running, queues=queues)
    assert (found.fate, found.preempts) == ("waits", ("large of john", "small of john"))
    assert found.reason.startswith("even after it preempts others, too little of its quota")


def test_a_borrower_is_told_the_lender_and_who_may_take_it_back():
    (found,) = predicted(job("smith", "train", 2))
    assert (found.fate, found.reason, found.borrows_from) == ("borrowing", f"it borrows 4 {GPU} of {KIND}", ("john",))
    assert found.may_be_preempted_by == (
        "tasks of its own team with a higher priority",
        "john, to reclaim quota",
        "teams with less than their fair share of lent capacity",
    )
    (first_come,) = predicted(job("smith", "train", 2), fair=None)
    assert len(first_come.may_be_preempted_by) == 2


def test_a_job_that_waits_is_told_for_what_and_until_when():
    own, other = task("john", "own", 3, runs=True), task("smith", "first", 1, runs=True)
    (endless,) = predicted(job("smith", "train", 1), running=(own, other))
    assert (endless.fate, endless.runs_at) == ("waits", None)
    assert endless.holders == (f"john holds 12 {GPU} of {KIND}", f"smith holds 4 {GPU} of {KIND}")
    assert endless.when == "unknown, because no limit is set on how long own, first can run"
    limited = replace(other, longest=600.0)
    (forecast,) = predicted(job("smith", "train", 1), running=(own, limited))
    # It began five minutes ago.
    assert forecast.runs_at == NOW + timedelta(minutes=5)
    assert "in 5 min, if tasks run as long as they're allowed to and no more are submitted" in forecast.when
    (smaller,) = predicted(job("smith", "train", 2), running=(other, replace(own, usage={(KIND, GPU): 11})))
    assert smaller.fate == "waits"


def test_of_a_job_behind_hundreds_of_others_only_the_earliest_time_is_told():
    first = task("smith", "first", 1, runs=True)
    waiting = [task("smith", f"w{number}", 1) for number in range(MOST_STARTS + 50)]
    limited = [replace(each, longest=600.0) for each in (first, *waiting)]
    (forecast,) = predicted(job("smith", "train", 1), running=limited, queues=(queue("smith", 4, limit=0),))
    hours = timedelta(minutes=5 + 10 * (MOST_STARTS - 1))
    assert (forecast.fate, forecast.runs_at) == ("waits", None)
    assert forecast.when == (f"after {NOW + hours:%Y-%m-%d %H:%M} UTC, because 300 other tasks start before it")


def test_a_job_that_never_runs_is_told_what_would_let_it_run():
    (found,) = predicted(job("smith", "huge", 6))
    assert (found.fate, found.reason) == ("never", "the quota and borrow limit of its queue are too small for it")
    assert found.remedies == ("it is submitted with 2 instead of 6 pods",)
    (missing,) = predicted(job("smith", "train", 1), queues=())
    assert (missing.fate, "doesn't exist" in missing.reason) == ("never", True)


def test_an_instance_type_of_another_team_does_not_matter():
    other = replace(task("smith", "other", 1, runs=True), usage={("ml.p5.48xlarge", GPU): 8})
    quotas = {("ml.p5.48xlarge", GPU): Quota(Decimal(8))}
    queues = (queue("john", 12), replace(queue("smith", 4), quotas=quotas))
    (found,) = predicted(job("john", "train", 1), running=(other,), queues=queues)
    assert found.fate == "now"


def test_a_job_for_which_no_node_has_room_does_not_start():
    seen = {"nodes": (node("n1"), node("n2")), "running": (task("john", "part", 2, gpus=3, runs=True),)}
    seen |= {"pods": (pod("john", "part", "n1", 3), pod("john", "part", "n2", 3))}
    (found,) = predicted(job("john", "train", 1), **seen)
    assert (found.fate, found.remedies) == ("waits", ("task part ends",))
    assert found.reason == (
        f"quota is free, but no node has 4 {GPU} free for a pod; part of john holds 6 {GPU} on 2 nodes. Kueue admits "
        "it, and it holds quota while its pods wait"
    )
    (small,) = predicted(job("john", "train", 1, gpus=1), **seen)
    assert small.fate == "now"
    asked, mine = (job("john", "train", 1), job("john", "small", 1, gpus=1)), ("hyperpod-ns-john",)
    full, open_ = predicted(*asked, namespaces=mine, **seen)
    # What is visible of other namespaces can only be less, so other ends may not be enough.
    assert (full.fate, full.reason, full.remedies) == ("waits", found.reason, ())
    words = "; whether nodes have room isn't known, because pods of other namespaces couldn't be read"
    assert (open_.fate, open_.reason) == ("unknown", f"it fits the own quota of john{words}")
    (blind,) = predicted(job("john", "train", 1), unread=frozenset({"nodes"}))
    assert (blind.fate, blind.reason.rpartition("because ")[2]) == ("unknown", "nodes couldn't be read")


def test_a_node_that_runs_as_many_pods_as_its_kubelet_allows_has_no_room():
    seen = {"running": (task("john", "tiny", 2, gpus=0, runs=True),), "pods": (pod("john", "tiny", "n1", 0),)}
    for limit, reason in (
        (1, "quota is free, but no node has a place (allocatable.pods) free for a pod; tiny of john holds 1 pod on 1 "),
        (2, "it fits the own quota of john"),
    ):
        (found,) = predicted(job("john", "train", 1), nodes=(node("n1", pods=limit),), **seen)
        assert found.reason.startswith(reason)


def test_the_priority_is_that_of_the_label_or_else_of_the_pods_class():
    """As ExtractPriority of Kueue 0.19.2; the scheduler preempts pods by their own class."""
    low = task("john", "low", 1, runs=True, priority=5)
    seen = {"queues": (queue("john", 4, limit=0),), "running": (low,), "priority_classes": {"high": 10, "none": 0}}
    classes = {"pod_priorities": {"urgent": 10, "low": 1, "": 7, "system-node-critical": 2000}}
    labelled = job("john", "train", 1, kind="Deployment")
    labelled["spec"]["template"]["metadata"] = {"labels": {"kueue.x-k8s.io/priority-class": "high"}}
    urgent, kubeflow = {"priorityClassName": "urgent"}, job("john", "train", 1, kind="PyTorchJob")
    last, first = (job("john", "x", 1, gpus=2, **each)["spec"] for each in ({"priorityClassName": "low"}, urgent))
    kubeflow["spec"] = {"pytorchReplicaSpecs": {"Worker": last, "Master": first}}
    for asked, more, fate, reason in (
        (job("john", "train", 1), {}, "waits", "too little of its quota"),
        (job("john", "train", 1), classes, "now", ""),
        (job("john", "train", 1, **urgent), classes, "now", ""),
        (job("john", "train", 1, priority="none", **urgent), classes, "waits", "too little of its quota"),
        (kubeflow, classes, "now", ""),
        (labelled, {}, "now", ""),
        (
            job("john", "train", 1, **urgent),
            {"unread": frozenset({"priorityclasses"})},
            "unknown",
            "its priority isn't known, because the PriorityClass urg",
        ),
        (job("john", "train", 1, priority="gone"), {}, "never", "Kueue creates no task for it, because the Workload"),
    ):
        (found,) = predicted(asked, **seen, **more)
        assert (found.fate, reason in found.reason) == (fate, True), (asked, found)


def test_pods_that_the_scheduler_can_preempt_leave_open_whether_nodes_have_room():
    seen = {"nodes": (node("n1"),), "running": (task("john", "part", 1, gpus=3, runs=True),)}
    seen |= {"pods": (pod("john", "part", "n1", 3),), "pod_priorities": {"high": 9}, "priority_classes": {"none": 0}}
    for spec, fate in (
        ({}, "waits"),
        ({"priorityClassName": "high"}, "unknown"),
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, "waits"),
    ):
        (found,) = predicted(job("john", "train", 1, priority="none", **spec), **seen)
        assert found.fate == fate
        assert ("only if the scheduler preempts pods with a lower Prio" in found.reason) == (fate == "unknown")
    (small,) = predicted(job("john", "small", 1, gpus=1), **seen)
    assert "pods with a higher PriorityClass, if nodes have no room" in small.may_be_preempted_by


def test_of_jobs_in_one_file_only_those_start_that_fit_wherever_the_scheduler_places_the_first():
    nodes = (node("n1"), node("n2"), node("n3"))
    words = "; whether nodes have room depends on where the pods of first are placed"
    for first, second, fate in (
        # The scheduler spreads them, so no node is whole.
        (job("john", "first", 2, gpus=2), job("john", "second", 2), "unknown"),
        (job("john", "first", 1, gpus=2), job("john", "second", 2), "now"),
        (job("john", "first", 2, gpus=2), job("john", "second", 1), "now"),
        # Pods without accelerators leave enough CPUs everywhere.
        (job("john", "first", 9, gpus=0), job("john", "second", 3), "now"),
    ):
        one, two = predicted(first, second, nodes=nodes)
        assert (one.fate, two.fate, two.reason.endswith(words)) == ("now", fate, fate == "unknown")


def test_pods_that_the_scheduler_places_first_use_the_room_of_nodes():
    nodes = {"nodes": (node("n1"), node("n2"))}
    several = predicted(job("john", "serve", 3, kind="Deployment", gpus=3), **nodes)
    assert [each.fate for each in several] == ["now", "now", "waits"]
    # One pod of an admitted job has no node yet, and gets the next one that becomes free.
    part = task("john", "part", 2, gpus=3, runs=True)
    placed, unplaced = pod("john", "part", "n1", 3), pod("john", "part", None, 3)
    for words, fates in (("2 Insufficient gpu", ["waits"]), ("", ["waits"]), ("claim not found", ["now"])):
        pods = (placed, replace(unplaced, unplaced=words))
        found = predicted(job("john", "train", 1), running=(part,), pods=pods, **nodes)
        assert [each.fate for each in found] == fates


def test_a_pod_gets_a_node_that_a_later_pod_frees_by_preemption():
    lent = task("smith", "lent", 2, gpus=3, runs=True)
    seen = {"nodes": [node(f"n{number}") for number in range(4)]}
    pods = (pod("smith", "lent", "n0", 3), pod("smith", "lent", "n1", 3))
    found = predicted(job("john", "serve", 4, kind="Deployment", gpus=3), running=(lent,), pods=pods, **seen)
    assert [(each.fate, each.preempts) for each in found] == [*[("now", ())] * 3, ("now", ("lent of smith",))]


def test_a_run_past_the_end_of_its_training_plan_is_told():
    gpu, *others = PLAN.groups
    spec = gpu.spec.model_copy(update={"training_plan_arn": "arn:plan"})
    plan = replace(PLAN, groups=(replace(gpu, spec=spec), *others))
    long = job("john", "train", 1)
    long["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "7200"
    (forecast,) = predicted(long)
    words = "; its run time goes past 2026-11-22 13:00 UTC, when the training plan of its nodes ends"
    for hours, told in ((1, words), (3, ""), (None, "")):
        ends = {"arn:plan": NOW + timedelta(hours=hours)} if hours else {}
        assert within_plans(forecast, plan, ends, NOW).reason == f"it fits the own quota of john{told}"


def test_jobs_are_submitted_one_after_the_other_and_pods_of_a_deployment_one_by_one():
    fates = [each.fate for each in predicted(job("smith", "serve", 3, kind="Deployment"))]
    assert fates == ["now", "borrowing", "waits"]
    classes, queues = {"high": 10}, (queue("smith", 8, limit=0), queue("john", 4, limit=4))
    nodes = {"nodes": [node(f"n{number}") for number in range(3)], "priority_classes": classes, "queues": queues}
    low, high = job("smith", "low", 1), job("smith", "high", 2, priority="high")
    for asked, reports in (
        # As Kueue does with files that kubectl creates one after the other.
        ((low, high), [("now", ()), ("now", ("low of smith",))]),
        ((high, low), [("now", ()), ("waits", ())]),
        ((job("john", "lent", 2), high), [("borrowing", ()), ("now", ("lent of john",))]),
        ((low, high, job("john", "own", 1)), [("now", ()), ("now", ("low of smith",)), ("now", ())]),
    ):
        assert [(each.fate, each.preempts) for each in predicted(*asked, **nodes)] == reports, asked


def test_a_job_that_may_have_fewer_pods_starts_with_those_that_fit():
    many = job("john", "train", 9)
    assert predicted(many)[0].fate == "never"
    many["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    assert predicted(many)[0].fate == "borrowing"
