"""Who can reach the Kubernetes API of an EKS cluster, by its endpoint's settings and security groups.

The public endpoint answers callers in publicAccessCidrs. The private endpoint answers callers inside the VPC or
connected with it, on port 443, if a security group of the control plane admits them. Outside the VPC, its name resolves
to public addresses while the cluster has a public endpoint. Source: Amazon EKS user guide, "Control network access to
cluster API server endpoint".

Routes aren't evaluated: a private address outside the VPC counts as connected with it.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any

from hpkit.plan.endpoint import address_within
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.ec2.rules import ranges_of

__all__ = ["admitted_address", "check_ranges", "why_unreachable"]

_HTTPS = 443
# RFC 1918 and RFC 6598: of networks that can be connected with a VPC.
_PRIVATE = [ipaddress.IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")]
_RESERVED = [
    *_PRIVATE,
    *(ipaddress.IPv4Network(each) for each in ("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")),
]

# Amazon EKS endpoints and quotas, "Public endpoint access CIDR ranges per cluster", which no account can raise.
_MOST_RANGES = 40


# Inferred from: https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html
def check_ranges(wanted: Record, *, code: str) -> None:
    """Reject publicAccessCidrs that aren't public, as EKS does (aws/aws-cdk issue 33176 has the message)."""
    cidrs = wanted.get("publicAccessCidrs") or []
    if len(cidrs) > _MOST_RANGES:
        raise ServiceError(code, f"publicAccessCidrs has {len(cidrs)} entries; a cluster takes at most {_MOST_RANGES}")
    if wrong := [cidr for cidr in cidrs if not _is_public(cidr)]:
        raise ServiceError(code, f"The following CIDRs are invalid in publicAccessCidrs: [{', '.join(wrong)}]")


def _is_public(cidr: str) -> bool:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError:
        return False
    return not any(network.subnet_of(block) for block in _RESERVED)


def why_unreachable(ctx: Context, cluster: Record, address: str) -> str:
    """Return why a caller at an address can't reach the cluster's API server, or ""."""
    config = cluster["resourcesVpcConfig"]
    vpc = ctx.backend.moto.backend("ec2", ctx.region).vpcs[config["vpcId"]]
    inside = _holds(ranges_of(vpc), address)
    if not inside and (config["endpointPublicAccess"] or not _holds(map(str, _PRIVATE), address)):
        return _from_the_internet(config, address)
    if not config["endpointPrivateAccess"]:
        return f"{address} is in the VPC, and the cluster has no private endpoint"
    groups = [config["clusterSecurityGroupId"], *config.get("securityGroupIds", [])]
    if any(_admits(rule, address) for rule in _rules(ctx, config["vpcId"], groups)):
        return ""
    return f"no security group of the control plane ({', '.join(groups)}) admits port {_HTTPS} from {address}"


def admitted_address(ctx: Context, cluster: Record) -> str:
    """Return an address from which the cluster's API server can be reached.

    If it can't be reached, the address is the VPC's first one, so that `why_unreachable` states what is missing. An
    example is a private endpoint whose security groups admit no range.
    """
    config = cluster["resourcesVpcConfig"]
    if config["endpointPublicAccess"]:
        return address_within(config["publicAccessCidrs"])
    vpc = ctx.backend.moto.backend("ec2", ctx.region).vpcs[config["vpcId"]]
    inside = address_within(ranges_of(vpc))
    groups = [config["clusterSecurityGroupId"], *config.get("securityGroupIds", [])]
    ranges = (rule.ip_range["CidrIp"] for rule in _rules(ctx, config["vpcId"], groups) if "CidrIp" in rule.ip_range)
    candidates = [inside, *map(address_within, map(str.split, ranges))]
    return next((each for each in candidates if not why_unreachable(ctx, cluster, each)), inside)


def _from_the_internet(config: Record, address: str) -> str:
    if not config["endpointPublicAccess"]:
        return f"{address} is on the internet, and the endpoint is private"
    ranges = config["publicAccessCidrs"]
    if _holds(ranges, address):
        return ""
    return f"{address} is not in publicAccessCidrs ({', '.join(ranges)})"


def _holds(ranges: Iterable[str], address: str) -> bool:
    one = ipaddress.IPv4Address(address)
    return any(one in ipaddress.IPv4Network(each) for each in ranges)


def _rules(ctx: Context, vpc_id: str, groups: Iterable[str]) -> Iterator[Any]:
    live_groups = ctx.backend.moto.backend("ec2", ctx.region).groups[vpc_id]
    for group in groups:
        if group in live_groups:
            yield from live_groups[group].ingress_rules


def _admits(rule: Any, address: str) -> bool:
    if str(rule.ip_protocol) not in ("-1", "tcp", "6"):
        return False
    if str(rule.ip_protocol) != "-1" and not int(rule.from_port or 0) <= _HTTPS <= int(rule.to_port or 0):
        return False
    # A rule for another group, or for IPv6, has no such range.
    return "CidrIp" in rule.ip_range and _holds([rule.ip_range["CidrIp"]], address)
