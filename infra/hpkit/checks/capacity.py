"""CAP: quota against capacity."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from hpkit.catalog import EFA, MIG_LABEL, InstanceType, find_instance_type, quantity_of
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.cluster import InstanceGroup
from hpkit.config.models.governance import SharedPool
from hpkit.config.reading.document import Path
from hpkit.errors import CatalogError
from hpkit.plan.capacity import (
    LIMIT_RESOURCES,
    Amount,
    Overrun,
    TeamShare,
    TypeQuota,
    amounts_by_type,
    as_instances,
    dimensions_of,
    is_resource,
    limits_of,
    overruns,
    pool_instances,
    quantity,
    reserve,
    usage,
)
from hpkit.plan.derive import unallocated
from hpkit.plan.model import QuotaResource, TeamPlan, resource_of
from hpkit.text.formatting import amount, listing, plural
from hpkit.text.spelling import near

__all__ = ["RULES", "amounts", "excess", "let_borrow"]

_SPOT = "SageMaker HyperPod developer guide, Spot instances"
_MIG = "SageMaker HyperPod developer guide, Using GPU partitions: Important; Creating a Cluster with MIG Configuration"
_UNPARTITIONED = "all-disabled"
_GUIDE = "SageMaker HyperPod developer guide, task governance: compute allocations"
_QuotaResources = dict[str, list[tuple[str, QuotaResource]]]


def _resources_by_type(context: Context) -> _QuotaResources:
    quota_resources: _QuotaResources = {}
    for team in context.plan.teams:
        for each in team.quota_resources:
            quota_resources.setdefault(each.instance_type, []).append((team.name, each))
    return quota_resources


def _last_path(quota_resources: list[tuple[str, QuotaResource]]) -> tuple[str | int, ...]:
    written = [each for _, each in quota_resources if each.path]
    return max(written, key=lambda each: (each.count or 0, tuple(map(str, each.path)))).path


def excess(
    name: str,
    quota_resources: Sequence[tuple[str, QuotaResource]],
    instances: int,
    *,
    instance: InstanceType | None,
    with_karpenter: bool = False,
) -> str | None:
    """Return by how much quota (team, quota resource) of one type exceeds a number of instances, by team.

    with_karpenter: whether the number includes instances that Karpenter can add. Returns None if it fits.
    A type that isn't in the catalog is compared in whole instances only.
    """
    over = _overruns(quota_resources, instances, instance)
    if not over:
        return None
    teams = _contributors(quota_resources, instance)
    if over[0].dimension == "instances":
        reserved = amount(_wanted(quota_resources, instance))
        return f"{reserved} × {name} allocated ({teams}), but {_exist(instances, with_karpenter=with_karpenter)}"
    measures = "; ".join(
        f"{amount(each.reserved)} {each.dimension} allocated, but {_exist(each.limit, with_karpenter=with_karpenter)}"
        for each in over
    )
    return f"{name}: {measures} ({teams})"


def _exist(limit: Amount, *, with_karpenter: bool) -> str:
    if with_karpenter:
        return f"at most {amount(limit)} can exist with Karpenter"
    if not limit:
        return "none are permanent"
    return f"only {amount(limit)} {'exists' if limit == 1 else 'exist'}"


def _overruns(
    quota_resources: Sequence[tuple[str, QuotaResource]], instances: int, instance: InstanceType | None
) -> list[Overrun]:
    """Return in which dimensions quota exceeds a number of instances.

    Only in instances, if the sum is a whole number of them or the counts alone exceed them. MIG slices are compared
    only if a team has quota for them.
    """
    needed = _wanted(quota_resources, instance)
    counted = sum(quota_resource.count or 0 for _, quota_resource in quota_resources)
    if counted > instances or (needed > instances and Fraction(needed).denominator == 1):
        return [Overrun("instances", needed, instances)]
    if instance is None:
        return []
    exceeded = overruns(reserve((each, instance) for _, each in quota_resources), instances, instance)
    has_slices = any(quota_resource.partition for _, quota_resource in quota_resources)
    return [each for each in exceeded if has_slices or each.dimension != "MIG slices"]


def _contributors(quota_resources: Sequence[tuple[str, QuotaResource]], instance: InstanceType | None) -> str:
    """List each team's reservation in the units of the file, the largest first."""
    own: dict[str, list[QuotaResource]] = {}
    for team, quota_resource in quota_resources:
        own.setdefault(team, []).append(quota_resource)
    sizes = {team: _wanted([(team, row) for row in rows], instance) for team, rows in own.items()}
    ranked = sorted((team for team in own if sizes[team]), key=lambda team: (-sizes[team], team))
    if all(each.count is not None for _, each in quota_resources):
        return listing([f"{team} {amount(sizes[team])}" for team in ranked])
    return listing([f"{team} {' + '.join(sorted(filter(None, map(_stated, own[team]))))}" for team in ranked])


