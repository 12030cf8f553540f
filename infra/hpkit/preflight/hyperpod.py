"""Whether the names of the HyperPod cluster and of its EKS cluster are free, or used by this stack itself."""

from collections.abc import Iterator
from typing import Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.model import Plan
from hpkit.preflight.calls import CLUSTERS, eks_name
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.preflight.usage import UNMARKED, cluster_ownership, other_clusters

__all__ = ["check_hyperpod"]

_AREA: Final = "hyperpod"


def check_hyperpod(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check that the cluster's name is free and that no other cluster is attached to an existing EKS cluster."""
    yield _name_free(plan, responses)
    if plan.spec.eks.existing is not None:
        yield _eks_free(plan, responses)


def _name_free(plan: Plan, responses: Responses) -> CheckResult:
    name = plan.spec.cluster.name
    what = f"name {name} for the HyperPod cluster"
    listed = responses.of(CLUSTERS)
    if isinstance(listed, FailedCall):
        return call_failed(_AREA, what, listed, needed="free")
    found = next((each for each in listed["ClusterSummaries"] if each["ClusterName"] == name), None)
    if found is None:
        return ok(_AREA, what, found="free", needed="free")
    arn = found["ClusterArn"]
    whose = cluster_ownership(plan, responses, arn)
    if whose == "own":
        return ok(_AREA, what, found=f"this stack's own, {found['ClusterStatus']}", needed="free")
    if whose == "unmarked":
        fix = (
            "If the stack's state contains it, no action is needed; otherwise run `hpkit aws adopt run --stack "
            f"{plan.stack}`"
        )
        return unknown(_AREA, what, why=UNMARKED, fix=fix, found=f"exists, {found['ClusterStatus']}", needed="free")
    fix = "Adopt the existing cluster, or choose another cluster.name"
    command = f"hpkit aws adopt --cluster {arn}"
    return missing(_AREA, what, found=f"taken, {found['ClusterStatus']}", needed="free", fix=fix, command=command)


def _eks_free(plan: Plan, responses: Responses) -> CheckResult:
    """Check that no other HyperPod cluster is attached to the EKS cluster: the service allows one for each."""
    what = f"EKS cluster {eks_name(plan)} free for HyperPod"
    clusters = other_clusters(plan, responses)
    if isinstance(clusters, FailedCall):
        return call_failed(_AREA, what, clusters, needed="attached to no other")
    for each in clusters:
        arn = each.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
        if arn.rpartition("/")[2] == eks_name(plan):
            fix = (
                "Use another EKS cluster, or delete that HyperPod cluster: an EKS cluster can have one HyperPod cluster"
            )
            found = f"attached to {each['ClusterName']}"
            return missing(_AREA, what, found=found, needed="attached to no other", fix=fix)
    return ok(_AREA, what, found="attached to no other", needed="attached to no other")
