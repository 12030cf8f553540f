"""Deletions while nodes are unreachable."""

import time

import pytest

from hpkit_local.kubernetes.kueue_run import running
from tests.running import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.cluster, pytest.mark.timeout(900)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
# Longer than Kueue takes to end a workload.
STILL_SECONDS = 4.0


@pytest.fixture
def route(environment):
    """Route the nodes' network out of the VPC before nodes exist; return functions that create and delete the route.

    The route stays, because nodes that were created with it need it.
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
    """Return the status of the nodes' condition Ready."""
    nodes = api.items("/api/v1/nodes")
    return {each["status"] for node in nodes for each in node["status"]["conditions"] if each["type"] == "Ready"}


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
