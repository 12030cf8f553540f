"""Who gets into a platform by its file: groups of members, and the names that the rights go by."""

from __future__ import annotations

from typing import Final

from hpkit.plan.model import Plan
from hpkit.plan.names import GROUP_PREFIX

__all__ = ["ADMINISTRATOR_POLICY", "TEAM_ROLE", "VIEWER_POLICY", "groups_of"]

# Access policies of EKS. A viewer reads Kueue's ConfigMap for a preview; all objects, and the Secrets that hold Helm's
# releases, for one with --refresh.
ADMINISTRATOR_POLICY: Final = "AmazonEKSClusterAdminPolicy"
VIEWER_POLICY: Final = "AmazonEKSAdminViewPolicy"
# The Role in each team's namespace, and the ClusterRole of all teams.
TEAM_ROLE: Final = "hpkit-data-scientist"


def groups_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return IAM role → Kubernetes groups, one per team that the role is in."""
    groups: dict[str, list[str]] = {}
    for team in plan.teams:
        for member in team.spec.members:
            groups.setdefault(member, []).append(f"{GROUP_PREFIX}{team.name}")
    return {member: tuple(sorted(set(names))) for member, names in groups.items()}
