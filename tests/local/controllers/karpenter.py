"""Managed Karpenter's objects, as controller tests create and read them."""

from tests.running import eventually

CLASSES = "/apis/karpenter.sagemaker.amazonaws.com/v1/hyperpodnodeclasses"
POOLS = "/apis/karpenter.sh/v1/nodepools"


def update(environment, groups=None, **more):
    """Update the cluster, with its current groups by default."""
    own = [environment.group("cpu", 11, InstanceType="ml.c5.2xlarge"), *(groups or [])]
    eventually(lambda: environment.describe()["ClusterStatus"] == "InService", "the cluster may be changed")
    environment.sm.update_cluster(ClusterName="train", InstanceGroups=own, **more)
    eventually(lambda: environment.describe()["ClusterStatus"] == "InService", "the cluster is InService")


def node_class(api, name, groups):
    version = {"apiVersion": "karpenter.sagemaker.amazonaws.com/v1", "kind": "HyperpodNodeClass"}
    api.apply(f"{CLASSES}/{name}", {**version, "metadata": {"name": name}, "spec": {"instanceGroups": groups}})


def node_pool(
    api, name, *, node_class="burst", key="node.kubernetes.io/instance-type", values=("ml.g5.8xlarge",), **more
):
    reference = {"group": "karpenter.sagemaker.amazonaws.com", "kind": "HyperpodNodeClass", "name": node_class}
    requirements = [{"key": key, "operator": "In", "values": list(values)}]
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": requirements}}, **more}
    document = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
    api.apply(f"{POOLS}/{name}", document)


def conditions(api, path):
    found = api.read(path).get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}


def has(api, path, kind, status):
    return conditions(api, path).get(kind, ("",))[0] == status


def nodes_of_pool(api, pool="serving"):
    return api.items("/api/v1/nodes", labels=f"karpenter.sh/nodepool={pool}")
