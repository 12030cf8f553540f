"""Admission policy for KubeRay, which creates pods and Services that Kueue and the other policies don't see.

Kueue counts `replicas` of a worker group (0.19.2, pkg/controller/jobs/raycluster, effectiveWorkerCount); KubeRay starts
at least `minReplicas` (ray-operator/controllers/ray/utils/util.go, GetWorkerGroupDesiredReplicas).
"""

from hpkit.plan.team_limits import PodLimits
from hpkit.program.components.admission.model import BOTH, IS_MEMBER, AdmissionPolicy, Refusal, ResourceRule, cel_list

__all__ = ["ray_policy"]

# A RayCluster has the cluster's fields in its spec, a RayJob in spec.rayClusterSpec.
_CLUSTERS = "[object.?spec.orValue({}), object.?spec.?rayClusterSpec.orValue({})]"


def ray_policy(limits: PodLimits) -> AdmissionPolicy:
    """Return the policy for members' requests for kinds in ray.io; limits: what teams may publish."""
    return AdmissionPolicy(
        "hpkit-member-ray",
        (ResourceRule(("ray.io",), ("*",)),),
        BOTH,
        (*_sizes(), _publication(limits)),
        conditions={"sent-by-a-member": IS_MEMBER},
        variables={"clusters": _CLUSTERS},
    )


def _sizes() -> tuple[Refusal, ...]:
    """Return the rejections of pods that Kueue doesn't count, or that run longer than Kueue counts them.

    Kueue frees the quota of a RayJob when it ends. KubeRay deletes its cluster after `ttlSecondsAfterFinished`, or by
    its deletion strategy (rayjob_controller.go, JobDeploymentStatusComplete).
    """
    return (
        Refusal(
            "spec.workerGroupSpecs[].minReplicas",
            "variables.clusters.all(cluster, cluster.?workerGroupSpecs.orValue([]).all(group, "
            "group.?minReplicas.orValue(0) <= group.?replicas.orValue(1)))",
            "minReplicas of a worker group must not exceed its replicas. Set both to the same number",
            "KubeRay starts at least minReplicas pods, but Kueue counts replicas",
        ),
        Refusal(
            "spec.clusterSelector",
            "request.kind.kind != 'RayJob' || ((request.operation == 'CREATE' || "
            "object.?spec.?clusterSelector == oldObject.?spec.?clusterSelector) && "
            "(object.?spec.?clusterSelector.orValue({}).size() == 0 || "
            "object.?spec.?submissionMode.orValue('') in ['HTTPMode', 'InteractiveMode']))",
            "spec.clusterSelector of a RayJob can't change, and requires submissionMode HTTPMode or InteractiveMode. "
            "Otherwise remove it and write rayClusterSpec",
            "Kueue neither counts nor stops a RayJob that selects a cluster, but its submitter is a pod",
        ),
        Refusal(
            "spec.ttlSecondsAfterFinished",
            "request.kind.kind != 'RayJob' || object.?spec.?ttlSecondsAfterFinished.orValue(0) == 0",
            "spec.ttlSecondsAfterFinished of a RayJob must be 0. Remove it",
            "Kueue frees the quota when the job ends, but its cluster would run for that time",
        ),
        Refusal(
            "spec.deletionStrategy",
            "!object.?spec.?deletionStrategy.hasValue() && !object.?spec.?deletionPolicy.hasValue()",
            "spec.deletionStrategy and deletionPolicy of a RayJob aren't allowed. Set shutdownAfterJobFinishes to true "
            "instead",
            "Kueue frees the quota when the job ends, but parts of its cluster would keep running",
        ),
    )


def _publication(limits: PodLimits) -> Refusal:
    types = cel_list(("", "ClusterIP", *(name for name in limits.publish if name != "Ingress")))
    ingress = "true" if "Ingress" in limits.publish else "!head.?enableIngress.orValue(false)"
    return Refusal(
        "spec.headGroupSpec.serviceType",
        "variables.clusters.map(cluster, cluster.?headGroupSpec.orValue({})).all(head, "
        f"head.?serviceType.orValue('') in {types} && head.?headService.?spec.?type.orValue('') in {types} && "
        f"{ingress})",
        "members publish nothing outside the cluster: the Service of a Ray head must be of type ClusterIP, without "
        "enableIngress, unless teamLimits.publish in the organization file names the type",
        "KubeRay would publish the Ray head, whose dashboard runs any code",
    )
