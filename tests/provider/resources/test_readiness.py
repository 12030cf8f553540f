"""Readiness: waits for what AWS makes effective late, with a time limit, and states the reasons when it expires."""

import base64
import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest

from hpkit.cluster.live.read import read
from hpkit.cluster.live.status import status_of
from hpkit_local.kubernetes.pki import authority, signed
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import TimedOutError
from hpkit_provider.resources.readiness import ReadinessHandler
from hpkit_provider.server import HyperpodServicer

LABELS = {"sagemaker.amazonaws.com/node-health-status": "Schedulable"}


class Kubernetes:
    """An API server with prepared responses by path without query; it records the tokens that it receives."""

    def __init__(self, url, authority_data):
        self.url, self.authority = url, authority_data
        self.answers, self.tokens, self.asked = {}, [], []

    def of(self, path):
        self.asked.append(path)
        answer = self.answers.get(path.partition("?")[0], (404, {"message": "nothing is here"}))
        # The last of several responses is repeated.
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer if isinstance(answer, tuple) else (200, answer)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    ca = authority(folder, "test-ca")
    return ca, signed(folder, "server", issuer=ca, names=("127.0.0.1",))


@pytest.fixture
def kubernetes(certificates):
    ca, server = certificates
    reason = None

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            reason.tokens.append(self.headers["Authorization"])
            status, document = reason.of(self.path)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    http.socket = context.wrap_socket(http.socket, server_side=True)
    data = base64.b64encode(ca.certificate.read_bytes()).decode()
    reason = Kubernetes(f"https://127.0.0.1:{http.server_address[1]}", data)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield reason
    http.shutdown()
    http.server_close()


@pytest.fixture(autouse=True)
def one_server(monkeypatch):
    monkeypatch.setenv("HYPERPOD_SETTLE_SECONDS", "0")


def of_cluster(kubernetes, **more):
    return {
        "eksClusterName": "kube",
        "endpoint": kubernetes.url,
        "certificateAuthority": kubernetes.authority,
        "minutes": 1,
        **more,
    }


def node(instance, ready="True", **labels):
    condition = {"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": "cni isn't initialized"}
    return {
        "metadata": {"name": f"hyperpod-{instance}", "labels": {**LABELS, **labels}},
        "status": {"conditions": [condition]},
    }


def listed(*nodes):
    return {"metadata": {}, "items": list(nodes)}


def instances(world):
    return [each["InstanceId"] for each in world.sm.list_cluster_nodes(ClusterName="train")["ClusterNodeSummaries"]]


@contextmanager
def waiting(world):
    """Return a handler, and its messages: progress and warnings."""
    servicer = HyperpodServicer()
    servicer.Configure.__wrapped__(servicer, _Settings(world.settings), None)
    messages = []
    call = EngineCall(
        "urn:pulumi:dev::hpkit::hyperpod:index:Readiness::nodes",
        60.0,
        threading.Event(),
        lambda *each: messages.append(each[1]),
    )
    yield ReadinessHandler(servicer.clients), call, messages


class _Settings:
    def __init__(self, settings):
        from hpkit_provider.engine.values import to_struct

        self.variables, self.args = {}, to_struct(settings)


@pytest.fixture
def cluster(world, engine):
    """Create a cluster with two nodes in gpu and one in system; return its ARN, and instance IDs by group."""
    arn = engine.up("Cluster", "c", world.cluster(world.group("gpu", 2), world.group("system", 1)))["id"]
    found = world.sm.list_cluster_nodes(ClusterName="train")["ClusterNodeSummaries"]
    return arn, {
        group: sorted(each["InstanceId"] for each in found if each["InstanceGroupName"] == group)
        for group in ("gpu", "system")
    }


def nodes_of(kubernetes, arn, *groups, **more):
    return of_cluster(kubernetes, clusterArn=arn, instanceGroups=list(groups), **more)


def test_it_waits_until_the_nodes_of_its_groups_are_ready_and_shows_how_many_are(world, kubernetes, cluster):
    arn, ids = cluster
    first, second = ids["gpu"]
    kubernetes.answers["/api/v1/nodes"] = [
        listed(),
        listed(node(first)),
        listed(node(first), node(second, "False")),
        listed(node(first), node(second)),
    ]
    with waiting(world) as (handler, call, said):
        handler.create(call, nodes_of(kubernetes, arn, "gpu"))
    assert said == ["gpu 0/2 Ready", "gpu 1/2 Ready", "ready"]
    assert "instance-group-name%20in%20%28gpu%29" in kubernetes.asked[0]
    assert len(set(kubernetes.tokens)) <= len(kubernetes.tokens)
    assert all(each.startswith("Bearer k8s-aws-v1.") for each in kubernetes.tokens)


