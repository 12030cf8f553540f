"""A member tries to get a node: to become root there, or to place pods on forbidden nodes."""

import pytest

from tests.running import eventually
from tests.security.members import CORE, JOBS, container, job, pod, refused

pytestmark = pytest.mark.platform

HOST = [{"name": "host", "hostPath": {"path": "/"}}]
ROOT = {
    "privileged": {"containers": [container(securityContext={"privileged": True})]},
    "in an init container": {"initContainers": [container(name="first", securityContext={"privileged": True})]},
    "the node's files": {"volumes": HOST},
    "the node's network": {"hostNetwork": True},
    "the node's processes": {"hostPID": True},
    "the node's memory": {"hostIPC": True},
    "a port of the node": {"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]},
    "SYS_ADMIN": {"containers": [container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})]},
    "no seccomp": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
}


def test_a_member_cannot_get_root_on_a_node(john):
    for name, spec in ROOT.items():
        message = refused(john.create, f"{CORE}/pods", pod("root", **spec))
        assert 'violates PodSecurity "baseline:v1.35"' in message, name


def test_a_member_cannot_get_root_on_a_node_by_a_job_whose_pods_a_controller_makes(john, api):
    john.create(JOBS, job("root-job", **ROOT["privileged"]))

    def events():
        found = api.items(f"{CORE}/events", fields="involvedObject.name=root-job")
        return [each["message"] for each in found if each["reason"] == "FailedCreate"]

    eventually(events, "the Job's pods are rejected")
    assert "violates PodSecurity" in events()[0]
    assert not api.items(f"{CORE}/pods", labels="batch.kubernetes.io/job-name=root-job")


def test_a_member_cannot_lift_the_level_of_the_namespace(john):
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    message = refused(john.merge, "/api/v1/namespaces/hyperpod-ns-john", {"metadata": {"labels": labels}})
    assert 'cannot patch resource "namespaces"' in message


def test_a_member_cannot_choose_the_node_without_the_scheduler(john, api):
    node = api.items("/api/v1/nodes", metadata_only=True)[0]["metadata"]["name"]
    assert "spec.nodeName" in refused(john.create, f"{CORE}/pods", pod("placed", nodeName=node))
    assert "spec.nodeName" in refused(john.create, JOBS, job("placed", nodeName=node))


def test_a_member_cannot_keep_pods_of_another_team_off_nodes(john):
    for terms in ({"namespaces": ["hyperpod-ns-smith"]}, {"namespaceSelector": {}}):
        everywhere = [{"topologyKey": "kubernetes.io/os", "labelSelector": {}, **terms}]
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": everywhere}}
        assert "spec.affinity" in refused(john.create, f"{CORE}/pods", pod("alone", affinity=affinity))
        assert "spec.affinity" in refused(john.create, JOBS, job("alone", affinity=affinity))


def test_a_member_cannot_tolerate_every_taint(john):
    anything = [{"operator": "Exists"}]
    assert "tolerations" in refused(john.create, f"{CORE}/pods", pod("anywhere", tolerations=anything))
    assert "tolerations" in refused(john.create, JOBS, job("anywhere", tolerations=anything))


def test_a_member_cannot_reach_the_kubelet_of_a_node(john, api):
    node = api.items("/api/v1/nodes", metadata_only=True)[0]["metadata"]["name"]
    message = refused(john.read, f"/api/v1/nodes/{node}/proxy/run/kube-system/pod/main?cmd=id")
    assert 'resource "nodes/proxy"' in message
    assert "cannot patch" in refused(john.merge, f"/api/v1/nodes/{node}", {"spec": {"taints": []}})


def test_a_member_cannot_add_a_shell_to_a_running_pod(john):
    john.create(f"{CORE}/pods", pod("host"))
    debugger = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "sh", "targetContainerName": "main"}]}}
    message = refused(john.merge, f"{CORE}/pods/host/ephemeralcontainers", debugger)
    assert 'cannot patch resource "pods/ephemeralcontainers"' in message


def test_training_with_efa_huge_pages_and_shared_memory_needs_no_privilege(john, api):
    needs = {"vpc.amazonaws.com/efa": "1", "hugepages-2Mi": "5120Mi", "nvidia.com/gpu": "4", "memory": "8000Mi"}
    shared = {"name": "shmem", "emptyDir": {"medium": "Memory"}}
    mounted = container(resources={"limits": needs}, volumeMounts=[{"name": "shmem", "mountPath": "/dev/shm"}])  # noqa: S108
    efa = pod(
        "efa", containers=[mounted], volumes=[shared], tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]
    )
    john.create(f"{CORE}/pods", efa)
    assert api.read(f"{CORE}/pods/efa")["spec"]["containers"][0]["resources"]["limits"]["vpc.amazonaws.com/efa"] == "1"
