"""The hands-on article on the local cloud, step by step: from the add-on until all sixteen GPUs are in use."""

from pathlib import Path

import pytest
import yaml

from tests.running import eventually
from tests.security.accounting import settled_excess
from tests.security.members import member, refused

pytestmark = pytest.mark.platform

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
PLURALS = {"Service": "services", "Deployment": "deployments", "PyTorchJob": "pytorchjobs"}
# What the operator reads: the field with the replicas, the roles, and the required container name.
FRAMEWORKS = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker"), "pytorch"),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Worker"), "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker"), "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", ("Worker",), "paddle"),
}


def manifests(team):
    return list(yaml.safe_load_all((EXAMPLES / f"fsdp-{team}.yaml").read_text(encoding="utf-8")))


def folder_of(document):
    version, namespace = document["apiVersion"], document["metadata"]["namespace"]
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    return f"{root}/namespaces/{namespace}/{PLURALS[document['kind']]}"


def submit(who, team):
    for document in manifests(team):
        who.create(folder_of(document), document)


def gpus_of(api, team):
    status = api.read(f"{QUEUES}/hyperpod-ns-{team}-clusterqueue").get("status", {})
    found = [each for flavor in status.get("flavorsUsage") or [] for each in flavor["resources"]]
    return next(
        ((int(each["total"]), int(each["borrowed"])) for each in found if each["name"] == "nvidia.com/gpu"), None
    )


def running(api, team):
    pods = api.items(f"/api/v1/namespaces/hyperpod-ns-{team}/pods")
    return sorted(
        each["metadata"]["labels"]["app"] for each in pods if each.get("status", {}).get("phase") == "Running"
    )


@pytest.mark.nightly
def test_two_teams_go_through_the_article_from_half_of_the_gpus_to_all_of_them(instance, api, operator):
    john, smith = (member(instance, team) for team in ("john", "smith"))
    # kubectl get all -n kueue-system
    pods = api.items("/api/v1/namespaces/kueue-system/pods")
    assert [each["status"]["phase"] for each in pods] == ["Running"]
    # The teams' namespaces exist since the teams were created.
    assert api.read("/api/v1/namespaces/hyperpod-ns-john")["status"]["phase"] == "Active"
    for document in manifests("john"):
        assert "cannot create" in refused(smith.create, folder_of(document), document)
    try:
        # kubectl apply -f fsdp-john.yaml
        submit(john, "john")
        eventually(lambda: running(api, "john") == ["etcd", "fsdp", "fsdp"], lambda: running(api, "john"))
        eventually(lambda: gpus_of(api, "john") == (8, 0), lambda: gpus_of(api, "john"))
        # kubectl apply -f fsdp-smith.yaml
        submit(smith, "smith")
        eventually(lambda: running(api, "smith") == ["etcd", "fsdp", "fsdp"], lambda: running(api, "smith"))
        eventually(lambda: gpus_of(api, "smith") == (8, 4), lambda: gpus_of(api, "smith"))
        assert gpus_of(api, "john") == (8, 0), "sixteen of sixteen, and john has lost nothing"
    finally:
        # kubectl delete -f fsdp-john.yaml -f fsdp-smith.yaml
        for who, team in ((john, "john"), (smith, "smith")):
            for document in manifests(team):
                who.delete(f"{folder_of(document)}/{document['metadata']['name']}")
        eventually(lambda: not running(api, "john") and not running(api, "smith"), "their pods go")
    eventually(lambda: gpus_of(api, "smith") == (0, 0), "and what was lent is back")


