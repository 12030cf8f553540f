"""Nodes, autoscaling and the single API server, through the AWS API alone."""

import pytest

from hpkit_local.kubernetes.api import RejectedError
from tests.local.controllers.conftest import GOVERNANCE
from tests.local.controllers.karpenter import POOLS, has, node_class, node_pool, nodes_of_pool, update
from tests.running import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APIS = "/apis/apiregistration.k8s.io/v1/apiservices"


def test_nodes_carry_what_hyperpod_says_and_go_with_their_instances(environment, cluster, api):
    labels = {"team": "nlp"}
    taints = [{"Key": "dedicated", "Value": "nlp", "Effect": "NoSchedule"}]
    group = environment.group("gpu", 2, KubernetesConfig={"Labels": labels, "Taints": taints})
    update(environment, [group])
    current = []

    def nodes():
        selector = "sagemaker.amazonaws.com/instance-group-name=gpu"
        current[:] = api.items("/api/v1/nodes", labels=selector)
        return current

    eventually(lambda: len(nodes()) == 2, "two nodes have come")
    eventually(lambda: nodes()[0].get("status", {}).get("allocatable"), "their status has come")
    node = current[0]
    instance = environment.sm.describe_cluster_node(
        ClusterName="train", NodeId=node["metadata"]["name"].removeprefix("hyperpod-")
    )["NodeDetails"]
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == instance["InstanceType"]
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == instance["Placement"]["AvailabilityZone"]
    assert node["metadata"]["labels"]["team"] == "nlp"
    # EC2 reports no network nodes for this type.
    assert "topology.k8s.aws/network-node-layer-1" not in node["metadata"]["labels"]
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["dedicated"]
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]} == {"Ready": "True"}
    update(environment, InstanceGroupsToDelete=["gpu"])
    eventually(lambda: nodes() == [], "nodes go with their group")


def serve(api, replicas):
    """Create a number of pods that need one GPU each."""
    container = {"name": "main", "image": "serve", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    labels = {"app": "serve"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "serve"}, "spec": spec}
    api.apply("/apis/apps/v1/namespaces/default/deployments/serve", document)


def claimed(api):
    claims = api.items("/apis/karpenter.sh/v1/nodeclaims")
    return {claim.get("status", {}).get("nodeName") for claim in claims}


def ready_pods(api):
    found = api.read("/apis/apps/v1/namespaces/default/deployments/serve").get("status", {})
    return found.get("readyReplicas", 0)


def test_pods_that_wait_get_nodes_within_the_limit_and_empty_nodes_go(scaled, environment, api):
    node_class(api, "burst", ["burst"])
    disruption = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]}
    node_pool(api, "serving", limits={"nvidia.com/gpu": 3}, disruption=disruption)
    eventually(lambda: has(api, f"{POOLS}/serving", "Ready", "True"), "the pool is Ready")
    serve(api, 0)
    assert nodes_of_pool(api) == []
    # As a HorizontalPodAutoscaler (KEDA's too) does: with the subresource.
    api.merge("/apis/apps/v1/namespaces/default/deployments/serve/scale", {"spec": {"replicas": 5}})
    eventually(lambda: ready_pods(api) == 3, "three of five pods run: an instance has one GPU, and the limit is three")
    assert {node["metadata"]["labels"]["pool"] for node in nodes_of_pool(api)} == {"burst"}
    eventually(
        lambda: claimed(api) == {node["metadata"]["name"] for node in nodes_of_pool(api)}, "each node has its claim"
    )

    counted = {"nodes": "3", "nvidia.com/gpu": "3", "cpu": "96"}
    eventually(lambda: counted.items() <= api.read(f"{POOLS}/serving")["status"]["resources"].items(), "counted")

    def target():
        groups = {
            group["InstanceGroupName"]: group["TargetCount"] for group in environment.describe()["InstanceGroups"]
        }
        return groups["burst"]

    # A node that was empty for a moment, before its pod arrived, is deleted and requested again.
    eventually(lambda: target() == 3, target)
    serve(api, 1)
    eventually(lambda: len(nodes_of_pool(api)) == 1, "nodes without pods go")
    api.delete(f"{POOLS}/serving")
    eventually(lambda: nodes_of_pool(api) == [], "the others go with the pool")
    eventually(lambda: api.items("/apis/karpenter.sh/v1/nodeclaims") == [], "and so do their claims")
    api.delete("/apis/apps/v1/namespaces/default/deployments/serve")