@pytest.mark.parametrize("health", ["Unschedulable", "UnschedulablePendingReplacement", "UnschedulablePendingReboot"])
def test_a_node_that_takes_no_pods_is_not_ready(world, kubernetes, cluster, health):
    arn, ids = cluster
    (only,) = ids["system"]
    checked = {"sagemaker.amazonaws.com/node-health-status": health}
    kubernetes.answers["/api/v1/nodes"] = [listed(node(only, **checked)), listed(node(only))]
    with waiting(world) as (handler, call, said):
        handler.create(call, nodes_of(kubernetes, arn, "system"))
    assert said[0] == "system 0/1 Ready"


def test_when_the_time_is_up_it_names_nodes_reasons_and_logs(world, kubernetes, cluster):
    arn, ids = cluster
    first, second = ids["gpu"]
    kubernetes.answers["/api/v1/nodes"] = listed(node(first, "False"))
    with waiting(world) as (handler, call, _), pytest.raises(TimedOutError) as caught:
        handler.create(call, nodes_of(kubernetes, arn, "gpu", minutes=0))
    text = str(caught.value)
    assert text.startswith("no node can run pods: gpu 0/2 Ready")
    assert f"hyperpod-{first} (gpu): HyperPod: Running; Kubernetes: not Ready, KubeletNotReady cni isn't init" in text
    assert f"hyperpod-{second} (gpu): HyperPod: Running; Kubernetes: not a node yet" in text
    assert f"log group /aws/sagemaker/Clusters/train/{arn.rpartition('/')[2]}, stream LifecycleConfig/gpu/i-" in text
    assert any(f"stream LifecycleConfig/gpu/{each}, and likewise for the others." in text for each in ids["gpu"])
    assert "HyperPod's message about the cluster" not in text
    assert "raise cluster.nodesReadyMinutes" in text


def test_a_failed_node_holds_nobody_up_while_its_group_has_others(world, kubernetes, engine):
    arn = engine.up("Cluster", "c", world.cluster(world.group("gpu", 1), nodeRecovery="None"))["id"]
    (first,) = instances(world)
    world.endpoint.set_faults(node_failure=1)
    added = {"InstanceGroupName": "gpu", "IncrementTargetCountBy": 1}
    world.sm.batch_add_cluster_nodes(ClusterName="train", NodesToAdd=[added])
    (second,) = {*instances(world)} - {first}
    kubernetes.answers["/api/v1/nodes"] = listed(node(first))
    with waiting(world) as (handler, call, messages):
        handler.create(call, nodes_of(kubernetes, arn, "gpu"))
    reason = "HyperPod: Failure: fault injected: node-failure; Kubernetes: not a node yet"
    head = "These nodes can't run pods; the run continues without them:"
    assert messages == [f"{head}\n  hyperpod-{second} (gpu): {reason}", "ready"]


def test_status_shows_how_the_script_of_a_failed_node_ended(world, engine, monkeypatch):
    world.endpoint.set_faults(node_failure=1)
    arn = engine.up("Cluster", "c", world.cluster(world.group("gpu", 1), nodeRecovery="None"))["id"]
    (failed,) = instances(world)
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.endpoint.url)
    status = status_of(read(boto3.Session(region_name="us-west-2"), cluster="train", aws=("nodes",)))
    reason = "fault injected: node-failure"
    assert f"1 of 1 instances of gpu fail: Failure: {reason}" in status.problems
    assert (
        f"the lifecycle script of {failed} ended with: Running the lifecycle script | {reason}: exit status 1. The "
        f"whole log is in the log group /aws/sagemaker/Clusters/train/{arn.rpartition('/')[2]}, stream "
        f"LifecycleConfig/gpu/{failed}"
    ) in status.problems


def test_when_the_time_is_up_the_run_continues_with_the_nodes_that_are_ready(world, kubernetes, cluster):
    arn, ids = cluster
    first, second = ids["gpu"]
    kubernetes.answers["/api/v1/nodes"] = listed(node(first), node(second, "False"))
    with waiting(world) as (handler, call, messages):
        handler.create(call, nodes_of(kubernetes, arn, "gpu", minutes=0))
    assert messages[0] == "gpu 1/2 Ready"
    assert messages[1].startswith(
        f"These nodes can't run pods; the run continues without them:\n  hyperpod-{second} (gpu)"
    )


def test_instances_that_do_not_exist_yet_are_counted_and_named(world, kubernetes, engine):
    world.endpoint.set_faults(capacity="2@gpu")
    arn = engine.up("Cluster", "c", world.cluster(world.group("gpu", 3)))["id"]
    first, second = instances(world)
    kubernetes.answers["/api/v1/nodes"] = [listed(node(first)), listed(node(first), node(second))]
    with waiting(world) as (handler, call, said):
        handler.create(call, nodes_of(kubernetes, arn, "gpu"))
    progress, warning, _ = said
    assert progress == "gpu 1/3 Ready (1 without an instance)"
    assert warning.endswith("continues without them:\n  gpu: HyperPod has 2 of 3 instances")


