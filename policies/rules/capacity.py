"""Quotas against the capacity that the stack really registers, by the core's own arithmetic.

Does not: let these policies be waived; a quota that does not fit is one that some team waits for in vain.
"""

from collections.abc import Sequence

from hpkit.catalog import find_instance_type
from hpkit.checks.capacity import excess
from hpkit.checks.rule import listing
from hpkit.plan.capacity import QuotaResource, TypeCapacity, usage
from policies.model import Parameter, Policy, Resource, Results, Settings, Undecided, Violation, of_type
from policies.stack_inputs import CLUSTER, QUOTA, capacity_of, known_types, quota_of, quotas_by_cluster

__all__ = ["POLICIES"]

_ELASTIC = Parameter(
    "elasticQuotas",
    "Quotas that may count on nodes which Karpenter adds: with all others of the type they fit the maximum.",
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["team", "instanceType"],
            "additionalProperties": False,
            "properties": {"team": {"type": "string"}, "instanceType": {"type": "string", "pattern": r"^ml\."}},
        },
    },
    [],
)
_FUTURE = Parameter(
    "futureInstanceTypes",
    "Instance types that may have quota before any instance group provides them.",
    {"type": "array", "items": {"type": "string", "pattern": r"^ml\."}},
    [],
)
_QuotaResources = list[tuple[str, QuotaResource]]


def _fits_capacity(resources: Sequence[Resource], settings: Settings) -> Results:
    elastic = {(each["team"], each["instanceType"]) for each in settings[_ELASTIC.name]}
    matched, elsewhere = quotas_by_cluster(resources)
    for lost in elsewhere:
        yield Undecided(f"{lost.name} is of a cluster that this stack does not have, so of unknown capacity", lost)
    for cluster in of_type(resources, CLUSTER):
        capacity, quotas = capacity_of(cluster, resources), matched[cluster.urn]
        by_type: dict[str, _QuotaResources] = {}
        for quota in quotas:
            for quota_resource in quota.quota_resources:
                by_type.setdefault(quota_resource.instance_type, []).append((quota.team, quota_resource))
            if quota.unknown_types:
                yield Undecided(f"{quota.resource.name}: not all of its quota is known before the update", cluster)
        for name, quota_resources in sorted(by_type.items()):
            if not capacity.is_known(name):
                yield Undecided(f"{cluster.name}: how many {name} it has is not known before the update", cluster)
            elif name in capacity.by_type:
                yield from _compare(cluster, name, quota_resources, known=capacity.by_type[name], elastic=elastic)


def _compare(
    cluster: Resource,
    name: str,
    quota_resources: _QuotaResources,
    *,
    known: TypeCapacity,
    elastic: set[tuple[str, str]],
) -> Results:
    instance = known_types(cluster, [name]).get(name)
    guaranteed = [(team, quota_resource) for team, quota_resource in quota_resources if (team, name) not in elastic]
    message = excess(name, guaranteed, known.guaranteed, instance=instance, what="guaranteed")
    fix = f"Lower a quota, or raise instanceCount of {listing(list(known.groups))}"
    if message is None and len(guaranteed) < len(quota_resources):
        limit = known.guaranteed if known.maximum is None else known.maximum
        message = excess(name, quota_resources, limit, instance=instance, what="at most with Karpenter")
        fix += " or the limits of its NodePools"
        if message is not None and known.maximum is None:
            yield Undecided(f"{cluster.name}: no limit of {listing(list(known.pools))} bounds {name}", cluster)
            return
    if message is not None:
        yield Violation(f"{cluster.name}: {message}", f"{fix}.", cluster)


def _type_is_provided(resources: Sequence[Resource], settings: Settings) -> Results:
    matched, _ = quotas_by_cluster(resources)
    for cluster in of_type(resources, CLUSTER):
        capacity = capacity_of(cluster, resources)
        for quota in matched[cluster.urn]:
            for name in dict.fromkeys(quota_resource.instance_type for quota_resource in quota.quota_resources):
                if name in capacity.by_type or name in settings[_FUTURE.name]:
                    continue
                if not capacity.is_known(name):
                    yield Undecided(f"{cluster.name}: not all of its instance types are known", quota.resource)
                    continue
                yield Violation(
                    f"{quota.team} has quota of {name}, which no instance group of {cluster.name} provides "
                    f"(provided: {listing(sorted(capacity.by_type)) or 'nothing'})",
                    f"Name a provided type, add a group of it, or list it in {_FUTURE.name}.",
                    quota.resource,
                )


def _fraction_exists(quota: Resource, _settings: Settings) -> Results:
    for quota_resource in quota_of(quota).quota_resources:
        instance = find_instance_type(quota_resource.instance_type)
        problem = (
            usage(quota_resource, instance).problem if instance is not None and quota_resource.count is None else None
        )
        if problem:
            yield Violation(f"{quota.name} asks for {problem}", "Ask for what the type has, or another type.")


POLICIES = (
    Policy(
        name="quota-fits-capacity",
        description="The quotas of a cluster together fit its capacity: what its groups guarantee, in every dimension; "
        "those that may count on Karpenter fit what the NodePools' limits allow.",
        validate_stack=_fits_capacity,
        parameters=(_ELASTIC,),
        waivable=False,
    ),
    Policy(
        name="quota-type-provided",
        description="A quota is of an instance type that some instance group of its cluster provides.",
        validate_stack=_type_is_provided,
        parameters=(_FUTURE,),
        waivable=False,
    ),
    Policy(
        name="quota-fraction-exists",
        description="A quota asks only for accelerators and MIG profiles that its instance type has.",
        types=(QUOTA,),
        validate=_fraction_exists,
        waivable=False,
    ),
)
