"""Forbidden deletions, changes, completions and Ray clusters, in CEL alone; tests/security uses an API server."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hpkit.cluster.jobs.kinds import KINDS as KINDS_OF_NEW
from hpkit.cluster.jobs.new import manifest
from hpkit.config.models.inference import Inference
from hpkit.plan.derive import derive
from hpkit.plan.team_limits import PodLimits, pod_limits
from hpkit.program.components.admission.policies import pod_security_labels, policies_of, request_limits
from tests.builders import organization, team, typed
from tests.program.components.evaluation import answers, request_of
from tests.security.kinds import (
    BAD_PODS,
    GOOD_PODS,
    KINDS,
    KUBEFLOW,
    RAY_EVASIONS,
    ray,
    service,
    templates_in,
    workload,
)
from tests.security.members import container, job, pod

# Those that end a job's pods with the job are the last ones.
POLICIES = policies_of(())[-5:]


def of_kind(kind, *, version="kubeflow.org/v1", policy=None, status=None, **metadata):
    """Return a job of a framework's kind."""
    run_policy = {} if policy is None else {"runPolicy": {"cleanPodPolicy": policy}}
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": run_policy}
    return document if status is None else {**document, "status": status}


def with_metadata(document, **metadata):
    return {**document, "metadata": {**document["metadata"], **metadata}}


WORK = {
    "Job": job("x"),
    "Pod": pod("x"),
    "PyTorchJob": of_kind("PyTorchJob", policy="All"),
    "MPIJob": of_kind("MPIJob", version="kubeflow.org/v2beta1", policy="All"),
    "RayJob": of_kind("RayJob", version="ray.io/v1"),
    "JobSet": of_kind("JobSet", version="jobset.x-k8s.io/v1alpha2"),
    "HyperPodPyTorchJob": of_kind("HyperPodPyTorchJob", version="sagemaker.amazonaws.com/v1"),
    "Deployment": of_kind("Deployment", version="apps/v1"),
    "LeaderWorkerSet": of_kind("LeaderWorkerSet", version="leaderworkerset.x-k8s.io/v1"),
}


@pytest.mark.parametrize(
    ("options", "finalizers", "orphans"),
    [
        ({"propagationPolicy": "Background"}, [], ()),
        ({"propagationPolicy": "Foreground"}, [], ()),
        ({"propagationPolicy": "Orphan"}, [], WORK),
        ({"orphanDependents": True}, [], WORK),
        ({"orphanDependents": False}, [], ()),
        ({}, [], ("Job",)),
        (None, [], ("Job",)),
        ({"gracePeriodSeconds": 0}, [], ("Job",)),
        # Requested values override the object's values, which override the kind's default.
        ({}, ["orphan"], WORK),
        ({"propagationPolicy": "Background"}, ["orphan"], ()),
        ({}, ["foregroundDeletion"], ()),
    ],
)
def test_a_member_deletes_no_work_without_its_pods(options, finalizers, orphans):
    refused = {}
    for kind, document in WORK.items():
        held = with_metadata(document, finalizers=finalizers)
        refused[kind] = answers(POLICIES, request_of(held, operation="DELETE", options=options), held)
    assert refused == {kind: ["propagationPolicy"] if kind in orphans else [] for kind in WORK}


def test_whoever_is_no_member_orphans_as_before():
    request = request_of(job("x"), operation="DELETE", options={"propagationPolicy": "Orphan"}, member=False)
    assert answers(POLICIES, request, job("x")) == []


@pytest.mark.parametrize("kind", WORK)
def test_a_member_writes_no_finalizer(kind):
    plain = WORK[kind]
    held = with_metadata(plain, finalizers=["example.com/hold"])
    assert answers(POLICIES, request_of(plain), plain) == []
    assert answers(POLICIES, request_of(held), held) == ["metadata.finalizers"]
    update = request_of(plain, operation="UPDATE")
    assert answers(POLICIES, update, held, plain) == ["metadata.finalizers"]
    assert answers(POLICIES, update, plain, held) == ["metadata.finalizers"]
    assert answers(POLICIES, update, held, held) == []


SIZES = ["number and templates of pods"]


def larger(kind):
    """Return a job of a kind after each change that adds pods to it."""
    for change in GROWTH[kind]:
        document = deepcopy(KINDS[kind]("x"))
        change(document["spec"])
        yield document


def _first(field):
    return lambda spec: next(iter(spec[field].values()))


