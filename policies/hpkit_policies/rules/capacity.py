"""Compares quotas with the capacity that the stack registers, using the validator's calculations.

These policies can't be waived: a team would wait forever for quota that doesn't fit.
"""

from collections.abc import Sequence

from hpkit.catalog import find_instance_type
from hpkit.checks.capacity import excess
from hpkit.plan.capacity import QuotaResource, TypeCapacity, usage
from hpkit.text.formatting import listing
from hpkit_policies.model import UNKNOWN, Policy, Resource, Results, Settings, Undecided, Violation, of_type
from hpkit_policies.stack_inputs import (
    CLUSTER,
    QUOTA,
    Quota,
    cluster_capacity,
    known_types,
    parse_quota,
    quotas_by_cluster,
)

__all__ = ["POLICIES"]


def _fits_capacity(resources: Sequence[Resource], _settings: Settings) -> Results:
    matched, elsewhere = quotas_by_cluster(resources)
    for lost in elsewhere:
        # By its ARN, it is of a cluster that another stack or tool manages: the program compares that one's groups.
        if lost.get_or_unknown("clusterArn") is UNKNOWN:
            yield Undecided(f"the cluster of `{lost.name}` isn't known before the update", lost)
    for cluster in of_type(resources, CLUSTER):
        capacity, quotas = cluster_capacity(cluster, resources), matched[cluster.urn]
        by_type: dict[str, list[Quota]] = {}
        for quota in quotas:
            for name in {quota_resource.instance_type for quota_resource in quota.quota_resources}:
                by_type.setdefault(name, []).append(quota)
            if quota.unknown_types:
                yield Undecided(f"`{quota.resource.name}`: its quota isn't fully known before the update", cluster)
        for name, own in sorted(by_type.items()):
            if not capacity.is_known(name):
                yield Undecided(f"`{cluster.name}`: its number of {name} isn't known before the update", cluster)
            elif name in capacity.by_type:
                yield from _compare(cluster, name, own, capacity=capacity.by_type[name])


def _compare(cluster: Resource, name: str, quotas: Sequence[Quota], *, capacity: TypeCapacity) -> Results:
    instance = known_types(cluster, [name]).get(name)
    static = _of_type(name, [quota for quota in quotas if name not in quota.elastic])
    all_quota = _of_type(name, quotas)
    message = excess(name, static, capacity.permanent, instance=instance)
    groups = listing([f"`{group}`" for group in capacity.groups])
    fix = f"Lower a quota, or raise `instanceCount` of {'group' if len(capacity.groups) == 1 else 'groups'} {groups}"
    if message is None and len(static) < len(all_quota):
        limit = capacity.permanent if capacity.maximum is None else capacity.maximum
        message = excess(name, all_quota, limit, instance=instance, with_karpenter=True)
        fix += " or the limits of its NodePools"
        if message is not None and capacity.maximum is None:
            yield Undecided(f"`{cluster.name}`: no limit of {listing(list(capacity.pools))} bounds {name}", cluster)
            return
    if message is not None:
        place, cause = f"computeQuotaConfig.computeQuotaResources[{name}]", quotas[-1].resource
        yield Violation(f"`{cluster.name}`: {message}", f"{fix}.", cluster, place, cause)


def _of_type(name: str, quotas: Sequence[Quota]) -> list[tuple[str, QuotaResource]]:
    """Return team and quota resource for everything that some quotas reserve of an instance type."""
    return [(quota.team, each) for quota in quotas for each in quota.quota_resources if each.instance_type == name]


def _type_is_provided(resources: Sequence[Resource], _settings: Settings) -> Results:
    matched, _ = quotas_by_cluster(resources)
    for cluster in of_type(resources, CLUSTER):
        capacity = cluster_capacity(cluster, resources)
        for quota in matched[cluster.urn]:
            for name in dict.fromkeys(quota_resource.instance_type for quota_resource in quota.quota_resources):
                if name in capacity.by_type or name in quota.future:
                    continue
                if not capacity.is_known(name):
                    yield Undecided(f"`{cluster.name}`: its instance types aren't fully known", quota.resource)
                    continue
                yield Violation(
                    f"team `{quota.team}` has quota of {name}, but no instance group of `{cluster.name}` provides it "
                    f"(provided: {listing(sorted(capacity.by_type)) or 'nothing'})",
                    "Use a provided instance type, add a group of this type, or list it in futureInstanceTypes of "
                    "the quota (`future: true` in the organization file).",
                    quota.resource,
                    f"computeQuotaConfig.computeQuotaResources[{name}]",
                )


def _fraction_exists(quota: Resource, _settings: Settings) -> Results:
    for quota_resource in parse_quota(quota).quota_resources:
        instance = find_instance_type(quota_resource.instance_type)
        problem = (
            usage(quota_resource, instance).problem if instance is not None and quota_resource.count is None else None
        )
        if problem:
            yield Violation(
                f"{quota.name} requests {problem}",
                "Request a fraction that this type supports, or choose another type.",
            )


POLICIES = (
    Policy(
        name="quota-fits-capacity",
        description="Quotas of a cluster of the stack fit its permanent capacity in every dimension. Quota of "
        "`elasticInstanceTypes` fits the limits of the NodePools.",
        validate_stack=_fits_capacity,
        waivable=False,
    ),
    Policy(
        name="quota-type-provided",
        description="Quotas use instance types that an instance group of the cluster provides.",
        validate_stack=_type_is_provided,
        waivable=False,
    ),
    Policy(
        name="quota-fraction-exists",
        description="Quotas request only accelerators and MIG profiles that the instance type supports.",
        types=(QUOTA,),
        validate=_fraction_exists,
        waivable=False,
    ),
)
