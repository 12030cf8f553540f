"""All quota arithmetic, in exact numbers.

The validator, the policies and the simulator use it. It knows instance types and quota resources, but no files or
clouds. Amounts are integers or fractions, never floats, so sums are exact.

Sources: SageMaker HyperPod developer guide, task governance policies (pro-rata fill, lending and borrowing);
Karpenter's documentation (limits of a NodePool).
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Final

from hpkit.catalog import (
    DEVICE_RESOURCES,
    EFA,
    Amounts,
    InstanceType,
    amounts_of_instances,
    amounts_of_part,
    countable_type,
)
from hpkit.plan.model import Partition, QuotaResource, TeamPlan, TypeCapacity
from hpkit.text.document import NUMBER
from hpkit.text.formatting import amount as written
from hpkit.text.formatting import plural

__all__ = [
    "ARCHITECTURE_KEY",
    "DIMENSIONS",
    "INSTANCE_TYPE_KEY",
    "LIMIT_RESOURCES",
    "POD_RESOURCES",
    "Amount",
    "GroupCapacity",
    "Overrun",
    "Partition",
    "PoolCapacity",
    "QuotaResource",
    "TeamShare",
    "TypeCapacity",
    "TypeQuota",
    "Usage",
    "amounts_by_type",
    "amounts_of",
    "apportion",
    "as_instances",
    "borrow_limit",
    "borrow_percent",
    "dimensions_of",
    "is_resource",
    "limits_of",
    "matching_types",
    "overruns",
    "pods_on",
    "pool_instances",
    "quantity",
    "quota_table",
    "reserve",
    "rounding",
    "type_capacities",
    "unit_problem",
    "usage",
]

Amount = Annotated[int | Fraction, NUMBER]

# Order of every vector in this module. None in a vector means unknown.
DIMENSIONS: Final = ("instances", "accelerators", "vCPU", "memory GiB", "MIG slices")
Vector = tuple[Amount, Amount | None, Amount | None, Amount | None, Amount | None]

# Keys of a NodePool's requirements that decide which instance types it may add.
INSTANCE_TYPE_KEY: Final = "node.kubernetes.io/instance-type"
ARCHITECTURE_KEY: Final = "kubernetes.io/arch"
# Resources that pods request and nodes have, from Kubernetes and from device plugins.
POD_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", *DEVICE_RESOURCES, EFA)
# Karpenter counts pods and nodes as well.
LIMIT_RESOURCES: Final = (*POD_RESOURCES, "pods", "nodes")
_RESOURCE_FAMILIES: Final = ("nvidia.com/mig-", "hugepages-")

_DEFAULT_BORROW_LIMIT: Final = 50
_LEAST_BYTES: Final = 2**20
# Kubernetes allows at most two digits of exponent, and longer ones would use all memory.
_DIGITS: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_SUFFIXES: Final[Mapping[str, Amount]] = {
    "": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


def quantity(text: str) -> Amount:
    """Return a Kubernetes quantity (`16`, `500m`, `64Gi`) as an exact number.

    Raises ValueError for text that is none.
    """
    digits = text.rstrip("numkMGTPEi")
    suffix = text[len(digits) :]
    if suffix not in _SUFFIXES or not _DIGITS.fullmatch(digits):
        raise ValueError(f"{text!r} isn't a Kubernetes quantity")
    value = Fraction(digits) * _SUFFIXES[suffix]
    return value.numerator if value.denominator == 1 else value


def unit_problem(resource: str, text: str) -> tuple[str, str] | None:
    """Return why a quantity is invalid for a resource, and what to write instead, or None if it's valid.

    Devices are whole: Kubernetes documentation, "Extended resources". A CPU has no binary unit, and memory without a
    unit is bytes: Kubernetes documentation, "Resource units in Kubernetes".
    """
    digits = text.rstrip("mkMGTPEi")
    suffix, amount = text[len(digits) :], quantity(text)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        if amount >= _LEAST_BYTES or not amount:
            return None
        unit = "Mi" if suffix == "m" else "Gi"
        return f"{text} is less than 1 MiB: a number without a unit is in bytes", f"Use `{digits}{unit}`."
    is_device = "/" in resource or resource in ("pods", "nodes")
    if suffix in ("", "k", "m"):
        if not is_device or amount == int(amount):
            return None
        return f"{text} isn't a whole number, and {resource} can't be divided", f"Use `{math.ceil(amount)}`."
    if not is_device and resource != "cpu":
        return None
    whole = math.ceil(Fraction(digits))
    return f"`{suffix}` is a unit of memory, but {resource} is a count", f"Use `{whole if is_device else digits}`."


def dimensions_of(instance: InstanceType) -> Vector:
    """Return the resources of one instance; a figure that isn't in the catalog is None."""
    slices = None
    if instance.accelerators is not None and instance.mig_profiles is not None:
        slices = instance.accelerators * instance.mig_slices_per_accelerator if instance.mig_profiles else 0
    return (1, instance.accelerators, instance.vcpu, instance.memory_gib, slices)