# By kind: how a member, or an autoscaler, adds pods to it.
GROWTH = {
    "Job": (lambda spec: spec.update(parallelism=16), lambda spec: spec.update(parallelism=16, completions=16)),
    **{
        kind: (
            lambda spec, field=field: _first(field)(spec).update(replicas=16),
            lambda spec, field=field, role=role: spec[field].update(Other=spec[field][role]),
        )
        for kind, (_, field, role) in KUBEFLOW.items()
    },
    "JobSet": (
        lambda spec: spec["replicatedJobs"][0].update(replicas=16),
        lambda spec: spec["replicatedJobs"][0]["template"]["spec"].update(parallelism=16),
        lambda spec: spec["replicatedJobs"].append({**spec["replicatedJobs"][0], "name": "other"}),
    ),
    "RayCluster": (
        lambda spec: spec["workerGroupSpecs"][0].update(replicas=16),
        lambda spec: spec["workerGroupSpecs"][0].update(numOfHosts=16),
        lambda spec: spec["workerGroupSpecs"][0].update(suspend=False),
        lambda spec: spec["workerGroupSpecs"].append({**spec["workerGroupSpecs"][0], "groupName": "other"}),
    ),
    "RayJob": (lambda spec: spec["rayClusterSpec"]["workerGroupSpecs"][0].update(replicas=16),),
    "RayService": (lambda spec: spec["rayClusterConfig"]["workerGroupSpecs"][0].update(replicas=16),),
    "LeaderWorkerSet": (lambda spec: spec["leaderWorkerTemplate"].update(size=16),),
    "HyperPodPyTorchJob": (
        lambda spec: spec["replicaSpecs"][0].update(replicas=16),
        lambda spec: spec["replicaSpecs"][0].update(spares=16),
    ),
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("Pod", "Deployment")])
def test_the_pods_of_a_job_change_only_while_it_is_suspended_and_not_by_members(kind):
    running = KINDS[kind]("x")
    moved = [KINDS[kind]("x", **change) for change in ({"nodeSelector": {}}, {"schedulerName": "other"})]
    for changed in (*moved, *larger(kind)):
        for member in (True, False):
            update = request_of(running, operation="UPDATE", member=member)
            assert answers(POLICIES, update, changed, running) == SIZES
            # Kueue changes templates and numbers when it starts a job, and back when it stops it. If it admits a job
            # while a member changes it, it counts the old number of pods.
            for suspends in ("suspend", "runPolicy"):
                suspended, stopped = deepcopy(running), deepcopy(changed)
                for document in (suspended, stopped):
                    if suspends == "suspend":
                        document["spec"]["suspend"] = True
                    else:
                        document["spec"].setdefault("runPolicy", {})["suspend"] = True
                assert answers(POLICIES, update, changed, suspended) == (SIZES if member else [])
                assert answers(POLICIES, update, stopped, running) == (SIZES if member else [])


def test_the_number_of_groups_of_a_leader_worker_set_changes():
    running, more = KINDS["LeaderWorkerSet"]("x"), KINDS["LeaderWorkerSet"]("x")
    more["spec"]["replicas"] = 16
    assert answers(POLICIES, request_of(running, operation="UPDATE"), more, running) == []


def test_the_types_of_replicas_of_a_running_job_are_compared_in_any_order():
    _, field, role = KUBEFLOW["PyTorchJob"]
    running = KINDS["PyTorchJob"]("x")
    replicas = running["spec"][field]
    replicas["Worker"] = deepcopy(replicas[role])
    noted = with_metadata(running, labels={"note": "mine"})
    noted["spec"] = {**running["spec"], field: dict(reversed(replicas.items()))}
    assert answers(POLICIES, request_of(running, operation="UPDATE"), noted, running) == []