@pytest.fixture
def framework_job(request):
    """Return a job of a framework for john, with one two-GPU pod per role."""
    kind = request.param
    replicas, roles, container = FRAMEWORKS[kind]
    labels = {"kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "2"}}
    template = {
        "metadata": {"labels": {**labels, "app": kind.lower()}, "annotations": {"hpkit.local/run": "2s"}},
        "spec": {"containers": [{"name": container, "image": "train", "resources": resources}]},
    }
    role = {"replicas": 1, "restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "framework", "namespace": "hyperpod-ns-john", "labels": labels},
        "spec": {replicas: dict.fromkeys(roles, role)},
    }


@pytest.mark.nightly
@pytest.mark.parametrize("framework_job", FRAMEWORKS, indirect=True)
def test_a_member_of_a_team_submits_a_job_of_each_framework_and_it_ends(instance, api, operator, framework_job):
    kind = framework_job["kind"]
    jobs = f"/apis/kubeflow.org/v1/namespaces/hyperpod-ns-john/{kind.lower()}s"
    path = f"{jobs}/framework"
    roles = len(FRAMEWORKS[kind][1])
    assert "cannot create" in refused(member(instance, "smith").create, jobs, framework_job)

    def workload():
        found = api.items("/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-john/workloads")
        return next((each for each in found if each["metadata"]["ownerReferences"][0]["kind"] == kind), {})

    def reasons():
        return {each["type"]: each["reason"] for each in workload().get("status", {}).get("conditions", [])}

    def ended():
        conditions = api.read(path).get("status", {}).get("conditions") or []
        return any((each["type"], each["status"]) == ("Succeeded", "True") for each in conditions)

    john = member(instance, "john")
    john.create(jobs, framework_job)
    try:
        eventually(ended, lambda: api.read(path))
        eventually(lambda: "Finished" in reasons(), reasons)
        assert reasons()["Admitted"] == "Admitted"
        used = workload()["status"]["admission"]["podSetAssignments"]
        assert sum(int(each["resourceUsage"]["nvidia.com/gpu"]) for each in used) == 2 * roles
        pods = api.items("/api/v1/namespaces/hyperpod-ns-john/pods", labels=f"app={kind.lower()}")
        assert [each["status"]["phase"] for each in pods] == ["Succeeded"] * roles
        assert all(each["spec"]["nodeName"] for each in pods)
    finally:
        john.delete(path)
        eventually(lambda: not workload(), "Kueue forgets it")


@pytest.mark.nightly
def test_a_job_that_leaves_its_workers_ends_with_the_last_of_them_and_is_counted_until_then(instance, api, operator):
    labels = {"kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "2"}}
    container = {"name": "pytorch", "image": "train", "resources": resources}

    def role(run):
        metadata = {"labels": {**labels, "app": "left"}, "annotations": {"hpkit.local/run": run}}
        template = {"metadata": metadata, "spec": {"containers": [container]}}
        return {"replicas": 1, "restartPolicy": "Never", "template": template}

    document = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "left", "namespace": "hyperpod-ns-john", "labels": labels},
        "spec": {"pytorchReplicaSpecs": {"Master": role("1s"), "Worker": role("24h")}},
    }
    john = member(instance, "john")
    john.create(folder_of(document), document)
    path = f"{folder_of(document)}/left"

    def conditions():
        return {item["type"]: item["status"] for item in api.read(path).get("status", {}).get("conditions") or []}

    def pods():
        found = api.items("/api/v1/namespaces/hyperpod-ns-john/pods", labels="app=left")
        return {item["metadata"]["name"]: item["status"]["phase"] for item in found}

    try:
        master_ended = {"left-master-0": "Succeeded", "left-worker-0": "Running"}
        eventually(lambda: pods() == master_ended, pods)
        assert settled_excess(api) == {}
        assert (conditions().get("Succeeded"), gpus_of(api, "john")[0]) == (None, 4), "its worker runs, and is counted"
        worker = "/api/v1/namespaces/hyperpod-ns-john/pods/left-worker-0"
        api.merge(worker, {"metadata": {"annotations": {"hpkit.local/run": "0s"}}})
        eventually(lambda: conditions().get("Succeeded") == "True", conditions)
        eventually(lambda: gpus_of(api, "john")[0] == 0, lambda: gpus_of(api, "john"))
    finally:
        john.delete(path)
        eventually(lambda: not pods(), "its pods go")
