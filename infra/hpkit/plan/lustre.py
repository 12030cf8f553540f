"""Names of what a file system is to the teams inside the cluster."""

from typing import Final

from hpkit.plan.model import TeamPlan

__all__ = ["CLAIM", "STORAGE_CLASS", "volume_name"]

# As the driver's examples and AWS's own modules for HyperPod call them.
STORAGE_CLASS: Final = "fsx-sc"
CLAIM: Final = "fsx-claim"


def volume_name(team: TeamPlan) -> str:
    """Return the name of a team's PersistentVolume, which has no namespace of its own."""
    return f"fsx-{team.namespace}"