@pytest.mark.parametrize("version", ["kubeflow.org/v1", "ray.io/v1", "batch/v1"])
def test_no_autoscaler_changes_the_scale_of_a_job(version):
    scale = {"apiVersion": version, "kind": "Scale", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    request = request_of(scale, operation="UPDATE", member=False)
    request["resource"]["resource"] = "pytorchjobs/scale"
    assert answers(POLICIES, request, {**scale, "spec": {"replicas": 2}}, scale) == SIZES
    assert answers(POLICIES, request, scale, scale) == []


def test_a_member_changes_the_scale_of_a_deployment():
    scale = {"apiVersion": "apps/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    request = request_of(scale, operation="UPDATE")
    request["resource"]["resource"] = "deployments/scale"
    assert answers(POLICIES, request, {**scale, "spec": {"replicas": 2}}, scale) == []


@pytest.mark.parametrize(
    ("kind", "policy", "expected"),
    [
        ("PyTorchJob", {"minReplicas": 1, "maxReplicas": 4}, []),
        ("PyTorchJob", {"maxReplicas": 4, "metrics": []}, ["spec.elasticPolicy"]),
        ("HyperPodPyTorchJob", {"maxReplicas": 4}, ["spec.elasticPolicy"]),
    ],
)
def test_no_operator_adds_pods_to_a_running_job(kind, policy, expected):
    document = KINDS[kind]("x")
    document["spec"]["elasticPolicy"] = policy
    assert answers(POLICIES, request_of(document), document) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_no_template_gives_its_pods_a_finalizer(kind):
    if kind == "Pod":
        return
    document = deepcopy(KINDS[kind]("x"))
    update = request_of(document, operation="UPDATE")
    assert answers(POLICIES, request_of(document), document) == []
    for template in templates_in(document):
        template["metadata"]["finalizers"] = ["example.com/hold"]
    for request in (request_of(document), update):
        assert answers(POLICIES, request, document, document) == ["metadata.finalizers of pod templates"]


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("ConfigMap", "v1"),
        ("PersistentVolumeClaim", "v1"),
        ("Secret", "v1"),
        ("Service", "v1"),
        ("HorizontalPodAutoscaler", "autoscaling/v2"),
        ("ScaledObject", "keda.sh/v1alpha1"),
    ],
)
def test_a_member_adds_no_finalizer_to_what_is_no_work(kind, version):
    plain = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    held = with_metadata(plain, finalizers=["example.com/hold"])
    claimed = with_metadata(plain, finalizers=["kubernetes.io/pvc-protection"])
    update = request_of(plain, operation="UPDATE")
    assert answers(POLICIES, request_of(plain), plain) == answers(POLICIES, request_of(plain), claimed) == []
    assert answers(POLICIES, request_of(plain), held) == ["metadata.finalizers"]
    assert answers(POLICIES, update, held, plain) == ["metadata.finalizers"]
    assert answers(POLICIES, update, plain, held) == answers(POLICIES, update, held, held) == []
    assert answers(POLICIES, request_of(plain, member=False), held) == []


def test_kueues_finalizer_is_a_pods_alone():
    names = {"finalizers": ["kueue.x-k8s.io/managed"]}
    assert answers(POLICIES, request_of(pod("x")), with_metadata(pod("x"), **names)) == []
    assert answers(POLICIES, request_of(job("x")), with_metadata(job("x"), **names)) == ["metadata.finalizers"]


@pytest.mark.parametrize("kind", WORK)
def test_a_member_leaves_what_a_controller_made_to_it(kind):
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "1"}
    update = request_of(WORK[kind], operation="UPDATE")
    owned, controlled = (
        with_metadata(WORK[kind], ownerReferences=[{**owner, **more}]) for more in ({}, {"controller": True})
    )
    assert answers(POLICIES, update, owned, owned) == []
    assert answers(POLICIES, update, controlled, controlled) == ["changes to a controlled object"]


def test_a_cleanup_policy_stays_and_an_mpi_job_has_one_that_ends_its_workers():
    for policy in (None, "None"):
        document = of_kind("MPIJob", policy=policy)
        assert answers(POLICIES, request_of(document), document) == ["spec.runPolicy.cleanPodPolicy of an MPIJob"]
        document = of_kind("PyTorchJob", policy=policy)
        assert answers(POLICIES, request_of(document), document) == []
    before, after = of_kind("PyTorchJob", policy="Running"), of_kind("PyTorchJob", policy="None")
    update = request_of(after, operation="UPDATE")
    assert answers(POLICIES, update, after, before) == ["spec.runPolicy.cleanPodPolicy"]


def status_of(end, **active):
    conditions = [{"type": "Created", "status": "True"}, {"type": end, "status": "True"}]
    return {"conditions": conditions, "replicaStatuses": {role: {"active": count} for role, count in active.items()}}


@pytest.mark.parametrize(
    ("policy", "before", "after", "refused"),
    [
        (None, None, status_of("Succeeded", worker=2), True),
        ("None", status_of("Running", worker=2), status_of("Failed", worker=2), True),
        ("None", None, status_of("Succeeded", worker=0), False),
        ("None", None, {"conditions": status_of("Succeeded")["conditions"], "replicaStatuses": None}, False),
        ("None", None, {"conditions": status_of("Succeeded")["conditions"], "replicaStatuses": {"Master": {}}}, False),
        ("None", None, {"conditions": None, "replicaStatuses": None}, False),
        ("None", {"conditions": None}, status_of("Running", worker=2), False),
        # It ended earlier, for example with an older version of hpkit.
        (None, status_of("Succeeded", worker=2), status_of("Succeeded", worker=2), False),
        ("Running", None, status_of("Succeeded", worker=2), False),
        ("All", None, status_of("Failed", worker=2), False),
    ],
)
def test_a_job_that_leaves_its_pods_ends_after_the_last_of_them(policy, before, after, refused):
    old, new = (of_kind("PyTorchJob", policy=policy, status=status) for status in (before, after))
    request = request_of(new, operation="UPDATE", member=False)
    request["resource"]["resource"] = "*/status"
    assert answers(POLICIES, request, new, old) == (["status.replicaStatuses"] if refused else [])


