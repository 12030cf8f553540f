"""STO: file systems."""

from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule, listing

__all__ = ["RULES"]

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


RULES = (Rule("STO001", "error", "The file system stands in a zone with a subnet.", _FSX, _zone_of_lustre),)
