"""A member tries to get compute outside the team's queue: around Kueue, or ahead of others."""

import pytest

from tests.running import eventually
from tests.security.kinds import KINDS
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, container, job, pod, refused, tried

pytestmark = pytest.mark.platform

ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
# No queue has an instance of that type, so Kueue never admits such a pod.
NOWHERE = {"node.kubernetes.io/instance-type": "ml.m5.4xlarge"}


def admitted_job(john, api):
    """Create a member's own small Job that Kueue has admitted."""
    john.create(JOBS, job("small"))
    eventually(lambda: not api.read(f"{JOBS}/small")["spec"]["suspend"], "it is admitted")
    return api.read(f"{JOBS}/small")


@pytest.fixture
def served(api):
    """Create a StatefulSet of the team as an administrator."""
    labels = {"kueue.x-k8s.io/queue-name": f"{NAMESPACE}-localqueue", **ATTACK}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    document = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "served", "labels": labels},
        "spec": {"replicas": 0, "serviceName": "served", "selector": {"matchLabels": ATTACK}, "template": pods},
    }
    folder = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
    yield api.create(folder, document)
    api.delete(f"{folder}/served")


def test_a_member_cannot_run_without_a_queue_as_pods_of_a_stateful_set_may(john, served):
    identity = {key: served["metadata"][key] for key in ("name", "uid")}
    owners = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True, **identity}]
    unlabelled = pod("posing", owners=owners, labels={"kueue.x-k8s.io/queue-name": None})
    # Kueue's webhook, which is called first, knows a StatefulSet a moment after it's created.
    eventually(lambda: "ownerReferences" in refused(john.create, f"{CORE}/pods", unlabelled), "Kueue knows the owner")


def test_a_member_cannot_start_a_waiting_pod_by_removing_its_gate(john, api):
    john.create(f"{CORE}/pods", pod("gated", nodeSelector=NOWHERE))
    assert {"name": "kueue.x-k8s.io/admission"} in api.read(f"{CORE}/pods/gated")["spec"]["schedulingGates"]
    for change in (
        {"spec": {"schedulingGates": []}},
        {"metadata": {"labels": {"kueue.x-k8s.io/managed": None}}},
        {"metadata": {"labels": {"kueue.x-k8s.io/managed": None}}, "spec": {"schedulingGates": []}},
    ):
        assert 'cannot patch resource "pods"' in refused(john.merge, f"{CORE}/pods/gated", change)
    assert api.read(f"{CORE}/pods/gated")["spec"]["schedulingGates"]