JOB_SET = {"version": "jobset.x-k8s.io/v1alpha2"}


@pytest.mark.parametrize(
    ("restarts", "before", "after", "refused"),
    [
        ((0, 1), [0, 0], [0, 0], False),
        ((0, 1), [2, 0], [2, 0], True),
        # A Job can succeed when another one fails.
        ((0, 1), [0, 0], [2, 0], True),
        ((0, 1), [2, 0], [0, 0], True),
        ((0, 0), [0, 0], [2, 0], False),
        ((1, 1), [2, 0], [2, 1], False),
    ],
)
def test_a_job_set_restarts_only_before_any_of_its_jobs_succeeds(restarts, before, after, refused):
    old, new = (
        of_kind(
            "JobSet",
            **JOB_SET,
            status={"restarts": count, "replicatedJobsStatus": [{"name": "w", "succeeded": one} for one in succeeded]},
        )
        for count, succeeded in zip(restarts, (before, after), strict=True)
    )
    request = request_of(new, operation="UPDATE", member=False)
    request["resource"]["resource"] = "*/status"
    assert answers(POLICIES, request, new, old) == (["status.restarts"] if refused else [])


def test_a_member_deletes_no_job_of_a_job_set_and_lets_none_expire():
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "o", "uid": "1", "controller": True}
    child = with_metadata(job("x"), ownerReferences=[owner])
    options = {"propagationPolicy": "Background"}
    request = request_of(child, operation="DELETE", options=options)
    assert answers(POLICIES, request, child) == ["deletion of a controlled Job"]
    by_controller = request_of(child, operation="DELETE", options=options, member=False)
    assert answers(POLICIES, by_controller, child) == []
    held = with_metadata(pod("x"), ownerReferences=[owner])
    assert answers(POLICIES, request_of(held, operation="DELETE", options=options), held) == []
    document = KINDS["JobSet"]("x")
    document["spec"]["ttlSecondsAfterFinished"] = 0
    assert answers(POLICIES, request_of(document), document) == []
    document["spec"]["replicatedJobs"][0]["template"]["spec"]["ttlSecondsAfterFinished"] = 0
    field = "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished"
    assert answers(POLICIES, request_of(document), document) == [field]


def ray_policy(**limits):
    return [each for each in policies_of((), PodLimits(**limits)) if each.name == "hpkit-member-ray"]


POLICY = ray_policy()


@pytest.mark.parametrize("name", RAY_EVASIONS)
@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_no_ray_cluster_is_larger_lives_longer_or_is_seen_further_than_its_queue_knows(kind, name):
    change, field, kinds = RAY_EVASIONS[name]
    document = ray(kind, "x", change)
    expected = [field] if kind in kinds or "serveService" in document["spec"] else []
    for operation in ("CREATE", "UPDATE"):
        assert answers(POLICY, request_of(document, operation=operation), document, document) == expected
    assert answers(POLICY, request_of(document, member=False), document) == []


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_a_ray_cluster_of_fixed_size_is_let_in(kind):
    document = KINDS[kind]("x")
    assert answers(POLICY, request_of(document), document) == []
    small = deepcopy(document)
    spec = small["spec"]
    for group in (spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec)["workerGroupSpecs"]:
        del group["replicas"], group["minReplicas"]
    assert answers(POLICY, request_of(small), small) == []


def test_a_head_is_published_where_the_file_says_so():
    balanced = ray("RayCluster", "x", RAY_EVASIONS["a load balancer"][0])
    routed = ray("RayCluster", "x", RAY_EVASIONS["an ingress"][0])
    given = ray_policy(publish=("LoadBalancer",))
    assert answers(given, request_of(balanced), balanced) == []
    assert answers(given, request_of(routed), routed) == ["spec.headGroupSpec.serviceType"]
    given = ray_policy(publish=("Ingress",))
    assert answers(given, request_of(routed), routed) == []
    assert answers(given, request_of(balanced), balanced) == ["spec.headGroupSpec.serviceType"]


