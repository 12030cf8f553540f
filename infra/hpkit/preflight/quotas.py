"""Service quotas, looked up by name: the account's value and usage, and the stack's need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.model import Plan
from hpkit.preflight.calls import (
    ALL_SUBNETS,
    COUNTED,
    EKS_CLUSTERS,
    INTERFACES,
    NAT_GATEWAYS,
    applied_quotas,
    default_quotas,
    eks_cluster,
    zone_name,
)
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.preflight.needs import (
    FlexibleNeed,
    count_registered,
    instance_needs,
    interface_need,
    interfaces_per_node,
    registered_groups,
    total_need,
    volume_need,
    zones_of_gateways,
)
from hpkit.preflight.usage import count_instances, count_own, ownership, running_groups

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

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
    """A stack's need of one quota, None for no limit; existing: the part that is used already."""

    service: str
    name: str
    need: int | None
    used: int | FailedCall = 0
    existing: int = 0
    note: str = ""
    at_least: bool = False

    @property
    def what(self) -> str:
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def new(self) -> int:
        """The need beyond what exists."""
        return max((self.need or 0) - self.existing, 0)

    @property
    def needed(self) -> str:
        if self.need is None:
            return "no limit"
        need = f"at least {self.need}" if self.at_least else str(self.need)
        if not self.need or not self.existing:
            return need
        return f"{need}, {self.new} of them new" if self.new else f"{need}, already in use"


@dataclass(frozen=True, slots=True)
class _Instances:
    """Running instances: in the account, and those of this stack's cluster without and with Karpenter's nodes."""

    used: int | FailedCall
    permanent: int
    maximum: int


class _Running:
    """The stack's need of instances, and the running instance groups, counted for one quota after the other."""

    def __init__(self, recording: Recording, responses: Responses) -> None:
        found = running_groups(recording.plan, responses)
        self.failure = found if isinstance(found, FailedCall) else None
        self.groups = [] if isinstance(found, FailedCall) else found
        self._autoscaled = {group.name for group in registered_groups(recording) if group.autoscaled}
        self.needs, self.flexible = instance_needs(recording)
        self._flexible_names = {need.group for need in self.flexible}

    def of_type(self, instance_type: str, *, spot: bool) -> _Instances:
        """Return those with one type. Flexible groups have a separate check, so only their usage is included."""
        key = (instance_type, spot)
        own = [group for group in self.groups if group.own and group.name not in self._flexible_names]
        fixed = [group for group in own if group.name not in self._autoscaled]
        used = self.failure or count_instances(self.groups)[key]
        return _Instances(used, count_instances(fixed)[key], count_instances(own)[key])

    def total(self, *, spot_only: bool = False) -> _Instances:
        """Return those with all types."""
        groups = [group for group in self.groups if group.spot or not spot_only]
        own = [group for group in groups if group.own]
        fixed = [group for group in own if group.name not in self._autoscaled]
        used = self.failure or count_instances(groups).total()
        return _Instances(used, count_instances(fixed).total(), count_instances(own).total())

    def of_group(self, name: str) -> Counter[tuple[str, bool]]:
        """Return the running instances of one group in this stack's cluster."""
        return count_instances(group for group in self.groups if group.own and group.name == name)


def check_quotas(recording: Recording, responses: Responses) -> Iterator[CheckResult]:
    """Check each quota that the stack uses: none for the governance of an existing cluster."""
    if recording.plan.spec.cluster.existing:
        return
    running = _Running(recording, responses)
    for demand in _demands(recording, responses, running):
        yield _check(recording.plan, responses, demand)
    for need in running.flexible:
        yield _check_flexible(responses, running, need)


def _demands(recording: Recording, responses: Responses, running: _Running) -> Iterator[_Demand]:
    for need in running.needs:
        name = _usage_name(need.instance_type, spot=need.spot)
        present = running.of_type(need.instance_type, spot=need.spot)
        yield from _with_karpenter(name, (need.permanent, need.maximum), present)
    total = running.total()
    own = replace(total, used=total.maximum)
    yield from _with_karpenter(_PER_CLUSTER, total_need(recording), own)
    yield from _with_karpenter(_ALL_CLUSTERS, total_need(recording), total)
    spot = total_need(recording, spot_only=True)
    if spot != (0, 0):
        yield from _with_karpenter(_ALL_SPOT, spot, running.total(spot_only=True))
    volume = volume_need(recording)
    if volume is not None:
        yield _Demand("sagemaker", _VOLUME, volume)
    yield from _cluster_demand(recording, responses)
    yield from _network_demands(recording, responses, running)


