"""What Kueue's webhooks and the kinds' operators reject or add in a job.

Sources: Kueue 0.19.2, raycluster_webhook.go, rayjob_webhook.go, job_webhook.go; kubeflow/training-operator 1.7.0,
pkg/apis/kubeflow.org/v1, validation of each kind, which the operator only logs, and go.mod, with the fields of
Kubernetes 1.27; aws/sagemaker-hyperpod-cli issue 383.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any, Final

from hpkit.catalog import INFERENCE_OPERATOR, SPACES, keda_chart
from hpkit.cluster.jobs.kinds import LEAST, Path, PodTemplate, Unit
from hpkit.cluster.jobs.limits import Breach
from hpkit.plan.dependencies import charts_of
from hpkit.plan.lustre import CLAIM, has_team_volumes
from hpkit.plan.model import Plan
from hpkit.plan.pods import claims_of, mapping, mappings

__all__ = ["BY_OTHERS", "INIT_IMAGE", "breaches_of_operators", "missing_operator"]

# Of the container that Kubeflow's operator adds to workers of a PyTorchJob; the chart has no value for it.
INIT_IMAGE: Final = "alpine:3.10"
# Kind → the entry of `operators` that installs it.
_OPERATORS: Final = {
    **dict.fromkeys(("RayJob", "RayCluster", "RayService"), "kuberay-operator"),
    "LeaderWorkerSet": "lws",
}
_TRAINING_OPERATOR: Final = "amazon-sagemaker-hyperpod-training-operator"
_ENDPOINTS: Final = ("InferenceEndpointConfig", "JumpStartModel")
_SPACES: Final = ("Workspace", "WorkspaceConnection")
# Kinds whose operators no key of the file installs.
BY_OTHERS: Final = ("JobSet", "JAXJob")
# Kind of Ray → the steps from its spec to that of its cluster.
_CLUSTER_OF: Final[Mapping[str, Path]] = {
    "RayCluster": (),
    "RayJob": ("rayClusterSpec",),
    "RayService": ("rayClusterConfig",),
}
# Kind → the controller that creates its pods.
_CONTROLLERS: Final = {
    "Job": "kubernetes.io/job-controller",
    "JobSet": "jobset.sigs.k8s.io/jobset-controller",
    **dict.fromkeys(_CLUSTER_OF, "ray.io/kuberay-operator"),
}
# The most pod sets that a Workload can have.
_MOST_POD_SETS: Final = 18
# Kind → the container that Kubeflow's training operator requires.
_CONTAINERS: Final = {"PyTorchJob": "pytorch", "TFJob": "tensorflow", "XGBoostJob": "xgboost", "PaddleJob": "paddle"}


def missing_operator(kind: str, plan: Plan) -> str | None:
    """Return the key that installs a kind's operator, if the file doesn't; an existing EKS cluster may have its own."""
    if plan.spec.eks.existing is not None:
        return None
    if (chart := _OPERATORS.get(kind)) is not None:
        return None if chart in plan.spec.operators else f"operators: [{', '.join([*plan.spec.operators, chart])}]"
    inference = plan.spec.inference is not None or INFERENCE_OPERATOR in plan.spec.addons
    if kind in _ENDPOINTS and not inference:
        return "inference: {}"
    # The inference operator brings KEDA, unless hpkit installs it.
    if kind == "ScaledObject" and not inference and keda_chart() not in charts_of(plan.spec):
        return "autoscaling: {keda: {}}"
    if kind in _SPACES and plan.spec.spaces is None and SPACES not in plan.spec.addons:
        return "spaces: {}"
    if kind == "HyperPodPyTorchJob" and _TRAINING_OPERATOR not in plan.spec.addons:
        needed = [
            name for name in ("cert-manager", _TRAINING_OPERATOR) if name not in {each.name for each in plan.addons}
        ]
        return f"addons: {{{', '.join(f'{name}: {{}}' for name in needed)}}}"
    return None


def breaches_of_operators(unit: Unit, templates: tuple[PodTemplate, ...], plan: Plan) -> Iterator[Breach]:
    """Yield what would keep a job's pods from starting, even if an administrator creates the job."""
    spec = mapping(unit.content.get("spec"))
    replicas = mapping(spec.get("pytorchReplicaSpecs"))
    if plan.spec.network.closed and unit.kind == "PyTorchJob" and {"Master", "Worker"} <= replicas.keys():
        yield _breach(
            ("spec", "pytorchReplicaSpecs", "Worker"),
            f"its workers wait for the master in an init container of the image {INIT_IMAGE}, which nodes in a closed "
            "network can't pull",
            "Use a Job or a JobSet",
        )
    if unit.kind in _CONTROLLERS and spec.get("managedBy", _CONTROLLERS[unit.kind]) != _CONTROLLERS[unit.kind]:
        yield _breach(
            ("spec", "managedBy"),
            f"{plan.stack} has no controller {spec['managedBy']}: no pod is created, and the job holds its quota",
            "Remove managedBy",
        )
    if unit.kind == "RayJob":
        yield from _ray_job(spec)
    if unit.kind in _CLUSTER_OF:
        above: Path = ("spec", *_CLUSTER_OF[unit.kind])
        yield from _ray(reduce(lambda found, key: mapping(found.get(key)), above[1:], spec), above, unit, templates)
    least = mapping(mapping(unit.content.get("metadata")).get("annotations")).get(LEAST)
    if unit.kind == "Job" and least is not None and not any(pods.least for pods in templates):
        yield _breach(
            ("metadata", "annotations", LEAST),
            f"Kueue rejects the minimum parallelism {least}: it must be at least 1, and lower than the number of pods",
            "Set a lower number, or remove the annotation",
        )
    for pods in templates:
        containers = mappings(mapping(pods.template.get("spec")).get("containers"))
        if (
            unit.kind in _CONTAINERS
            and has_team_volumes(plan)
            and CLAIM in claims_of(mapping(pods.template.get("spec")))
        ):
            yield _breach(
                (*pods.path, "spec", "volumes"),
                f"the operator leaves out supplementalGroupsPolicy, which pods with {CLAIM} must have: it starts "
                "no pod, and the job holds its quota",
                "Use a Job or a JobSet, or keep the files in S3",
            )
        if unit.kind in _CONTAINERS:
            yield from _kubeflow(unit.kind, pods, containers)
        if unit.kind == "HyperPodPyTorchJob":
            yield from _hyperpod(pods, containers)