def test_a_ray_job_selects_a_cluster_from_its_creation_on_and_without_a_pod_of_its_own():
    selecting = KINDS["RayJob"]("x")
    selecting["spec"] |= {"clusterSelector": {"ray.io/cluster": "small"}, "submissionMode": "HTTPMode"}
    update = request_of(selecting, operation="UPDATE")
    assert answers(POLICY, request_of(selecting), selecting) == []
    assert answers(POLICY, update, selecting, selecting) == []
    counted = KINDS["RayJob"]("x")
    assert answers(POLICY, update, selecting, counted) == ["spec.clusterSelector"]
    assert answers(POLICY, update, counted, selecting) == ["spec.clusterSelector"]


# test_queues.py, test_quota.py and test_nodes.py show that a real API server and Kueue agree.
G5 = "ml.g5.12xlarge"
DAY = 86_400


def plan_of(limits=None, **of_team):
    data = organization(
        teams=[team("john", members=["arn:aws:iam::123456789012:role/john"], **of_team), team("smith")],
        allocations={name: [{"instanceType": G5, "count": 1}] for name in ("john", "smith")},
    )
    if limits:
        data["environments"]["dev"]["governance"]["teamLimits"] = limits
    return derive(typed(data), "dev")


def policies(limits=None, **of_team):
    plan = plan_of(limits, **of_team)
    return policies_of(plan.teams, pod_limits(plan))


DEFAULT = policies()
_OF_LWS = {
    "kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset",
    "kueue.x-k8s.io/pod-group-serving": "true",
    "kueue.x-k8s.io/pod-index-offset": "1",
}


def sent(document):
    """Return a document as validating admission receives it: with what Kueue's webhooks add."""
    document = deepcopy(document)
    metadata = document["metadata"]
    if document["kind"] == "Pod":
        metadata["annotations"] = {"kueue.x-k8s.io/role-hash": "0a1b2c3d", **metadata.get("annotations", {})}
        metadata["labels"] = {"kueue.x-k8s.io/managed": "true", **metadata["labels"]}
    if document["kind"] == "Deployment":
        template = document["spec"]["template"]["metadata"]
        template["annotations"] = {
            "kueue.x-k8s.io/pod-suspending-parent": "deployment",
            **template.get("annotations", {}),
        }
        template["labels"] = {"kueue.x-k8s.io/managed": "true", **template["labels"]}
    if document["kind"] == "LeaderWorkerSet":
        template = document["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]
        template["annotations"] = {**_OF_LWS, **template.get("annotations", {})}
    return document


def refused(document, given=DEFAULT, **more):
    return answers(given, request_of(document, **more), sent(document))


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_of_any_kind_as_it_should_be_is_let_in(kind):
    assert refused(KINDS[kind]("fine")) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("spec", "field"), BAD_PODS.values(), ids=BAD_PODS)
def test_no_kind_of_job_has_pods_that_no_team_may_have(kind, spec, field):
    document = KINDS[kind]("bad", **spec)
    assert refused(document) == [field]
    assert refused(document, member=False) == [field], "controllers make pods too"


@pytest.mark.parametrize(("spec", "field"), BAD_PODS.values(), ids=BAD_PODS)
def test_kueue_counts_no_pods_that_no_team_may_have_whatever_kind_they_are_of(spec, field):
    whole = KINDS["Pod"]("bad", **spec)["spec"]
    assert refused(workload(whole), member=False) == [field]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", GOOD_PODS.values(), ids=GOOD_PODS)
def test_what_training_needs_is_let_in(kind, spec):
    assert refused(KINDS[kind]("good", **spec)) == []


def test_the_file_opens_what_it_names_and_no_more():
    opened = policies(
        {
            "terminationGracePeriodSeconds": 600,
            "tolerations": ["reserved-for-smith"],
            "volumes": ["nfs"],
            "publish": ["LoadBalancer"],
        }
    )
    good = {
        "terminationGracePeriodSeconds": 600,
        "tolerations": [{"key": "reserved-for-smith"}],
        "volumes": [{"name": "data", "nfs": {"server": "files", "path": "/"}}],
    }
    assert refused(KINDS["Job"]("good", **good), opened) == []
    assert refused(KINDS["Job"]("bad", terminationGracePeriodSeconds=601), opened) != []
    assert refused(KINDS["Job"]("bad", volumes=[{"name": "v", "iscsi": {}}]), opened) == ["spec.volumes"]
    assert refused(service("LoadBalancer"), opened) == []
    assert refused(service("NodePort"), opened) == ["spec.type"]


