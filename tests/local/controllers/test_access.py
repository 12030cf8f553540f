"""Authentication with EKS tokens and the resulting permissions, with the real API server's RBAC."""

import base64
import http.client
import json
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.signers import RequestSigner
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from hpkit_local.aws.api import BackendView
from hpkit_local.controllers.access import review
from tests.endpoint import running_endpoint
from tests.local.controllers.conftest import REGION
from tests.running import HANGS, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

POLICIES = "arn:aws:eks::aws:cluster-access-policy/"
URL = f"https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"


def token(key, secret=None, session=None, *, url=URL, headers=None):
    """Create a token as `aws eks get-token` does."""
    made = boto3.Session(key, secret or key, session, region_name=REGION)
    service = made.client("sts", endpoint_url="http://127.0.0.1:1").meta.service_model.service_id
    signer = RequestSigner(service, REGION, "sts", "v4", made.get_credentials(), made.events)
    request = {"method": "GET", "url": url, "body": {}, "headers": headers or {"x-k8s-aws-id": "kube"}, "context": {}}
    signed = signer.generate_presigned_url(request, region_name=REGION, expires_in=60, operation_name="")
    return "k8s-aws-v1." + base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")


def session_token(aws, role, name):
    """Assume a role and create a token with its credentials."""
    found = aws.client("sts").assume_role(RoleArn=role, RoleSessionName=name)["Credentials"]
    return token(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])


@pytest.fixture
def as_(environment, aws):
    """Return Kubernetes clients for bearer tokens, with the endpoint from EKS's DescribeCluster."""
    cluster = environment.eks.describe_cluster(name="kube")["cluster"]
    made = []

    def connect(bearer, folder):
        ca = folder / "ca.crt"
        ca.write_bytes(base64.b64decode(cluster["certificateAuthority"]["data"]))
        settings = client.Configuration(host=cluster["endpoint"], api_key={"authorization": f"Bearer {bearer}"})
        settings.ssl_ca_cert = str(ca)
        made.append(client.ApiClient(settings))
        return made[-1]

    yield connect
    for each in made:
        each.close()


@pytest.fixture
def role(environment, request):
    """Create a role that people may assume; its access entries are deleted after the test."""
    name = f"people-{abs(hash(request.node.name)) % 10**6}"
    arn = environment.role(name, "ec2.amazonaws.com")
    yield arn
    if arn in environment.eks.list_access_entries(clusterName="kube")["accessEntries"]:
        environment.eks.delete_access_entry(clusterName="kube", principalArn=arn)


def job():
    container = {"name": "main", "image": "none"}
    spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"}, "spec": spec}


def refused(call, *arguments, status=403, **more):
    with pytest.raises(ApiException) as caught:
        call(*arguments, **more)
    assert caught.value.status == status, caught.value.body
    return json.loads(caught.value.body)["message"]


def may(holds):
    """Return a check whether a call is allowed; bindings follow access entries a moment later."""

    def tried():
        try:
            holds()
        except ApiException as error:
            if error.status != 403:
                raise
            return False
        return True

    return tried


def test_the_creator_of_the_cluster_is_its_administrator(environment, aws, as_, tmp_path):
    creator = "arn:aws:iam::123456789012:user/moto"
    found = environment.eks.list_associated_access_policies(clusterName="kube", principalArn=creator)
    assert [each["policyArn"] for each in found["associatedAccessPolicies"]] == [
        f"{POLICIES}AmazonEKSClusterAdminPolicy"
    ]
    # With AWS_ENDPOINT_URL set, `aws eks get-token` presigns that address.
    bearer = token("local", url=URL.replace(f"https://sts.{REGION}.amazonaws.com", aws.url))
    core = client.CoreV1Api(as_(bearer, tmp_path))
    eventually(may(core.list_secret_for_all_namespaces), "the creator may read secrets")


def test_a_role_comes_in_by_its_entrys_groups_and_works_in_one_namespace_only(
    environment, aws, api, as_, role, tmp_path
):
    bearer = session_token(aws, role, "ann@example.com")
    batch = client.BatchV1Api(as_(bearer, tmp_path))
    refused(batch.create_namespaced_job, "default", job(), status=401)

    environment.eks.create_access_entry(clusterName="kube", principalArn=role, kubernetesGroups=["scientists"])
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "scientists"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "scientists"}],
    }
    api.apply("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/scientists", binding)
    eventually(may(lambda: batch.create_namespaced_job("default", job(), dry_run="All")), "jobs in default")
    message = refused(batch.create_namespaced_job, "kube-public", job())
    name = role.rpartition("/")[2]
    assert f'User "arn:aws:sts::123456789012:assumed-role/{name}/ann-example.com" cannot create' in message

    environment.eks.delete_access_entry(clusterName="kube", principalArn=role)
    # The API server caches responses for ten seconds: ask the webhook directly for the current response.
    assert reviewed(aws, bearer) == {"authenticated": False, "error": f"{role} has no access entry in EKS cluster kube"}


