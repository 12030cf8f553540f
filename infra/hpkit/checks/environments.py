"""Environments of one organization, compared with each other."""

import ipaddress
from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.network import Network
from hpkit.text.formatting import listing

__all__ = ["RULES", "vpc_ranges"]

_API = "SageMaker API: CreateCluster"
_PEERING = "Amazon VPC peering guide, unsupported configurations: overlapping CIDR blocks"


def _clusters_apart(context: Context) -> Iterator[Issue]:
    same = [
        name
        for name, other in context.organization.environments.items()
        if name < context.environment
        and (other.cluster.name, other.region) == (context.spec.cluster.name, context.spec.region)
        and not (other.account and context.spec.account and other.account != context.spec.account)
    ]
    if same:
        name = context.spec.cluster.name
        yield Issue(
            (*context.path, "cluster", "name"),
            f"{context.environment} and {listing(same)} both have a cluster {name} in {context.spec.region}; cluster "
            "names are unique in an account and region",
            f"Use `{name}-{context.environment}`, or give the environments different accounts.",
        )


def _environments_apart(context: Context) -> Iterator[Issue]:
    """Compare the VPC's ranges with those of the environments before this one in the file."""
    own = vpc_ranges(context.spec.network)
    shared: list[str] = []
    for name, other in context.organization.environments.items():
        if name == context.environment:
            break
        overlaps = sorted({str(mine) for mine in own for range_ in vpc_ranges(other.network) if mine.overlaps(range_)})
        if overlaps:
            shared.append(f"{name} ({listing(overlaps, 3)})")
    if shared:
        yield Issue(
            (*context.path, "network", "vpcCidr"),
            f"the VPC of {context.environment} shares addresses with {listing(shared)}; overlapping VPCs can't be "
            "peered or routed through a transit gateway or VPN",
            "Give each environment its own ranges. If they never need a connection, waive this rule and state the "
            "reason.",
        )


def vpc_ranges(network: Network) -> list[ipaddress.IPv4Network]:
    """Return the valid ranges of the VPC that the kit creates (NET001 reports others); none for an existing VPC."""
    if network.existing is not None:
        return []
    texts = [network.vpc_cidr, *(zone.node_cidr for zone in network.zones)]
    return [range_ for range_ in map(_range, texts) if range_ is not None]


def _range(cidr: str | None) -> ipaddress.IPv4Network | None:
    try:
        return None if cidr is None else ipaddress.IPv4Network(cidr)
    except ValueError:
        return None


RULES = (
    Rule("CLU029", "warning", "Cluster names are unique in a region.", _API, _clusters_apart),
    Rule("NET015", "warning", "VPCs of different environments don't overlap.", _PEERING, _environments_apart),
)  # fmt: skip
