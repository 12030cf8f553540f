"""What a data scientist may do: in the team's namespace, and in the cluster as a whole.

Sources: the team role of the HyperPod Helm chart (helm_chart/HyperPodHelmChart, team-role-and-bindings), and what it
leaves out: LocalQueues, HyperPodPyTorchJob, deleting pods. A team reads and writes ConfigMaps and Secrets of its own
namespace, and never touches queues, quotas or other namespaces.
"""

from dataclasses import dataclass

from hpkit.plan.model import Plan
from hpkit.plan.names import GROUP_PREFIX

__all__ = ["PolicyRule", "cluster_rules", "groups_of", "team_rules"]

_READ = ["get", "list", "watch"]
_WRITE = [*_READ, "create", "delete", "deletecollection", "patch", "update"]


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule of Kubernetes RBAC."""

    api_groups: list[str]
    resources: list[str]
    verbs: list[str]


def groups_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return IAM role → Kubernetes groups, one per team that the role is in."""
    groups: dict[str, list[str]] = {}
    for team in plan.teams:
        for member in team.members:
            groups.setdefault(member, []).append(f"{GROUP_PREFIX}{team.name}")
    return {member: tuple(sorted(set(names))) for member, names in groups.items()}


def team_rules() -> list[PolicyRule]:
    """Return the rules of a team's Role."""
    return [
        PolicyRule(["batch"], ["jobs"], _WRITE),
        PolicyRule(
            ["kubeflow.org"], ["jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"], _WRITE
        ),
        PolicyRule(["sagemaker.amazonaws.com"], ["hyperpodpytorchjobs"], _WRITE),
        PolicyRule(["ray.io"], ["rayclusters", "rayjobs"], _WRITE),
        PolicyRule(["jobset.x-k8s.io"], ["jobsets"], _WRITE),
        PolicyRule([""], ["configmaps", "persistentvolumeclaims", "secrets", "services"], _WRITE),
        # Whoever changes a pod can take Kueue's gate and label away; nothing that a person does needs it.
        PolicyRule([""], ["pods"], [verb for verb in _WRITE if verb not in ("patch", "update")]),
        PolicyRule([""], ["pods/exec", "pods/portforward"], ["create", "get"]),
        PolicyRule([""], ["events", "pods/log", "pods/status", "serviceaccounts"], _READ),
        PolicyRule(["kueue.x-k8s.io"], ["localqueues", "workloads", "workloads/status"], _READ),
    ]


def cluster_rules() -> list[PolicyRule]:
    """Return the rules of every data scientist's ClusterRole: read only, and nothing that holds a secret."""
    return [
        PolicyRule([""], ["namespaces", "nodes"], _READ),
        PolicyRule(
            ["kueue.x-k8s.io"],
            ["clusterqueues", "cohorts", "resourceflavors", "topologies", "workloadpriorityclasses"],
            _READ,
        ),
        PolicyRule(["apiextensions.k8s.io"], ["customresourcedefinitions"], ["get", "list"]),
    ]
