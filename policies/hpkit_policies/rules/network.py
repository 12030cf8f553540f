"""Networks: no security group is open to the internet, by one rule or by all rules together."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.plan.endpoint import world_ranges
from hpkit.text.formatting import listing
from hpkit_policies.model import UNKNOWN, Parameter, Policy, Resource, Results, Settings, Undecided, Violation, of_type

__all__ = ["CHECKED", "POLICIES"]

_GROUPS: Final = ("aws:ec2/securityGroup:SecurityGroup", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")
_RULE: Final = "aws:ec2/securityGroupRule:SecurityGroupRule"
_INGRESS: Final = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_RANGES: Final = ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6")
_PREFIX_LIST: Final = "aws:ec2/managedPrefixList:ManagedPrefixList"
_PREFIX_LIST_ENTRY: Final = "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry"
# Types of networks that these policies check.
CHECKED: Final = (*_GROUPS, _RULE, _INGRESS, _PREFIX_LIST, _PREFIX_LIST_ENTRY)
# Inputs with sources other than ranges, in any of the three resource types.
_PREFIX_LISTS: Final = ("prefixListIds", "prefixListId")
_GROUP_SOURCES: Final = ("securityGroups", "sourceSecurityGroupId", "referencedSecurityGroupId")
# EC2 user guide, security group rules: a group of a peered VPC is written with its account.
_OF_ANOTHER_ACCOUNT: Final = re.compile(r"\d{12}/sg-\w+")
_SOURCES = Parameter(
    "sources",
    "Prefix lists (pl-…) and security groups (sg-…, prefixed with their account) of other accounts that rules may use.",
)
_PORTS = Parameter(
    "publicPorts",
    "TCP ports that may be open to the whole internet, as single ports.",
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65535}},
    [],
)


def _not_open(resource: Resource, settings: Settings) -> Results:
    for rule in _ingress(resource):
        sources = [UNKNOWN] if rule is UNKNOWN else _flat(rule)
        world = world_ranges([source for source in sources if isinstance(source, str)])
        if UNKNOWN in sources and not world:
            yield Undecided(f"`{resource.name}`: the source of an ingress rule isn't known before the update")
            continue
        low, high = rule.get("fromPort"), rule.get("toPort")
        protocol = rule.get("protocol") or rule.get("ipProtocol")
        public = protocol == "tcp" and low == high and low in settings[_PORTS.name]
        if world and not public:
            ports = "all traffic" if protocol == "-1" else f"{protocol} {low}–{high}"
            yield Violation(
                f"`{resource.name}` allows ingress from {world[0]} ({ports})",
                f"Use a range or a security group as the source, or list the port in `{_PORTS.name}`.",
            )


def _ingress(resource: Resource) -> Iterable[Any]:
    if resource.type in _GROUPS:
        rules = resource.get_or_unknown("ingress", [])
        return [UNKNOWN] if rules is UNKNOWN else list(rules)
    if resource.type == _RULE and resource.get("type") != "ingress":
        return []
    return [resource.props]


def _flat(rule: Mapping[str, Any], keys: Sequence[str] = _RANGES) -> list[Any]:
    """Return the sources in a rule, in any of the three resource types: ranges, if there is nothing else."""
    sources: list[Any] = []
    for key in keys:
        value = rule.get(key)
        sources += value if isinstance(value, list) else [value]
    return sources


def _not_open_in_parts(resources: Sequence[Resource], settings: Settings) -> Results:
    """Check what single rules don't show.

    Prefix lists, other accounts' groups, and the ranges of all rules of a group.
    """
    ranges: dict[str, list[str]] = {}
    last: dict[str, Resource] = {}
    for resource in of_type(resources, *_GROUPS, _RULE, _INGRESS):
        for rule in _known_ingress(resource):
            sources = [each for each in _flat(rule, _GROUP_SOURCES) if isinstance(each, str)]
            for source in set(sources) - set(settings[_SOURCES.name]):
                if _OF_ANOTHER_ACCOUNT.fullmatch(source):
                    yield Violation(
                        f"`{resource.name}` allows ingress from {source}, a security group of another account",
                        f"Use a range, or list it in `{_SOURCES.name}`.",
                        resource,
                    )
            listed = [each for each in _flat(rule, _PREFIX_LISTS) if each and each not in settings[_SOURCES.name]]
            entries = list(_entries(resource, listed, resources)) if listed else []
            yield from (each for each in entries if not isinstance(each, str))
            own = [each for each in _flat(rule) if isinstance(each, str)]
            # security-group-not-open checks a rule that is open by itself, and has the list of allowed ports.
            if not world_ranges(own):
                group = _group_id(resource)
                ranges.setdefault(group, []).extend([*own, *(each for each in entries if isinstance(each, str))])
                last[group] = resource
    for group, cidrs in ranges.items():
        world = world_ranges(cidrs)
        if world:
            yield Violation(
                f"the rules of a security group, of which `{last[group].name}` is the last, together allow ingress "
                f"from {listing(world)}",
                "Use fewer and smaller ranges.",
                last[group],
            )


def _known_ingress(resource: Resource) -> list[Mapping[str, Any]]:
    """Return the known ingress rules; security-group-not-open reports the unknown ones."""
    if resource.type == _RULE and resource.get_or_unknown("type") == "egress":
        return []
    rules = resource.get_or_unknown("ingress", []) if resource.type in _GROUPS else [resource.props]
    return [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []


def _group_id(resource: Resource) -> str:
    """Return the identity of a rule's group: the source of its ID, or else the ID."""
    if resource.type in _GROUPS:
        return resource.urn
    sources = resource.property_dependencies.get("securityGroupId", ())
    return sources[0] if sources else str(resource.get_or_unknown("securityGroupId"))


