"""Service quotas, looked up by name: what the account allows, uses already, and the plan needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hpkit.plan.model import Plan
from hpkit.preflight.calls import (
    ADDRESSES,
    GATEWAYS,
    INTERFACES,
    VPCS,
    applied_quotas,
    default_quotas,
)
from hpkit.preflight.model import ApiCall, CheckResult, FailedCall, Responses, call_failed, missing, ok, unknown
from hpkit.preflight.needs import FlexibleNeed, instance_needs, interface_need, total_need, volume_need
from hpkit.preflight.usage import has_own_cluster, instances_in_use, owns_network

__all__ = ["check_quotas"]

_AREA: Final = "quotas"
_PER_CLUSTER: Final = "Maximum number instances allowed per SageMaker HyperPod cluster"
_ALL_CLUSTERS: Final = "Total number of instances allowed across SageMaker HyperPod clusters"
_ALL_SPOT: Final = "Total number of Spot instances allowed across SageMaker HyperPod clusters"
_VOLUME: Final = "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance"


@dataclass(frozen=True, slots=True)
class _Quota:
    """A quota as Service Quotas lists it."""

    service: str
    name: str
    value: int
    code: str
    adjustable: bool


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a plan asks of one quota; used is what others take of it, need None is without bound."""

    service: str
    name: str
    need: int | None
    used: int | FailedCall = 0
    note: str = ""
    at_least: bool = False

    @property
    def what(self) -> str:
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def needed(self) -> str:
        if self.need is None:
            return "no limit"
        return f"at least {self.need}" if self.at_least else str(self.need)