KEYS = {
    "role-hash": "0a1b2c3d",
    "pod-suspending-parent": "x",
    "prebuilt-workload-name": "theirs",
    "elastic-job": "true",
    "pod-group-serving": "true",
    "safe-to-forcefully-delete": "true",
    "workload": "theirs",
    "podset": "main",
    "is-group-workload": "true",
    "multikueue-origin": "x",
    "priority-boost": "100",
    "admission-gated-by": "x",
}


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_member_sends_no_note_of_kueues(kind, key, place):
    name = f"kueue.x-k8s.io/{key}"
    for on_template in (False, True):
        document = KINDS[kind]("forged")
        targets = list(templates_in(document)) if on_template else [document]
        for target in targets:
            target["metadata"].setdefault(place, {})[name] = KEYS[key]
        # Kueue adds a hash to each pod, and reads that of pods in groups only.
        # Its webhook writes the other into the templates of a LeaderWorkerSet.
        written = {("Pod", "role-hash"), ("LeaderWorkerSet", "pod-group-serving") if place == "annotations" else ()}
        expected = [] if (kind, key) in written else ["labels and annotations of kueue.x-k8s.io"]
        assert refused(document) == expected


def test_a_member_sends_no_note_of_any_subdomain_of_kueue():
    for name in ("alpha.kueue.x-k8s.io/x", "provreq.kueue.x-k8s.io/maxRunDurationSeconds"):
        document = KINDS["Job"]("forged")
        document["metadata"]["annotations"] = {name: "1"}
        assert refused(document) == ["labels and annotations of kueue.x-k8s.io"]


@pytest.mark.parametrize("key", ["pod-group-name", "pod-group-total-count", "retriable-in-group"])
def test_members_create_no_pod_groups(key):
    for place in ("labels", "annotations"):
        document = KINDS["Pod"]("grouped")
        document["metadata"].setdefault(place, {})[f"kueue.x-k8s.io/{key}"] = "1"
        assert refused(document) == ["labels and annotations of kueue.x-k8s.io"]


