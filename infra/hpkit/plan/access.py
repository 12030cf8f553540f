"""Access to a platform by its file: groups of members, and the names of their permissions."""

from __future__ import annotations

from typing import Final

from hpkit.plan.dependencies import charts_of
from hpkit.plan.model import Plan
from hpkit.plan.names import GROUP_PREFIX

__all__ = [
    "ADMINISTRATOR_POLICY",
    "DEPENDENCIES_NAMESPACE",
    "RELEASES_POLICY",
    "TEAM_ROLE",
    "VIEWER_GROUP",
    "VIEWER_ROLE",
    "groups_of",
    "release_namespaces",
]

# Access policies of EKS. Helm stores its releases in Secrets, which a preview with --refresh reads. Viewers have the
# second policy only in the namespaces of releases.
ADMINISTRATOR_POLICY: Final = "AmazonEKSClusterAdminPolicy"
RELEASES_POLICY: Final = "AmazonEKSAdminViewPolicy"
DEPENDENCIES_NAMESPACE: Final = "kube-system"
# Lets viewers read everything else in the cluster.
VIEWER_GROUP: Final = "hyperpod:viewers"
VIEWER_ROLE: Final = "hpkit-viewer"
# The Role in each team's namespace, and the ClusterRole of all teams.
TEAM_ROLE: Final = "hpkit-data-scientist"


def groups_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return IAM role → Kubernetes groups: one per team that the role is in, and that of viewers."""
    groups: dict[str, list[str]] = {}
    for team in plan.teams:
        for member in team.spec.members:
            groups.setdefault(member, []).append(f"{GROUP_PREFIX}{team.name}")
    for viewer in plan.spec.eks.viewers:
        groups.setdefault(viewer, []).append(VIEWER_GROUP)
    return {principal: tuple(sorted(set(names))) for principal, names in groups.items()}


def release_namespaces(plan: Plan) -> tuple[str, ...]:
    """Return the namespaces where the program installs Helm charts."""
    charts = (each.namespace for each in charts_of(plan.spec))
    return (*charts, *([DEPENDENCIES_NAMESPACE] if plan.dependencies is not None else []))