def check_quotas(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Yield a row for each quota that the plan touches."""
    for demand in _demands(plan, responses):
        yield _row(plan, responses, demand)
    for need in instance_needs(plan)[1]:
        yield _flexible_row(plan, responses, need)


def _demands(plan: Plan, responses: Responses) -> Iterator[_Demand]:
    used = instances_in_use(plan, responses)
    for each in instance_needs(plan)[0]:
        taken = used if isinstance(used, FailedCall) else used.get((each.instance_type, each.spot), 0)
        name = _usage_name(each.instance_type, spot=each.spot)
        yield from _with_growth("sagemaker", name, (each.guaranteed, each.maximum), taken)
    everything = used if isinstance(used, FailedCall) else sum(used.values())
    spots = used if isinstance(used, FailedCall) else sum(count for (_, spot), count in used.items() if spot)
    yield from _with_growth("sagemaker", _PER_CLUSTER, total_need(plan), 0)
    yield from _with_growth("sagemaker", _ALL_CLUSTERS, total_need(plan), everything)
    if total_need(plan, spot_only=True) != (0, 0):
        yield from _with_growth("sagemaker", _ALL_SPOT, total_need(plan, spot_only=True), spots)
    volume = volume_need(plan)
    if volume is not None:
        yield _Demand("sagemaker", _VOLUME, volume)
    yield from _network_demands(plan, responses)


def _with_growth(service: str, name: str, need: tuple[int, int | None], used: int | FailedCall) -> Iterator[_Demand]:
    """Yield what must be there at once and, where Karpenter may add to it, what it can come to."""
    guaranteed, maximum = need
    if guaranteed or maximum == guaranteed:
        yield _Demand(service, name, guaranteed, used)
    if maximum != guaranteed:
        yield _Demand(service, name, maximum, used, "with Karpenter")


def _network_demands(plan: Plan, responses: Responses) -> Iterator[_Demand]:
    own = owns_network(plan, responses)
    if plan.network.vpc_id is None:
        new = 0 if own else 1
        yield _Demand("vpc", "VPCs per Region", new, _count(responses, VPCS, "Vpcs"))
        if plan.network.nat_gateways:
            gateways = _count(responses, GATEWAYS, "InternetGateways")
            yield _Demand("vpc", "Internet gateways per Region", new, gateways)
            addresses = _count(responses, ADDRESSES, "Addresses")
            yield _Demand("ec2", "EC2-VPC Elastic IPs", new * plan.network.nat_gateways, addresses)
    interfaces, whole = interface_need(plan)
    taken = _count(responses, INTERFACES, "NetworkInterfaces")
    # A stack that is there counts among the used ones.
    new = 0 if own or has_own_cluster(plan, responses) else interfaces
    yield _Demand("vpc", "Network interfaces per Region", new, taken, at_least=not whole)


def _count(responses: Responses, call: ApiCall, member: str) -> int | FailedCall:
    response = responses.of(call)
    return response if isinstance(response, FailedCall) else len(response[member])


def _usage_name(instance_type: str, *, spot: bool) -> str:
    return f"{instance_type} for cluster {'spot instance ' if spot else ''}usage"


def _find(responses: Responses, service: str, name: str) -> _Quota | FailedCall | None:
    """Return the quota of a name, the account's own value before AWS's default; None where neither lists it.

    Without the account's own list a default proves nothing: the account may have been given more, or less.
    """
    applied = responses.of(applied_quotas(service))
    if isinstance(applied, FailedCall):
        return applied
    defaults = responses.of(default_quotas(service))
    found = _named(applied, name)
    if found is None and isinstance(defaults, FailedCall):
        return defaults
    found = found or _named(defaults, name)
    if found is None:
        return None
    return _Quota(service, name, int(found["Value"]), found["QuotaCode"], found.get("Adjustable", True))


def _named(listed: Any, name: str) -> dict[str, Any] | None:
    wanted = " ".join(name.lower().split())
    matches = (each for each in listed["Quotas"] if " ".join(each["QuotaName"].lower().split()) == wanted)
    return next(matches, None)


def _row(plan: Plan, responses: Responses, demand: _Demand) -> CheckResult:
    quota = _find(responses, demand.service, demand.name)
    if isinstance(quota, FailedCall):
        return call_failed(_AREA, demand.what, quota, needed=demand.needed)
    if quota is None:
        why = f"Service Quotas lists no quota of this name for {demand.service} in {plan.spec.region}"
        fix = "Look for it in the Service Quotas console; AWS may have renamed it, or not offer the type there"
        return unknown(_AREA, demand.what, why=why, fix=fix, needed=demand.needed)
    used = demand.used
    found = str(quota.value) if isinstance(used, FailedCall) or not used else f"{quota.value}, {used} used"
    if demand.need is None:
        why = "A NodePool has no limit that bounds this"
        fix = "Give the NodePool limits; Karpenter otherwise adds nodes until the quota refuses"
        return unknown(_AREA, demand.what, why=why, fix=fix, found=found, needed=demand.needed)
    known = 0 if isinstance(used, FailedCall) else used
    if known + demand.need > quota.value:
        return _too_small(plan, quota, demand, found=found, total=known + demand.need)
    if isinstance(used, FailedCall):
        why = f"How much of it is used is not known: {used.action}: {used.code}: {used.message}"
        return unknown(_AREA, demand.what, why=why, fix=used.fix, found=found, needed=demand.needed)
    return ok(_AREA, demand.what, found=found, needed=demand.needed)


def _too_small(plan: Plan, quota: _Quota, demand: _Demand, *, found: str, total: int) -> CheckResult:
    if not quota.adjustable:
        fix, command = f"This quota cannot be raised by request: ask AWS support for {total}, or plan less", ""
    else:
        fix = f"Ask for {total} (AWS may take days for accelerators), or plan less"
        command = (
            "aws service-quotas request-service-quota-increase"
            f" --service-code {quota.service} --quota-code {quota.code} --desired-value {total}"
            f" --region {plan.spec.region}"
        )
    return missing(_AREA, demand.what, found=found, needed=demand.needed, fix=fix, command=command)


def _flexible_row(plan: Plan, responses: Responses, need: FlexibleNeed) -> CheckResult:
    """Say whether the types of a flexible group have room for its count together, beside the groups of one type."""
    what = f"quotas of all types of {need.group}, together"
    used = instances_in_use(plan, responses)
    if isinstance(used, FailedCall):
        return call_failed(_AREA, what, used, needed=str(need.count))
    room, parts = 0, []
    taken = {(each.instance_type, each.spot): each.guaranteed for each in instance_needs(plan)[0]}
    for name in need.instance_types:
        quota = _find(responses, "sagemaker", _usage_name(name, spot=need.spot))
        if isinstance(quota, FailedCall):
            return call_failed(_AREA, what, quota, needed=str(need.count))
        left = (quota.value if quota else 0) - used.get((name, need.spot), 0) - taken.get((name, need.spot), 0)
        room += max(left, 0)
        parts.append(f"{name} {max(left, 0)}")
    found = f"{room} ({', '.join(parts)})"
    if room < need.count:
        names = ", ".join(f"`{_usage_name(name, spot=need.spot)}`" for name in need.instance_types)
        fix = f"Ask for {need.count - room} more of any of {names}"
        return missing(_AREA, what, found=found, needed=str(need.count), fix=fix)
    return ok(_AREA, what, found=found, needed=str(need.count))