def test_an_entry_is_of_one_role_and_not_of_another_with_its_name(environment, aws):
    statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam, trust = aws.client("iam"), json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    role = "arn:aws:iam::123456789012:role/ann"
    bearer = session_token(aws, role, "ann")
    environment.eks.create_access_entry(clusterName="kube", principalArn=role)
    assert not reviewed(aws, bearer)["authenticated"], "the role was never created"
    iam.create_role(RoleName="ann", AssumeRolePolicyDocument=trust)
    assert reviewed(aws, bearer)["authenticated"]
    environment.eks.delete_access_entry(clusterName="kube", principalArn=role)
    environment.eks.create_access_entry(clusterName="kube", principalArn=role)
    eventually(lambda: reviewed(aws, bearer)["authenticated"], "the entry takes effect")
    iam.delete_role(RoleName="ann")
    assert not reviewed(aws, bearer)["authenticated"], "the role doesn't exist"
    iam.create_role(RoleName="ann", AssumeRolePolicyDocument=trust)
    assert not reviewed(aws, bearer)["authenticated"], "the entry is of the deleted role"
    environment.eks.delete_access_entry(clusterName="kube", principalArn=role)
    iam.delete_role(RoleName="ann")


def reviewed(aws, bearer):
    """Send the API server's request."""
    connection = http.client.HTTPConnection(aws.url.removeprefix("http://"), timeout=HANGS)
    try:
        body = json.dumps({"spec": {"token": bearer}})
        connection.request("POST", "/_hpkit/token-review", body, {"Content-Type": "application/json"})
        return json.load(connection.getresponse())["status"]
    finally:
        connection.close()


def test_policies_reach_as_far_as_their_scope_and_into_namespaces_that_come_later(
    environment, aws, api, as_, role, tmp_path
):
    environment.eks.create_access_entry(clusterName="kube", principalArn=role)
    who = as_(session_token(aws, role, "ben"), tmp_path)
    core, batch = client.CoreV1Api(who), client.BatchV1Api(who)
    refused(core.list_namespaced_config_map, "kube-system")

    entry = {"clusterName": "kube", "principalArn": role}
    scope = {"type": "namespace", "namespaces": ["later"]}
    environment.eks.associate_access_policy(**entry, policyArn=f"{POLICIES}AmazonEKSEditPolicy", accessScope=scope)
    environment.eks.associate_access_policy(
        **entry, policyArn=f"{POLICIES}AmazonEKSViewPolicy", accessScope={"type": "cluster"}
    )
    eventually(may(lambda: core.list_namespaced_config_map("kube-system")), "view reaches everywhere")
    refused(core.list_namespaced_secret, "kube-system")
    api.apply("/api/v1/namespaces/later", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}})
    eventually(may(lambda: batch.create_namespaced_job("later", job())), "edit reaches the namespace that came later")
    refused(batch.create_namespaced_job, "default", job())

    environment.eks.disassociate_access_policy(**entry, policyArn=f"{POLICIES}AmazonEKSViewPolicy")
    eventually(lambda: not may(lambda: core.list_namespaced_config_map("kube-system"))(), "view is taken away")
    api.delete("/api/v1/namespaces/later")
    eventually(
        lambda: "later" not in {each["metadata"]["name"] for each in api.items("/api/v1/namespaces")},
        "a deleted namespace goes with what is in it",
    )


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: "abc", "does not begin with k8s-aws-v1."),
        (lambda: "k8s-aws-v1.!", "not a URL in URL-safe base64"),
        (lambda: token("k", url=URL.replace(f"sts.{REGION}.amazonaws.com", "evil.example")), "not one of STS"),
        (lambda: token("k", url=URL.replace("GetCallerIdentity", "GetSessionToken")), "asks for GetSessionToken"),
        (lambda: token("k", url=f"{URL}&X=1"), "do not belong there: X"),
        (lambda: token("k", headers={"x-other": "kube"}), "does not sign the header x-k8s-aws-id"),
        (lambda: token("k"), "there is no EKS cluster"),
    ],
    ids=lambda value: value if isinstance(value, str) else "token",
)
def test_a_token_is_refused_with_the_reason(made, message):
    with running_endpoint() as endpoint:
        view = BackendView(endpoint._endpoint.backend)
        status = review(view, {"spec": {"token": made()}})["status"]
    assert status["authenticated"] is False
    assert message in status["error"]


def test_an_old_token_is_refused():
    with running_endpoint() as endpoint:
        view = BackendView(endpoint._endpoint.backend)
        later = datetime.now(UTC) + timedelta(minutes=16)
        status = review(view, {"spec": {"token": token("k")}}, now=later)["status"]
    assert "good for 15 minutes" in status["error"]