def _with_karpenter(name: str, need: tuple[int, int | None], present: _Instances) -> Iterator[_Demand]:
    """Yield the demand of permanent instances and, if Karpenter can add nodes, of the maximum."""
    permanent, maximum = need
    if permanent or maximum == permanent:
        yield _Demand("sagemaker", name, permanent, present.used, present.permanent)
    if maximum != permanent:
        yield _Demand("sagemaker", name, maximum, present.used, present.maximum, "with Karpenter")


def _network_demands(recording: Recording, responses: Responses, running: _Running) -> Iterator[_Demand]:
    network_exists = False
    for resource in COUNTED:
        registered = count_registered(recording, resource.type_token)
        if not registered:
            continue
        response = responses.of(resource.listing)
        if isinstance(response, FailedCall):
            yield _Demand(resource.service, resource.quota, registered, response)
            continue
        existing = count_own(recording.plan, responses, response[resource.member], registered=registered)
        network_exists = network_exists or existing > 0
        yield _Demand(resource.service, resource.quota, registered, len(response[resource.member]), existing)
    yield from _gateway_demands(recording, responses)
    need = interface_need(recording)
    nodes = count_instances(group for group in running.groups if group.own)
    existing = min(sum(count * interfaces_per_node(name) for (name, _), count in nodes.items()), need.nodes)
    existing += need.network if network_exists else 0
    existing += need.control_planes if _eks_exists(recording.plan, responses) else 0
    response = responses.of(INTERFACES)
    used = response if isinstance(response, FailedCall) else len(response["NetworkInterfaces"])
    name = "Network interfaces per Region"
    yield _Demand("vpc", name, need.total, used, existing, at_least=not need.complete)


def _gateway_demands(recording: Recording, responses: Responses) -> Iterator[_Demand]:
    """Yield the NAT gateways of each zone: the quota is one per zone, not per region."""
    name = "NAT gateways per Availability Zone"
    for zone, registered in sorted(zones_of_gateways(recording).items()):
        gateways, subnets = responses.of(NAT_GATEWAYS), responses.of(ALL_SUBNETS)
        failed = next((each for each in (gateways, subnets) if isinstance(each, FailedCall)), None)
        if failed is not None:
            yield _Demand("vpc", name, registered, failed, note=zone)
            continue
        inside = {
            each["SubnetId"] for each in subnets["Subnets"] if each["AvailabilityZone"] == zone_name(responses, zone)
        }
        there = [each for each in gateways["NatGateways"] if each.get("SubnetId") in inside]
        existing = count_own(recording.plan, responses, there, registered=registered)
        yield _Demand("vpc", name, registered, len(there), existing, note=zone)


def _cluster_demand(recording: Recording, responses: Responses) -> Iterator[_Demand]:
    registered = count_registered(recording, "aws:eks/cluster:Cluster")
    if registered:
        found = responses.of(EKS_CLUSTERS)
        used = found if isinstance(found, FailedCall) else len(found["clusters"])
        existing = registered if _eks_exists(recording.plan, responses) else 0
        yield _Demand("eks", "Clusters", registered, used, existing, note="EKS")


def _eks_exists(plan: Plan, responses: Responses) -> bool:
    found = responses.of(eks_cluster(plan))
    return not isinstance(found, FailedCall) and ownership(plan, responses, found["cluster"].get("tags", {})) != "other"


def _usage_name(instance_type: str, *, spot: bool) -> str:
    return f"{instance_type} for cluster {'spot instance ' if spot else ''}usage"


def _find(responses: Responses, service: str, name: str) -> _Quota | FailedCall | None:
    """Return the quota with a name, the account's own value before AWS's default; None if neither lists it.

    Without the account's own list, a default proves nothing: the account's value can be higher or lower.
    """
    applied = responses.of(applied_quotas(service))
    if isinstance(applied, FailedCall):
        return applied
    defaults = responses.of(default_quotas(service))
    row = _named(applied, name)
    if row is None and isinstance(defaults, FailedCall):
        return defaults
    row = row or _named(defaults, name)
    if row is None:
        return None
    return _Quota(service, name, int(row["Value"]), row["QuotaCode"], row.get("Adjustable", True))


