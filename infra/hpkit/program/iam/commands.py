"""The permissions that each command for a running platform needs, in AWS and in Kubernetes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["COMMANDS", "CommandRights"]


@dataclass(frozen=True, slots=True)
class CommandRights:
    """Actions of IAM, and (verb, resource) of Kubernetes in the whole cluster; resources as kubectl writes them."""

    iam: tuple[str, ...]
    kubernetes: tuple[tuple[str, str], ...]


_EKS: Final = ("eks:DescribeCluster",)
_FIND: Final = (*_EKS, "sagemaker:DescribeCluster")
_READ: Final = (
    "eks:DescribeAddon",
    "eks:DescribeCluster",
    "eks:ListAddons",
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterSchedulerConfig",
    "sagemaker:DescribeTrainingPlan",
    "sagemaker:ListClusterEvents",
    "sagemaker:ListClusterNodes",
    "sagemaker:ListClusterSchedulerConfigs",
)
# The cluster and its instances.
_INSTANCES: Final = (*_FIND, "sagemaker:ListClusterNodes")
_QUEUES: Final = tuple(
    ("list", resource)
    for resource in (
        "clusterqueues.kueue.x-k8s.io",
        "localqueues.kueue.x-k8s.io",
        "workloads.kueue.x-k8s.io",
        "workloadpriorityclasses.kueue.x-k8s.io",
        "resourceflavors.kueue.x-k8s.io",
    )
)
_LIST: Final = (
    *(("list", resource) for resource in ("nodes", "pods", "events", "priorityclasses.scheduling.k8s.io")),
    *(*_QUEUES, ("list", "nodepools.karpenter.sh")),
)

# Source of the actions: Service Authorization Reference; tests/program/iam/test_asked.py compares them.
COMMANDS: Final[Mapping[str, CommandRights]] = {
    "cluster status": CommandRights((*_READ, "logs:GetLogEvents"), (*_LIST, ("get", "configmaps"))),
    "cluster usage": CommandRights(_INSTANCES, _LIST),
    "job why": CommandRights((*_INSTANCES, "logs:GetLogEvents"), _LIST),
    "job check": CommandRights(_EKS, _LIST),
    "cluster check": CommandRights(
        _FIND,
        (
            *((verb, "namespaces") for verb in ("create", "get", "delete")),
            *(("create", resource) for resource in ("services", "pods", "jobs.batch")),
            *((verb, resource) for verb in ("get", "delete") for resource in ("pods", "jobs.batch")),
            *(("list", resource) for resource in ("nodes", "pods", "workloads.kueue.x-k8s.io")),
        ),
    ),
    "whatif record": CommandRights(_FIND, _LIST),
}