def _stated(quota_resource: QuotaResource) -> str:
    """Return the amount of a quota resource in its own unit."""
    if quota_resource.count is not None:
        return plural(quota_resource.count, "instance")
    partition = quota_resource.partition
    parts = [
        plural(quota_resource.accelerators, "accelerator") if quota_resource.accelerators else "",
        f"{partition.count} × {partition.type}" if partition else "",
        f"{amount(quota_resource.v_cpu)} vCPU" if quota_resource.v_cpu else "",
        _measured(quota_resource.memory_in_gib, "memory GiB") if quota_resource.memory_in_gib else "",
    ]
    return " with ".join(part for part in parts if part)


def _too_much(
    context: Context,
    name: str,
    quota_resources: list[tuple[str, QuotaResource]],
    instances: int,
    *,
    with_karpenter: bool = False,
) -> Iterator[Issue]:
    message = excess(
        name, quota_resources, instances, instance=context.instances.get(name), with_karpenter=with_karpenter
    )
    if message is not None:
        groups = [each.spec.name for each in context.plan.groups if name in each.spec.types]
        place: tuple[Path, str] = ((*context.path, "autoscaling"), "`autoscaling`")
        if groups and not any(each.elastic for _, each in quota_resources):
            place = (context.group_paths[groups[0]], f"the group {groups[0]}")
        fix = _room(context, name, quota_resources, instances)
        yield Issue(_last_path(quota_resources), message, fix, other=place[0], other_name=place[1])


def _room(context: Context, name: str, quota_resources: list[tuple[str, QuotaResource]], instances: int) -> str:
    """Return how to make the quota of a type fit: with counts of its static groups, or with limits of NodePools."""
    instance = context.instances.get(name)
    elastic = any(each.elastic for _, each in quota_resources)
    permanent = [group.spec for group in context.plan.groups if name in group.spec.types and not group.autoscaled]
    static = [group for group in permanent if len(group.types) == 1]
    pools = [pool.spec for pool in context.plan.node_pools if name in pool.instance_types]
    lower = f"Lower allocations by {_surplus(quota_resources, instances, instance)}"
    enough = _enough(quota_resources, instances, instance, elastic=elastic)
    if elastic and not pools:
        return f"{lower}, or add a NodePool whose NodeClass has a group of {name}."
    if elastic:
        raised = ""
        if len(pools) == 1 and instance is not None and enough is not None:
            needed = limits_of(instance, (pool_instances(pools[0].limits, instance) or 0) + enough - instances)
            own = pools[0].limits
            short = [key for key in own if key in needed and quantity(own[key]) < quantity(needed[key])]
            raised = listing([f"`{key}: {needed[key]}`" for key in short])
        names = listing([f"`{pool.name}`" for pool in pools])
        limits = f"limits of {'NodePool' if len(pools) == 1 else 'NodePools'} {names}"
        return f"{lower}, or raise {limits}{f' to {raised}' if raised else ''}."
    if static:
        if enough is None:
            return f"{lower}."
        groups = listing([f"`{group.name}`" for group in static])
        counts = f"raise `instanceCount` of {'group' if len(static) == 1 else 'groups'} {groups}"
        if len(static) == 1:
            return f"{lower}, or {counts} to {static[0].instance_count + enough - instances}."
        return f"{lower}, or {counts} by {enough - instances} in total."
    if permanent:
        flexible = listing([group.name for group in permanent])
        return (
            f"Add an instance group with {name} as its only type: {flexible} can start instances of any of its "
            "types, so none is permanent."
        )
    maximum = context.plan.capacity[name].maximum
    if maximum is not None and _wanted(quota_resources, instance) > maximum:
        return (
            f"Lower allocations by {_surplus(quota_resources, maximum, instance)}: Karpenter manages all groups of "
            f"{name}, and adds at most {maximum} (CAP002). Then set `elastic: true`."
        )
    return "Set `elastic: true`: Karpenter manages all groups of this type, so no instances are permanent."


def _surplus(
    quota_resources: Sequence[tuple[str, QuotaResource]], instances: int, instance: InstanceType | None
) -> str:
    """Return by how much to lower allocations: in instances, accelerators, or each measure that exceeds its limit."""
    over = _overruns(quota_resources, instances, instance)
    beyond = _wanted(quota_resources, instance) - instances
    chips = beyond * (instance.accelerators or 0) if instance else 0
    with_chips = any(quota_resource.accelerators for _, quota_resource in quota_resources)
    if over[0].dimension == "instances":
        accelerators = f" ({_measured(chips, 'accelerators')})" if chips and with_chips else ""
        return f"{_measured(beyond, 'instances')}{accelerators}"
    if chips and over[0].dimension == "accelerators" and over[0].reserved - over[0].limit == chips:
        # Lowering accelerators also lowers what is filled in pro rata.
        over = over[:1]
    return " and ".join(_measured(each.reserved - each.limit, each.dimension) for each in over)


def _measured(number: Amount, dimension: str) -> str:
    """Return so much of a dimension: `1 accelerator`, `8 GiB of memory`."""
    unit = "GiB of memory" if dimension == "memory GiB" else dimension
    return f"{amount(number)} {unit.removesuffix('s') if number == 1 else unit}"


