"""EKS: clusters, add-ons, access entries, pod identity associations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"


def _addon(cloud: Any, name: str) -> dict[str, Any]:
    return dict(cloud.eks.describe_addon(clusterName="kube", addonName=name)["addon"])


def test_coredns_is_degraded_until_a_node_is_there(cloud: Any) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName="coredns")
    degraded = _addon(cloud, "coredns")
    assert degraded["status"] == "DEGRADED"
    assert degraded["health"]["issues"][0]["code"] == "InsufficientNumberOfReplicas"
    cloud.make_cluster()
    assert _addon(cloud, "coredns")["status"] == "ACTIVE"


def test_task_governance_needs_a_node(cloud: Any) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
    assert _addon(cloud, GOVERNANCE)["status"] == "CREATE_FAILED"
