"""Availability zones and what EC2 offers in them, and whether existing subnets have enough free addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hpkit.catalog import is_zone_id
from hpkit.checks.instance_groups import addresses_needed
from hpkit.checks.rule import Context
from hpkit.clients.calls import FailedCall, Responses
from hpkit.config.models.organization import Organization
from hpkit.plan.existing import efa_security_groups, overridden_places
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan, ZonePlan
from hpkit.preflight.calls import ZONES, endpoint_services, offerings, security_groups, subnets, zone_name
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.preflight.needs import interface_endpoints
from hpkit.preflight.usage import live_cluster, without_running
from hpkit.text.formatting import listing

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = ["check_endpoints", "check_network", "check_zones"]

_ZONES: Final = "zones"
_NETWORK: Final = "network"
_CONTROL_PLANE_ZONES: Final = 2
_ELSEWHERE: Final = "HyperPod may have capacity in zones that EC2 doesn't list; ask AWS support"


def check_zones(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check the zones, and for each group whether EC2 offers its types there."""
    wanted = {zone.availability_zone for zone in plan.network.zones}
    wanted |= {zone for group in plan.own_groups for zone in group.zones}
    yield from (_zone(plan, responses, name) for name in sorted(wanted))
    yield from (_offered(plan, responses, group) for group in plan.own_groups if group.spec.types)


def check_endpoints(recording: Recording, responses: Responses) -> Iterator[CheckResult]:
    """Check that each interface endpoint's service is offered in the zones of the endpoint's subnets.

    Source: AWS PrivateLink guide, "Access an AWS service using an interface VPC endpoint": a subnet's zone must be one
    that the service supports, as DescribeVpcEndpointServices lists them.
    """
    endpoints = interface_endpoints(recording)
    response = responses.of(endpoint_services(recording)) if endpoints else {"ServiceDetails": []}
    if isinstance(response, FailedCall):
        yield call_failed(_NETWORK, "zones of VPC endpoints", response)
        return
    zones_by_service = {
        each["ServiceName"]: set(each.get("AvailabilityZones", ())) for each in response["ServiceDetails"]
    }
    for service, zones in endpoints:
        subject, needed = f"VPC endpoint {service}", f"in {listing(list(zones))}"
        offered = zones_by_service.get(service)
        if offered is None:
            fix = f"Remove it from network.endpoints; {recording.plan.spec.region} doesn't have this endpoint service"
            yield missing(_NETWORK, subject, found="missing", needed=needed, fix=fix)
        elif lacking := sorted(zone for zone in zones if zone_name(responses, zone) not in offered):
            fix = f"Use another zone than {listing(lacking)} in network.zones, or remove the service from endpoints"
            yield missing(_NETWORK, subject, found=f"in {_names(offered)}", needed=needed, fix=fix)
        else:
            yield ok(_NETWORK, subject, found=f"in {_names(offered)}", needed=needed)


