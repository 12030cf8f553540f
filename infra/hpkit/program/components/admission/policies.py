"""Admission policies of the teams' namespaces, which reject requests that RBAC allows by verb.

They don't repeat Pod Security, which the namespace's label enforces.
"""

from collections.abc import Sequence

from hpkit.plan.model import POD_SECURITY_LEVEL, TeamPlan
from hpkit.plan.team_limits import PodLimits
from hpkit.program.components.admission.lifecycle import lifecycle_policies
from hpkit.program.components.admission.members import member_policies
from hpkit.program.components.admission.model import BOTH, AdmissionPolicy, Refusal, ResourceRule
from hpkit.program.components.admission.pods import pod_policies
from hpkit.program.components.admission.ray import ray_policy

__all__ = ["AdmissionPolicy", "Refusal", "ResourceRule", "pod_security_labels", "policies_of", "request_limits"]


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
            Refusal(
                "spec.externalIPs",
                "object.spec.?externalIPs.orValue([]).size() == 0",
                "spec.externalIPs redirects the traffic of other addresses. Remove it",
                "nodes would send the traffic of that address to the team's pods (CVE-2020-8554)",
            ),
        ),
    )