def _enough(
    quota_resources: Sequence[tuple[str, QuotaResource]],
    instances: int,
    instance: InstanceType | None,
    *,
    elastic: bool,
) -> int | None:
    """Return the least number of instances that quota fits, None for none; elastic: whose shares grow with them."""
    grows = [row.share for _, row in quota_resources if row.share is not None and row.elastic == elastic]
    share = sum(grows, Fraction(0))
    if share >= 1:
        return None
    others = [(team, row) for team, row in quota_resources if row.share is None or row.elastic != elastic]
    fixed = math.ceil(_wanted(others, instance))
    return max(instances + 1, (fixed - 1) // (1 - share) + 1)


def _wanted(quota_resources: Sequence[tuple[str, QuotaResource]], instance: InstanceType | None) -> Amount:
    """Return the instances that quota requires in its largest dimension."""
    if instance is None:
        return sum(quota_resource.count or 0 for _, quota_resource in quota_resources)
    reserved = reserve((quota_resource, instance) for _, quota_resource in quota_resources)
    parts = zip(reserved, dimensions_of(instance), strict=True)
    return max((Fraction(part) / one for part, one in parts if part and one), default=0)


def _reserved_fits_permanent(context: Context) -> Iterator[Issue]:
    for name, quota_resources in _resources_by_type(context).items():
        capacity = context.plan.capacity.get(name)
        static = [(team, quota_resource) for team, quota_resource in quota_resources if not quota_resource.elastic]
        if capacity is None or not context.is_capacity_certain(name) or (name, False) in _exceeding_shares(context):
            continue
        if any(quota_resource.path for _, quota_resource in static):
            yield from _too_much(context, name, static, capacity.permanent)


def _elastic(context: Context) -> Iterator[Issue]:
    if _misses_groups(context):
        return
    yield from _elastic_fits_maximum(context)
    yield from _elastic_shares_need_a_bound(context)
    yield from _pools_together(context)


def _misses_groups(context: Context) -> bool:
    """Return whether Karpenter's part has an error, so that what it can add is unknown (KAR001, 4, 5, and 21)."""
    autoscaling = context.spec.autoscaling
    if autoscaling is None:
        return False
    classes = {node_class.name for node_class in autoscaling.node_classes}
    groups = {name for node_class in autoscaling.node_classes for name in node_class.instance_groups}
    return (
        context.limits_have_wrong_units
        or bool(groups - context.group_paths.keys())
        or not all(node_class.instance_groups for node_class in autoscaling.node_classes)
        or any(pool.node_class not in classes for pool in autoscaling.node_pools)
        or any(pool.spec.requirements and not pool.instance_types for pool in context.plan.node_pools)
    )


def _elastic_fits_maximum(context: Context) -> Iterator[Issue]:
    for name, quota_resources in _resources_by_type(context).items():
        capacity = context.plan.capacity.get(name)
        if capacity is None or not any(quota_resource.elastic for _, quota_resource in quota_resources):
            continue
        if not context.is_capacity_certain(name) or {(name, False), (name, True)} & _exceeding_shares(context).keys():
            continue
        if capacity.maximum is None:
            yield from _no_bound(context, name, quota_resources)
            continue
        yield from _too_much(context, name, quota_resources, capacity.maximum, with_karpenter=True)


def _no_bound(context: Context, name: str, quota_resources: list[tuple[str, QuotaResource]]) -> Iterator[Issue]:
    """Report that elastic quota wasn't compared, if a NodePool has limits but none bounds the type."""
    for pool in context.plan.node_pools:
        # KAR013 reports limits of resources that no node has.
        if not all(is_resource(resource, LIMIT_RESOURCES) for resource in pool.spec.limits):
            continue
        if name in pool.instance_types and pool.spec.limits:
            elastic = next(quota_resource for _, quota_resource in quota_resources if quota_resource.elastic)
            limits = listing([f"{resource} {limit}" for resource, limit in sorted(pool.spec.limits.items())])
            yield Issue(
                elastic.path,
                f"elastic quota of {name} can't be checked: NodePool `{pool.spec.name}` limits only "
                f"resources that the catalog doesn't list for this type ({limits})",
                "Add a limit for a resource that `hpkit catalog instances` lists for this type.",
                "warning",
            )


def _elastic_shares_need_a_bound(context: Context) -> Iterator[Issue]:
    for team in context.plan.teams:
        for quota_resource in team.quota_resources:
            capacity = context.plan.capacity.get(quota_resource.instance_type)
            if (
                quota_resource.elastic
                and quota_resource.share is not None
                and capacity is not None
                and capacity.maximum is None
                and context.is_capacity_certain(quota_resource.instance_type)
            ):
                yield Issue(
                    (*quota_resource.path, "share"),
                    f"the share has no maximum to apply to: no limit of {listing(list(capacity.pools))} bounds "
                    f"{quota_resource.instance_type}",
                    "Add limits to the NodePool, or replace `share` with `count`.",
                )


def _pools_together(context: Context) -> Iterator[Issue]:
    """Compare what elastic quota requires beyond the permanent capacity with the sum of the pools' limits."""
    need: dict[str, Amount] = {}
    pools_by_resource: dict[str, list[str]] = {}
    for name, quota_resources in _resources_by_type(context).items():
        capacity, instance = context.plan.capacity.get(name), context.instances.get(name)
        if (
            capacity is None
            or instance is None
            or not context.is_capacity_certain(name)
            or not capacity.pools
            or not any(quota_resource.elastic for _, quota_resource in quota_resources)
        ):
            continue
        reserved, unit = reserve((each, instance) for _, each in quota_resources), dimensions_of(instance)
        for resource, index in (("cpu", 2), ("memory", 3), (instance.accelerator_resource, 1)):
            used, one = reserved[index], unit[index]
            if resource and used is not None and one is not None and used > one * capacity.permanent:
                need[resource] = need.get(resource, 0) + used - one * capacity.permanent
                pools_by_resource.setdefault(resource, []).append(name)
    for resource, needed in need.items():
        limits = [pool.spec.limits.get(resource) for pool in context.plan.node_pools]
        if not limits or None in limits or len(pools_by_resource[resource]) < 2:
            continue
        scale = 2**30 if resource == "memory" else 1
        total = sum((Fraction(quantity(limit)) for limit in limits if limit), Fraction(0)) / scale
        if needed > total:
            yield Issue(
                (*context.path, "autoscaling", "nodePools"),
                f"elastic quota of {listing(pools_by_resource[resource])} together needs {amount(needed)} {resource} "
                f"beyond the permanent capacity; the NodePools' limits allow {amount(total)}",
                "Lower an elastic allocation, or raise the limits.",
            )


def _elastic_by_something(context: Context) -> Iterator[Issue]:
    if _misses_groups(context):
        return
    for team in context.plan.teams:
        for resource in team.quota_resources:
            if resource.path and _is_elastic_by_nothing(context, resource):
                yield Issue(
                    (*resource.path, "elastic"),
                    f"team `{team.name}` has elastic quota of {resource.instance_type}, but no NodePool adds nodes of "
                    "this type",
                    "Add a NodePool whose NodeClass has a group of this type. If the quota fits the static groups, "
                    "remove `elastic` instead.",
                )


def _is_elastic_by_nothing(context: Context, resource: QuotaResource) -> bool:
    """Report an elastic entry for a type of which Karpenter adds no nodes (CAP011)."""
    capacity = context.plan.capacity.get(resource.instance_type)
    owned = any(resource.instance_type in group.spec.types for group in context.plan.groups if group.autoscaled)
    certain = context.is_capacity_certain(resource.instance_type)
    return resource.elastic and certain and capacity is not None and not capacity.pools and not owned


def _type_is_provided(context: Context) -> Iterator[Issue]:
    provided = sorted(context.plan.capacity)
    rows_by_type: dict[tuple[str, bool], list[tuple[str, QuotaResource]]] = {}
    for name, rows in _resources_by_type(context).items():
        for row in rows if name not in context.plan.capacity and context.is_capacity_certain(name) else ():
            rows_by_type.setdefault((name, row[1].future), []).append(row)
    for (name, future), rows in rows_by_type.items():
        teams = list(dict.fromkeys(team for team, _ in rows))
        who = f"team `{teams[0]}` has" if len(teams) == 1 else f"teams {listing(teams)} have"
        yield Issue(
            (*rows[0][1].path, "instanceType"),
            f"{who} quota of {name}, but no instance group provides it (provided: {listing(provided)})",
            _type_meant(name, provided, future=future, several=len(teams) > 1),
            "warning" if future else None,
        )
    for team in context.plan.teams:
        for name in sorted(team.absolute_borrow_limits):
            certain = context.is_capacity_certain(name) or find_instance_type(name) is None
            is_reported = (name, False) in rows_by_type
            if name not in context.plan.capacity and certain and not team.is_shared_pool and not is_reported:
                own = context.own_settings(team.name, "sharing")
                yield Issue(
                    (*context.setting_path(team.name, "sharing"), "absoluteBorrowLimits"),
                    f"team `{team.name}` may borrow {name}, but no instance group of `{context.environment}` "
                    "provides it",
                    f"Set `{own}.sharing`, which replaces the team's limits in this environment."
                    if own
                    else "Use a provided instance type, or remove the limit.",
                    "warning",
                )


def _type_meant(name: str, provided: list[str], *, future: bool, several: bool) -> str:
    # A type that HyperPod offers is meant as written; CLU003 also reports any other.
    likely = None if find_instance_type(name) else near(name, provided)
    if likely:
        return f"Did you mean `{likely}`?"
    if future:
        return (
            "Add an instance group of this type once it's available, then remove `future: true`. Until then, this "
            "warning remains."
        )
    which = "set future: true for each allocation" if several else "set `future: true` for the allocation"
    return f"Use a provided instance type, add a group of this type, or {which}."


def _fraction_meant(quota_resource: QuotaResource, instance: InstanceType) -> str:
    # nvidia-smi calls a profile 1g.5gb, and Kubernetes its resource nvidia.com/mig-1g.5gb.
    if quota_resource.partition:
        profile = f"mig-{quota_resource.partition.type.lower().removeprefix('nvidia.com/').removeprefix('mig-')}"
        if any(profile == each.name for each in instance.mig_profiles or ()):
            return f"Use `type: {profile}`."
    return "Request a fraction that this type supports, or choose another type."


def _fraction_exists(context: Context) -> Iterator[Issue]:
    for team in context.plan.teams:
        stated = [(each, each.path) for each in team.quota_resources]
        for index, limit in enumerate(team.spec.sharing.absolute_borrow_limits):
            where = (*context.setting_path(team.name, "sharing"), "absoluteBorrowLimits", index)
            stated.append((resource_of(limit), where))
        for quota_resource, path in stated:
            instance = context.instances.get(quota_resource.instance_type)
            if instance is None or quota_resource.count is not None:
                continue
            problem = usage(quota_resource, instance).problem
            if problem:
                key = "acceleratorPartition" if quota_resource.partition else "accelerators"
                yield Issue(
                    (*path, key),
                    f"team `{team.name}` {'requests' if quota_resource.path else 'may borrow'} {problem}",
                    _fraction_meant(quota_resource, instance),
                )
            elif None in (usage(quota_resource, instance).vector[1:4]):
                yield Issue(
                    path,
                    "this fraction can't be compared with the capacity: the catalog lacks values for "
                    f"{quota_resource.instance_type}",
                    "Use whole instances of this type, with `count`.",
                    "warning",
                )


def _unlent_capacity(context: Context) -> Iterator[Issue]:
    for team in context.plan.teams:
        if team.spec.activation_state == "Disabled" and not team.lends and team.quota_resources:
            yield Issue(
                context.setting_path(team.name, "activation_state"),
                f"team `{team.name}` is paused (activationState: Disabled) and lends nothing, so no queue can use its "
                "quota",
                "Set the strategy `Lend` or `LendAndBorrow`, so that other teams can borrow its quota.",
            )
    governance, policy = context.spec.governance, context.plan.policy
    if governance is None or policy is None:
        return
    is_shared = policy.idle_resource_sharing == "Enabled"
    quota_types = {each.instance_type for team in context.plan.teams for each in team.quota_resources}
    lent = {
        each.instance_type: as_instances(each, context.instances.get(each.instance_type)) or 0
        for each in unallocated(context.plan.teams, context.plan.capacity, context.instances)
    }
    for quota in context.quotas:
        instance = context.instances.get(quota.instance_type)
        # Nodes without accelerators of which no team has a quota resource are the system's own.
        for_tasks = quota.instance_type in quota_types or (instance is not None and instance.accelerators != 0)
        unlent = _unlent(quota)
        if unlent > 0 and for_tasks and not (is_shared and (quota.borrowers or not context.plan.teams)):
            them = "it" if unlent <= 1 else "them"
            why = "neither allocated nor shared, so no job can use"
            if is_shared:
                why = "not allocated, and no team can borrow"
            yield Issue(
                (*context.path, "governance"),
                f"{amount(unlent)} of {quota.capacity.permanent} × {quota.instance_type} "
                f"{'is' if unlent <= 1 else 'are'} {why} {them}",
                _lending(context, quota, is_shared=is_shared, by_a_pool=lent.get(quota.instance_type, 0) >= unlent),
            )


def _unlent(quota: TypeQuota) -> Amount:
    """Return the unallocated permanent instances, less those that elastic quota relies on."""
    maximum = quota.capacity.maximum
    if maximum is None:
        return quota.unallocated
    return max(min(quota.unallocated, maximum - sum(share.reserved + share.elastic for share in quota.teams)), 0)


def _lending(context: Context, quota: TypeQuota, *, is_shared: bool, by_a_pool: bool) -> str:
    """Return how to make unallocated capacity useful; by_a_pool: a shared pool would take all of it."""
    if not quota.borrowers:
        shared = "add sharedPool, or set idleResourceSharing" if by_a_pool else "set idleResourceSharing"
        return let_borrow([quota.instance_type]) + ("." if is_shared else f", and share them: {shared}.")
    policy = "governance.clusterPolicy" if len(context.policy_path) > 1 else "the organization's clusterPolicy"
    lent = f"set `idleResourceSharing: Enabled` in {policy}"
    pool = "sharedPool: {}" if SharedPool().name not in context.team_paths else "sharedPool: {name: pool}"
    return f"Allocate them, {f'add `{pool}`, ' if by_a_pool else ''}or {lent}."


def let_borrow(instance_types: Sequence[str]) -> str:
    """Return what makes unallocated instances useful that no team can borrow."""
    return (
        "Allocate them, or remove the instances. Or let a team borrow them (strategy LendAndBorrow, with "
        f"absoluteBorrowLimits for {listing(instance_types)} instead of borrowLimit)"
    )


def _borrow_limit_is_reachable(context: Context) -> Iterator[Issue]:
    shares: dict[str, list[tuple[str, TeamShare]]] = {}
    for quota in context.quotas:
        for share in quota.teams:
            shares.setdefault(share.team, []).append((quota.instance_type, share))
    for team in context.plan.teams:
        if not team.borrows or (team.spec.sharing.borrow_limit is None and not team.absolute_borrow_limits):
            continue
        beyond, reachable, fit = [], False, 0
        for name, share in shares.get(team.name, []):
            # CAP003 reports a type that no group provides.
            if team.absolute_borrow_limits and name not in team.absolute_borrow_limits.keys() & context.plan.capacity:
                continue
            limited = share.borrow_limit or name in team.absolute_borrow_limits
            above = _above_lenders(context, team, name, share) if limited else []
            beyond += above
            reachable |= bool(share.borrow_limit) and not above
            if above and team.spec.sharing.borrow_limit is not None:
                fit = max(fit, _percentage(team.spec.sharing.borrow_limit, share))
        # One percentage serves all types: it is too high only where no type can fill it.
        if beyond and (team.absolute_borrow_limits or not reachable):
            key = "absoluteBorrowLimits" if team.absolute_borrow_limits else "borrowLimit"
            yield Issue(
                (*context.setting_path(team.name, "sharing"), key),
                f"in `{context.environment}`, team `{team.name}` may borrow more than the other teams can lend "
                f"({listing(beyond, 4)})",
                f"{_lower_limit(context, team, fit)}, or let other teams lend more. Kueue accepts the limit, but the "
                "excess has no effect, and jobs that rely on it wait forever.",
            )


def _percentage(percentage: int, share: TeamShare) -> int:
    """Return the lowest percentage that allows borrowing everything, if it's accepted, or else the next lower one."""
    exact = Fraction(percentage) * Fraction(share.borrowable) / Fraction(share.borrow_limit)
    limit = Fraction(share.borrow_limit) * math.ceil(exact) / percentage
    return math.floor(exact) if _is_beyond(limit, share.borrowable, percent=True) else math.ceil(exact)


def _lower_limit(context: Context, team: TeamPlan, fit: int) -> str:
    """Return how to lower a borrow limit, without a change for other environments that use it."""
    if not (own := context.own_settings(team.name, "sharing")):
        return f"Set `borrowLimit: {fit}`" if fit else "Lower the limit to what they can lend"
    if team.absolute_borrow_limits:
        return f"Write lower limits in `{own}.sharing`"
    sharing = f"strategy: LendAndBorrow, borrowLimit: {fit}" if fit else "strategy: Lend"
    return f"Set `{own}.sharing` to `{{{sharing}}}` for this environment"


def _above_lenders(context: Context, team: TeamPlan, name: str, share: TeamShare) -> list[str]:
    """Return the resource of a borrow limit of which others have less to lend, in words; accelerators come first."""
    plan, limit = context.plan, team.absolute_borrow_limits.get(name, ())
    if all(each.count is not None for each in limit):
        if not _is_beyond(share.borrow_limit, share.borrowable, percent=not limit):
            return []
        return [f"{name}: limit {amount(share.borrow_limit)}, others can lend {amount(share.borrowable)}"]
    lenders = [each for other in plan.teams if other.lends and other is not team for each in other.quota_resources]
    if plan.policy is not None and plan.policy.idle_resource_sharing == "Enabled":
        lenders += unallocated(plan.teams, plan.capacity, context.instances)
    try:
        lent = amounts_by_type(each for each in lenders if each.instance_type == name).get(name, {})
        most = amounts_by_type(limit)[name]
    except CatalogError:
        return []
    # Memory in proportion to vCPUs isn't in the file, so it comes last.
    derived = "memory" if any(each.v_cpu and each.memory_in_gib is None for each in limit) else None
    order = [*reversed(most)]
    for resource in sorted(order, key=lambda each: each == derived):
        had = lent.get(resource, 0)
        if resource != EFA and most[resource] > had:
            return [f"{name}: limit {_in_words(resource, most[resource])}, others can lend {_in_words(resource, had)}"]
    return []


def _in_words(resource: str, base_units: int) -> str:
    return f"{base_units / 2**30:g} GiB" if resource == "memory" else f"{quantity_of(resource, base_units)} {resource}"


def _is_beyond(limit: Amount, borrowable: Amount, *, percent: bool) -> bool:
    """Return whether a limit exceeds what others can lend; both in instances.

    Percentages are seldom whole instances. A limit that exceeds it by part of an instance is the lowest one that allows
    borrowing everything.
    """
    return limit >= borrowable + 1 if percent and borrowable >= 1 else limit > borrowable


def _exceeding_shares(context: Context) -> dict[tuple[str, bool], list[tuple[str, QuotaResource]]]:
    """Return the quota resources of each type, and of its elastic quota, whose shares exceed 100 percent (CAP007)."""
    shares: dict[tuple[str, bool], list[tuple[str, QuotaResource]]] = {}
    for team in context.plan.teams:
        for resource in team.quota_resources:
            if resource.share is not None:
                shares.setdefault((resource.instance_type, resource.elastic), []).append((team.name, resource))
    return {key: parts for key, parts in shares.items() if _total(parts) > 1}


def _total(parts: Sequence[tuple[str, QuotaResource]]) -> Fraction:
    return sum((resource.share or Fraction(0) for _, resource in parts), Fraction(0))


def _shares_fit(context: Context) -> Iterator[Issue]:
    for (name, elastic), parts in _exceeding_shares(context).items():
        # By name, because the order of teams has no meaning.
        shares = sorted((team, resource.share or Fraction(0)) for team, resource in parts)
        team_shares = listing([f"{team} {amount(share * 100)}%" for team, share in shares])
        _, largest = max(parts, key=lambda part: part[1].share or 0)
        left = _left_for_shares(context, name, elastic=elastic)
        own = math.floor((left - _total(parts) + (largest.share or 0)) * 100)
        scaled = [f"{team} {math.floor(share * 100 * left / _total(parts))}%" for team, share in shares]
        yield Issue(
            (*largest.path, "share"),
            f"shares of {name} add up to {amount(_total(parts) * 100)}% of "
            f"{'the maximum' if elastic else 'the running instances'} ({team_shares}); the limit is 100%",
            f"Use `{own}%`, or lower other shares."
            if own > 0
            else f"Lower the shares, for example to {listing(scaled)}."
            if left
            else "Remove the shares: the other allocations use all instances.",
        )


def _left_for_shares(context: Context, name: str, *, elastic: bool) -> Fraction:
    """Return the part of the instances, or of the maximum, that no allocation without such a share uses."""
    capacity = context.plan.capacity.get(name)
    total = 0 if capacity is None else (capacity.maximum or 0) if elastic else capacity.permanent
    if not total:
        return Fraction(1)
    rows = _resources_by_type(context)[name]
    others = [
        (team, row) for team, row in rows if (row.share is None or row.elastic != elastic) and elastic >= row.elastic
    ]
    return max(1 - Fraction(_wanted(others, context.instances.get(name))) / total, Fraction(0))


def _spot_is_not_certain(context: Context) -> Iterator[Issue]:
    spot: dict[str, int] = {}
    for group in context.plan.groups:
        # One of a training plan is CLU025's.
        if group.spec.training_plan_arn is not None:
            continue
        if group.spec.capacity_type == "Spot" and not group.autoscaled and len(group.spec.types) == 1:
            spot[group.spec.types[0]] = spot.get(group.spec.types[0], 0) + group.spec.instance_count
    for name, rows in _resources_by_type(context).items():
        capacity, instance = context.plan.capacity.get(name), context.instances.get(name)
        written = [(team, row) for team, row in rows if not row.elastic and row.path]
        if capacity is None or instance is None or not spot.get(name) or not written:
            continue
        certain, reserved = capacity.permanent - spot[name], math.ceil(_wanted(written, instance))
        if reserved > certain:
            yield Issue(
                _last_path(written),
                f"{reserved} × {name} allocated, but only {certain} of {capacity.permanent} are on-demand; AWS can "
                f"reclaim the {spot[name]} Spot instances at any time",
                "Allocate only on-demand instances, and let teams borrow the rest.",
            )


def _reserves_something(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    for name, rows in (governance.allocations if governance else {}).items():
        if not rows:
            path = (*context.path, "governance", "allocations", name)
            message = (
                f"team `{name}` has an empty list of allocations, so it has neither quota nor a queue in this "
                "environment"
            )
            yield Issue(path, message, f"Remove `{name}` from allocations, or add an allocation.")
    for team in context.plan.teams:
        for resource in team.quota_resources:
            if not resource.path or resource.instance_type in team.absolute_borrow_limits or not _is_nothing(resource):
                continue
            known = context.plan.capacity.get(resource.instance_type)
            if resource.share and (known is None or not context.is_capacity_certain(resource.instance_type)):
                # The share of a type that no group has (CAP003, CLU003) is zero only until the type is corrected.
                continue
            of = known.permanent if known and not resource.elastic else known.maximum if known else None
            if resource.share and of:
                why = f"{amount(resource.share * 100)}% of {of} × {resource.instance_type} is less than one instance"
            else:
                why = f"team `{team.name}` has quota for 0 × {resource.instance_type}"
            yield Issue(
                resource.path,
                f"{why}. The borrow limit of team `{team.name}` is a percentage of its quota, so it "
                "can't borrow either",
                "Set the amount that the team needs, add a limit to sharing.absoluteBorrowLimits (no quota "
                "required), or remove the entry.",
            )


def _fractions_go_together(context: Context) -> Iterator[Issue]:
    for team in context.plan.teams:
        for resource in team.quota_resources:
            instance = context.instances.get(resource.instance_type)
            chips = resource.accelerators
            if instance is None or not chips or not resource.path:
                continue
            short = [
                f"{amount(value)} {unit}"
                for unit, value in (("vCPU", resource.v_cpu), ("GiB of memory", resource.memory_in_gib))
                if value is not None and value < chips
            ]
            if short and instance.accelerators and instance.vcpu and instance.memory_gib:
                part = Fraction(chips) / instance.accelerators
                yield Issue(
                    resource.path,
                    f"team `{team.name}` has quota for {amount(chips)} accelerators of {resource.instance_type} with "
                    f"{listing(short)}, less than one for each accelerator; jobs that request more would wait",
                    "Remove vCpu and memoryInGiB: they default to a proportional share "
                    f"({amount(part * instance.vcpu)} vCPU, {amount(part * instance.memory_gib)} GiB).",
                )


def _is_partitioned(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        if not isinstance(group, InstanceGroup) or group.labels.get(MIG_LABEL, _UNPARTITIONED) == _UNPARTITIONED:
            continue
        instance = find_instance_type(group.instance_type or "")
        if instance is not None and instance.mig_profiles == ():
            yield Issue(
                (*path, "labels", MIG_LABEL),
                f"group `{group.name}` has the label {MIG_LABEL}, and {instance.name} has no GPU that MIG can "
                "partition",
                "Remove the label, or use an instance type with MIG profiles.",
            )
        if group.instance_types:
            yield Issue(
                (*path, "labels", MIG_LABEL),
                f"group `{group.name}` has instanceTypes, and HyperPod partitions only GPUs of groups with a single "
                "instanceType",
                "Create a group with a single instanceType for the partitions, or remove the label.",
            )
    for team in context.plan.teams:
        for resource in team.quota_resources:
            instance, partition = context.instances.get(resource.instance_type), resource.partition
            profiles = {each.name for each in (instance.mig_profiles or () if instance else ())}
            groups = [group.spec for group in context.plan.groups if resource.instance_type in group.spec.types]
            if partition is None or resource.accelerators is not None or partition.type not in profiles or not groups:
                continue
            label_needed = f"all-{partition.type.removeprefix('mig-')}"
            single = [group for group in groups if group.instance_type]
            labels = [group.labels.get(MIG_LABEL) for group in single]
            # Layouts with several profiles, such as all-balanced, are defined in the cluster.
            others = {_UNPARTITIONED, *(f"all-{name.removeprefix('mig-')}" for name in profiles)} - {label_needed}
            if any(label and label not in others for label in labels):
                continue
            yield Issue(
                (*resource.path, "acceleratorPartition"),
                f"team `{team.name}` has quota for {partition.type} of {resource.instance_type}, but "
                + _why_whole(groups, sorted({label for label in labels if label}))
                + ", so no GPU is partitioned that way",
                f"{_where_to_partition(resource.instance_type, single, label_needed)} Install the NVIDIA GPU Operator, "
                "which partitions its GPUs, and turn off the chart's device plugin: in `cluster.dependencies.values`, "
                "set nvidia-device-plugin.devicePlugin.enabled to false.",
                "warning",
            )


def _why_whole(groups: Sequence[InstanceGroup], stated: Sequence[str]) -> str:
    if stated:
        return f"the type's groups set {MIG_LABEL} to {listing(stated)}"
    if any(group.instance_type for group in groups):
        return f"no group sets {MIG_LABEL}"
    return f"only groups with instanceTypes have it ({listing([group.name for group in groups])})"


def _where_to_partition(name: str, single: Sequence[InstanceGroup], label: str) -> str:
    if single:
        return f"Add `labels: {{{MIG_LABEL}: {label}}}` to a group of the type."
    return f"Create a group with the single instanceType {name} and the label {MIG_LABEL}: {label}."


def _is_nothing(resource: QuotaResource) -> bool:
    """Return whether an entry's amounts are all zero; GOV003 reports one without amounts."""
    stated = amounts(resource)
    return any(each is not None for each in stated) and not any(stated)


def amounts(resource: QuotaResource) -> list[object]:
    """Return an entry's amount in every measure, None if it sets none."""
    partition = resource.partition.count if resource.partition else None
    return [resource.count, resource.accelerators, resource.v_cpu, resource.memory_in_gib, partition]


RULES = (
    Rule(
        "CAP001",
        "error",
        "The quota of an instance type fits its permanent capacity.",
        _GUIDE,
        _reserved_fits_permanent,
        waivable=False,
    ),
    Rule(
        "CAP002",
        "error",
        "Quota, including elastic quota, fits the maximum capacity.",
        _GUIDE,
        _elastic,
        waivable=False,
    ),
    Rule(
        "CAP003",
        "error",
        "Quota uses instance types that an instance group provides.",
        _GUIDE,
        _type_is_provided,
        waivable=False,
    ),
    Rule(
        "CAP004",
        "error",
        "Fractions and MIG profiles are supported by the instance type.",
        _GUIDE,
        _fraction_exists,
        waivable=False,
    ),
    Rule("CAP005", "warning", "Unallocated capacity can be borrowed.", _GUIDE, _unlent_capacity),
    Rule(
        "CAP006", "warning", "Borrow limits don't exceed what other teams can lend.", _GUIDE, _borrow_limit_is_reachable
    ),
    Rule("CAP007", "error", "Shares of an instance type add up to at most 100 percent.", _GUIDE, _shares_fit),
    Rule("CAP008", "warning", "Allocations aren't empty.", _GUIDE, _reserves_something),
    Rule("CAP009", "warning", "Quota doesn't rely on Spot instances.", _SPOT, _spot_is_not_certain),
    Rule(
        "CAP010", "warning", "Quota for accelerators includes enough vCPUs and memory.", _GUIDE, _fractions_go_together
    ),
    Rule("CAP011", "warning", "Elastic quota uses instance types that Karpenter adds.", _GUIDE, _elastic_by_something),
    Rule(
        "CAP012",
        "error",
        "MIG partitions are configured on groups with a single type that supports MIG.",
        _MIG,
        _is_partitioned,
    ),
)
