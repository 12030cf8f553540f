"""Documents as the Kubernetes API returns them, and the model that they are parsed into."""

from datetime import UTC, datetime

from hpkit.catalog import NETWORK_LAYERS
from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.parse import node_of, pod_of, queue_of, task_of

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
KIND = "ml.g5.12xlarge"


def node(name, *layers, ready="True", gpus=4, pods=49, marked=None, **spec):
    """Return a node; marked: labels of HyperPod."""
    labels = {
        **(marked or {}),
        "node.kubernetes.io/instance-type": KIND,
        "sagemaker.amazonaws.com/instance-group-name": "gpu",
        "topology.kubernetes.io/zone": "us-west-2a",
        **dict(zip(NETWORK_LAYERS, layers, strict=False)),
    }
    return node_of(
        {
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {
                "allocatable": {"cpu": "44610m", "memory": "168120Mi", GPU: str(gpus), "pods": str(pods)},
                "conditions": [{"type": "Ready", "status": ready, "reason": "Kubelet", "message": ""}],
            },
        }
    )


def pod(team, task, on, gpus=4, *, ready=True, phase="Running", status=None, **metadata):
    """Return a task's pod on a node; status, metadata: more of them."""
    container = {"resources": {"limits": {GPU: str(gpus)}, "requests": {"cpu": "1"}}}
    metadata = {
        "name": f"{task}-{on}",
        "namespace": f"hyperpod-ns-{team}",
        "annotations": {"kueue.x-k8s.io/workload": f"job-{task}"},
        **metadata,
    }
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": phase, "conditions": conditions, **(status or {})}
    return pod_of({"metadata": metadata, "spec": {"nodeName": on, "containers": [container]}, "status": status})


def queue(team, nominal, *, used=0, borrowed=0, limit=None, lending=None, weight="1", active=True, message="", **more):
    amounts = {"nominalQuota": str(nominal), "borrowingLimit": limit, "lendingLimit": lending}
    resource = {"name": GPU, **{key: str(each) for key, each in amounts.items() if each is not None}}
    usage = [{"name": GPU, "total": str(used), "borrowed": str(borrowed)}]
    return queue_of(
        {
            "metadata": {"name": f"hyperpod-ns-{team}-clusterqueue"},
            "spec": {
                "cohortName": "hyperpod-cohort",
                "fairSharing": {"weight": weight},
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                "resourceGroups": [{"coveredResources": [GPU], "flavors": [{"name": KIND, "resources": [resource]}]}],
                **more,
            },
            "status": {
                "flavorsReservation": [{"name": KIND, "resources": usage}],
                "conditions": [{"type": "Active", "status": str(active), "reason": "", "message": message}],
            },
        }
    )


def task(team, name, pods, **parts):
    """Return a job's Workload as the model; parts: those of `workload`."""
    queues = {(f"hyperpod-ns-{team}", f"hyperpod-ns-{team}-localqueue"): f"hyperpod-ns-{team}-clusterqueue"}
    return task_of(workload(team, name, pods, **parts), queues)


def workload(
    team, name, pods, *, gpus=4, runs=False, priority=0, minutes=5, spec=None, template=None, topology=None, more=None,
    **conditions,
):  # fmt: skip
    """Return a job's Workload as its document; conditions: type → (status, reason, message).

    spec, template: of its Workload and its pod template; more: resources of all its pods in addition to the GPUs.
    """
    created = f"2026-11-22T11:{60 - minutes:02d}:00Z"
    states = {"QuotaReserved": (runs, "", ""), "Admitted": (True, "Admitted", ""), **conditions}
    if not runs:
        del states["Admitted"]
    status = {
        "conditions": [
            {
                "type": condition_type,
                "status": str(is_true),
                "reason": reason,
                "message": message,
                "lastTransitionTime": created,
            }
            for condition_type, (is_true, reason, message) in states.items()
        ],
        "resourceRequests": [{"name": "main", "resources": {GPU: str(pods * gpus), **(more or {})}}],
    }
    if runs:
        usage = {"name": "main", "count": pods, "flavors": {GPU: KIND}, "resourceUsage": {GPU: str(pods * gpus)}}
        status["admission"] = {"clusterQueue": f"hyperpod-ns-{team}-clusterqueue", "podSetAssignments": [usage]}
    return {
        "metadata": {
            "name": f"job-{name}",
            "namespace": f"hyperpod-ns-{team}",
            "uid": f"uid-{name}",
            "creationTimestamp": created,
            "ownerReferences": [{"kind": "Job", "name": name, "controller": True}],
        },
        "spec": {
            "queueName": f"hyperpod-ns-{team}-localqueue",
            "priority": priority,
            "podSets": [
                {
                    "name": "main",
                    "count": pods,
                    "template": {"spec": {"containers": []}, **(template or {})},
                    **({"topologyRequest": topology} if topology else {}),
                }
            ],
            **(spec or {}),
        },
        "status": status,
    }


def observed(**parts):
    return Observed(time=NOW, **parts)
