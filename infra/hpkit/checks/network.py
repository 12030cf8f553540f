"""NET: addresses, zones, the way out, and whether the subnets that the kit adds fit in."""

import ipaddress
from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.config.document import Path
from hpkit.plan.subnets import LARGEST_PREFIX, LAST_ZONE, own_part

__all__ = ["RULES"]

_VPC = "Amazon VPC user guide, CIDR blocks"
_EKS = "Amazon EKS user guide, VPC and subnet considerations"
_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_ZONES_OF_EKS = 2


def _ranges(context: Context) -> Iterator[tuple[str, str, Path]]:
    network = context.spec.network
    base: Path = (*context.path, "network")
    if network.vpc_cidr is not None:
        yield "vpcCidr", network.vpc_cidr, (*base, "vpcCidr")
    for index, zone in enumerate(network.zones):
        yield f"nodeCidr of {zone.availability_zone}", zone.node_cidr, (*base, "zones", index, "nodeCidr")
    for index, cidr in enumerate(context.spec.eks.endpoint.public_cidrs):
        yield "publicCidrs", cidr, (*context.path, "eks", "endpoint", "publicCidrs", index)
    for index, cidr in enumerate(context.spec.eks.endpoint.private_from):
        yield "privateFrom", cidr, (*context.path, "eks", "endpoint", "privateFrom", index)


def _cidrs(context: Context) -> Iterator[Issue]:
    seen: list[tuple[str, ipaddress.IPv4Network]] = []
    for what, cidr, path in _ranges(context):
        try:
            network = ipaddress.IPv4Network(cidr)
        except ValueError as error:
            fix = "Write it like 10.1.0.0/16."
            if "host bits" in str(error):
                fix = f"Write {ipaddress.IPv4Network(cidr, strict=False)}."
            yield Issue(path, f"{what} is `{cidr}`: {_reason(str(error))}", fix)
            continue
        if what in ("publicCidrs", "privateFrom"):
            continue
        if not 16 <= network.prefixlen <= 28:
            yield Issue(path, f"{what} is {cidr}; AWS takes /16 to /28", "Choose a size from /16 to /28.")
        for other, taken in seen:
            # Node ranges may lie inside the VPC's own range; they may not share addresses with each other.
            if network.overlaps(taken) and (other != "vpcCidr" or not network.subnet_of(taken)):
                yield Issue(path, f"{what} {cidr} overlaps {other} {taken}", "Choose ranges apart from each other.")
        seen.append((what, network))


def _reason(message: str) -> str:
    if "host bits" in message:
        return "it has host bits set"
    return "not an IPv4 range"


def _egress(context: Context) -> Iterator[Issue]:
    network = context.spec.network
    if network.existing is None and network.nat_gateways == "None" and not network.closed:
        yield Issue(
            (*context.path, "network", "natGateways"),
            "natGateways is None without `closed: true`: nodes could reach neither the internet nor the services",
            "Add `closed: true`, or choose Single or PerZone.",
        )


def _one_network(context: Context) -> Iterator[Issue]:
    network, path = context.spec.network, (*context.path, "network")
    if network.existing is not None:
        both = [key for key, given in (("vpcCidr", network.vpc_cidr), ("zones", network.zones)) if given]
        if both:
            yield Issue(
                (*path, both[0]),
                f"{listing(both)} beside existing: the kit creates no network then",
                "Keep either existing, or vpcCidr and zones.",
            )
        return
    missing = [key for key, given in (("vpcCidr", network.vpc_cidr), ("zones", network.zones)) if not given]
    if missing:
        yield Issue(path, f"the network has no {listing(missing)}", "Add them, or name an existing VPC.")


def _zones(context: Context) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, zone in enumerate(context.spec.network.zones):
        path = (*context.path, "network", "zones", index, "availabilityZone")
        name = zone.availability_zone
        if name[:-1] != context.spec.region:
            yield Issue(
                path,
                f"the zone {name} is not in {context.spec.region}",
                "Name a zone of the environment's region.",
            )
        if name in seen:
            yield Issue(path, f"the zone {name} stands twice", "Keep one entry per zone.")
        seen.add(name)
    existing = context.spec.network.existing
    for name in existing.subnets if existing else ():
        if name[:-1] != context.spec.region:
            yield Issue(
                (*context.path, "network", "existing", "subnets", name),
                f"the zone {name} is not in {context.spec.region}",
                "Name a zone of the environment's region.",
            )


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


RULES = (
    Rule("NET001", "error", "CIDRs are valid, without host bits, and do not overlap.", _VPC, _cidrs),
    Rule("NET002", "error", "A network without NAT gateway is closed, and says so.", _GUIDE, _egress),
    Rule("NET003", "error", "The network is either created or existing.", "Config contract", _one_network),
    Rule("NET004", "error", "Zones are of the region, each once.", _VPC, _zones),
    Rule("NET005", "error", "vpcCidr has room for the subnets of gateways and control plane.", _EKS, _room),
    Rule("NET006", "error", "An EKS cluster that the kit makes has subnets in two zones.", _EKS, _zones_of_eks),
)  # fmt: skip
