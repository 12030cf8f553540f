"""What is deleted on AWS is gone from the API server, and another cluster begins empty."""

import time

import pytest

from local.kubernetes.kueue_run import running
from tests.local.controllers.conftest import GOVERNANCE
from tests.running import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
# Longer than Kueue takes to end what it is asked to.
STILL_SECONDS = 4.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def names(api, folder):
    return {each["metadata"]["name"] for each in api.items(folder, bare=True)}


@pytest.fixture
def route(environment):
    """Lead the nodes' network out of the VPC, before there are nodes; return what makes and deletes the route.

    It stays: the nodes that came with it need it.
    """
    ec2, vpc = environment.ec2, environment.vpc
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    (table,) = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    way = {"RouteTableId": table["RouteTableId"], "DestinationCidrBlock": "0.0.0.0/0"}

    def lay():
        ec2.create_route(**way, GatewayId=gateway)

    def cut():
        ec2.delete_route(**way)

    lay()
    return lay, cut


def readiness(api):
    """Return what the nodes' condition Ready is."""
    nodes = api.items("/api/v1/nodes")
    return {each["status"] for node in nodes for each in node["status"]["conditions"] if each["type"] == "Ready"}


@pytest.mark.nightly
def test_kueue_drops_no_finalizer_while_its_nodes_are_cut_off(route, cluster, environment, api):
    lay, cut = route
    assert environment.govern()["status"] == "ACTIVE"
    quota = environment.quota(cluster, "a", rows=[{"InstanceType": "ml.c5.2xlarge", "Count": 1}])
    environment.quota_settled(quota)
    kueue = "/api/v1/namespaces/kueue-system/pods"
    eventually(lambda: any(each["spec"].get("nodeName") for each in api.items(kueue)), "Kueue's pod is on a node")
    assert readiness(api) == {"True"}

    cut()
    eventually(lambda: readiness(api) == {"Unknown"}, "no node is heard of")
    eventually(lambda: not running(api), "Kueue has stopped")
    environment.sm.delete_compute_quota(ComputeQuotaId=quota)
    queue = f"{KUEUE}/clusterqueues/hyperpod-ns-a-clusterqueue"
    eventually(lambda: "deletionTimestamp" in api.read(queue)["metadata"], "the queue is being deleted")
    time.sleep(STILL_SECONDS)
    assert api.read(queue)["metadata"]["finalizers"], "who would take it away cannot be reached"
    assert environment.sm.describe_compute_quota(ComputeQuotaId=quota)["Status"] == "Deleting"

    lay()
    eventually(lambda: readiness(api) == {"True"}, "the nodes are heard of again")
    eventually(lambda: quota not in {each["ComputeQuotaId"] for each in environment.quotas()}, "the quota is gone", 60)


def test_deleting_everything_leaves_an_api_server_like_new(environment, cluster, api):
    if GOVERNANCE not in environment.eks.list_addons(clusterName="kube")["addons"]:
        assert environment.govern()["status"] == "ACTIVE"
    policy = environment.policy(cluster)
    environment.policy_settled(policy)
    quota = environment.quota(cluster, "a", rows=[{"InstanceType": "ml.c5.2xlarge", "Count": 1}])
    environment.quota_settled(quota)
    _use(api)
    environment.delete_quota(quota)
    environment.sm.delete_cluster_scheduler_config(ClusterSchedulerConfigId=policy)
    eventually(lambda: not environment.policies(), "the policy is gone")
    environment.eks.delete_addon(clusterName="kube", addonName=GOVERNANCE)
    eventually(lambda: not environment.eks.list_addons(clusterName="kube")["addons"], "the add-on is gone")
    assert names(api, f"{KUEUE}/topologies") == set()
    environment.sm.delete_cluster(ClusterName="train")
    eventually(lambda: not environment.sm.list_clusters()["ClusterSummaries"], "the cluster is gone")
    assert names(api, "/api/v1/nodes") == set()
    assert "mine" in names(api, "/api/v1/namespaces"), "what people made stays as long as the EKS cluster"

    environment.eks.delete_cluster(name="kube")
    eventually(lambda: not environment.eks.list_clusters()["clusters"], "the EKS cluster is gone")
    assert names(api, "/api/v1/namespaces") == {
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "kueue-system",
    }
    for plural in ("clusterqueues", "localqueues", "resourceflavors", "workloadpriorityclasses", "topologies"):
        assert names(api, f"{KUEUE}/{plural}") == set()
    assert "stray" not in names(api, "/api/v1/namespaces/default/configmaps")
    kinds = names(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    assert {name for name in kinds if not name.endswith(".kueue.x-k8s.io")} == set()
    assert not {name for name in names(api, f"{RBAC}/clusterrolebindings") if not name.startswith("system:")} - {
        "cluster-admin"
    }

    environment.make_eks("kube")
    eventually(lambda: any("eks:" in name for name in names(api, f"{RBAC}/clusterrolebindings")), "its creator is in")


def _use(api):
    """Leave things in the cluster, as people do: a namespace with content, a role, a kind of their own."""
    api.apply("/api/v1/namespaces/mine", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}
    api.apply("/api/v1/namespaces/mine/configmaps/kept", content)
    content["metadata"]["name"] = "stray"
    api.apply("/api/v1/namespaces/default/configmaps/stray", content)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "people"}}
    api.apply(f"{RBAC}/clusterroles/people", {**role, "rules": []})
    schema = {"openAPIV3Schema": {"type": "object"}}
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    api.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", kind)
