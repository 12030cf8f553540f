"""NET and EKS: addresses, the way out, the control plane. ACC: who may do what."""

import ipaddress
from collections.abc import Iterator

from hpkit.catalog import kubernetes_versions
from hpkit.checks.registry import Context, Issue, Rule, listing
from hpkit.config.document import Path

__all__ = ["RULES"]

_VPC = "Amazon VPC user guide, CIDR blocks"
_EKS = "Amazon EKS user guide, cluster endpoint access"
_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"


def _ranges(context: Context) -> Iterator[tuple[str, str, Path]]:
    network = context.spec.network
    base: Path = (*context.path, "network")
    if network.vpc_cidr is not None:
        yield "vpcCidr", network.vpc_cidr, (*base, "vpcCidr")
    for index, zone in enumerate(network.zones):
        yield f"nodeCidr of {zone.availability_zone}", zone.node_cidr, (*base, "zones", index, "nodeCidr")
    for index, cidr in enumerate(context.spec.eks.endpoint.public_cidrs):
        yield "publicCidrs", cidr, (*context.path, "eks", "endpoint", "publicCidrs", index)


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
        if what == "publicCidrs":
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


def _way_out(context: Context) -> Iterator[Issue]:
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


def _open_endpoint(context: Context) -> Iterator[Issue]:
    endpoint, path = context.spec.eks.endpoint, (*context.path, "eks", "endpoint")
    if endpoint.public and not endpoint.public_cidrs:
        yield Issue(
            (*path, "public"),
            "the Kubernetes API is public without publicCidrs, which EKS takes as 0.0.0.0/0",
            "List the ranges that may reach it, or remove `public`.",
        )
    for index, cidr in enumerate(endpoint.public_cidrs):
        if endpoint.public and cidr.strip().endswith("/0"):
            yield Issue(
                (*path, "publicCidrs", index),
                f"the Kubernetes API is open to the world ({cidr})",
                "List the ranges of your offices or VPN.",
            )
    if endpoint.public_cidrs and not endpoint.public:
        yield Issue(
            (*path, "publicCidrs"),
            f"{len(endpoint.public_cidrs)} publicCidrs do nothing while `public` is false",
            "Write `public: true`, or remove publicCidrs.",
            "warning",
        )


def _kubernetes(context: Context) -> Iterator[Issue]:
    offered = kubernetes_versions()
    version = context.spec.eks.version
    if version not in offered:
        yield Issue(
            (*context.path, "eks", "version"),
            f"HyperPod on EKS does not offer Kubernetes {version} (offered: {listing(list(offered), 20)})",
            f'Write "{offered[-1]}" or another of them.',
        )


def _roles(context: Context) -> Iterator[Issue]:
    administrators = set(context.spec.eks.administrators)
    teams_of: dict[str, list[str]] = {}
    for index, team in enumerate(context.organization.teams):
        for position, member in enumerate(team.members):
            path: Path = ("teams", index, "members", position)
            if member in administrators:
                yield Issue(
                    path,
                    f"{member} is a data scientist of {team.name} and an administrator of {context.environment}",
                    "Use two roles: an administrator passes every limit of the team.",
                )
            teams_of.setdefault(member, []).append(team.name)
            if len(set(teams_of[member])) > 1 and teams_of[member].index(team.name) == len(teams_of[member]) - 1:
                yield Issue(
                    path,
                    f"{member} is in the teams {listing(sorted(set(teams_of[member])))}",
                    "Give each team a role of its own, so that work is counted where it belongs.",
                )


RULES = (
    Rule("NET001", "error", "CIDRs are valid, without host bits, and do not overlap.", _VPC, _cidrs),
    Rule("NET002", "error", "A network without NAT gateway is closed, and says so.", _GUIDE, _way_out),
    Rule("NET003", "error", "The network is either created or existing.", "Config contract", _one_network),
    Rule("NET004", "error", "Zones are of the region, each once.", _VPC, _zones),
    Rule("EKS001", "error", "The public endpoint is not open to the world.", _EKS, _open_endpoint),
    Rule("EKS002", "error", "The Kubernetes version is one that HyperPod on EKS offers.", _GUIDE, _kubernetes),
    Rule("ACC001", "warning", "A data scientist's role is in one team, and administers nothing.", _GUIDE, _roles),
)  # fmt: skip
