"""A member tries to keep pods running that Kueue no longer counts: after a deletion, next to a job, after its end."""

from contextlib import contextmanager
from copy import deepcopy

import pytest

from hpkit_local.kubernetes.api import RejectedError
from tests.running import eventually, making
from tests.security.accounting import counted, settled_excess, taken
from tests.security.kinds import KINDS, RAY_EVASIONS, ray, service
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, container, delete, job, pod, refused, tried

pytestmark = pytest.mark.platform

GPU = "nvidia.com/gpu"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STUBBORN = {"hpkit.local/ignore-sigterm": "true"}


def pods_of(api, name, *, phase="Running"):
    pods = api.items(f"{CORE}/pods", labels=f"batch.kubernetes.io/job-name={name}")
    return [item for item in pods if item.get("status", {}).get("phase") == phase]


def stubborn(name, *, pods=1, seconds=120):
    """Return a Job whose pods ignore SIGTERM for a number of seconds."""
    document = job(name, pods=pods, terminationGracePeriodSeconds=seconds)
    document["spec"]["template"]["metadata"]["annotations"] |= STUBBORN
    return document


@pytest.fixture
def running_job(john, api):
    """Create a member's own Job with two running pods of a GPU each."""
    john.create(JOBS, job("train", pods=2))
    eventually(lambda: len(pods_of(api, "train")) == 2, "its pods run")
    eventually(lambda: counted(api, "john")[GPU] == 2, "Kueue counts them")
    return f"{JOBS}/train"


def assert_books_are_right(api, gpus):
    """Check that the team's pods run, and that Kueue counts them."""
    assert settled_excess(api) == {}
    assert (taken(api, "john")[GPU], counted(api, "john")[GPU]) == (gpus, gpus)


ORPHANING = (
    {"propagationPolicy": "Orphan"},
    {"orphanDependents": True},
    {},  # Without a propagation policy, deleting a Job orphans its pods.
    {"propagationPolicy": "Orphan", "gracePeriodSeconds": 120},
)


def test_a_member_cannot_keep_the_pods_of_a_deleted_job(john, api, running_job):
    for options in ORPHANING:
        for path in (running_job, JOBS):
            assert "--cascade=background" in refused(delete, john, path, options)
    assert_books_are_right(api, 2)


def test_a_job_that_is_deleted_takes_its_pods_with_it(john, api, running_job):
    delete(john, running_job, {"propagationPolicy": "Foreground"})
    eventually(lambda: not pods_of(api, "train"), "its pods end")
    assert_books_are_right(api, 0)


def test_a_member_cannot_keep_the_pods_of_a_deleted_job_by_a_finalizer(john, api, running_job):
    for name in ("orphan", "example.com/hold", "kueue.x-k8s.io/managed"):
        held = job("held")
        held["metadata"]["finalizers"] = [name]
        assert "metadata.finalizers" in refused(john.create, JOBS, held)
        assert "metadata.finalizers" in refused(john.merge, running_job, {"metadata": {"finalizers": [name]}})
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    assert "metadata.finalizers" in refused(john.create, f"{CORE}/pods", held)
    john.create(f"{CORE}/pods", pod("free"))
    john.merge(running_job, {"metadata": {"annotations": {"note": "mine"}}})
    eventually(lambda: counted(api, "john")[GPU] == 3, "Kueue counts the pod too")
    assert_books_are_right(api, 3)


@pytest.fixture
def child(api, running_job):
    """Create a Job as a controller does for an admitted one, such as JobSet or MPI's operator."""
    owner = api.read(running_job)["metadata"]
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": owner["name"],
        "uid": owner["uid"],
        "controller": True,
    }
    api.create(JOBS, job("child", owners=[reference]))
    eventually(lambda: len(pods_of(api, "child")) == 1, "the pod of the child runs, as part of its owner")
    yield f"{JOBS}/child"
    api.delete(f"{JOBS}/child")


def test_a_member_cannot_get_more_compute_by_growing_a_part_of_an_admitted_job(john, api, child):
    message = refused(john.merge, child, {"spec": {"parallelism": 8}})
    assert "belongs to another one" in message or "number of pods" in message
    change = {"metadata": {"labels": {"batch.kubernetes.io/job-name": "x"}}}
    assert "belongs to another one" in refused(john.merge, child, change)
    assert len(pods_of(api, "child")) == 1


