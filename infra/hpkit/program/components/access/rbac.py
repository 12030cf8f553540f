"""RBAC rules: a data scientist's permissions in the team's namespace and in the cluster, and a viewer's.

Sources: the team role of the HyperPod Helm chart (helm_chart/HyperPodHelmChart, team-role-and-bindings), and what it
lacks: LocalQueues, HyperPodPyTorchJob, deleting pods. A team reads and writes the ConfigMaps and Secrets in its
namespace, and can't change queues, quotas or other namespaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hpkit.config.models.governance import Workload
from hpkit.kueue.configuration import resources_of

__all__ = ["VERBS", "PolicyRule", "cluster_rules", "team_rules", "viewer_rules", "workload_rules"]

_READ = ["get", "list", "watch"]
_WRITE = [*_READ, "create", "delete", "deletecollection", "patch", "update"]
# What each verb is required for, regardless of the resource.
VERBS = {
    "get": "read one object; `kubectl exec` and `port-forward` of older clients",
    "list": "list objects",
    "watch": "follow changes (`kubectl get -w`, `kubectl wait`)",
    "create": "create objects",
    "delete": "delete one object",
    "deletecollection": "delete all objects with a label (`kubectl delete -l`)",
    "patch": "change an object (`kubectl apply`, `label`, `scale`)",
    "update": "change an object (`kubectl replace`, `edit`, SDKs)",
}

_INFERENCE = "inference.sagemaker.aws.amazon.com"
# What each API group of training jobs is for.
_TRAINING = {
    "batch": "Training and batch jobs.",
    "kubeflow.org": "Training jobs of a framework.",
    "sagemaker.amazonaws.com": "Training jobs of HyperPod's training operator.",
    "ray.io": "Jobs, clusters and services of Ray.",
    "jobset.x-k8s.io": "Groups of related Jobs.",
}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule of Kubernetes RBAC, and its purpose."""

    api_groups: list[str]
    resources: list[str]
    verbs: list[str]
    reason: str


def team_rules(workloads: Sequence[Workload] = ("training",), *, ingress: bool = False) -> list[PolicyRule]:
    """Return the rules of the Role of a team that runs these kinds of work; ingress: whether it may publish by one."""
    return [
        *(rule for each in ("training", "inference", "spaces") if each in workloads for rule in workload_rules(each)),
        *_base(),
        *(
            [PolicyRule(["networking.k8s.io"], ["ingresses"], _WRITE, "Access from outside the cluster.")]
            if ingress
            else []
        ),
    ]


def workload_rules(workload: Workload) -> list[PolicyRule]:
    """Return the rules that one entry of `workloads` adds.

    Inference excludes three kinds:
    - ScaledJob, because KEDA itself would create the Jobs.
    - TriggerAuthentication, which can send the tokens of service accounts to any metrics server (KEDA documentation,
      boundServiceAccountToken). For AWS, an administrator's ClusterTriggerAuthentication is enough.
    - StatefulSet: the add-on lets its pods run without a queue.
    """
    if workload == "spaces":
        return [
            PolicyRule(["workspace.jupyter.org"], ["workspaces"], _WRITE, "JupyterLab and Code Editor."),
            PolicyRule(
                ["connection.workspace.jupyter.org"],
                ["workspaceconnections"],
                ["create"],
                "Address of a space, for a browser or a local editor.",
            ),
            PolicyRule(["apps"], ["deployments", "replicasets"], _READ, "Reason why a space doesn't start."),
        ]
    if workload == "inference":
        return [
            PolicyRule(["apps"], ["deployments"], _WRITE, "Long-running services, such as a model server."),
            PolicyRule(
                ["apps"], ["deployments/scale"], ["get", "patch", "update"], "Number of replicas of a Deployment."
            ),
            PolicyRule(["apps"], ["replicasets"], _READ, "Reason why a new version doesn't start."),
            PolicyRule(["autoscaling"], ["horizontalpodautoscalers"], _WRITE, "Autoscaling by load."),
            PolicyRule(
                ["leaderworkerset.x-k8s.io"],
                resources_of("leaderworkerset.x-k8s.io"),
                _WRITE,
                "Models on several nodes.",
            ),
            PolicyRule([_INFERENCE], resources_of(_INFERENCE), _WRITE, "Endpoints of the inference operator."),
            PolicyRule(["keda.sh"], ["scaledobjects"], _WRITE, "Autoscaling by a queue or a metric, with KEDA."),
        ]
    return [PolicyRule([group], resources_of(group), _WRITE, reason) for group, reason in _TRAINING.items()]


