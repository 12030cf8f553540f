"""What a data scientist may do: in the team's namespace, and in the cluster as a whole.

Sources: the team role of the HyperPod Helm chart (helm_chart/HyperPodHelmChart, team-role-and-bindings), and what it
leaves out: LocalQueues, HyperPodPyTorchJob, deleting pods. A team reads and writes the ConfigMaps and Secrets of its
namespace, and never touches queues, quotas or other namespaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hpkit.config.governance import Workload

__all__ = ["VERBS", "PolicyRule", "cluster_rules", "team_rules", "workload_rules"]

_READ = ["get", "list", "watch"]
_WRITE = [*_READ, "create", "delete", "deletecollection", "patch", "update"]
# What each verb is needed for, whatever the resource.
VERBS = {
    "get": "to look at one, and `kubectl exec` and `port-forward` of older clients",
    "list": "to find one's own",
    "watch": "to follow one while it runs (`kubectl get -w`, `kubectl wait`)",
    "create": "to submit",
    "delete": "to end or remove one",
    "deletecollection": "to remove all of a label (`kubectl delete -l`)",
    "patch": "to change one (`kubectl apply`, `label`, `scale`)",
    "update": "to change one (`kubectl replace`, `edit`, SDKs)",
}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule of Kubernetes RBAC, and what it is for."""

    api_groups: list[str]
    resources: list[str]
    verbs: list[str]
    reason: str


def team_rules(workloads: Sequence[Workload] = ("training",), *, ingress: bool = False) -> list[PolicyRule]:
    """Return the rules of the Role of a team that runs these kinds of work; ingress: whether it may publish by one."""
    return [
        *(rule for each in ("training", "inference") if each in workloads for rule in workload_rules(each)),
        *_base(),
        *([PolicyRule(["networking.k8s.io"], ["ingresses"], _WRITE, "Work that is published.")] if ingress else []),
    ]


def workload_rules(workload: Workload) -> list[PolicyRule]:
    """Return what one kind of work opens.

    Inference excludes three kinds:
    - ScaledJob, since KEDA itself would create the Jobs.
    - TriggerAuthentication, which can send the tokens of service accounts to any metrics server (KEDA documentation,
      boundServiceAccountToken). For AWS, an administrator's ClusterTriggerAuthentication is enough.
    - StatefulSet: the add-on lets its pods run without a queue.
    """
    if workload == "inference":
        return [
            PolicyRule(["apps"], ["deployments"], _WRITE, "What stays up and answers, such as a model server."),
            PolicyRule(["apps"], ["deployments/scale"], ["get", "patch", "update"], "More or fewer replicas of it."),
            PolicyRule(["apps"], ["replicasets"], _READ, "Why a new version of it does not come up."),
            PolicyRule(["autoscaling"], ["horizontalpodautoscalers"], _WRITE, "Replicas by load."),
            PolicyRule(["keda.sh"], ["scaledobjects"], _WRITE, "Replicas by a queue or a metric, by KEDA."),
        ]
    frameworks = ["jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"]
    return [
        PolicyRule(["batch"], ["jobs"], _WRITE, "Training and batch work of one's own."),
        PolicyRule(["kubeflow.org"], frameworks, _WRITE, "The same, as a framework's job."),
        PolicyRule(
            ["sagemaker.amazonaws.com"], ["hyperpodpytorchjobs"], _WRITE, "The same, for HyperPod's training operator."
        ),
        PolicyRule(["ray.io"], ["rayclusters", "rayjobs"], _WRITE, "The same, on Ray."),
        PolicyRule(["jobset.x-k8s.io"], ["jobsets"], _WRITE, "The same, as several Jobs that belong together."),
    ]


def _base() -> list[PolicyRule]:
    """Return what every team has."""
    return [
        PolicyRule([""], ["configmaps"], _WRITE, "Settings and scripts of jobs."),
        PolicyRule([""], ["persistentvolumeclaims"], _WRITE, "Data sets and checkpoints."),
        PolicyRule([""], ["secrets"], _WRITE, "Keys of registries and trackers; all of the team read them."),
        PolicyRule([""], ["services"], _WRITE, "How the processes of a job find each other."),
        # Users who change a pod could remove Kueue's gate and label. Nothing that a person does requires it.
        PolicyRule(
            [""],
            ["pods"],
            [verb for verb in _WRITE if verb not in ("patch", "update")],
            "A pod to work in, and the end of one that hangs. Changing one could take Kueue's gate away.",
        ),
        PolicyRule([""], ["pods/exec", "pods/portforward"], ["create", "get"], "Debugging, notebooks, TensorBoard."),
        PolicyRule([""], ["events", "pods/log", "pods/status"], _READ, "Why work waits or failed."),
        PolicyRule([""], ["serviceaccounts"], _READ, "Which there are; which one a pod may run as, the file says."),
        PolicyRule(
            ["kueue.x-k8s.io"],
            ["localqueues", "workloads", "workloads/status"],
            _READ,
            "The place in the queue. Priority and quota of a workload are Kueue's to write.",
        ),
    ]


def cluster_rules() -> list[PolicyRule]:
    """Return the rules of every data scientist's ClusterRole: read only, and nothing that holds a secret."""
    return [
        PolicyRule([""], ["namespaces", "nodes"], _READ, "Which instances there are, and whether they are well."),
        PolicyRule(
            ["kueue.x-k8s.io"],
            ["clusterqueues", "cohorts", "resourceflavors", "topologies", "workloadpriorityclasses"],
            _READ,
            "What each team has, lends and borrows, and which ranks there are.",
        ),
        PolicyRule(
            ["apiextensions.k8s.io"], ["customresourcedefinitions"], ["get", "list"], "Which kinds of jobs can run."
        ),
    ]