@pytest.fixture
def kubeflow(api):
    """Serve Kubeflow's kinds as policies see them: any field, with a separate status."""
    with serving(api, "kubeflow.org", "PyTorchJob", "MPIJob") as folder:
        yield folder


@pytest.fixture
def job_sets(api):
    """Serve JobSets as policies see them."""
    with serving(api, "jobset.x-k8s.io", "JobSet") as folder:
        yield folder


@pytest.fixture
def ray_kinds(api):
    """Serve Ray's kinds as policies see them."""
    with serving(api, "ray.io", "RayCluster", "RayJob", "RayService") as folder:
        yield folder


@contextmanager
def serving(api, group, *kinds):
    """Serve kinds of a group in version v1; yield the path of the team's namespace."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    plurals = [f"{kind.lower()}s" for kind in kinds]
    with making(api) as make:
        for kind, plural in zip(kinds, plurals, strict=True):
            names = {"kind": kind, "plural": plural}
            spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
            make(
                CRDS,
                {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": {"name": f"{plural}.{group}"},
                    "spec": spec,
                },
            )
        eventually(lambda: set(plurals) <= _served(api, group), "the kinds are served")
        yield f"/apis/{group}/v1/namespaces/{NAMESPACE}"


def _served(api, group):
    try:
        return {item["name"] for item in api.read(f"/apis/{group}/v1")["resources"]}
    except RejectedError:
        return set()


def test_a_member_cannot_run_more_of_ray_than_its_queue_counts(john, ray_kinds):
    for change, _, kinds in RAY_EVASIONS.values():
        for kind in kinds:
            document = ray(kind, "evading", change)
            assert "hpkit-member-ray" in refused(john.create, f"{ray_kinds}/{kind.lower()}s", document)
    for kind in ("RayCluster", "RayJob"):
        john.create(f"{ray_kinds}/{kind.lower()}s", KINDS[kind]("plain"))
        delete(john, f"{ray_kinds}/{kind.lower()}s/plain", {"propagationPolicy": "Background"})


def test_a_member_cannot_make_the_namespace_undeletable(john):
    held = {"name": "held", "labels": ATTACK, "finalizers": ["example.com/hold"]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    objects = {
        "configmaps": {"apiVersion": "v1", "kind": "ConfigMap"},
        "secrets": {"apiVersion": "v1", "kind": "Secret"},
        "services": service(),
        "persistentvolumeclaims": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim},
    }
    for plural, document in objects.items():
        folder = f"{CORE}/{plural}"
        assert "metadata.finalizers" in refused(john.create, folder, {**document, "metadata": held})
        john.create(folder, {**document, "metadata": {"name": "held", "labels": ATTACK}})
        change = {"metadata": {"finalizers": held["finalizers"]}}
        assert "metadata.finalizers" in refused(john.merge, f"{folder}/held", change)
        delete(john, f"{folder}/held", {})
    document = job("held")
    document["spec"]["template"]["metadata"]["finalizers"] = held["finalizers"]
    assert "metadata.finalizers" in refused(john.create, JOBS, document)


def framework_job(kind, policy):
    run_policy = {} if policy is None else {"cleanPodPolicy": policy}
    template = {"spec": {"containers": [container()]}}
    roles = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": 2, "template": template}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "framework", "labels": {"kueue.x-k8s.io/queue-name": f"{NAMESPACE}-localqueue", **ATTACK}},
        "spec": {"runPolicy": run_policy, "pytorchReplicaSpecs": roles},
    }


def ending(kind, workers):
    return {
        "status": {
            "conditions": [{"type": kind, "status": "True"}],
            "replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"active": workers}},
        }
    }


def test_a_member_cannot_get_an_autoscaler_for_a_running_job(api, john, kubeflow):
    elastic = framework_job("PyTorchJob", "Running")
    elastic["spec"]["elasticPolicy"] = {"maxReplicas": 4, "metrics": []}
    assert "spec.elasticPolicy" in refused(john.create, f"{kubeflow}/pytorchjobs", elastic)
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
    folder = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "hyperpod:team:john"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    with making(api) as make:
        # Members may create autoscalers with `workloads: [inference]`.
        make(rbac, {"metadata": {"name": "serves"}, "roleRef": role, "subjects": [group]})
        for api_version, kind in (("kubeflow.org/v1", "PyTorchJob"), ("apps/v1", "Deployment")):
            spec = {"maxReplicas": 4, "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": "x"}}
            body = {"metadata": {"name": "x"}, "spec": spec}
            if kind == "Deployment":
                assert not tried(john.create, f"{folder}?dryRun=All", body)
            else:
                assert "can only scale a Deployment" in refused(john.create, f"{folder}?dryRun=All", body)


def test_a_member_cannot_keep_workers_after_the_job_ends(john, api, kubeflow):
    end = "Succeeded"
    path = f"{kubeflow}/pytorchjobs/framework"
    for policy in (None, "None"):
        john.create(f"{kubeflow}/pytorchjobs", framework_job("PyTorchJob", policy))
        assert "cleanPodPolicy" in refused(api.merge, f"{path}/status", ending(end, 2))
        api.merge(f"{path}/status", {"status": {**ending("Running", 2)["status"], "replicaStatuses": None}})
        api.merge(f"{path}/status", ending(end, 0))
        api.delete(path)
    john.create(f"{kubeflow}/pytorchjobs", framework_job("PyTorchJob", "Running"))
    change = {"spec": {"runPolicy": {"cleanPodPolicy": "None"}}}
    assert "cleanPodPolicy can't change" in refused(john.merge, path, change)
    api.merge(f"{path}/status", ending(end, 2))
    api.delete(path)


def test_a_member_cannot_run_a_job_of_a_job_set_again(john, api, child, job_sets):
    assert "belongs to another object" in refused(delete, john, child, {"propagationPolicy": "Background"})
    document = KINDS["JobSet"]("again") | {"apiVersion": "jobset.x-k8s.io/v1"}
    again = deepcopy(document)
    again["spec"]["replicatedJobs"][0]["template"]["spec"]["ttlSecondsAfterFinished"] = 0
    assert "ttlSecondsAfterFinished" in refused(john.create, f"{job_sets}/jobsets", again)
    john.create(f"{job_sets}/jobsets", document)
    status = f"{job_sets}/jobsets/again/status"
    api.merge(status, {"status": {"restarts": 1, "replicatedJobsStatus": [{"name": "w", "succeeded": 0}]}})
    api.merge(status, {"status": {"replicatedJobsStatus": [{"name": "w", "succeeded": 1}]}})
    assert "can't restart" in refused(api.merge, status, {"status": {"restarts": 2}})
    api.delete(f"{job_sets}/jobsets/again")


def test_a_member_cannot_keep_workers_of_mpi_running(john, kubeflow):
    for policy in (None, "None"):
        document = framework_job("MPIJob", policy)
        assert "must be Running or All" in refused(john.create, f"{kubeflow}/mpijobs", document)
    john.create(f"{kubeflow}/mpijobs", framework_job("MPIJob", "Running"))
    delete(john, f"{kubeflow}/mpijobs/framework", {})


def test_kueue_frees_the_quota_of_a_deleted_job_while_its_pods_use_their_grace_period(john, api):
    john.create(JOBS, stubborn("slow", seconds=120))
    john.create(JOBS, stubborn("brief", seconds=2))
    eventually(lambda: pods_of(api, "slow") and pods_of(api, "brief"), "both run")
    eventually(lambda: counted(api, "john")[GPU] == 2, "and are counted")
    for name in ("slow", "brief"):
        delete(john, f"{JOBS}/{name}", {"propagationPolicy": "Background"})
    eventually(lambda: counted(api, "john")[GPU] == 0, "Kueue counts neither")
    eventually(lambda: not pods_of(api, "brief"), "the pod of two seconds ends by itself")
    (pod_left,) = pods_of(api, "slow")
    assert pod_left["metadata"]["deletionGracePeriodSeconds"] == 120
    # What ends within the period may run, and nothing else runs.
    assert settled_excess(api) == {}
    assert pods_of(api, "slow")
