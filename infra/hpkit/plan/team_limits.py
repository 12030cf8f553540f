"""Limits on a team's pods: those in the file, with the environment's taints and repositories."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hpkit.catalog import EFA, QUEUE_RESOURCES
from hpkit.config.models.team_limits import DefaultRequests, Publication, TeamLimits
from hpkit.errors import CatalogError
from hpkit.plan.capacity import amounts_by_type, borrow_percent
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.registry import repository_prefix

__all__ = [
    "MIG_PREFIX",
    "NOT_READY",
    "REPLICA_TYPES",
    "SCALABLE",
    "TOLERATED_SECONDS",
    "VOLUMES",
    "WORK_KEYS",
    "PodLimits",
    "is_kueue_key",
    "is_reserved_taint",
    "most_of_pods",
    "pod_limits",
    "repository_team",
]

# Names of extended resources; EKS adds a toleration of that key to pods that request one (Kubernetes, admission
# controllers, ExtendedResourceToleration).
_DEVICES: Final = (
    "nvidia.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",
    EFA,
)
MIG_PREFIX: Final = "nvidia.com/mig-"
# The API server adds both to every pod, for 300 seconds (Kubernetes, DefaultTolerationSeconds).
NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATED_SECONDS: Final = 600
# Taints by which Kubernetes, HyperPod, and Karpenter keep pods away from a node. Sources: Kubernetes, "Taints and
# Tolerations"; SageMaker developer guide, HyperPod node health; Karpenter, "Disruption".
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io", "sagemaker.amazonaws.com", "karpenter.sh", "karpenter.k8s.aws")
VOLUMES: Final = ("configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret")
_PREFIX: Final = "kueue.x-k8s.io/"
# Labels and annotations of Kueue that users set on jobs and on pod templates (Kueue 0.19, reference, "Labels and
# Annotations"). None of them makes Kueue count less than what runs.
WORK_KEYS: Final = tuple(
    _PREFIX + name
    for name in (
        "queue-name",
        "priority-class",
        "max-exec-time-seconds",
        "job-min-parallelism",
        "job-completions-equal-parallelism",
        "podset-required-topology",
        "podset-preferred-topology",
        "podset-unconstrained-topology",
        "podset-slice-required-topology",
        "podset-slice-size",
        "podset-slice-required-topology-constraints",
        "podset-group-name",
    )
)


# By the field of a Kubeflow kind: the types of replicas that Kueue counts. Source: Kueue 0.19.2,
# pkg/controller/jobs/kubeflow/jobs, OrderedReplicaTypes, and pkg/controller/jobs/mpijob, orderedReplicaTypes.
REPLICA_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "jaxReplicaSpecs": ("Worker",),
    "mpiReplicaSpecs": ("Launcher", "Worker"),
    "paddleReplicaSpecs": ("Master", "Worker"),
    "pytorchReplicaSpecs": ("Master", "Worker"),
    "tfReplicaSpecs": ("Chief", "Master", "PS", "Worker", "Evaluator"),
    "xgbReplicaSpecs": ("Master", "Worker"),
}


# The kind that an autoscaler may scale, because Kueue counts each of its pods.
SCALABLE: Final = "Deployment"


@dataclass(frozen=True, slots=True)
class PodLimits:
    """Limits of all teams of an environment. repositories: the prefix of their repositories' names."""

    grace_seconds: int = TeamLimits().termination_grace_period_seconds
    tolerations: tuple[str, ...] = _DEVICES
    volumes: tuple[str, ...] = VOLUMES
    publish: tuple[Publication, ...] = ()
    default_requests: DefaultRequests = field(default_factory=DefaultRequests)
    repositories: str = ""


def pod_limits(plan: Plan) -> PodLimits:
    """Return the limits of an environment: the file's, and the taints that its nodes have by the file."""
    governance = plan.spec.governance
    stated = governance.team_limits if governance is not None else TeamLimits()
    taints = (*dict.fromkeys(_taints(plan)), *stated.tolerations)
    return PodLimits(
        grace_seconds=stated.termination_grace_period_seconds,
        tolerations=tuple(dict.fromkeys((*_DEVICES, *(key for key in taints if not is_reserved_taint(key))))),
        volumes=tuple(dict.fromkeys((*VOLUMES, *stated.volumes))),
        publish=tuple(sorted(stated.publish)),
        default_requests=stated.default_requests,
        repositories=repository_prefix(plan),
    )


def most_of_pods(team: TeamPlan) -> dict[str, int] | None:
    """Return the amounts, in base units, that a team's pods may have together: its quota plus what it may borrow.

    None if the values of one of its instance types aren't known. The service doesn't document how it rounds what a
    team may borrow; this rounds down, like the local cloud. EFA interfaces aren't included, because the catalog doesn't
    have them for every type.
    """
    total = dict.fromkeys((name for name in QUEUE_RESOURCES if name != EFA), 0)
    try:
        reserved = amounts_by_type(team.quota_resources)
        for instance_type in reserved.keys() | team.absolute_borrow_limits.keys():
            held, limit = reserved.get(instance_type, {}), team.absolute_borrow_limits.get(instance_type)
            borrows = {name: amount * borrow_percent(team) // 100 for name, amount in held.items() if team.borrows}
            if team.borrows and limit is not None:
                borrows = amounts_by_type(limit)[instance_type]
            for name in (held.keys() | borrows.keys()) - {EFA}:
                total[name] = total.get(name, 0) + held.get(name, 0) + borrows.get(name, 0)
    except CatalogError:
        return None
    return total


def is_reserved_taint(key: str) -> bool:
    """Return whether a taint marks a node that is faulty, being checked, being removed, or reserved."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and any(domain == name or domain.endswith(f".{name}") for name in _RESERVED_DOMAINS)


def is_kueue_key(key: str) -> bool:
    """Return whether a label or annotation belongs to Kueue."""
    return key.partition("/")[0].endswith("kueue.x-k8s.io")


def repository_team(image: str, limits: PodLimits) -> str | None:
    """Return the team whose repository an image is in, None for any other image."""
    parts = image.split("/")
    if len(parts) < 3 or parts[1] != limits.repositories.rstrip("/"):
        return None
    return parts[2]


def _taints(plan: Plan) -> Iterator[str]:
    for group in plan.groups:
        yield from (taint.key for taint in group.spec.taints)
    for pool in plan.node_pools:
        yield from (taint.key for taint in pool.spec.taints)