def test_what_kueue_wrote_into_a_running_job_may_stay_and_nothing_else_comes():
    before = KINDS["PyTorchJob"]("runs")
    (template,) = templates_in(before)
    template["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "master"
    template["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": G5}
    after = deepcopy(before)
    after["metadata"]["labels"]["note"] = "mine"
    request = request_of(before, operation="UPDATE")
    assert answers(DEFAULT, request, after, before) == []
    next(templates_in(after))["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "worker"
    assert answers(DEFAULT, request, after, before) == [
        "labels and annotations of kueue.x-k8s.io",
        "number and templates of pods",
    ]


def test_a_member_changes_no_template_to_what_no_team_may_have_and_kueue_may_touch_old_ones():
    before = KINDS["PyTorchJob"]("waits", terminationGracePeriodSeconds=DAY)
    before["spec"]["runPolicy"]["suspend"] = True
    after = deepcopy(before)
    next(templates_in(after))["spec"]["nodeSelector"] = {"a": "b"}
    assert answers(DEFAULT, request_of(before, operation="UPDATE", member=False), after, before) == []
    assert answers(DEFAULT, request_of(before, operation="UPDATE"), after, before) == [
        "spec.terminationGracePeriodSeconds",
        "number and templates of pods",
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Pod"])
@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_a_template_requests_what_it_limits(kind, field, name):
    others = {} if field == "containers" else {"containers": [container()]}
    limited, requested = (
        KINDS[kind]("large", **others, **{field: [container(resources={"limits": {name: "64"}, **requests})]})
        for requests in ({}, {"requests": {name: "1"}})
    )
    # The API server completes the pods of a Deployment before Kueue counts them.
    assert refused(limited) == ([] if kind == "Deployment" else ["spec.containers[].resources"])
    assert refused(requested) == []


@pytest.mark.parametrize("kind", KUBEFLOW)
def test_a_kubeflow_kind_has_the_types_of_replicas_that_kueue_counts(kind):
    _, field, role = KUBEFLOW[kind]
    for name in (role.lower(), "Other"):
        document = KINDS[kind]("uncounted")
        document["spec"][field][name] = document["spec"][field][role]
        assert refused(document) == ["types of replicas"]


@pytest.mark.parametrize("kind", KUBEFLOW)
def test_no_kubeflow_kind_carries_a_priority_class_beside_its_pods(kind):
    document = KINDS[kind]("first")
    document["spec"]["runPolicy"]["schedulingPolicy"] = {"priorityClass": "system-node-critical"}
    assert refused(document) == ["spec.runPolicy.schedulingPolicy.priorityClass"]
    document["spec"]["runPolicy"]["schedulingPolicy"] = {"minAvailable": 1}
    assert refused(document) == []


RANKS = {
    "a class of the system": (
        {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "system-node-critical"},
        2,
    ),
    "another class of pods": ({"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}, 1),
    "a class that is not the team's": (
        {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "training-priority"},
        1,
    ),
    "the team's": ({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "experiment-priority"}, 0),
}


@pytest.mark.parametrize(("reference", "count"), RANKS.values(), ids=RANKS)
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_workload_has_a_rank_of_the_team(version, reference, count):
    ranked = policies(priorityClasses=["experiment"])
    spec = KINDS["Pod"]("pod")["spec"]
    kueue = reference["group"] == "kueue.x-k8s.io"
    rank = (
        {"priorityClassRef": reference}
        if version == "v1beta2"
        else {
            "priorityClassName": reference["name"],
            "priorityClassSource": f"{reference['group']}/{'workloadpriorityclass' if kueue else 'priorityclass'}",
        }
    )
    after = workload(spec, **rank)
    assert len(refused(after, ranked, member=False)) == count
    request = request_of(after, operation="UPDATE", member=False)
    assert len(answers(ranked, request, after, workload(spec))) == count
    assert answers(ranked, request, {**after, "metadata": {}}, after) == [], "what was there can be taken away"
    if reference["name"] != "system-node-critical":
        assert refused(after, DEFAULT, member=False) == []


def test_members_publish_nothing_unless_the_file_says_so():
    assert [refused(service(name)) for name in (None, "ClusterIP", "ExternalName")] == [[], [], []]
    assert [refused(service(name)) for name in ("NodePort", "LoadBalancer")] == [["spec.type"], ["spec.type"]]
    assert refused(service("LoadBalancer"), member=False) == []
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {}}
    assert refused(ingress) == ["spec.type"]
    assert refused(ingress, policies({"publish": ["Ingress"]})) == []


@pytest.mark.parametrize(("seconds", "expected"), [(None, []), (0, []), (120, []), (121, ["gracePeriodSeconds"])])
def test_a_pod_that_is_deleted_stops_in_time(seconds, expected):
    options = {"kind": "DeleteOptions", **({} if seconds is None else {"gracePeriodSeconds": seconds})}
    document = KINDS["Pod"]("pod")
    assert answers(DEFAULT, request_of(document, operation="DELETE", options=options), document) == expected


@pytest.mark.parametrize(
    ("period", "ending", "seconds", "accepted"),
    [
        (30, None, None, True),
        (30, None, 1, True),
        (30, None, 0, False),
        (30, 30, None, True),
        (30, 120, None, False),
        (30, 120, 0, False),
        (30, 120, 1, False),
        (30, 120, 120, True),
    ],
)
def test_a_pod_on_a_node_keeps_its_time_to_stop(period, ending, seconds, accepted):
    document = KINDS["Pod"]("pod", nodeName="node", terminationGracePeriodSeconds=period)
    if ending is not None:
        document["metadata"] |= {"deletionTimestamp": "2026-11-28T12:00:00Z", "deletionGracePeriodSeconds": ending}
    options = {"kind": "DeleteOptions", **({} if seconds is None else {"gracePeriodSeconds": seconds})}
    request = request_of(document, operation="DELETE", options=options)
    assert answers(DEFAULT, request, document) == ([] if accepted else ["gracePeriodSeconds of a pod on a node"])
    assert answers(DEFAULT, request, {**document, "status": {"phase": "Failed"}}) == []


@pytest.mark.parametrize("kind", KINDS_OF_NEW)
def test_what_hpkit_job_new_writes_is_let_in(kind):
    plan = plan_of()
    team = plan.teams[0]
    spec = team.spec.model_copy(update={"workloads": ("training", "inference")})
    operators = {"operators": ("kuberay-operator", "lws"), "inference": Inference()}
    plan = replace(plan, teams=(replace(team, spec=spec),), spec=plan.spec.model_copy(update=operators))
    document = manifest(
        plan, plan.teams[0], kind=kind, name="train", instance_type=G5, count=1, priority=None, topology=None, image="i"
    )
    assert refused(document) == []


SAMPLES = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}")
    for file in sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("document", SAMPLES)
def test_the_samples_of_the_documentation_are_let_in(document):
    owner = document["metadata"].get("namespace", "hyperpod-ns-john").removeprefix("hyperpod-ns-")
    teams = replace_names(plan_of().teams, owner)
    request = request_of(document, team=owner)
    assert answers(policies_of(teams), request, sent(document)) == []


def replace_names(teams, name):
    """Return teams of which the first has this name."""
    return [replace(teams[0], spec=teams[0].spec.model_copy(update={"name": name})), *teams[1:]]


def space(name="lab", *, queue="hyperpod-ns-john-localqueue", rank=None, **labels):
    labels = {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": rank, **labels}
    return {
        "apiVersion": "workspace.jupyter.org/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value is not None}},
        "spec": {"displayName": "Lab", "desiredStatus": "Running"},
    }


def test_a_space_is_in_the_queue_of_its_team_and_poses_as_nothing_else():
    assert refused(space()) == []
    assert refused(space(queue=None)) == ["metadata.labels"]
    assert refused(space(queue="hyperpod-ns-smith-localqueue")) == ["metadata.labels"]
    # The controller copies labels and annotations to pods.
    keys = "labels and annotations of kueue.x-k8s.io"
    assert refused(space(**{"kueue.x-k8s.io/pod-group-name": "admitted"})) == [keys]
    stopped = space() | {"spec": {"displayName": "Lab", "desiredStatus": "Stopped"}}
    assert answers(DEFAULT, request_of(space(), operation="UPDATE"), stopped, space()) == []
    orphaned = request_of(space(), operation="DELETE", options={"propagationPolicy": "Orphan"})
    assert answers(DEFAULT, orphaned, space()) == ["propagationPolicy"]


@pytest.mark.parametrize("classes", [[], ["batch"]])
def test_a_space_has_the_class_of_its_teams_spaces_and_other_work_has_not(classes):
    given = policies(priorityClasses=classes, spacePriorityClass="interactive")
    rank = "kueue.x-k8s.io/priority-class"
    assert refused(space(rank="interactive-priority"), given) == []
    assert refused(space(rank="batch-priority"), given) == [rank]
    assert refused(space(), given) == [rank]
    job = deepcopy(KINDS["Job"]("train"))
    job["metadata"]["labels"][rank] = "interactive-priority"
    assert refused(job, given) == ([rank] if classes else [])
    reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "interactive-priority"}
    assert refused(workload({"containers": [container()]}, priorityClassRef=reference), given) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_has_a_run_time_within_its_teams(kind):
    given, label = policies(maxRunTime={"limit": "2h"}), "kueue.x-k8s.io/max-exec-time-seconds"
    for seconds, allowed in ((None, False), ("7201", False), ("0", False), ("-1", False), ("x", False), ("7200", True)):
        document = deepcopy(KINDS[kind]("train"))
        document["metadata"]["labels"] |= {} if seconds is None else {label: seconds}
        assert refused(document, given) == ([] if allowed or kind in ("Deployment", "LeaderWorkerSet") else [label]), (
            seconds
        )
    assert refused(KINDS[kind]("train")) == []
    assert refused(space(), given) == []


def teams(*given):
    rows = {each["name"]: [{"instanceType": G5, "count": 1}] for each in given}
    return derive(typed(organization(teams=list(given), allocations=rows)), "dev").teams


def policy(name, *given):
    (found,) = (each for each in policies_of(teams(*given)) if each.name == name)
    return found


def test_only_the_service_accounts_that_the_file_names_are_a_teams():
    given = (team("ada", serviceAccounts=["trainer"]), team("bob"))
    for name in ("hpkit-team-pods", "hpkit-team-jobs", "hpkit-team-workloads"):
        (found,) = (each for each in policy(name, *given).rejections if each.field == "spec.serviceAccountName")
        assert (
            "{'hyperpod-ns-ada': ['default', 'trainer']}[?request.namespace].orValue(['default'])" in found.expression
        )


def test_taints_of_the_file_may_be_tolerated_and_reserved_ones_never():
    data = organization()
    (group, *_) = data["environments"]["dev"]["cluster"]["instanceGroups"]
    group["taints"] = [
        {"key": key, "effect": "NoSchedule"} for key in ("team/large", "sagemaker.amazonaws.com/node-health-status")
    ]
    limits = pod_limits(derive(typed(data), "dev"))
    assert "team/large" in limits.tolerations
    assert "sagemaker.amazonaws.com/node-health-status" not in limits.tolerations


def test_a_container_without_requests_gets_those_of_the_file():
    data = organization()
    data["environments"]["dev"]["governance"]["teamLimits"] = {"defaultRequests": {"cpu": "2"}}
    given, least = request_limits(pod_limits(derive(typed(data), "dev")))
    assert given == {"cpu": "2", "memory": "256Mi"}
    assert least == {"cpu": "1m", "memory": "1Mi"}


def test_the_level_of_a_namespace_is_of_the_clusters_version():
    labels = pod_security_labels("1.35")
    levels = {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn", "audit")}
    assert levels == {"enforce": "baseline", "warn": "baseline", "audit": "restricted"}
    assert labels["pod-security.kubernetes.io/enforce-version"] == "v1.35"
