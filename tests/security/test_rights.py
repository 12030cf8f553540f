"""A member tries to get other principals' permissions or network traffic."""

import pytest

from hpkit.program.components.access.rbac import viewer_rules
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, impersonating, job, pod, refused

pytestmark = pytest.mark.platform

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


def test_a_viewer_reads_everything_except_secrets_of_teams(api, instance):
    role = "arn:aws:sts::123456789012:assumed-role/viewer/eve"
    rbac = "rbac.authorization.k8s.io"
    subject = {"apiGroup": rbac, "kind": "Group", "name": "hyperpod:viewers"}
    rules = [
        {"apiGroups": rule.api_groups, "resources": rule.resources, "verbs": rule.verbs} for rule in viewer_rules()
    ]
    made = {"apiVersion": f"{rbac}/v1", "metadata": {"name": "hpkit-viewer"}}
    api.apply(f"{RBAC}/clusterroles/hpkit-viewer", {**made, "kind": "ClusterRole", "rules": rules})
    ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": "hpkit-viewer"}
    bound = {**made, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]}
    api.apply(f"{RBAC}/clusterrolebindings/hpkit-viewer", bound)
    eve = impersonating(instance, role, "hyperpod:viewers")
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
