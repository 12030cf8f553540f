"""Managed Karpenter is added to a live platform, loses a group, and is removed."""

import json

import pytest

from tests.program.cloud import NODE_CLASSES, NODE_POOLS
from tests.running import eventually

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

ENABLED = {
    "Autoscaling:autoscaling": "create",
    "HyperpodNodeClass:node-class-burst": "create",
    "NodePool:node-pool-inference": "create",
    "Role:karpenter": "create",
    "RolePolicy:karpenter": "create",
    "WarmPools:warm-pools": "create",
    "Namespace:hpkit-warm-pool": "create",
    "PriorityClass:hpkit-warm-pool": "create",
    "Deployment:warm-pool-inference": "create",
}
WARM = {"replicas": 2, "requests": {"nvidia.com/gpu": 1}}
# With topology-aware scheduling, Karpenter would ignore pending pods.
CHANGED = {"Cluster:cluster": "update", "ConfigMapPatch:kueue-config": "update", "DeploymentPatch:kueue": "update"}


def karpenter(*groups):
    """Return the edit that adds these groups without nodes, for Karpenter to fill."""

    def change(_, dev):
        model = {"instanceType": "ml.g5.8xlarge", "instanceCount": 0}
        dev["cluster"]["instanceGroups"] += [
            {**model, "name": name, "availabilityZone": f"us-west-2{name[-1]}"} for name in groups
        ]
        requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [model["instanceType"]]}
        pool = {
            "name": "inference",
            "nodeClass": "burst",
            "requirements": [requirement],
            "limits": {"nvidia.com/gpu": 4},
            "warmPool": WARM,
        }
        dev["autoscaling"] = {"nodeClasses": [{"name": "burst", "instanceGroups": list(groups)}], "nodePools": [pool]}
        dev["governance"]["topologyAwareScheduling"] = "Disabled"

    return change


def ready(live):
    """Return which NodeClass and NodePool is Ready, and which groups the class has found."""
    classes, pools = live.api.items(NODE_CLASSES), live.api.items(NODE_POOLS)
    nodes = {
        item["metadata"]["name"]: condition["status"]
        for item in [*classes, *pools]
        for condition in item["status"]["conditions"]
        if condition["type"] == "Ready"
    }
    return nodes, {group["name"] for each in classes for group in each["status"]["instanceGroups"]}


def groups(live):
    return {group["InstanceGroupName"]: group["TargetCount"] for group in live.cluster()["InstanceGroups"]}


def warm(live):
    """Return how many nodes of Karpenter's groups are requested."""
    return sum(count for name, count in groups(live).items() if name.startswith("burst-"))


def placeholders(live):
    """Return the replicas and the priority of the pods that keep nodes warm."""
    (deployment,) = live.api.items("/apis/apps/v1/namespaces/hpkit-warm-pool/deployments")
    (priority,) = [
        item["value"]
        for item in live.api.items("/apis/scheduling.k8s.io/v1/priorityclasses")
        if item["metadata"]["name"] == deployment["spec"]["template"]["spec"]["priorityClassName"]
    ]
    return deployment["spec"]["replicas"], priority


def order(up):
    """Run `up`; return the operations in the order in which they finished."""
    events = [json.loads(line) for line in up.up("--json").stdout.splitlines() if line.startswith("{")]
    done = [event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event]
    return [(step["op"], step["urn"].rpartition("::")[2]) for step in done]


def test_karpenter_comes_loses_a_group_and_goes(up, repository, live):
    before = live.settled()

    write(repository, karpenter("burst-a", "burst-b"))
    made = {f"AutoscaledGroup:autoscaled-{name}": "create" for name in ("burst-a", "burst-b")}
    assert up.preview() == {**ENABLED, **CHANGED, **made}
    up.up()
    assert live.cluster()["AutoScaling"] == {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}
    assert ready(live) == ({"burst": "True", "inference": "True"}, {"burst-a", "burst-b"})
    assert placeholders(live) == (2, -10)
    eventually(lambda: warm(live) == 2, "Karpenter has brought a node for each pod that keeps one warm")
    assert up.preview() == {}, "counts that Karpenter moves are no difference"

    write(repository, karpenter("burst-a"))
    assert up.preview() == {
        "AutoscaledGroup:autoscaled-burst-b": "delete",
        "Cluster:cluster": "update",
        "HyperpodNodeClass:node-class-burst": "update",
    }
    done = order(up)
    assert done.index(("update", "node-class-burst")) < done.index(("delete", "autoscaled-burst-b"))
    assert ready(live) == ({"burst": "True", "inference": "True"}, {"burst-a"})
    eventually(lambda: groups(live) == {"gpu": 4, "system": 1, "burst-a": 2}, lambda: groups(live))

    # Its nodes run, so the group is named as well.
    allowed = {"nodePools": ["inference"], "instanceGroups": ["burst-a"]}
    write(repository, lambda _, dev: dev.update(allowDelete=allowed))
    gone = {**dict.fromkeys(ENABLED, "delete"), "AutoscaledGroup:autoscaled-burst-a": "delete", **CHANGED}
    assert up.preview() == gone
    done = order(up)
    assert done.index(("delete", "autoscaled-burst-a")) < done.index(("delete", "karpenter"))
    after = live.settled()
    # The API can't remove a role from a cluster.
    assert after["cluster"].pop("ClusterRole").endswith("-karpenter")
    assert after == before
    assert up.preview() == {}


def write(repository, change):
    data = repository.read("handson")
    change(data, data["environments"]["dev"])
    repository.write("handson", data)
