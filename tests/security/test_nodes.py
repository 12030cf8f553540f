"""A member tries to get a node, or other principals' permissions or network traffic."""

import pytest

from hpkit.program.components.access.rbac import viewer_rules
from tests.running import eventually, making
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, container, impersonating, job, pod, refused

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


RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def strong(api):
    """Create a service account in the team's namespace with more permissions than a member has."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "labels": ATTACK}}
    api.apply(f"{CORE}/serviceaccounts/strong", account)
    return "strong"


def test_a_member_cannot_get_the_rights_of_a_service_account_by_a_pod(john, strong):
    assert "serviceAccountName" in refused(john.create, f"{CORE}/pods", pod("posing", serviceAccountName=strong))
    assert "serviceAccountName" in refused(john.create, JOBS, job("posing", serviceAccountName=strong))


def test_a_member_cannot_get_the_rights_of_a_service_account_by_a_secret(john, strong):
    metadata = {"name": "stolen", "labels": ATTACK, "annotations": {"kubernetes.io/service-account.name": strong}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/service-account-token"}
    assert "service-account-token" in refused(john.create, f"{CORE}/secrets", secret)


def test_a_member_cannot_get_the_rights_of_a_service_account_by_a_token(john):
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    message = refused(john.create, f"{CORE}/serviceaccounts/default/token", request)
    assert 'cannot create resource "serviceaccounts/token"' in message


def test_a_member_cannot_get_the_traffic_of_an_address_that_is_not_theirs(john):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "greedy", "labels": ATTACK},
        "spec": {"selector": {"app": "x"}, "ports": [{"port": 443}]},
    }
    taking = {**service, "spec": {**service["spec"], "externalIPs": ["10.0.0.1"]}}
    assert "externalIPs" in refused(john.create, f"{CORE}/services", taking)
    john.create(f"{CORE}/services", service)
    assert "externalIPs" in refused(john.merge, f"{CORE}/services/greedy", {"spec": {"externalIPs": ["10.0.0.1"]}})


def binding(kind, role):
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "hyperpod:team:john"}],
    }


def test_a_member_cannot_give_the_team_more_rights(john):
    inside = f"{RBAC}/namespaces/{NAMESPACE}"
    assert "cannot create" in refused(john.create, f"{inside}/rolebindings", binding("RoleBinding", "admin"))
    whole = binding("ClusterRoleBinding", "cluster-admin")
    assert "cannot create" in refused(john.create, f"{RBAC}/clusterrolebindings", whole)
    more = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    assert "cannot patch" in refused(john.merge, f"{inside}/roles/hpkit-data-scientist", more)


LEADS_TO_OTHERS = [
    ("escalate", "rbac.authorization.k8s.io", "roles"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
    *(("impersonate", "", name) for name in ("groups", "users")),
    *(("create", "", name) for name in ("namespaces", "serviceaccounts", "persistentvolumes", "endpoints")),
    *(("create", "", f"pods/{name}") for name in ("ephemeralcontainers", "binding", "eviction")),
    ("create", "", "services/proxy"),
    ("create", "certificates.k8s.io", "certificatesigningrequests"),
    ("create", "discovery.k8s.io", "endpointslices"),
]


def test_a_member_cannot_get_a_right_that_leads_to_others(john):
    for verb, group, resource in LEADS_TO_OTHERS:
        name, _, part = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": name, "subresource": part, "namespace": NAMESPACE}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = john.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        assert answer["status"]["allowed"] is False, resource


def test_a_member_cannot_read_the_secrets_of_others(john):
    for namespace in ("hyperpod-ns-smith", "kube-system", "kueue-system"):
        assert "cannot list" in refused(john.read, f"/api/v1/namespaces/{namespace}/secrets")
    assert "cannot list" in refused(john.read, "/api/v1/secrets")


def test_a_member_cannot_create_a_namespace_without_quota(john):
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "free"}}
    assert "cannot create" in refused(john.create, "/api/v1/namespaces", namespace)
    assert "cannot create" in refused(john.create, "/api/v1/namespaces/default/pods", pod("free"))


@pytest.fixture
def eve(api, instance):
    """Return a viewer."""
    role = "arn:aws:sts::123456789012:assumed-role/viewer/eve"
    rbac = "rbac.authorization.k8s.io"
    subject = {"apiGroup": rbac, "kind": "Group", "name": "hyperpod:viewers"}
    rules = [
        {"apiGroups": rule.api_groups, "resources": rule.resources, "verbs": rule.verbs} for rule in viewer_rules()
    ]
    made = {"apiVersion": f"{rbac}/v1", "metadata": {"name": "hpkit-viewer"}}
    ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": "hpkit-viewer"}
    bound = {**made, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]}
    with making(api) as make:
        make(f"{RBAC}/clusterroles", {**made, "kind": "ClusterRole", "rules": rules})
        make(f"{RBAC}/clusterrolebindings", bound)
        yield impersonating(instance, role, "hyperpod:viewers")


def test_a_viewer_reads_everything_except_secrets_of_teams(eve):
    kueue = "/apis/kueue.x-k8s.io/v1beta1"
    for path in (
        "/api/v1/nodes",
        "/api/v1/pods",
        f"{CORE}/events",
        f"{JOBS}",
        f"{kueue}/clusterqueues",
        f"{kueue}/localqueues",
        f"{kueue}/workloads",
        f"{RBAC}/clusterrolebindings",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ):
        assert "items" in eve.read(path), path
    for path in ("/api/v1/secrets", f"{CORE}/secrets"):
        assert "cannot list" in refused(eve.read, path)
    assert "cannot create" in refused(eve.create, f"{CORE}/pods", pod("posing"))
    assert "cannot get" in refused(eve.read, f"{CORE}/pods/any/exec?command=id")