def _ray_job(spec: Mapping[Any, Any]) -> Iterator[Breach]:
    if spec.get("clusterSelector"):
        return
    if spec.get("shutdownAfterJobFinishes") is not True:
        yield _breach(
            ("spec", "shutdownAfterJobFinishes"),
            "Kueue rejects a RayJob whose cluster stays after the end",
            "Set `shutdownAfterJobFinishes: true`",
        )
    if spec.get("submissionMode", "K8sJobMode") == "K8sJobMode":
        yield _breach(
            ("spec", "submissionMode"),
            "KubeRay submits it by a Job without a queue, which the admission policy rejects",
            "Set `submissionMode: HTTPMode`",
        )


def _ray(cluster: Mapping[Any, Any], above: Path, unit: Unit, templates: tuple[PodTemplate, ...]) -> Iterator[Breach]:
    if cluster.get("enableInTreeAutoscaling"):
        yield _breach(
            (*above, "enableInTreeAutoscaling"),
            f"Kueue rejects a {unit.kind} with Ray's autoscaler, because new workers would have no quota",
            "Remove enableInTreeAutoscaling, and set replicas to the number of workers",
        )
    if len(templates) > _MOST_POD_SETS:
        yield _breach(
            (*above, "workerGroupSpecs"),
            f"Kueue rejects more than {_MOST_POD_SETS} groups of pods, including the head; it has {len(templates)}",
            "Use fewer worker groups",
        )
    # KubeRay's type writes an empty field as null, which its CRD rejects.
    content: Any = unit.content
    for pods in templates:
        group = reduce(getitem, pods.path[:-1], content)
        if pods.path[-1] == "template" and not isinstance(group.get("rayStartParams"), Mapping):
            yield _breach(
                pods.path[:-1],
                "the API server rejects a group without rayStartParams, because Kueue's webhook adds null",
                "Set `rayStartParams: {}`",
            )
    for number, group in enumerate(mappings(cluster.get("workerGroupSpecs"))):
        count, least, most = (
            each if isinstance(each := group.get(name), int) else default
            for name, default in (("replicas", 0), ("minReplicas", 0), ("maxReplicas", sys.maxsize))
        )
        if least > count:
            yield _breach(
                (*above, "workerGroupSpecs", number, "minReplicas"),
                f"KubeRay starts at least minReplicas workers, {least}, but Kueue counts replicas, {count}, so the "
                "admission policy rejects it",
                f"Set `replicas: {least}`",
            )
        elif "replicas" not in group or most < count:
            yield _breach(
                (*above, "workerGroupSpecs", number),
                "the group has no workers, because KubeRay's default for replicas is 0"
                if "replicas" not in group
                else f"KubeRay starts at most maxReplicas workers, {most}: the other {count - most} only hold quota",
                "Set replicas to the number of workers, and maxReplicas to at least that",
                severity="warning",
            )


def _kubeflow(kind: str, pods: PodTemplate, containers: list[Mapping[Any, Any]]) -> Iterator[Breach]:
    name = _CONTAINERS[kind]
    if containers and name not in [each.get("name") for each in containers]:
        yield _breach(
            (*pods.path, "spec", "containers"),
            f"a {kind} needs a container named {name} in each pod: otherwise the operator starts no pod, and the job "
            "holds its quota",
            f"Rename its main container to {name}",
        )
    if kind in ("PyTorchJob", "XGBoostJob") and "Master" in pods.path and pods.count != 1:
        yield _breach(
            (*pods.path[:-1], "replicas"),
            f"a {kind} must have one Master: with {pods.count}, the operator starts no pod, and the job holds quota",
            "Set `replicas: 1` for Master, and add the other pods as Worker",
        )


def _hyperpod(pods: PodTemplate, containers: list[Mapping[Any, Any]]) -> Iterator[Breach]:
    for number, container in enumerate(containers):
        resources = mapping(container.get("resources"))
        asked = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
        missing = [name for name in ("cpu", "memory") if name not in asked]
        if missing and any("/" in str(name) for name in asked):
            yield _breach(
                (*pods.path, "spec", "containers", number, "resources"),
                f"its container {container.get('name')} requests no {' and no '.join(missing)}: HyperPod's training "
                "operator may add almost all of an instance, which the quota or the node might not have free",
                "Request cpu and memory",
                severity="warning",
            )


def _breach(path: Path, message: str, fix: str, **more: Any) -> Breach:
    return Breach(path, message, fix, "operator", **more)
