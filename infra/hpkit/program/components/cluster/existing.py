"""Reads a HyperPod cluster that another stack or tool manages, and compares it with what the file declares."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi

from hpkit.plan.model import Plan
from hpkit.plan.stated import LiveGroup, stated_differences
from hpkit.program.sdk import Provider

__all__ = ["existing_cluster"]

_GET_CLUSTER: Final = "hyperpod:index:getCluster"


def existing_cluster(plan: Plan, provider: Provider) -> str:
    """Return the ARN of a cluster that is as the file declares.

    Raises pulumi.RunError, before anything is registered, if the cluster is missing or has less.
    """
    name, stated_eks = plan.spec.cluster.name, plan.spec.eks.existing
    asked = pulumi.InvokeOptions(provider=provider)
    try:
        seen: Mapping[str, Any] = pulumi.runtime.invoke(_GET_CLUSTER, {"clusterName": name}, asked).value
    except Exception as error:  # noqa: BLE001 - the SDK raises nothing more specific
        raise pulumi.RunError(f"{name} couldn't be read: {error}") from None
    orchestrator = str(seen["orchestrator"]["eks"]["clusterArn"]).rpartition("/")[2]
    if stated_eks is not None and orchestrator != stated_eks.name:
        raise pulumi.RunError(
            f"the EKS cluster of {name} is {orchestrator}, but {plan.stack} names {stated_eks.name} in eks.existing. "
            f"Nothing was changed. Set `eks: {{existing: {{name: {orchestrator}}}}}`."
        )
    groups = [*seen.get("instanceGroups", ()), *seen.get("restrictedInstanceGroups", ())]
    autoscales = (seen.get("autoScaling") or {}).get("mode") == "Enable"
    live = {group["instanceGroupName"]: _group(group) for group in groups}
    lacks, additional = stated_differences(plan, live, autoscales=autoscales)
    if lacks:
        raise pulumi.RunError(
            f"{name} isn't as {plan.stack} declares: {'; '.join(lacks)}. Nothing was changed. "
            "Correct the file, and run `hpkit validate`: the quotas must fit what the cluster has."
        )
    if additional:
        pulumi.log.warn(
            f"{name} has more than the cluster.instanceGroups of {plan.stack}: {'; '.join(additional)}. No team can "
            "get quota for these."
        )
    return str(seen["clusterArn"])


def _group(group: Mapping[str, Any]) -> LiveGroup:
    types: Sequence[str] = (group.get("instanceRequirements") or {}).get("instanceTypes") or [group["instanceType"]]
    return LiveGroup(types, int(group["instanceCount"]))
