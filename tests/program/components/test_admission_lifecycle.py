"""Forbidden deletions, changes, completions and Ray clusters, in CEL alone; tests/security uses an API server."""

from copy import deepcopy

import pytest

from hpkit.plan.team_limits import PodLimits
from hpkit.program.components.admission.lifecycle import lifecycle_policies
from hpkit.program.components.admission.policies import ray_policy
from tests.program.components.evaluation import answers, request_of
from tests.security.kinds import KINDS, KUBEFLOW, RAY_EVASIONS, ray, templates_in
from tests.security.members import job, pod

POLICIES = lifecycle_policies()


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


POLICY = [ray_policy(PodLimits())]


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
    given = [ray_policy(PodLimits(publish=("LoadBalancer",)))]
    assert answers(given, request_of(balanced), balanced) == []
    assert answers(given, request_of(routed), routed) == ["spec.headGroupSpec.serviceType"]
    given = [ray_policy(PodLimits(publish=("Ingress",)))]
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