@dataclass(frozen=True, slots=True)
class Usage:
    """The amount that one quota resource uses of its type, in every dimension.

    problem is set if the quota resource requests something that the type doesn't have; amount counts as zero there.
    """

    vector: Vector
    problem: str | None = None


def usage(quota_resource: QuotaResource, instance: InstanceType) -> Usage:
    """Return the amount that a quota resource reserves, filled in pro rata as the service does.

    The ratio (requested ÷ the instance's total) comes from accelerators, else partitions, else vCPU, else memory;
    omitted vCPU and memory follow it. One that requests only vCPU or memory gets no accelerators.
    """
    unit = dimensions_of(instance)
    if quota_resource.count is not None:
        count = quota_resource.count
        return Usage(tuple(None if amount is None else amount * count for amount in unit))  # type: ignore[arg-type]  # five in, five out
    ratio, accelerators, slices, problem = _accelerator_part(quota_resource, instance)
    if problem:
        return Usage((0, 0, 0, 0, 0), problem)
    vcpu, memory = quota_resource.v_cpu, quota_resource.memory_in_gib
    if not quota_resource.accelerators and quota_resource.partition is None:
        if vcpu is None and memory is None:
            return Usage((0, 0, 0, 0, 0))
        ratio = _ratio(vcpu, instance.vcpu) if vcpu is not None else _ratio(memory, instance.memory_gib)
    all_vcpu = vcpu if vcpu is not None else _times(instance.vcpu, ratio)
    all_memory = memory if memory is not None else _times(instance.memory_gib, ratio)
    return Usage((0, accelerators, all_vcpu, all_memory, slices))


def _accelerator_part(
    quota_resource: QuotaResource, instance: InstanceType
) -> tuple[Fraction | None, Amount | None, Amount | None, str | None]:
    """Return ratio, accelerators, MIG slices, problem of the quota resource's accelerators or partitions."""
    if quota_resource.accelerators:
        if instance.accelerators == 0:
            asked = f"{plural(quota_resource.accelerators, 'accelerator')} of {quota_resource.instance_type}"
            return None, 0, 0, f"{asked}, which has none"
        slices = quota_resource.accelerators * instance.mig_slices_per_accelerator if instance.mig_profiles else 0
        return _ratio(quota_resource.accelerators, instance.accelerators), quota_resource.accelerators, slices, None
    if quota_resource.partition is None:
        return None, 0, 0, None
    if instance.mig_profiles is None:
        return None, None, None, None
    profile = next((known for known in instance.mig_profiles if known.name == quota_resource.partition.type), None)
    if profile is None:
        names = ", ".join(known.name for known in instance.mig_profiles) or "no MIG profile"
        return None, 0, 0, f"{quota_resource.partition.type} of {quota_resource.instance_type}, which has {names}"
    accelerators = Fraction(quota_resource.partition.count, profile.max_per_accelerator)
    slices = profile.slices * quota_resource.partition.count
    return _ratio(accelerators, instance.accelerators), accelerators, slices, None