def _entries(
    resource: Resource, listed: Sequence[Any], resources: Sequence[Resource]
) -> Iterator[str | Violation | Undecided]:
    """Yield the ranges of the prefix lists in a rule; a list outside the stack could contain any range."""
    sources = {urn for key in (*_PREFIX_LISTS, "ingress") for urn in resource.property_dependencies.get(key, ())}
    lists = [
        prefix_list
        for prefix_list in of_type(resources, _PREFIX_LIST)
        if prefix_list.urn in sources
        or prefix_list.get_or_unknown("id") in {name for name in listed if isinstance(name, str)}
    ]
    if not lists:
        yield Violation(
            f"`{resource.name}` allows ingress from a prefix list "
            f"({listed[0] if isinstance(listed[0], str) else 'of others'}) whose ranges this stack doesn't define",
            f"Use its ranges, create the list in this stack, or list its ID in `{_SOURCES.name}`.",
            resource,
        )
    for prefix_list in lists:
        entries = prefix_list.get_or_unknown("entries", [])
        single = [
            entry
            for entry in of_type(resources, _PREFIX_LIST_ENTRY)
            if prefix_list.urn in entry.property_dependencies.get("prefixListId", ())
            or entry.get_or_unknown("prefixListId") == prefix_list.get_or_unknown("id", "")
        ]
        cidrs = (
            [UNKNOWN] if entries is UNKNOWN else [entry.get("cidr") for entry in entries if isinstance(entry, Mapping)]
        )
        cidrs += [entry.get_or_unknown("cidr") for entry in single]
        yield from (cidr for cidr in cidrs if isinstance(cidr, str))
        if UNKNOWN in cidrs:
            yield Undecided(f"`{prefix_list.name}`: its ranges aren't fully known before the update", resource)


POLICIES = (
    Policy(
        name="security-group-sources-named",
        description="Security groups aren't open to the whole internet by their combined rules or a prefix list, or "
        "open to a group of another account.",
        validate_stack=_not_open_in_parts,
        parameters=(_SOURCES,),
    ),
    Policy(
        name="security-group-not-open",
        description="Security groups aren't open to the whole internet.",
        types=(*_GROUPS, _RULE, _INGRESS),
        validate=_not_open,
        parameters=(_PORTS,),
    ),
)