def _named(listed: Any, name: str) -> dict[str, Any] | None:
    wanted = " ".join(name.lower().split())
    matches = (each for each in listed["Quotas"] if " ".join(each["QuotaName"].lower().split()) == wanted)
    return next(matches, None)


def _check(plan: Plan, responses: Responses, demand: _Demand) -> CheckResult:
    quota = _find(responses, demand.service, demand.name)
    if isinstance(quota, FailedCall):
        return call_failed(_AREA, demand.what, quota, needed=demand.needed)
    if quota is None:
        why = f"Service Quotas has no quota of this name for {demand.service} in {plan.spec.region}"
        fix = "Look for it in the Service Quotas console; AWS may have renamed it, or not offer the type there"
        return unknown(_AREA, demand.what, why=why, fix=fix, needed=demand.needed)
    used = demand.used
    limit = str(quota.value) if isinstance(used, FailedCall) or not used else f"{quota.value}, {used} used"
    if demand.need is None:
        why = "A NodePool has no limits that bound this"
        fix = "Add limits to the NodePool; otherwise Karpenter adds nodes until the quota is reached"
        return unknown(_AREA, demand.what, why=why, fix=fix, found=limit, needed=demand.needed)
    total = demand.new + (0 if isinstance(used, FailedCall) else used)
    # Existing resources need no additional quota, even if they exceed the quota's value.
    if demand.new and total > quota.value:
        return _too_small(plan, quota, demand, limit=limit, total=total)
    if isinstance(used, FailedCall):
        why = f"Its current usage isn't known: {used.action}: {used.code}: {used.message}"
        return unknown(_AREA, demand.what, why=why, fix=used.fix, found=limit, needed=demand.needed)
    return ok(_AREA, demand.what, found=limit, needed=demand.needed)


def _too_small(plan: Plan, quota: _Quota, demand: _Demand, *, limit: str, total: int) -> CheckResult:
    if not quota.adjustable:
        fix, command = f"This quota can't be raised by request: ask AWS support for {total}, or plan less", ""
    else:
        fix = f"Request {total} (for accelerators, AWS may take days), or reduce the stack"
        command = (
            "aws service-quotas request-service-quota-increase"
            f" --service-code {quota.service} --quota-code {quota.code} --desired-value {total}"
            f" --region {plan.spec.region}"
        )
    return missing(_AREA, demand.what, found=limit, needed=demand.needed, fix=fix, command=command)


def _check_flexible(responses: Responses, running: _Running, need: FlexibleNeed) -> CheckResult:
    """Check that the types of a flexible group together have enough quota, in addition to the groups of one type."""
    subject = f"quotas of all types of {need.group}, together"
    if running.failure is not None:
        return call_failed(_AREA, subject, running.failure, needed=str(need.count))
    existing = running.of_group(need.group)
    demand = _Demand("sagemaker", subject, need.count, existing=existing.total())
    fixed = {(each.instance_type, each.spot): each.permanent for each in running.needs}
    free, parts = 0, []
    for name in need.instance_types:
        quota = _find(responses, "sagemaker", _usage_name(name, spot=need.spot))
        if isinstance(quota, FailedCall):
            return call_failed(_AREA, subject, quota, needed=demand.needed)
        present = running.of_type(name, spot=need.spot)
        used = count_instances(running.groups)[name, need.spot]
        fixed_new = max(fixed.get((name, need.spot), 0) - present.permanent, 0)
        left = max((quota.value if quota else 0) - used - fixed_new, 0)
        free += left
        parts.append(f"{name} {left}")
    room = f"{free} ({', '.join(parts)})"
    if free < demand.new:
        names = ", ".join(f"`{_usage_name(name, spot=need.spot)}`" for name in need.instance_types)
        fix = f"Request {demand.new - free} more of any of {names}"
        return missing(_AREA, subject, found=room, needed=demand.needed, fix=fix)
    return ok(_AREA, subject, found=room, needed=demand.needed)
