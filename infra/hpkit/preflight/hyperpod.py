"""HyperPod clusters that are there: by name, and by the EKS cluster that they are attached to."""

from collections.abc import Iterator
from typing import Final

from hpkit.plan.model import Plan
from hpkit.preflight.calls import CLUSTERS, eks_name
from hpkit.preflight.model import Answers, Failure, Row, missing, ok, unanswered
from hpkit.preflight.usage import other_clusters, owns_cluster

__all__ = ["hyperpod_rows"]

_AREA: Final = "hyperpod"


def hyperpod_rows(plan: Plan, answers: Answers) -> Iterator[Row]:
    """Yield whether the cluster's name is free, and the existing EKS cluster not attached elsewhere."""
    yield _name_free(plan, answers)
    if plan.spec.eks.existing is not None:
        yield _eks_free(plan, answers)


def _name_free(plan: Plan, answers: Answers) -> Row:
    name = plan.spec.cluster.name
    what = f"name {name} for the HyperPod cluster"
    listed = answers.of(CLUSTERS)
    if isinstance(listed, Failure):
        return unanswered(_AREA, what, listed, needed="free")
    found = next((each for each in listed["ClusterSummaries"] if each["ClusterName"] == name), None)
    if found is None:
        return ok(_AREA, what, found="free", needed="free")
    arn = found["ClusterArn"]
    if owns_cluster(plan, answers, arn):
        return ok(_AREA, what, found=f"this stack's own, {found['ClusterStatus']}", needed="free")
    fix = "Adopt the cluster that is there, or choose another cluster.name"
    command = f"hpkit adopt --cluster {arn}"
    return missing(_AREA, what, found=f"taken, {found['ClusterStatus']}", needed="free", fix=fix, command=command)


def _eks_free(plan: Plan, answers: Answers) -> Row:
    """Say whether another HyperPod cluster has the EKS cluster: the service allows one of one."""
    what = f"EKS cluster {eks_name(plan)} free for HyperPod"
    clusters = other_clusters(plan, answers)
    if isinstance(clusters, Failure):
        return unanswered(_AREA, what, clusters, needed="attached to no other")
    for each in clusters:
        arn = each.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
        if arn.rpartition("/")[2] == eks_name(plan):
            fix = "Use another EKS cluster, or delete that HyperPod cluster: HyperPod and EKS go one to one"
            found = f"attached to {each['ClusterName']}"
            return missing(_AREA, what, found=found, needed="attached to no other", fix=fix)
    return ok(_AREA, what, found="attached to no other", needed="attached to no other")
