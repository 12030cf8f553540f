"""Names of what a file system is to the teams inside the cluster."""

from typing import Final

from hpkit.plan.model import Plan, TeamPlan

__all__ = ["CLAIM", "FOLDER", "STORAGE_CLASS", "has_team_volumes", "volume_name"]

# As the driver's examples and AWS's own modules for HyperPod call them.
STORAGE_CLASS: Final = "fsx-sc"
CLAIM: Final = "fsx-claim"
# The folder on the file system that holds a folder for each team.
FOLDER: Final = "teams"


def has_team_volumes(plan: Plan) -> bool:
    """Report whether teams have claims on a file system."""
    return bool(plan.spec.storage and plan.spec.storage.lustre and plan.spec.storage.lustre.teams)


def volume_name(team: TeamPlan) -> str:
    """Return the name of a team's PersistentVolume, which has no namespace of its own."""
    return f"fsx-{team.namespace}"