def test_a_node_goes_with_its_pool_when_budgets_have_let_its_pods_go(scaled, environment, api):
    node_class(api, "burst", ["burst"])
    node_pool(api, "held")
    eventually(lambda: has(api, f"{POOLS}/held", "Ready", "True"), "the pool is Ready")
    pods, budgets = "/api/v1/namespaces/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeSelector": {"karpenter.sh/nodepool": "held"}}
    api.create(pods, {"metadata": {"name": "held", "labels": {"app": "held"}}, "spec": spec})
    limit = {"selector": {"matchLabels": {"app": "held"}}, "maxUnavailable": 0}
    document = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "held"}, "spec": limit}
    api.create(budgets, document)
    eventually(lambda: api.read(f"{pods}/held")["spec"].get("nodeName"), "the pod has a node")
    api.delete(f"{POOLS}/held")
    eventually(lambda: "deletionTimestamp" in _claim_of_pool(api, "held")["metadata"], "the claim is being deleted")
    assert len(nodes_of_pool(api, "held")) == 1
    api.delete(f"{budgets}/held")
    eventually(lambda: nodes_of_pool(api, "held") == [], "the node goes")
    eventually(lambda: api.find(f"{pods}/held") is None, "its pod was evicted")


def _claim_of_pool(api, pool):
    (claim,) = api.items("/apis/karpenter.sh/v1/nodeclaims", labels=f"karpenter.sh/nodepool={pool}")
    return claim


def names(api, folder):
    return {each["metadata"]["name"] for each in api.items(folder, metadata_only=True)}


def test_a_namespace_ends_with_its_last_object(environment, cluster, api):
    namespace, maps = "/api/v1/namespaces/ending", "/api/v1/namespaces/ending/configmaps"
    api.create("/api/v1/namespaces", {"metadata": {"name": "ending"}})
    api.create(maps, {"metadata": {"name": "free"}})
    api.create(maps, {"metadata": {"name": "held", "finalizers": ["example.com/held"]}})
    pod = {"nodeName": "a-node-that-is-gone", "containers": [{"name": "a", "image": "a"}]}

    def created():
        # Kueue's webhook answers NotFound until its cache has the namespace.
        try:
            return api.create("/api/v1/namespaces/ending/pods", {"metadata": {"name": "stray"}, "spec": pod})
        except RejectedError as error:
            if error.status != 404:
                raise
            return None

    eventually(created, "the pod is created")
    api.delete(namespace)
    eventually(lambda: names(api, maps) == {"held"}, "only what a finalizer holds is left")
    assert api.read(namespace)["spec"]["finalizers"] == ["kubernetes"]
    api.merge(f"{maps}/held", {"metadata": {"finalizers": None}})
    eventually(lambda: api.find(namespace) is None, "the namespace ends")


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

    served = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.nobody.example.com"},
        "spec": {
            "group": "nobody.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "service": {"namespace": "mine", "name": "nobody"},
        },
    }
    api.apply(f"{APIS}/v1.nobody.example.com", served)
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
    assert "v1.nobody.example.com" not in names(api, APIS), "nobody serves it, which keeps no namespace"
    kinds = names(api, CRDS)
    assert {name for name in kinds if not name.endswith(".kueue.x-k8s.io")} == set()
    assert not {name for name in names(api, f"{RBAC}/clusterrolebindings") if not name.startswith("system:")} - {
        "cluster-admin"
    }

    environment.make_eks("kube")
    eventually(lambda: any("eks:" in name for name in names(api, f"{RBAC}/clusterrolebindings")), "its creator is in")


def _use(api):
    """Create objects in the cluster as users do: a namespace with content, a role, and a custom resource."""
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
    api.apply(f"{CRDS}/things.example.com", kind)