def check_network(organization: Organization, plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check the subnets and security groups of an existing network; rule CLU002 checks the size of a new one."""
    existing = plan.spec.network.existing
    if existing is None:
        return
    context = Context(organization, plan.environment, without_running(plan, responses))
    yield from (_subnet(context, responses, zone) for zone in plan.network.zones)
    if plan.spec.eks.existing is None:
        yield _control_plane_zones(plan)
    own_subnets, own_groups = overridden_places(plan)
    yield from (_override(plan, responses, subnet) for subnet in own_subnets)
    response = responses.of(security_groups(plan))
    for group in dict.fromkeys([*existing.security_group_ids, *own_groups]):
        yield _security_group(response, group, existing.vpc_id)
    if not isinstance(response, FailedCall):
        known = {each["GroupId"]: each for each in response["SecurityGroups"]}
        for ids, names in _users_of_efa(plan).items():
            yield _efa(plan, [known[each] for each in ids if each in known], names)


def _zone(plan: Plan, responses: Responses, name: str) -> CheckResult:
    subject = f"zone {name}"
    response = responses.of(ZONES)
    if isinstance(response, FailedCall):
        return call_failed(_ZONES, subject, response, needed="available")
    zones = {zone["ZoneName"]: zone for zone in response["AvailabilityZones"]}
    # A file has only names or only IDs.
    given = "ZoneId" if is_zone_id(name) else "ZoneName"
    usable = sorted(found.get(given, zone) for zone, found in zones.items() if _is_usable(found))
    name = zone_name(responses, name)
    if name not in zones:
        fix = f"Choose a zone that the account has in {plan.spec.region}: {listing(usable)}"
        return missing(_ZONES, subject, found="missing", needed="available", fix=fix)
    if not _is_usable(zones[name]):
        state = zones[name]["State"]
        state = zones[name].get("OptInStatus", state) if state == "available" else state
        fix = f"Choose one of {listing(usable)}, or opt in to it"
        return missing(_ZONES, subject, found=state, needed="available", fix=fix)
    return ok(_ZONES, subject, found="available", needed="available")


def _is_usable(zone: dict[str, Any]) -> bool:
    return zone["State"] == "available" and zone.get("OptInStatus") != "not-opted-in"


def _offered(plan: Plan, responses: Responses, group: GroupPlan | RestrictedGroupPlan) -> CheckResult:
    """Check that EC2 offers one of a group's types in one of its zones, which is all that the group needs."""
    types = tuple(dict.fromkeys(group.spec.types))
    subject = f"EC2 offers the type of {group.spec.name}"
    needed = f"{listing(list(types))} in {listing(list(group.zones)) or 'any zone'}"
    response = responses.of(offerings(plan))
    if isinstance(response, FailedCall):
        return call_failed(_ZONES, subject, response, needed=needed)
    zones_by_type: dict[str, set[str]] = {}
    for offer in response["InstanceTypeOfferings"]:
        zones_by_type.setdefault(f"ml.{offer['InstanceType']}", set()).add(offer["Location"])
    own = {zone_name(responses, zone) for zone in group.zones}
    here = [f"{name} in {_names(found)}" for name in types if (found := zones_by_type.get(name, set()) & own)]
    if here:
        return ok(_ZONES, subject, found=listing(here), needed=needed)
    others = [f"{name} in {_names(zones_by_type[name])}" for name in types if name in zones_by_type]
    if not others:
        why = f"EC2 doesn't list it in {plan.spec.region}; HyperPod may still have it"
        fix = "Ask AWS support whether HyperPod has it there, or choose another type or region"
        return unknown(_ZONES, subject, why=why, fix=fix, found=f"nowhere in {plan.spec.region}", needed=needed)
    fix = f"Move the group (availabilityZone) and give the zone a subnet. {_ELSEWHERE}"
    return missing(_ZONES, subject, found=listing(others), needed=needed, fix=fix)


def _subnet(context: Context, responses: Responses, zone: ZonePlan) -> CheckResult:
    plan, vpc = context.plan, context.plan.network.vpc_id
    name = zone.availability_zone
    # Addresses that nodes and pods will use don't belong to registered resources; the plan has their maximum.
    need, parts, of_unknown = addresses_needed(context, name)
    subject = f"subnet {zone.subnet_id}"
    live = live_cluster(plan, responses) is not None
    needed = f"{need} addresses free in {name}" + (" for new nodes" if live else "")
    response = responses.of(subnets(plan))
    if isinstance(response, FailedCall):
        return call_failed(_NETWORK, subject, response, needed=needed)
    subnet = next((each for each in response["Subnets"] if each["SubnetId"] == zone.subnet_id), None)
    if subnet is None:
        fix = "Set network.existing.subnets to subnets of this account and region"
        return missing(_NETWORK, subject, found="missing", needed=needed, fix=fix)
    if subnet["VpcId"] != vpc or subnet["AvailabilityZone"] != zone_name(responses, name):
        where = f"in {subnet['VpcId']}, {subnet['AvailabilityZone']}"
        fix = f"Use a subnet of {vpc} in {name}; HyperPod and EKS share one VPC"
        return missing(_NETWORK, subject, found=where, needed=f"in {vpc}, {name}", fix=fix)
    free = subnet["AvailableIpAddressCount"]
    if free < need and live:
        why = (
            "Karpenter's nodes in this stack already hold some of the needed addresses, and terminating nodes free "
            "others; neither is counted"
        )
        fix = "Compare with the subnet's network interfaces before you add nodes"
        return unknown(_NETWORK, subject, why=why, fix=fix, found=f"{free} free", needed=needed)
    if free < need:
        fix = f"Use a larger subnet, or plan less; a subnet can't grow. Needed for {listing(parts)}"
        return missing(_NETWORK, subject, found=f"{free} free", needed=needed, fix=fix)
    if of_unknown:
        nodes = listing([f"{count} × {each}" for each, count in sorted(of_unknown.items())])
        why = f"The catalog doesn't know how many addresses {nodes} use"
        fix = "Reserve 81 addresses per node, the largest number that AWS documents"
        return unknown(_NETWORK, subject, why=why, fix=fix, found=f"{free} free", needed=f"at least {needed}")
    return ok(_NETWORK, subject, found=f"{free} free", needed=needed)


def _control_plane_zones(plan: Plan) -> CheckResult:
    """Check that an existing network has the two zones that a new EKS cluster needs."""
    subject, zones = "zones for the EKS control plane", [zone.availability_zone for zone in plan.network.zones]
    if len(zones) < _CONTROL_PLANE_ZONES:
        fix = "Add a subnet of another zone to network.existing.subnets; EKS requires subnets in at least two zones"
        return missing(_NETWORK, subject, found=listing(zones), needed="two", fix=fix)
    return ok(_NETWORK, subject, found=listing(zones), needed="two")


def _security_group(response: Any, group: str, vpc: str) -> CheckResult:
    subject, needed = f"security group {group}", f"in {vpc}"
    if isinstance(response, FailedCall):
        return call_failed(_NETWORK, subject, response, needed=needed)
    description = next((each for each in response["SecurityGroups"] if each["GroupId"] == group), None)
    if description is None or description["VpcId"] != vpc:
        fix = f"Set network.existing.securityGroupIds to a security group of {vpc}"
        where = "missing" if description is None else f"in {description['VpcId']}"
        return missing(_NETWORK, subject, found=where, needed=needed, fix=fix)
    return ok(_NETWORK, subject, found=needed, needed=needed)


def _override(plan: Plan, responses: Responses, subnet_id: str) -> CheckResult:
    """Check a subnet of `overrideVpcConfig`: a cluster and all its groups are in one VPC."""
    vpc = plan.network.vpc_id or ""
    subject, needed = f"subnet {subnet_id} of `overrideVpcConfig`", f"in {vpc}"
    response = responses.of(subnets(plan))
    if isinstance(response, FailedCall):
        return call_failed(_NETWORK, subject, response, needed=needed)
    found = next((f"in {each['VpcId']}" for each in response["Subnets"] if each["SubnetId"] == subnet_id), "missing")
    if found != needed:
        fix = f"Use subnets of {vpc} in `overrideVpcConfig`; HyperPod and EKS share one VPC"
        return missing(_NETWORK, subject, found=found, needed=needed, fix=fix)
    return ok(_NETWORK, subject, found=found, needed=needed)


def _users_of_efa(plan: Plan) -> dict[tuple[str, ...], list[str]]:
    users: dict[tuple[str, ...], list[str]] = {}
    for name, ids in efa_security_groups(plan).items():
        users.setdefault(ids, []).append(name)
    return users


def _efa(plan: Plan, groups: Sequence[dict[str, Any]], names: Sequence[str]) -> CheckResult:
    """Check that one of some security groups allows all traffic to and from itself.

    A rule for 0.0.0.0/0 isn't enough. Source: SageMaker HyperPod developer guide, "Setting up SageMaker HyperPod with a
    custom Amazon VPC", EFA; EC2 user guide, "Prepare an EFA-enabled security group".
    """
    subject = f"EFA of {listing(list(names))}"
    needed = "a security group with all traffic to and from itself"
    lacking = {each["GroupId"]: _lacking_rules(each) for each in groups}
    complete = [name for name, rules in lacking.items() if not rules]
    if complete or not lacking:
        return ok(_NETWORK, subject, found=listing(complete), needed=needed)
    group, rules = min(lacking.items(), key=lambda each: len(each[1]))
    command = " && ".join(
        f"aws ec2 authorize-security-group-{rule} --region {plan.spec.region} --group-id {group} "
        f"--ip-permissions 'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={group}}}]'"
        for rule in rules
    )
    found = f"{group} has no {' or '.join(rules)} rule for itself"
    fix = "Add the rules; a rule for an address range isn't enough, because EFA's traffic has no IP addresses"
    return missing(_NETWORK, subject, found=found, needed=needed, fix=fix, command=command)


def _lacking_rules(group: dict[str, Any]) -> list[str]:
    """Return the directions in which a security group doesn't allow all traffic with itself."""
    return [
        direction
        for direction, rules in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress"))
        if not any(
            rule["IpProtocol"] == "-1"
            and any(pair.get("GroupId") == group["GroupId"] for pair in rule.get("UserIdGroupPairs", ()))
            for rule in group.get(rules, ())
        )
    ]


def _names(zones: Iterable[str]) -> str:
    return listing(sorted(zones))
