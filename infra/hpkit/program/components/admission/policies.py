"""Admission policies of the teams' namespaces, which reject requests that RBAC allows by verb.

They don't repeat Pod Security, which the namespace's label enforces.
"""

from collections.abc import Sequence

from hpkit.plan.model import POD_SECURITY_LEVEL, TeamPlan
from hpkit.plan.team_limits import PodLimits
from hpkit.program.components.admission.lifecycle import lifecycle_policies
from hpkit.program.components.admission.members import member_policies
from hpkit.program.components.admission.model import BOTH, IS_MEMBER, AdmissionPolicy, Rejection, ResourceRule, cel_list
from hpkit.program.components.admission.pods import pod_policies

__all__ = [
    "AdmissionPolicy",
    "Rejection",
    "ResourceRule",
    "pod_security_labels",
    "policies_of",
    "ray_policy",
    "request_limits",
]

# Kueue counts `replicas` of a worker group (0.19.2, pkg/controller/jobs/raycluster, effectiveWorkerCount); KubeRay
# starts at least `minReplicas` (ray-operator/controllers/ray/utils/util.go, GetWorkerGroupDesiredReplicas).
# A RayCluster has the cluster's fields in its spec, a RayJob and a RayService in fields of it.
_CLUSTERS = (
    "[object.?spec.orValue({}), object.?spec.?rayClusterSpec.orValue({}), object.?spec.?rayClusterConfig.orValue({})]"
)


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


def _sizes() -> tuple[Rejection, ...]:
    """Return the rejections of pods that Kueue doesn't count, or that run longer than Kueue counts them.

    Kueue frees the quota of a RayJob when it ends. KubeRay deletes its cluster after `ttlSecondsAfterFinished`, or by
    its deletion strategy (rayjob_controller.go, JobDeploymentStatusComplete).
    """
    return (
        Rejection(
            "spec.workerGroupSpecs[].minReplicas",
            "variables.clusters.all(cluster, cluster.?workerGroupSpecs.orValue([]).all(group, "
            "group.?minReplicas.orValue(0) <= group.?replicas.orValue(1)))",
            "minReplicas of a worker group must not exceed its replicas. Set both to the same number",
            "KubeRay starts at least minReplicas pods, but Kueue counts replicas",
        ),
        Rejection(
            "spec.clusterSelector",
            "request.kind.kind != 'RayJob' || ((request.operation == 'CREATE' || "
            "object.?spec.?clusterSelector == oldObject.?spec.?clusterSelector) && "
            "(object.?spec.?clusterSelector.orValue({}).size() == 0 || "
            "object.?spec.?submissionMode.orValue('') in ['HTTPMode', 'InteractiveMode']))",
            "spec.clusterSelector of a RayJob can't change, and requires submissionMode HTTPMode or InteractiveMode. "
            "Otherwise remove it and write rayClusterSpec",
            "Kueue neither counts nor stops a RayJob that selects a cluster, but its submitter is a pod",
        ),
        Rejection(
            "spec.ttlSecondsAfterFinished",
            "request.kind.kind != 'RayJob' || object.?spec.?ttlSecondsAfterFinished.orValue(0) == 0",
            "spec.ttlSecondsAfterFinished of a RayJob must be 0. Remove it",
            "Kueue frees the quota when the job ends, but its cluster would run for that time",
        ),
        Rejection(
            "spec.deletionStrategy",
            "!object.?spec.?deletionStrategy.hasValue() && !object.?spec.?deletionPolicy.hasValue()",
            "spec.deletionStrategy and deletionPolicy of a RayJob aren't allowed. Set shutdownAfterJobFinishes to true "
            "instead",
            "Kueue frees the quota when the job ends, but parts of its cluster would keep running",
        ),
    )


def _publication(limits: PodLimits) -> Rejection:
    types = cel_list(("", "ClusterIP", *(name for name in limits.publish if name != "Ingress")))
    ingress = "true" if "Ingress" in limits.publish else "!head.?enableIngress.orValue(false)"
    return Rejection(
        "spec.headGroupSpec.serviceType",
        "variables.clusters.map(cluster, cluster.?headGroupSpec.orValue({})).all(head, "
        f"head.?serviceType.orValue('') in {types} && head.?headService.?spec.?type.orValue('') in {types} && "
        f"{ingress}) && object.?spec.?serveService.?spec.?type.orValue('') in {types}",
        "members publish nothing outside the cluster: the Service of a Ray head or RayService must be of type "
        "ClusterIP, without enableIngress, unless teamLimits.publish in the organization file names the type",
        "KubeRay would publish the Ray head, whose dashboard runs any code",
    )


def pod_security_labels(version: str) -> dict[str, str]:
    """Return the labels of a team's namespace: `baseline` is enforced and warned about, `restricted` is audited.

    When a Job is created, the warning lists what its pods would be rejected for. A warning for `restricted` would
    appear for every job whose image runs as root, as most training images do, although nothing rejects it.

    Baseline is the strictest level that training passes. EFA, GPUs and huge pages are container resources and need no
    privilege. Source: EKS user guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter". Shared
    memory is an emptyDir. The version is the cluster's own, so that an upgrade doesn't silently change what is
    admitted.
    """
    levels = {"enforce": POD_SECURITY_LEVEL, "warn": POD_SECURITY_LEVEL, "audit": "restricted"}
    prefix = "pod-security.kubernetes.io"
    return {f"{prefix}/{mode}": level for mode, level in levels.items()} | {
        f"{prefix}/{mode}-version": f"v{version}" for mode in levels
    }


def policies_of(teams: Sequence[TeamPlan], limits: PodLimits | None = None) -> list[AdmissionPolicy]:
    """Return the policies of the namespaces of teams; limits: the environment's, absent: the defaults."""
    pod_limits = PodLimits() if limits is None else limits
    return [
        *pod_policies(teams, pod_limits),
        _services(),
        *member_policies(teams, pod_limits),
        ray_policy(pod_limits),
        *lifecycle_policies(),
    ]


def request_limits(limits: PodLimits) -> tuple[dict[str, str], dict[str, str]]:
    """Return the default requests of containers, and their minimum.

    Kueue adds the same defaults to what it counts (0.19.2, pkg/workload/resources.go, handlePodLimitRange). Without a
    request, it would count nothing and assign no instance type. Limits without requests are rejected in templates.
    """
    defaults = limits.default_requests
    return {"cpu": defaults.cpu, "memory": defaults.memory}, {"cpu": "1m", "memory": "1Mi"}


def _services() -> AdmissionPolicy:
    return AdmissionPolicy(
        "hpkit-team-services",
        (ResourceRule(("",), ("services",)),),
        BOTH,
        (
            Rejection(
                "spec.externalIPs",
                "object.spec.?externalIPs.orValue([]).size() == 0",
                "spec.externalIPs redirects the traffic of other addresses. Remove it",
                "nodes would send the traffic of that address to the team's pods (CVE-2020-8554)",
            ),
        ),
    )