def test_instances_that_are_still_requested_are_waited_for_apart_and_for_a_limited_time(world, engine):
    world.endpoint.set_faults(capacity="2@gpu")
    arn = engine.up("Cluster", "c", world.cluster(world.group("gpu", 3)))["id"]
    wanted = {"clusterArn": arn, "minutes": 0, "instanceCounts": {"gpu": 3}}
    with waiting(world) as (handler, call, said):
        handler.create(call, wanted)
    assert said[-1] == f"{said[0]}; HyperPod keeps requesting the rest."
    assert said[0].endswith("of 3 instances")
    world.endpoint.set_faults(capacity=None)
    with waiting(world) as (handler, call, said):
        handler.create(call, {**wanted, "minutes": 1})
    assert said[-1] == "ready"


def test_a_cluster_that_grows_is_not_waited_for_again(world, kubernetes, cluster, engine):
    arn, ids = cluster
    kubernetes.answers["/api/v1/nodes"] = listed(*(node(each) for each in ids["gpu"]))
    wanted = nodes_of(kubernetes, arn, "gpu")
    engine.up("Readiness", "nodes", wanted)
    kubernetes.answers["/api/v1/nodes"] = listed()
    assert list(engine.diff("Readiness", "nodes", {**wanted, "minutes": 90}).detailedDiff) == []


def test_nodes_of_an_added_group_are_not_waited_for_while_another_stays(world, kubernetes, cluster, engine):
    arn, ids = cluster
    kubernetes.answers["/api/v1/nodes"] = listed(*(node(each) for each in ids["gpu"]))
    engine.up("Readiness", "nodes", nodes_of(kubernetes, arn, "gpu"))
    both = nodes_of(kubernetes, arn, "gpu", "system")
    assert engine.up("Readiness", "nodes", both)["outputs"] == both
    kubernetes.answers["/api/v1/nodes"] = [listed(), listed(node(*ids["system"]))]
    engine.up("Readiness", "nodes", nodes_of(kubernetes, arn, "system"))
    assert kubernetes.answers["/api/v1/nodes"] == [listed(node(*ids["system"]))]


def test_access_is_waited_for_with_a_new_token_each_time(world, kubernetes):
    kubernetes.answers["/api/v1/nodes"] = [
        (401, {"message": "Unauthorized"}),
        (403, {"message": "nodes is forbidden"}),
        listed(),
    ]
    with waiting(world) as (handler, call, said):
        handler.create(call, of_cluster(kubernetes))
    assert [each.partition(",")[0] for each in said] == [
        "the Kubernetes API of EKS cluster kube isn't usable yet (401 Unauthorized: Unauthorized)",
        "the Kubernetes API of EKS cluster kube isn't usable yet (403 Forbidden: nodes is forbidden)",
        "ready",
    ]


def test_one_good_answer_is_not_enough_where_servers_may_differ(world, kubernetes, monkeypatch):
    monkeypatch.setenv("HYPERPOD_SETTLE_SECONDS", "0.3")
    kubernetes.answers["/api/v1/nodes"] = [listed(), (401, {"message": "Unauthorized"}), listed()]
    with waiting(world) as (handler, call, said):
        handler.create(call, of_cluster(kubernetes))
    assert [each.partition(",")[0].partition(" of ")[0] for each in said] == [
        "ready; confirming for 0.3 s",
        "the Kubernetes API",
        "ready; confirming for 0.3 s",
        "ready",
    ]


def test_a_deployment_is_waited_for_until_it_is_available(world, kubernetes):
    path = "/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager"
    condition = {"type": "Available", "status": "False", "message": "no minimum availability"}
    kubernetes.answers[path] = [
        (404, {"message": "not found"}),
        {"status": {"conditions": [condition]}},
        {"status": {"conditions": [{**condition, "status": "True"}]}},
    ]
    with waiting(world) as (handler, call, messages):
        handler.create(call, of_cluster(kubernetes, deployments=["kueue-system/kueue-controller-manager"]))
    named = "deployment kueue-system/kueue-controller-manager isn't available yet"
    assert [each.rpartition(", waiting")[0] or each for each in messages] == [
        f"{named} (404 Not Found: not found)",
        f"{named} (no minimum availability)",
        "ready",
    ]


def test_a_key_and_an_association_are_asked_for(world):
    key = world.endpoint.client("kms").create_key()["KeyMetadata"]["Arn"]
    with waiting(world) as (handler, call, messages):
        handler.create(call, {"keyArn": key, "minutes": 1})
        world.endpoint.client("kms").disable_key(KeyId=key.rpartition("/")[2])
        with pytest.raises(TimedOutError, match=f"KMS key {key} is Disabled after 0 min"):
            handler.create(call, {"keyArn": key, "minutes": 0})
        wanted = {"eksClusterName": "kube", "podIdentityAssociations": {"keda/keda-operator": "a-1"}, "minutes": 0}
        with pytest.raises(TimedOutError, match="association of keda/keda-operator doesn't exist in EKS cluster kube"):
            handler.create(call, wanted)
    assert messages[0] == "ready"