def _base() -> list[PolicyRule]:
    """Return the rules that every team has."""
    return [
        PolicyRule([""], ["configmaps"], _WRITE, "Settings and scripts of jobs."),
        PolicyRule([""], ["persistentvolumeclaims"], _WRITE, "Data sets and checkpoints."),
        PolicyRule(
            [""], ["secrets"], _WRITE, "Credentials of registries and trackers. All members of the team can read them."
        ),
        PolicyRule([""], ["services"], _WRITE, "Names by which the processes of a job find each other."),
        # Users who change a pod could remove Kueue's gate and label. No user needs that.
        PolicyRule(
            [""],
            ["pods"],
            [verb for verb in _WRITE if verb not in ("patch", "update")],
            "Interactive pods, and deleting pods that hang. A change could remove Kueue's scheduling gate.",
        ),
        PolicyRule([""], ["pods/exec", "pods/portforward"], ["create", "get"], "Debugging, notebooks, TensorBoard."),
        PolicyRule([""], ["events", "pods/log", "pods/status"], _READ, "Reason why a task waits or failed."),
        PolicyRule(
            [""],
            ["serviceaccounts"],
            _READ,
            "Existing service accounts. The organization file sets which ones pods may use.",
        ),
        PolicyRule([""], ["resourcequotas"], _READ, "What the team's pods may have together, and what they have."),
        PolicyRule(
            ["kueue.x-k8s.io"],
            ["localqueues", "workloads", "workloads/status"],
            _READ,
            "Position in the queue. Only Kueue writes priority and quota of a workload.",
        ),
    ]


def cluster_rules(*, spaces: bool = False) -> list[PolicyRule]:
    """Return the rules of every data scientist's ClusterRole: read-only, and nothing with secrets.

    spaces: whether some team has them. AWS's documents differ on the namespace of the templates that all teams share.
    """
    templates = PolicyRule(["workspace.jupyter.org"], ["workspacetemplates"], _READ, "Templates of spaces.")
    return [
        *([templates] if spaces else []),
        PolicyRule([""], ["namespaces", "nodes"], _READ, "Existing instances and their health."),
        PolicyRule(
            ["kueue.x-k8s.io"],
            ["clusterqueues", "cohorts", "resourceflavors", "topologies", "workloadpriorityclasses"],
            _READ,
            "What each team has, lends and borrows, and the priority classes.",
        ),
        PolicyRule(
            ["apiextensions.k8s.io"], ["customresourcedefinitions"], ["get", "list"], "Installed kinds of jobs."
        ),
    ]


def viewer_rules() -> list[PolicyRule]:
    """Return the rules of the ClusterRole of viewers: read-only, and everything except Secrets.

    A rule can't exclude a resource, so these are listed: what the EKS console shows, and what the program creates.
    `proxy` and `exec` of nodes and pods aren't, because reading those runs commands.

    Sources: EKS user guide, "View Kubernetes resources" (eks-console-dashboard-full-access); SageMaker Developer Guide,
    HyperPod task governance (queues, quotas and tasks are objects of Kueue and of the job frameworks).
    """
    core = [
        *("configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims"),
        *("persistentvolumes", "pods", "pods/log", "pods/status", "podtemplates", "replicationcontrollers"),
        *("resourcequotas", "serviceaccounts", "services"),
    ]
    kubernetes = [
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apps", "autoscaling", "batch"),
        *("discovery.k8s.io", "events.k8s.io", "metrics.k8s.io", "networking.k8s.io", "policy"),
        *("rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    ]
    of_kubernetes = [
        *("clusterrolebindings", "clusterroles", "controllerrevisions", "cronjobs", "csidrivers", "csinodes"),
        *("csistoragecapacities", "customresourcedefinitions", "daemonsets", "deployments", "endpointslices", "events"),
        *("horizontalpodautoscalers", "ingressclasses", "ingresses", "jobs", "mutatingwebhookconfigurations"),
        *("networkpolicies", "nodes", "poddisruptionbudgets", "pods", "priorityclasses", "replicasets"),
        *("rolebindings", "roles", "statefulsets", "storageclasses", "validatingadmissionpolicies"),
        *("validatingadmissionpolicybindings", "validatingwebhookconfigurations", "volumeattachments"),
    ]
    added = [
        *(_INFERENCE, "jobset.x-k8s.io", "karpenter.sagemaker.amazonaws.com", "karpenter.sh", "keda.sh"),
        *("kubeflow.org", "kueue.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io", "sagemaker.amazonaws.com"),
        "workspace.jupyter.org",
    ]
    queues = [
        *("admissionchecks", "clusterqueues", "cohorts", "hyperpodnodeclasses", "inferenceendpointconfigs"),
        *("jumpstartmodels", "leaderworkersets", "localqueues", "nodeclaims", "nodepools", "resourceflavors"),
        *("scaledobjects", "topologies"),
        *("workloadpriorityclasses", "workloads", "workspaces", "workspacetemplates"),
    ]
    of_added = sorted([*queues, *resources_of(*(group for group in _TRAINING if group != "batch"))])
    return [
        PolicyRule([""], core, _READ, "Nodes, pods, their logs and events."),
        PolicyRule(kubernetes, of_kubernetes, _READ, "Everything else of Kubernetes itself."),
        PolicyRule(added, of_added, _READ, "Queues, quotas, tasks and node pools."),
    ]
