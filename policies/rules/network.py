"""Networks: no security group that lets the world in."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hpkit.plan.endpoint import world_ranges
from policies.model import UNKNOWN, Parameter, Policy, Resource, Results, Settings, Undecided, Violation

__all__ = ["POLICIES"]

_GROUPS: Final = ("aws:ec2/securityGroup:SecurityGroup", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")
_RULE: Final = "aws:ec2/securityGroupRule:SecurityGroupRule"
_INGRESS: Final = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_PORTS = Parameter(
    "publicPorts",
    "TCP ports that may be open to the world, one at a time.",
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65535}},
    [],
)


def _not_open(resource: Resource, settings: Settings) -> Results:
    for rule in _ingress(resource):
        sources = [UNKNOWN] if rule is UNKNOWN else _flat(rule)
        world = world_ranges([source for source in sources if isinstance(source, str)])
        if UNKNOWN in sources and not world:
            yield Undecided(f"{resource.name}: where an ingress rule lets in from is not known before the update")
            continue
        low, high = rule.get("fromPort"), rule.get("toPort")
        protocol = rule.get("protocol") or rule.get("ipProtocol")
        public = protocol == "tcp" and low == high and low in settings[_PORTS.name]
        if world and not public:
            ports = "all traffic" if protocol == "-1" else f"{protocol} {low}–{high}"
            yield Violation(
                f"{resource.name} lets {world[0]} in ({ports})",
                f"Name a range or a security group, or list the port in {_PORTS.name}.",
            )


def _ingress(resource: Resource) -> Iterable[Any]:
    if resource.type in _GROUPS:
        rules = resource.get_or_unknown("ingress", [])
        return [UNKNOWN] if rules is UNKNOWN else list(rules)
    if resource.type == _RULE and resource.get("type") != "ingress":
        return []
    return [resource.props]


def _flat(rule: Mapping[str, Any]) -> list[Any]:
    """Return the ranges that a rule names, in whichever of the three resources it stands."""
    found: list[Any] = []
    for key in ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6"):
        value = rule.get(key)
        found += value if isinstance(value, list) else [value]
    return found


POLICIES = (
    Policy(
        name="security-group-not-open",
        description="No security group is open to the world.",
        types=(*_GROUPS, _RULE, _INGRESS),
        validate=_not_open,
        parameters=(_PORTS,),
    ),
)
