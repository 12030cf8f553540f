"""NET: addresses, zones, the way out, and whether the subnets that hpkit adds fit in."""

import ipaddress
import re
from collections.abc import Iterator

from hpkit.catalog import is_local_zone, is_zone_id, is_zone_of, last_zone, vpc_endpoints
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.network import Network
from hpkit.config.reading.document import Path
from hpkit.plan.derive import ZONE_KEY
from hpkit.plan.endpoint import LARGEST_PREFIX, LAST_ZONE, RANGE_PREFIXES, own_part, reserved_ranges
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

__all__ = ["RULES", "vpc_ranges"]

_PEERING = "Amazon VPC peering guide, unsupported configurations: overlapping CIDR blocks"
_VPC = "Amazon VPC user guide, CIDR blocks"
_EKS = "Amazon EKS user guide, VPC and subnet considerations"
_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_RESTRICTIONS = "Amazon VPC user guide, IPv4 CIDR block association restrictions"
_CONTRACT = "hpkit configuration reference"
_PRIVATELINK = "AWS PrivateLink guide, services that integrate with AWS PrivateLink"
_ZONES_OF_EKS = 2
_LARGEST, _SMALLEST = RANGE_PREFIXES
# Common names of services whose endpoints have other names, and those names.
_OTHER_NAMES = {
    "cloudwatch": ("monitoring", "logs"),
    "cloudwatch-logs": ("logs",),
    "cloudwatch-metrics": ("monitoring",),
    "cloudwatch-events": ("events",),
    "eventbridge": ("events",),
    "efs": ("elasticfilesystem",),
    "elb": ("elasticloadbalancing",),
    "kinesis": ("kinesis-streams",),
    "firehose": ("kinesis-firehose",),
    "lustre": ("fsx",),
    "parameter-store": ("ssm",),
    "prometheus": ("aps-workspaces",),
    "step-functions": ("states",),
    "stepfunctions": ("states",),
    "x-ray": ("xray",),
}
_WHOLE_NAME = re.compile(r"(?:com|cn\.com)\.amazonaws\.(?P<region>[a-z0-9-]+)\.(?P<service>.+)\Z")
_PRIVATE = tuple(ipaddress.IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_RESERVED_BY_AWS = ipaddress.IPv4Network("198.19.0.0/16")
# Ranges that no VPC can have: this host, loopback, link-local addresses, multicast.
_NOWHERE = tuple(ipaddress.IPv4Network(each) for each in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4"))
_DOCKER = ipaddress.IPv4Network("172.17.0.0/16")
_DEFAULT_VPC = ipaddress.IPv4Network("172.31.0.0/16")
_LOW, _LOWEST = ipaddress.IPv4Network("10.0.0.0/15"), ipaddress.IPv4Network("10.0.0.0/16")


def _environments_apart(context: Context) -> Iterator[Issue]:
    """Compare the VPC's ranges with those of the environments before this one in the file."""
    own = vpc_ranges(context.spec.network)
    shared: list[str] = []
    for name, earlier in context.organization.environments.items():
        if name == context.environment:
            break
        overlaps = sorted(
            {str(mine) for mine in own for range_ in vpc_ranges(earlier.network) if mine.overlaps(range_)}
        )
        if overlaps:
            shared.append(f"{name} ({listing(overlaps, 3)})")
    if shared:
        yield Issue(
            (*context.path, "network", "vpcCidr"),
            f"the VPC of `{context.environment}` shares addresses with {listing(shared)}; overlapping VPCs can't be "
            "peered or routed through a transit gateway or VPN",
            "Give each environment its own ranges. If they never need a connection, waive this rule and state the "
            "reason.",
        )


def vpc_ranges(network: Network) -> list[ipaddress.IPv4Network]:
    """Return the valid ranges of the VPC that hpkit creates (NET001 reports others); none for an existing VPC."""
    if network.existing is not None:
        return []
    texts = [network.vpc_cidr, *(zone.node_cidr for zone in network.zones)]
    return [range_ for range_ in map(_range, texts) if range_ is not None]


def _range(cidr: str | None) -> ipaddress.IPv4Network | None:
    try:
        return None if cidr is None else ipaddress.IPv4Network(cidr)
    except ValueError:
        return None


def _ranges(context: Context) -> Iterator[tuple[str, str, Path]]:
    network = context.spec.network
    base: Path = (*context.path, "network")
    if network.vpc_cidr is not None:
        yield "`vpcCidr`", network.vpc_cidr, (*base, "vpcCidr")
    for index, zone in enumerate(network.zones):
        yield f"`nodeCidr` of {zone.availability_zone}", zone.node_cidr, (*base, "zones", index, "nodeCidr")
    for index, cidr in enumerate(context.spec.eks.endpoint.public_cidrs):
        yield "`publicCidrs`", cidr, (*context.path, "eks", "endpoint", "publicCidrs", index)
    for index, cidr in enumerate(context.spec.eks.endpoint.private_from):
        yield "`privateFrom`", cidr, (*context.path, "eks", "endpoint", "privateFrom", index)


def _cidrs(context: Context) -> Iterator[Issue]:
    seen: list[tuple[str, ipaddress.IPv4Network]] = []
    for range_name, cidr, path in _ranges(context):
        try:
            network = ipaddress.IPv4Network(cidr)
        except ValueError:
            reason, fix = _not_a_range(range_name, cidr)
            yield Issue(path, f"{range_name} is `{cidr}`: {reason}", fix)
            continue
        if "/" not in cidr and range_name == "`publicCidrs`" and reserved_ranges([cidr]):
            # With a length it would be as wrong (EKS010).
            continue
        if "/" not in cidr:
            smallest = LARGEST_PREFIX if range_name == "`vpcCidr`" else _SMALLEST
            fix = (
                f"Use `{cidr}/32` for this single address."
                if _of_callers(range_name)
                else f"Add a prefix length from /{_LARGEST} to /{smallest}."
            )
            yield Issue(path, f"{range_name} is `{cidr}`, an address without a prefix length", fix)
            continue
        if str(network) != cidr:
            # Python also reads a netmask, which AWS rejects.
            message = f"{range_name} is `{cidr}`, but AWS requires a prefix length after the slash"
            yield Issue(path, message, f"Use `{network}`.")
            continue
        if _of_callers(range_name):
            continue
        if not _is_of_a_size(network):
            smallest = LARGEST_PREFIX if range_name == "`vpcCidr`" else _SMALLEST
            yield Issue(
                path, f"{range_name} is {cidr}; AWS accepts /16 to /28", f"Choose a size from /16 to /{smallest}."
            )
            continue
        for other_name, other_range in seen:
            # Node ranges may lie inside the VPC's own range; they may not share addresses with each other.
            if network.overlaps(other_range) and (other_name != "`vpcCidr`" or not network.subnet_of(other_range)):
                yield Issue(
                    path,
                    f"{range_name} {cidr} overlaps {other_name} {other_range}",
                    "Choose ranges that don't overlap.",
                )
        seen.append((range_name, network))


def _not_a_range(range_name: str, cidr: str) -> tuple[str, str]:
    """Return why a text isn't a range that AWS accepts, and the fix."""
    smallest = LARGEST_PREFIX if range_name == "`vpcCidr`" else _SMALLEST
    size_fix = f"Choose a range from /{_LARGEST} to /{smallest}, such as 10.1.0.0/{_LARGEST}."
    try:
        network = ipaddress.IPv4Network(cidr, strict=False)
    except ValueError:
        if range_name == "`publicCidrs`":
            size_fix = (
                "Use the public IPv4 ranges from which you connect (`curl https://checkip.amazonaws.com` prints your "
                "address)."
            )
        return "not an IPv4 range", size_fix
    if _of_callers(range_name) or _is_of_a_size(network):
        return "it has host bits set", f"Use `{network}`."
    return f"it has host bits set, and AWS accepts /{_LARGEST} to /{_SMALLEST}", size_fix


def _is_of_a_size(network: ipaddress.IPv4Network) -> bool:
    return _LARGEST <= network.prefixlen <= _SMALLEST


def _of_callers(what: str) -> bool:
    return what in ("`publicCidrs`", "`privateFrom`")


def _egress(context: Context) -> Iterator[Issue]:
    network = context.spec.network
    if network.existing is None and network.nat_gateways == "None" and not network.closed:
        yield Issue(
            (*context.path, "network", "natGateways"),
            "without `closed: true`, `natGateways: None` leaves nodes without access to the internet and AWS services",
            "Set `natGateways: Single` or `natGateways: PerZone`. Or add `closed: true`, and a registry with the "
            "images (CLU016).",
        )


def _one_network(context: Context) -> Iterator[Issue]:
    network, path = context.spec.network, (*context.path, "network")
    if network.existing is not None:
        both = [key for key, given in (("vpcCidr", network.vpc_cidr), ("zones", network.zones)) if given]
        if both:
            names = listing([f"`{each}`" for each in both])
            yield Issue(
                (*path, both[0]),
                f"{names} can't be combined with `existing`, because hpkit then creates no network",
                "Keep either `existing`, or `vpcCidr` and zones.",
            )
        return
    missing = [key for key, given in (("vpcCidr", network.vpc_cidr), ("zones", network.zones)) if not given]
    if missing:
        yield Issue(
            path,
            f"the network has no {listing([f'`{each}`' for each in missing])}",
            "Add `vpcCidr` and `zones`, or use an existing VPC.",
        )


def _zones(context: Context) -> Iterator[Issue]:
    if not context.knows_region:
        return
    names = [zone.availability_zone for zone in context.plan.network.zones]
    renamed = [name for zone in names if (name := context.zone_of_region(zone))]
    region = context.spec.region
    if len({zone[:-1] for zone in names}) == 1 < len(names) == len(renamed):
        yield Issue(
            (*context.path, "region"),
            f"the region is {region}, but the network's zones are in {names[0][:-1]} ({listing(names)})",
            f"Use `{names[0][:-1]}`, or change each zone in the environment to one of {region}: {listing(renamed)}.",
        )
        return
    seen: set[str] = set()
    for index, zone in enumerate(context.spec.network.zones):
        path = (*context.path, "network", "zones", index, "availabilityZone")
        name = zone.availability_zone
        if not is_zone_of(name, context.spec.region):
            yield Issue(
                path,
                f"the zone {name} isn't in {context.spec.region}",
                f"Use a zone that `aws ec2 describe-availability-zones --region {context.spec.region}` lists."
                if is_zone_id(name) or is_local_zone(name)
                else f"Use `{context.spec.region}{name[-1]}`{_also_in(context, name)}.",
            )
        elif name[-1] <= LAST_ZONE:
            yield from _behind_the_last(context.spec.region, name, path)
        if name in seen:
            yield Issue(path, f"the zone {name} is listed twice", "Keep one entry per zone.")
        seen.add(name)
    existing = context.spec.network.existing
    for name in existing.subnets if existing else ():
        if not is_zone_of(name, context.spec.region):
            yield Issue(
                (*context.path, "network", "existing", "subnets", name),
                f"the zone {name} isn't in {context.spec.region}",
                "Use a zone of the environment's region.",
            )
        else:
            path = (*context.path, "network", "existing", "subnets", name)
            yield from _behind_the_last(context.spec.region, name, path)
    yield from _by_id(context)


def _by_id(context: Context) -> Iterator[Issue]:
    """Yield what can't be combined with zone IDs, because the zone's name depends on the account."""
    network, path = context.spec.network, (*context.path, "network")
    names = [zone.availability_zone for zone in context.plan.network.zones]
    by_id = [name for name in names if is_zone_id(name)]
    if not by_id:
        return
    if others := [name for name in names if name not in by_id]:
        yield Issue(
            (*path, "existing", "subnets") if network.existing else (*path, "zones"),
            f"zones are given by ID ({listing(by_id)}) and by name ({listing(others)}), which can be the same zone",
            f"Use only IDs or only names: `aws ec2 describe-availability-zones --region {context.spec.region}` prints "
            "both.",
        )
        return
    for pool, path in context.node_pools:
        if any(each.key == ZONE_KEY for each in pool.spec.requirements):
            yield Issue(
                (*path, "requirements"),
                f"NodePool `{pool.spec.name}` requires zones by {ZONE_KEY}, which has names, but the network has zone "
                "IDs",
                "Use names of zones in the network, or remove the requirement.",
            )


def _also_in(context: Context, zone: str) -> str:
    """Return what else is in a zone, and moves with it."""
    names = [group.name for _, group in context.groups if group.availability_zone == zone]
    lustre = context.spec.storage.lustre if context.spec.storage else None
    names += ["the file system"] if lustre and lustre.availability_zone == zone else []
    return f", also as availabilityZone of {listing(names)}" if names else ""


def _behind_the_last(region: str, zone: str, path: Path) -> Iterator[Issue]:
    last = last_zone(region)
    # AWS adds zones occasionally, so this could be one that isn't in the catalog yet.
    if last is not None and zone[-1] > last and not is_zone_id(zone) and not is_local_zone(zone):
        yield Issue(
            path,
            f"according to the catalog, {region} has no zone {zone}; its zones are a to {last}",
            f"Use a zone that `aws ec2 describe-availability-zones --region {region}` lists. Zones differ between "
            "accounts.",
            "warning",
        )


def _without_effect(context: Context) -> Iterator[Issue]:
    network, path = context.spec.network, (*context.path, "network")
    stated = {"nat_gateways": "natGateways", "endpoints": "endpoints"}
    others = [key for name, key in stated.items() if name in network.model_fields_set]
    if network.existing is not None and others:
        names = listing([f"`{each}`" for each in others])
        verb = "have" if len(others) > 1 else "has"
        yield Issue(
            (*path, others[0]),
            f"{names} {verb} no effect with `existing`, because hpkit adds nothing to an existing network",
            "Remove it, and set up egress and endpoints in that network."
            if len(others) == 1
            else "Remove them, and set up egress and endpoints in that network.",
            other=(*path, "existing"),
            other_name="`existing`",
        )
    elif network.closed and "natGateways" in others and network.nat_gateways != "None":
        yield Issue(
            (*path, "natGateways"),
            f"`natGateways` is {network.nat_gateways}, but a closed network has none",
            "Use `None`, or remove `closed: true` to let nodes reach the internet.",
            other=(*path, "closed"),
            other_name="`closed`",
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
    if _is_no_vpc(vpc):
        return
    if vpc.prefixlen > LARGEST_PREFIX:
        if vpc.prefixlen <= _SMALLEST:
            yield Issue(
                (*path, "vpcCidr"),
                f"`vpcCidr` {cidr} is too small for the subnets of gateways and control plane; the minimum is "
                f"/{LARGEST_PREFIX}",
                f"Choose a larger range, such as {vpc.supernet(new_prefix=_LARGEST)}.",
            )
        return
    for index, zone in enumerate(context.spec.network.zones):
        place: Path = (*path, "zones", index)
        if is_local_zone(zone.availability_zone) and context.spec.network.nat_gateways == "PerZone":
            yield Issue(
                (*path, "natGateways"),
                f"{zone.availability_zone} is a Local Zone, where hpkit creates no NAT gateway",
                "Use `Single`.",
            )
        if zone.availability_zone[-1] > LAST_ZONE:
            yield Issue(
                (*place, "availabilityZone"),
                f"{zone.availability_zone}: the subnets of gateways and control plane support only zones a to "
                f"{LAST_ZONE}",
                "Choose another zone.",
            )
        yield from _kept_free(zone.node_cidr, own_part(cidr), (*place, "nodeCidr"))


def _kept_free(cidr: str, own: ipaddress.IPv4Network, path: Path) -> Iterator[Issue]:
    try:
        nodes = ipaddress.IPv4Network(cidr)
    except ValueError:
        return
    if nodes.overlaps(own) and _is_of_a_size(nodes):
        yield Issue(
            path,
            f"`nodeCidr` {cidr} overlaps {own}, the part of `vpcCidr` for the subnets of gateways and control plane",
            "Choose a range after it, or one outside `vpcCidr`.",
        )


def _secondary_ranges(context: Context) -> Iterator[Issue]:
    vpc = _range(context.spec.network.vpc_cidr)
    if vpc is None or _is_no_vpc(vpc):
        return
    ranges = [_range(zone.node_cidr) for zone in context.spec.network.zones]
    for index, nodes in enumerate(ranges):
        if nodes is None or nodes.overlaps(vpc):
            continue
        why = _rejected(nodes, vpc, [each for each in ranges if each is not None and each != nodes])
        if why:
            yield Issue(
                (*context.path, "network", "zones", index, "nodeCidr"),
                f"`nodeCidr` {nodes} can't be added to the VPC {vpc}: {why}",
                f"Choose a range in {_private_block(vpc)} after `vpcCidr`, or in 100.64.0.0/10."
                if _private_block(vpc)
                else f"Choose a `vpcCidr` in {_private_block(nodes)}, or a range in 100.64.0.0/10 for the nodes.",
            )


def _rejected(nodes: ipaddress.IPv4Network, vpc: ipaddress.IPv4Network, others: list[ipaddress.IPv4Network]) -> str:
    """Return why AWS rejects a secondary range, or nothing for a valid one.

    EKS gives services 172.20.0.0/16 in a VPC of 10/8, else 10.100.0.0/16 (its user guide, create a cluster). Valid
    ranges never overlap with these. Source: Amazon VPC user guide, IPv4 CIDR block association restrictions.
    """
    own, of_nodes = _private_block(vpc), _private_block(nodes)
    if nodes.overlaps(_RESERVED_BY_AWS):
        return f"AWS reserves {_RESERVED_BY_AWS}"
    if own is None and of_nodes is not None:
        return f"AWS doesn't add ranges of {of_nodes} to a VPC outside the private ranges"
    if own is not None and of_nodes is not None and own != of_nodes:
        return f"AWS doesn't allow ranges of both {own} and {of_nodes} in a VPC"
    if own == _PRIVATE[1] and nodes.overlaps(_DEFAULT_VPC):
        return f"AWS rejects ranges in {_DEFAULT_VPC}, which default VPCs use"
    low = [each for each in (vpc, *others) if each.overlaps(_LOW)]
    if low and nodes.overlaps(_LOWEST):
        return f"AWS rejects ranges in {_LOWEST} together with {low[0]}"
    return ""


def _built(context: Context) -> Iterator[tuple[str, ipaddress.IPv4Network, Path]]:
    """Yield name, range and path of the ranges in a VPC that hpkit creates."""
    for range_name, cidr, path in _ranges(context):
        network = _range(cidr)
        if network is not None and not _of_callers(range_name):
            yield range_name, network, path


def _addresses_of_nodes(context: Context) -> Iterator[Issue]:
    for range_name, network, path in _built(context):
        block = next((each for each in _NOWHERE if network.overlaps(each)), None)
        if block is not None:
            yield Issue(
                path,
                f"{range_name} is {network}, but a VPC can't use {block}",
                "Choose a range in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16.",
            )


def _is_no_vpc(network: ipaddress.IPv4Network) -> bool:
    """Return whether AWS rejects a range for any VPC (NET001, NET011); other findings would only be consequences."""
    return network.prefixlen < _LARGEST or any(network.overlaps(each) for each in _NOWHERE)


def _docker(context: Context) -> Iterator[Issue]:
    for range_name, network, path in _built(context):
        if network.overlaps(_DOCKER) and not _is_no_vpc(network):
            yield Issue(
                path,
                f"{range_name} is {network}, but SageMaker AI and Docker use {_DOCKER} on their machines, which then "
                "can't reach these addresses",
                f"Choose a private range outside {_DOCKER}.",
            )


def _addresses_of_the_internet(context: Context) -> Iterator[Issue]:
    for range_name, network, path in _built(context):
        if network.is_global and not _is_no_vpc(network):
            yield Issue(
                path,
                f"{range_name} is {network}, a public range: nodes can't reach the internet hosts that have these "
                "addresses",
                "Choose a range in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, or for nodes, in 100.64.0.0/10.",
            )


def _private_block(network: ipaddress.IPv4Network) -> ipaddress.IPv4Network | None:
    return next((block for block in _PRIVATE if network.subnet_of(block)), None)


def _endpoints(context: Context) -> Iterator[Issue]:
    services = vpc_endpoints()
    for index, name in enumerate(context.spec.network.endpoints):
        if name in services:
            continue
        path: Path = (*context.path, "network", "endpoints", index)
        whole = _WHOLE_NAME.match(name)
        if whole is not None:
            yield Issue(
                path,
                f"`{name}` is the full name of an endpoint service; hpkit adds the prefix itself",
                f"Use `{whole['service']}`.",
            )
            continue
        parts = [each for each in services if each.startswith(f"{name.lower()}.")]
        parts = list(_OTHER_NAMES.get(name.lower().replace(" ", "-"), parts))
        likely = name.lower() if name.lower() in services else parts[0] if parts else near(name, services)
        if likely is None:
            yield Issue(
                path,
                f"hpkit doesn't know a service `{name}` with a VPC endpoint",
                f"Use a name that `aws ec2 describe-vpc-endpoint-services --region {context.spec.region}` lists, "
                "without `com.amazonaws.` and the region.",
                "warning",
            )
            continue
        also = f", and {listing(parts[1:])} as another entry" if len(parts) > 1 else ""
        yield Issue(path, f"no service `{name}` has a VPC endpoint", f"Did you mean `{likely}`{also}?")


def _subnets_once(context: Context) -> Iterator[Issue]:
    existing = context.spec.network.existing
    zones_by_subnet: dict[str, str] = {}
    for zone, subnet in existing.subnets.items() if existing else ():
        if subnet in zones_by_subnet:
            yield Issue(
                (*context.path, "network", "existing", "subnets", zone),
                f"{subnet} is listed for {zones_by_subnet[subnet]} and for {zone}, but a subnet is in one zone",
                "Use each zone's own subnet: `aws ec2 describe-subnets` prints the zone of each.",
            )
        zones_by_subnet.setdefault(subnet, zone)


def _zones_of_eks(context: Context) -> Iterator[Issue]:
    existing = context.spec.network.existing
    if existing is None or context.spec.eks.existing is not None:
        return
    path: Path = (*context.path, "network", "existing")
    if stated_subnets := existing.control_plane_subnets:
        if len(set(stated_subnets)) < _ZONES_OF_EKS:
            yield Issue(
                (*path, "controlPlaneSubnets"),
                f"EKS requires subnets in {_ZONES_OF_EKS} zones, but `controlPlaneSubnets` has only "
                f"{stated_subnets[0]}",
                "Add a subnet in another zone, or remove `controlPlaneSubnets`.",
            )
    elif len(existing.subnets) < _ZONES_OF_EKS:
        yield Issue(
            (*path, "subnets"),
            f"EKS requires subnets in {_ZONES_OF_EKS} zones, but the network has one "
            f"({listing(sorted(existing.subnets))})",
            "Add a subnet in another zone (`controlPlaneSubnets`), or use an existing EKS cluster (`eks.existing`).",
        )


RULES = (
    Rule("NET001", "error", "CIDRs are valid, have no host bits, and don't overlap.", _VPC, _cidrs, waivable=False),
    Rule("NET002", "error", "A network without a NAT gateway sets `closed: true`.", _GUIDE, _egress),
    Rule("NET003", "error", "The network is either created or existing.", _CONTRACT, _one_network, waivable=False),
    Rule("NET004", "error", "Zones are in the region, and listed once.", _VPC, _zones, waivable=False),
    Rule(
        "NET005",
        "error",
        "`vpcCidr` is large enough for the subnets of gateways and control plane.",
        _EKS,
        _room,
        waivable=False,
    ),
    Rule("NET006", "error", "EKS clusters that hpkit creates have subnets in two zones.", _EKS, _zones_of_eks),
    Rule("NET007", "error", "Node ranges can be added to the VPC.", _RESTRICTIONS, _secondary_ranges),
    Rule("NET009", "error", "VPC endpoints are for services that support them.", _PRIVATELINK, _endpoints),
    Rule("NET010", "error", "Each zone of an existing network has its own subnet.", _VPC, _subnets_once),
    Rule("NET011", "error", "A VPC can use the ranges.", _VPC, _addresses_of_nodes),
    Rule("NET012", "warning", "Ranges don't overlap the range that SageMaker AI uses.", _VPC, _docker),
    Rule("NET013", "warning", "Settings of NAT gateways and endpoints have an effect.", _CONTRACT, _without_effect),
    Rule("NET014", "warning", "Ranges are private.", _VPC, _addresses_of_the_internet),
    Rule("NET015", "warning", "VPCs of different environments don't overlap.", _PEERING, _environments_apart),
)
