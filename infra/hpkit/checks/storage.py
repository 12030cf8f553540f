"""STO: file systems."""

from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule, listing

__all__ = ["RULES"]

_GOVERNANCE = "SageMaker HyperPod developer guide, task governance: a team's namespace comes with its quota"
_FSX = "Amazon FSx for Lustre user guide, file system deployment"


def _zone_of_lustre(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    zones = [zone.availability_zone for zone in context.plan.network.zones]
    if lustre is not None and lustre.availability_zone not in zones:
        yield Issue(
            (*context.path, "storage", "lustre", "availabilityZone"),
            f"the file system stands in {lustre.availability_zone}, and the network has no subnet there "
            f"(zones: {listing(zones) or 'none'})",
            "Name the zone of the groups that use it.",
        )


def _without_teams(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    if lustre is not None and lustre.teams and not context.plan.teams:
        yield Issue(
            (*context.path, "storage", "lustre", "teams"),
            "teams is true, and no team has a namespace in this environment",
            "Give a team an allocation in governance, or remove `teams`.",
        )


RULES = (
    Rule("STO001", "error", "The file system stands in a zone with a subnet.", _FSX, _zone_of_lustre),
    Rule("STO002", "error", "Claims are for teams of the environment.", _GOVERNANCE, _without_teams),
)