@pytest.fixture
def widened(api):
    """Also grant the team john the permissions of the access policy AmazonSagemakerHyperpodTrainingPolicy."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    every = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]
    meta = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "wide"}}
    api.apply(f"{rbac}/roles/wide", {**meta, "kind": "Role", "rules": every})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "hyperpod:team:john"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "wide"}
    api.apply(f"{rbac}/rolebindings/wide", {**meta, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]})
    yield
    api.delete(f"{rbac}/rolebindings/wide")
    api.delete(f"{rbac}/roles/wide")


def test_a_member_cannot_start_a_waiting_pod_with_the_rights_of_hyperpods_own_policy(john, api, widened):
    john.create(f"{CORE}/pods", pod("gated", nodeSelector=NOWHERE))

    def allowed():
        return not tried(john.merge, f"{CORE}/pods/gated", {"metadata": {"labels": {"mine": "yes"}}})

    eventually(allowed, "the wider permissions are there")
    path = f"{CORE}/pods/gated"
    assert "schedulingGates" in refused(john.merge, path, {"spec": {"schedulingGates": []}})
    for kept in ("labels", "annotations"):
        own = {key: None for key in api.read(path)["metadata"][kept] if key.startswith("kueue.x-k8s.io/")}
        assert own
        assert "kueue.x-k8s.io" in refused(john.merge, path, {"metadata": {kept: own}})
    theirs = {"image": "registry/handson-dev/smith/train"}
    theirs = {"spec": {"containers": [{**main, **theirs} for main in api.read(path)["spec"]["containers"]]}}
    assert "another team's repository" in refused(john.merge, path, theirs)
    # Like Kueue after it has processed the pod.
    api.merge(path, {"metadata": {"finalizers": ["kueue.x-k8s.io/managed"]}})
    try:
        assert "finalizers" in refused(john.merge, path, {"metadata": {"finalizers": None}})
    finally:
        api.merge(path, {"metadata": {"finalizers": None}})


def test_a_member_cannot_change_the_priority_of_a_workload(john, api):
    admitted_job(john, api)
    folder = f"{KUEUE}/namespaces/{NAMESPACE}/workloads"
    (name,) = [each["metadata"]["name"] for each in api.items(folder) if "small" in each["metadata"]["name"]]
    assert "cannot patch" in refused(john.merge, f"{folder}/{name}", {"spec": {"priority": 1_000_000}})
    assert "cannot delete" in refused(john.delete, f"{folder}/{name}")


GOVERNING = [
    (f"{KUEUE}/clusterqueues/hyperpod-ns-john-clusterqueue", {"spec": {"stopPolicy": "None"}}),
    (f"{KUEUE}/namespaces/{NAMESPACE}/localqueues/{NAMESPACE}-localqueue", {"spec": {"stopPolicy": "Hold"}}),
    (f"{KUEUE}/resourceflavors/ml.g5.12xlarge", {"spec": {"nodeLabels": {}}}),
    (f"{KUEUE}/workloadpriorityclasses/training-priority", {"value": 1_000_000}),
    ("/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config", {"data": {}}),
    (f"{ADMISSION}/hyperpod-task-governance-admission-policy-binding", {"spec": {"validationActions": ["Audit"]}}),
    (f"{ADMISSION}/hpkit-member-work", {"spec": {"validationActions": ["Audit"]}}),
]


def test_a_member_cannot_change_what_governs(john):
    for path, change in GOVERNING:
        assert "cannot patch" in refused(john.merge, path, change)
        assert "cannot delete" in refused(john.delete, path)


def test_a_member_cannot_end_the_work_of_another_team(john, smith):
    folder = "/apis/batch/v1/namespaces/hyperpod-ns-smith/jobs"
    smith.create(folder, job("theirs", team="smith"))
    try:
        assert "cannot delete" in refused(john.delete, f"{folder}/theirs")
        assert "cannot get" in refused(john.read, f"{folder}/theirs")
        assert "cannot create" in refused(john.create, folder, job("mine", team="smith"))
    finally:
        smith.delete(f"{folder}/theirs")


def test_a_member_cannot_run_what_the_team_does_not(john):
    for group, kind in (("apps/v1", "statefulsets"), ("apps/v1", "daemonsets"), ("batch/v1", "cronjobs")):
        folder = f"/apis/{group}/namespaces/{NAMESPACE}/{kind}"
        assert f'cannot create resource "{kind}"' in refused(john.create, folder, {"metadata": {"name": "other"}})


def test_a_member_cannot_get_the_token_of_a_service_account_by_way_of_keda(john):
    spec = {"boundServiceAccountToken": [{"parameter": "bearerToken", "serviceAccountName": "trainer"}]}
    for kind, document in (("triggerauthentications", {"spec": spec}), ("scaledjobs", {"spec": {}})):
        folder = f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/{kind}"
        message = refused(john.create, folder, {"metadata": {"name": "mine"}, **document})
        assert f'cannot create resource "{kind}"' in message


def test_a_team_serves_in_its_queue_and_changes_the_number_of_replicas(john, api):
    john.create(DEPLOYMENTS, KINDS["Deployment"]("served"))
    try:
        john.merge(f"{DEPLOYMENTS}/served/scale", {"spec": {"replicas": 2}})
        eventually(lambda: api.read(f"{DEPLOYMENTS}/served").get("status", {}).get("availableReplicas") == 2, "it runs")
        waiting = john.items(f"{KUEUE}/namespaces/{NAMESPACE}/workloads")
        assert len([each for each in waiting if each["metadata"]["name"].startswith("pod-served")]) == 2, "each counts"
        metrics = [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ]
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "served"}
        scaler = {
            "metadata": {"name": "served"},
            "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": metrics},
        }
        scalers = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
        john.create(scalers, {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **scaler})
        john.delete(f"{scalers}/served")
    finally:
        john.delete(f"{DEPLOYMENTS}/served")


def test_a_team_raises_the_rank_of_a_job_that_waits(john, api, classes):
    low, high = ({"kueue.x-k8s.io/priority-class": f"{name}-priority"} for name in ("experiment", "training"))
    john.create(JOBS, job("waiting", pods=50, labels=low))

    def rank():
        workloads = [
            workload
            for workload in john.items(f"{KUEUE}/namespaces/{NAMESPACE}/workloads")
            if workload["metadata"]["name"].startswith("job-waiting")
        ]
        return workloads and workloads[0]["spec"].get("priority")

    eventually(lambda: rank() == 40, rank)
    john.merge(f"{JOBS}/waiting", {"metadata": {"labels": high}})
    eventually(lambda: rank() == 80, rank)


def test_a_team_trains_as_before(john, api):
    john.create(JOBS, job("train", pods=2))
    running = "batch.kubernetes.io/job-name=train"
    eventually(
        lambda: [each for each in api.items(f"{CORE}/pods", labels=running) if each["status"]["phase"] == "Running"],
        "its pods run",
    )
    john.merge(f"{JOBS}/train", {"metadata": {"labels": {"note": "mine"}}})
    john.delete(f"{JOBS}/train")
