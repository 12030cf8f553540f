"""Jobs of each framework, which a member submits and the training operator of the local cloud runs."""

import pytest

from tests.running import eventually
from tests.security.members import member, refused

pytestmark = pytest.mark.platform

# What the operator reads: the field with the replicas, the roles, and the required container name.
FRAMEWORKS = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker"), "pytorch"),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Worker"), "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker"), "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", ("Worker",), "paddle"),
}


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