def _ratio(asked: Amount | None, total: int | None) -> Fraction | None:
    return Fraction(asked) / total if asked is not None and total else None


def _times(total: int | None, ratio: Fraction | None) -> Amount | None:
    return None if total is None or ratio is None else total * ratio


def apportion(total: int, shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Turn shares of a whole into whole instances by the largest remainder.

    shares maps a name to a fraction of total, 0–1. The result never sums to more than total × Σ shares.
    Ties go to the name that sorts first, so the order in the file doesn't matter. A change in one share moves every
    other by one instance at most.
    """
    exact = {name: total * share for name, share in shares.items()}
    whole = {name: int(amount) for name, amount in exact.items()}
    left = int(sum(exact.values(), Fraction(0))) - sum(whole.values())
    by_remainder = sorted(exact, key=lambda name: (whole[name] - exact[name], name))
    for name in by_remainder[:left]:
        whole[name] += 1
    return whole


def rounding(quota_resource: QuotaResource, capacity: TypeCapacity | None) -> str:
    """Return how a quota resource's share was rounded, such as `60% of 3 is 1.8, rounded down to 1`.

    "" if it wasn't.
    """
    share, count = quota_resource.share, quota_resource.count
    total = None if capacity is None else capacity.maximum if quota_resource.elastic else capacity.permanent
    if share is None or count is None or not total or share * total == count:
        return ""
    direction = "down" if count < share * total else "up"
    return f"{written(share * 100)}% of {total} is {written(share * total)}, rounded {direction} to {count}"


def reserve(quota_resources: Iterable[tuple[QuotaResource, InstanceType]]) -> Vector:
    """Return the sum of quota resources of one instance type; a dimension where one of them is unknown is unknown."""
    total: list[Amount | None] = [0, 0, 0, 0, 0]
    for quota_resource, instance in quota_resources:
        for index, amount in enumerate(usage(quota_resource, instance).vector):
            before = total[index]
            total[index] = None if before is None or amount is None else before + amount
    return total[0] or 0, total[1], total[2], total[3], total[4]


@dataclass(frozen=True, slots=True)
class Overrun:
    """A dimension in which reserved exceeds limit."""

    dimension: str
    reserved: Amount
    limit: Amount


def overruns(reserved: Vector, instances: int, instance: InstanceType) -> tuple[Overrun, ...]:
    """Return the dimensions in which a sum exceeds what so many instances have; unknown ones are left out."""
    unit = dimensions_of(instance)
    exceeded = []
    for dimension, amount, one in zip(DIMENSIONS, reserved, unit, strict=True):
        if amount is not None and one is not None and amount > one * instances:
            exceeded.append(Overrun(dimension, amount, one * instances))
    return tuple(exceeded)


def pool_instances(limits: Mapping[str, str], instance: InstanceType) -> int | None:
    """Return how many instances of a type a NodePool's limits allow; None if they aren't bounded."""
    per_instance = {**_resources_of(instance), "nodes": 1}
    bounds = [
        int(Fraction(quantity(limit)) / amount)
        for resource, limit in limits.items()
        if (amount := per_instance.get(resource))
    ]
    return min(bounds, default=None)


def is_resource(name: str, known: Sequence[str]) -> bool:
    """Return whether a resource is known, or belongs to a family of known ones (MIG, huge pages)."""
    return name in known or name.startswith(_RESOURCE_FAMILIES)


def limits_of(instance: InstanceType, count: int) -> dict[str, str]:
    """Return the limits that a NodePool needs for a number of instances, for the type's known resources."""
    per_instance = {resource: amount for resource, amount in _resources_of(instance).items() if amount}
    gib = 2**30
    return {
        "nodes": str(count),
        **{
            resource: f"{Fraction(amount) * count / gib}Gi" if resource == "memory" else str(Fraction(amount) * count)
            for resource, amount in per_instance.items()
        },
    }


def pods_on(requests: Mapping[str, str], instance: InstanceType) -> int | None:
    """Return the maximum number of pods with these requests on an empty instance; None if no figure bounds it.

    The resources of system pods and the kubelet aren't subtracted, so the real number can be smaller.
    """
    node_resources = _resources_of(instance)
    bounds = [
        int(Fraction(available) / requested)
        for resource, text in requests.items()
        if (requested := Fraction(quantity(text))) and (available := node_resources.get(resource)) is not None
    ]
    return min(bounds, default=None)


def _resources_of(instance: InstanceType) -> dict[str, Amount | None]:
    """Return an instance's amount of each Kubernetes resource; other kinds of accelerators count as zero."""
    memory = None if instance.memory_gib is None else instance.memory_gib * 2**30
    return {"cpu": instance.vcpu, "memory": memory, **instance.device_resources}


def matching_types(types: Iterable[str], requirements: Iterable[tuple[str, str, Sequence[str]]]) -> set[str]:
    """Return the types of a NodePool's groups that match its requirements (key, operator, values)."""
    remaining = set(types)
    for key, operator, values in requirements:
        if operator != "In":
            continue
        if key == INSTANCE_TYPE_KEY:
            remaining &= set(values)
        elif key == ARCHITECTURE_KEY and "amd64" not in values:
            remaining = set()
    return remaining


@dataclass(frozen=True, slots=True)
class GroupCapacity:
    """The data of an instance group that capacity needs; with several types, the group is flexible."""

    name: str
    instance_types: tuple[str, ...]
    count: int
    autoscaled: bool


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """The data of a NodePool that capacity needs: the types that it can add, and its limits."""

    name: str
    instance_types: tuple[str, ...]
    limits: Mapping[str, str]


def type_capacities(
    groups: Sequence[GroupCapacity], pools: Sequence[PoolCapacity], instances: Mapping[str, InstanceType]
) -> dict[str, TypeCapacity]:
    """Sum instances per type.

    A flexible group guarantees its count over all its types, so it guarantees no single type.
    """
    permanent: dict[str, int] = {}
    flexible: dict[str, int] = {}
    from_groups: dict[str, set[str]] = {}
    for group in groups:
        alone = len(set(group.instance_types)) == 1
        for name in dict.fromkeys(group.instance_types):
            count = 0 if group.autoscaled else group.count
            permanent[name] = permanent.get(name, 0) + (count if alone else 0)
            flexible[name] = flexible.get(name, 0) + (0 if alone else count)
            from_groups.setdefault(name, set()).add(group.name)
    return {
        name: TypeCapacity(
            permanent=permanent[name],
            maximum=_maximum(name, permanent[name] + flexible[name], pools, instances.get(name)),
            groups=tuple(sorted(from_groups[name])),
            pools=tuple(pool.name for pool in pools if name in pool.instance_types),
        )
        for name in sorted(permanent)
    }


def _maximum(name: str, fixed: int, pools: Sequence[PoolCapacity], instance: InstanceType | None) -> int | None:
    total = fixed
    for pool in pools:
        if name not in pool.instance_types:
            continue
        pool_maximum = pool_instances(pool.limits, instance) if instance else None
        if pool_maximum is None:
            return None
        total += pool_maximum
    return total


@dataclass(frozen=True, slots=True)
class TeamShare:
    """A team's quota of one instance type, in instances (fractions if the quota has them)."""

    team: str
    reserved: Amount
    elastic: Amount
    borrow_limit: Amount
    borrowable: Amount
    lendable: Amount


@dataclass(frozen=True, slots=True)
class TypeQuota:
    """One instance type: capacity and every team's part. unallocated is never below zero.

    reserved_together: what all teams reserve, by the resource that they reserve most of. Teams whose largest parts are
    of unlike resources reserve less together than the sum of their parts. borrowers: the teams that can borrow
    unallocated instances, if these are shared.
    """

    instance_type: str
    capacity: TypeCapacity
    teams: tuple[TeamShare, ...]
    unallocated: Amount
    reserved_together: Amount = 0
    borrowers: tuple[str, ...] = ()


def borrow_limit(team: TeamPlan, instance_type: str, quota: Amount, instance: InstanceType | None) -> Amount:
    """Return what a team can borrow of a type by its own settings, in instances.

    An absolute limit replaces the percentage for its type; without a limit, the service uses 50%. A limit of vCPUs or
    memory alone allows no accelerators (AWS's API reference, ComputeQuotaResourceConfig), so no part of an instance
    that has them. The same applies to a percentage that is less than one accelerator, if it isn't of MIG partitions.
    """
    if not team.borrows:
        return 0
    absolute = team.absolute_borrow_limits.get(instance_type)
    if absolute is not None:
        if instance is not None and instance.accelerators:
            absolute = tuple(each for each in absolute if each.count or each.accelerators or each.partition)
        return _together(absolute, instance)
    limit = Fraction(quota) * borrow_percent(team) / 100
    has_partitions = any(each.partition for each in team.quota_resources if each.instance_type == instance_type)
    if instance is not None and instance.accelerators and limit * instance.accelerators < 1 and not has_partitions:
        return 0
    return limit.numerator if limit.denominator == 1 else limit


def borrow_percent(team: TeamPlan) -> int:
    """Return which percentage of its quota a team may borrow, where no absolute limit replaces it.

    Whether the default applies in addition to absolute limits isn't documented; this assumes that it doesn't.
    """
    sharing = team.spec.sharing
    if sharing.borrow_limit is not None:
        return sharing.borrow_limit
    return 0 if sharing.absolute_borrow_limits else _DEFAULT_BORROW_LIMIT


def amounts_of(resource: QuotaResource) -> Amounts:
    """Return the amount of each resource in a part of an instance type, in the base units of queues.

    Raises CatalogError for an instance type whose vCPUs, memory or accelerators aren't in the catalog.
    """
    if resource.count is not None:
        return amounts_of_instances(resource.instance_type, resource.count)
    _, _, vcpu, memory, _ = usage(resource, countable_type(resource.instance_type)).vector
    partition = resource.partition
    return amounts_of_part(
        resource.instance_type,
        vcpu=_stored(vcpu if resource.v_cpu is None else resource.v_cpu),
        memory_gib=_stored(memory if resource.memory_in_gib is None else resource.memory_in_gib),
        accelerators=resource.accelerators or 0,
        partition=None if partition is None else (partition.type, partition.count),
    )


def _stored(amount: Fraction | int | None) -> Fraction:
    """Return an amount as the service stores it, with two decimals."""
    return Fraction(str(round(float(amount or 0), 2)))


def amounts_by_type(resources: Iterable[QuotaResource]) -> dict[str, Amounts]:
    """Return the amounts of some resources, summed by instance type. Raises CatalogError as amounts_of does."""
    totals: dict[str, Counter[str]] = {}
    for resource in resources:
        totals.setdefault(resource.instance_type, Counter()).update(amounts_of(resource))
    return {kind: dict(total) for kind, total in totals.items()}


def quota_table(
    teams: Sequence[TeamPlan],
    capacity: Mapping[str, TypeCapacity],
    instances: Mapping[str, InstanceType],
    *,
    lend_unallocated: bool,
) -> tuple[TypeQuota, ...]:
    """Return capacity, reserved, borrowable, lendable and unallocated amounts of every instance type.

    lend_unallocated is the policy's IdleResourceSharing: if it's on, unallocated capacity can be borrowed too.
    """
    quota_resources: dict[str, dict[str, list[QuotaResource]]] = {name: {} for name in capacity}
    for team in teams:
        for each in team.quota_resources:
            quota_resources.setdefault(each.instance_type, {}).setdefault(team.name, []).append(each)
        for name in team.absolute_borrow_limits:
            quota_resources.setdefault(name, {}).setdefault(team.name, [])
    by_name = {team.name: team for team in teams}
    return tuple(
        _type_quota(name, quota_resources[name], by_name, capacity.get(name), instances.get(name), lend_unallocated)
        for name in sorted(quota_resources)
    )


def _type_quota(
    name: str,
    quota_resources: Mapping[str, Sequence[QuotaResource]],
    teams: Mapping[str, TeamPlan],
    capacity: TypeCapacity | None,
    instance: InstanceType | None,
    lend_unallocated: bool,
) -> TypeQuota:
    capacity = capacity or TypeCapacity(0, 0, (), ())
    static = {team: _instances(own, instance, elastic=False) for team, own in quota_resources.items()}
    elastic = {team: _instances(own, instance, elastic=True) for team, own in quota_resources.items()}
    quota = {team: static[team] + elastic[team] for team in quota_resources}
    unallocated = max(capacity.permanent - sum(static.values()), 0)
    lendable = {team: quota[team] if teams[team].lends else 0 for team in quota_resources}
    lent = {team: _by_profile(own if teams[team].lends else (), instance) for team, own in quota_resources.items()}
    pool: defaultdict[str | None, Amount] = defaultdict(int, {None: unallocated if lend_unallocated else 0})
    for amounts in lent.values():
        for profile, lendable_amount in amounts.items():
            pool[profile] += lendable_amount
    shares, borrowers = [], []
    for team in sorted(quota_resources):
        limit = borrow_limit(teams[team], name, quota[team], instance)
        limits = teams[team].absolute_borrow_limits.get(name) or quota_resources[team]
        profiles = {_profile(each) for each in limits}
        if limit > 0 and None in profiles and teams[team].spec.activation_state == "Enabled":
            borrowers.append(team)
        borrowable = min(limit, sum((pool[each] - lent[team].get(each, 0) for each in profiles), start=0))
        shares.append(TeamShare(team, static[team], elastic[team], limit, borrowable, lendable[team]))
    together = _together([each for own in quota_resources.values() for each in own if not each.elastic], instance)
    return TypeQuota(name, capacity, tuple(shares), unallocated, together, tuple(borrowers))


def _profile(quota_resource: QuotaResource) -> str | None:
    """Return the MIG profile of a quota resource, which only quota of the same profile can be lent to."""
    return quota_resource.partition.type if quota_resource.partition else None


def _by_profile(own: Sequence[QuotaResource], instance: InstanceType | None) -> dict[str | None, Amount]:
    amounts: defaultdict[str | None, Amount] = defaultdict(int)
    for each in own:
        amounts[_profile(each)] += as_instances(each, instance) or 0
    return dict(amounts)


def _together(quota_resources: Sequence[QuotaResource], instance: InstanceType | None) -> Amount:
    """Return quota resources as instances, by the resource of which they have most together."""
    if instance is None or all(each.count is not None for each in quota_resources):
        return sum(each.count or 0 for each in quota_resources)
    vectors = [usage(each, instance).vector[1:] for each in quota_resources]
    units = dimensions_of(instance)[1:]
    totals = [
        sum((Fraction(vector[index] or 0) for vector in vectors), Fraction(0)) / one
        for index, one in enumerate(units)
        if one
    ]
    most = max(totals, default=Fraction(0))
    return most.numerator if most.denominator == 1 else most


def _instances(quota_resources: Sequence[QuotaResource], instance: InstanceType | None, *, elastic: bool) -> Amount:
    return sum(as_instances(each, instance) or 0 for each in quota_resources if each.elastic is elastic)


def as_instances(quota_resource: QuotaResource, instance: InstanceType | None) -> Amount | None:
    """Return a quota resource as instances, a fraction of one by its largest part; None for an unknown type."""
    if quota_resource.count is not None:
        return quota_resource.count
    if instance is None:
        return None
    parts = zip(usage(quota_resource, instance).vector[1:], dimensions_of(instance)[1:], strict=True)
    return max((Fraction(part) / one for part, one in parts if part and one), default=Fraction(0))
