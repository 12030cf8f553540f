"""NET and STO: whether what the kit lays out itself has room, and stands where the nodes are."""

import ipaddress
from collections.abc import Iterator

from hpkit.checks.registry import Context, Issue, Rule, listing
from hpkit.config.document import Path
from hpkit.plan.addresses import LARGEST_PREFIX, LAST_ZONE, own_part

__all__ = ["RULES"]

_EKS = "Amazon EKS user guide, VPC and subnet considerations"
_FSX = "Amazon FSx for Lustre user guide, file system deployment"
_ZONES_OF_EKS = 2


def _room(context: Context) -> Iterator[Issue]:
    path: Path = (*context.path, "network")
    cidr = context.spec.network.vpc_cidr
    if cidr is None:
        return
    try:
        vpc = ipaddress.IPv4Network(cidr)
    except ValueError:
        return
    if vpc.prefixlen > LARGEST_PREFIX:
        yield Issue(
            (*path, "vpcCidr"),
            f"vpcCidr {cidr} is too small for the subnets of gateways and control plane (/{LARGEST_PREFIX} at least)",
            "Choose a larger range, such as 10.192.0.0/16.",
        )
        return
    for index, zone in enumerate(context.spec.network.zones):
        place: Path = (*path, "zones", index)
        if zone.availability_zone[-1] > LAST_ZONE:
            yield Issue(
                (*place, "availabilityZone"),
                f"{zone.availability_zone}: gateways and control plane have room in zones a to {LAST_ZONE} only",
                "Choose another zone.",
            )
        yield from _kept_free(zone.node_cidr, own_part(cidr), (*place, "nodeCidr"))


def _kept_free(cidr: str, own: ipaddress.IPv4Network, path: Path) -> Iterator[Issue]:
    try:
        nodes = ipaddress.IPv4Network(cidr)
    except ValueError:
        return
    if nodes.overlaps(own):
        yield Issue(
            path,
            f"nodeCidr {cidr} overlaps {own}, the part of vpcCidr for the subnets of gateways and control plane",
            "Choose a range behind it, or one outside vpcCidr.",
        )


def _zones_of_eks(context: Context) -> Iterator[Issue]:
    existing = context.spec.network.existing
    if existing is None or context.spec.eks.existing is not None:
        return
    path: Path = (*context.path, "network", "existing")
    if named := existing.control_plane_subnets:
        if len(set(named)) < _ZONES_OF_EKS:
            yield Issue(
                (*path, "controlPlaneSubnets"),
                f"EKS needs subnets in {_ZONES_OF_EKS} zones, and controlPlaneSubnets names {named[0]} alone",
                "Name a subnet of another zone too, or remove controlPlaneSubnets.",
            )
    elif len(existing.subnets) < _ZONES_OF_EKS:
        yield Issue(
            (*path, "subnets"),
            f"EKS needs subnets in {_ZONES_OF_EKS} zones, and there is one ({listing(sorted(existing.subnets))})",
            "Name a subnet of another zone too (controlPlaneSubnets), or an EKS cluster that is there (eks.existing).",
        )


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


RULES = (
    Rule("NET005", "error", "vpcCidr has room for the subnets of gateways and control plane.", _EKS, _room),
    Rule("NET006", "error", "An EKS cluster that the kit makes has subnets in two zones.", _EKS, _zones_of_eks),
    Rule("STO001", "error", "The file system stands in a zone with a subnet.", _FSX, _zone_of_lustre),
)  # fmt: skip
