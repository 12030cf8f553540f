"""From the typed organization to the frozen plan of one environment.

It checks nothing: every organization that config can read has a plan, and the checks report its problems.
"""

import ipaddress
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from hpkit.catalog import InstanceType, find_instance_type
from hpkit.config.models.autoscaling import NodePool
from hpkit.config.models.cluster import InstanceGroupBase
from hpkit.config.models.governance import ComputeQuotaResource, Governance, SharedPool, Sharing, Team, TeamOverride
from hpkit.config.models.network import Network
from hpkit.config.models.organization import Environment, Organization
from hpkit.plan.capacity import (
    GroupCapacity,
    PoolCapacity,
    TypeQuota,
    apportion,
    dimensions_of,
    matching_types,
    quota_table,
    reserve,
    type_capacities,
)
from hpkit.plan.dependencies import addons_of, dependencies_of
from hpkit.plan.model import (
    GroupPlan,
    NetworkPlan,
    NodePoolPlan,
    Plan,
    QuotaResource,
    RestrictedGroupPlan,
    TeamPlan,
    TypeCapacity,
    ZonePlan,
    resource_of,
)
from hpkit.plan.principals import admits, made_role_arn, member_role_of

__all__ = ["OWN_TAGS", "ZONE_KEY", "derive", "derive_all", "instances_of", "quotas_of", "share_of", "unallocated"]

# Endpoints that a cluster without internet requires. For nodes: ec2, ecr, s3, sts, logs, monitoring. For access to
# them: ssm. For pod identity and the Kubernetes API: eks-auth, eks. For operators: sagemaker.api. For keys and metrics:
# kms, aps.
_CLOSED = (
    "aps-workspaces", "ec2", "ec2messages", "ecr.api", "ecr.dkr", "eks", "eks-auth", "kms", "logs",
    "monitoring", "s3", "sagemaker.api", "ssm", "ssmmessages", "sts",
)  # fmt: skip
# The observability add-on gets the workspace, and AWS's Terraform for closed networks has this endpoint. Source: Amazon
# Managed Grafana user guide, "Interface VPC endpoints": the Grafana API of workspaces has one of its own.
_CLOSED_GRAFANA = "grafana-workspace"
# Several HyperPod add-ons work only on resources that carry this tag.
OWN_TAGS = {"SageMaker": "true"}
ZONE_KEY = "topology.kubernetes.io/zone"


def derive_all(organization: Organization) -> dict[str, Plan]:
    """Return environment → plan of a whole organization."""
    return {name: derive(organization, name) for name in sorted(organization.environments)}


def derive(organization: Organization, environment: str) -> Plan:
    """Return the plan of one environment; raises KeyError when the organization has no such environment."""
    spec = organization.environments[environment]
    node_classes = _node_class_of(spec)
    zones = _zones(spec.network)
    groups = tuple(
        GroupPlan(group, _group_zones(group, zones), node_classes.get(group.name))
        for group in sorted(spec.cluster.instance_groups, key=lambda group: group.name)
    )
    restricted = tuple(
        RestrictedGroupPlan(group, _group_zones(group, zones))
        for group in sorted(spec.cluster.restricted_instance_groups, key=lambda group: group.name)
    )
    pools = tuple(_node_pool(pool, groups) for pool in sorted(_pools(spec), key=lambda pool: pool.name))
    capacity = _capacity(groups, pools)
    governance = spec.governance
    policy = None if governance is None else governance.cluster_policy or organization.cluster_policy
    return Plan(
        organization=organization.organization,
        environment=environment,
        spec=spec.model_copy(update={"autoscaling": None}) if spec.cluster.existing else spec,
        tags={
            "hpkit:organization": organization.organization,
            "hpkit:environment": environment,
            **OWN_TAGS,
            **organization.tags,
        },
        network=_network(spec, zones),
        groups=groups,
        restricted_groups=restricted,
        node_pools=() if spec.cluster.existing else pools,
        policy=policy,
        teams=_teams(organization, environment, capacity, groups) if governance is not None else (),
        capacity=capacity,
        addons=addons_of(spec),
        dependencies=dependencies_of(spec),
        topology_aware_scheduling=_topology(spec),
    )


def instances_of(plan: Plan) -> dict[str, InstanceType]:
    """Return every type of a group or a team that the catalog knows, with the vCPUs that its groups provide."""
    names = set(plan.capacity)
    for team in plan.teams:
        names.update(quota_resource.instance_type for quota_resource in team.quota_resources)
        names.update(team.absolute_borrow_limits)
    return _effective_types(sorted(names), plan.groups)


def _effective_types(names: Iterable[str], groups: tuple[GroupPlan, ...]) -> dict[str, InstanceType]:
    """Return types as the groups run them: with one thread per core, if a group disables multithreading.

    If two groups with the same type differ, the smaller counts, so that permanent amounts exist on either.
    """
    threads: dict[str, list[int]] = {}
    for group in groups:
        for name in group.spec.types:
            if group.spec.threads_per_core is not None:
                threads.setdefault(name, []).append(group.spec.threads_per_core)
    details = {name: find_instance_type(name) for name in names}
    return {
        name: instance.with_threads(min(threads[name]) if name in threads else None)
        for name, instance in details.items()
        if instance is not None
    }


def quotas_of(plan: Plan) -> tuple[TypeQuota, ...]:
    """Return capacity and every team's part of a plan, one entry per instance type."""
    lend = plan.policy is not None and plan.policy.idle_resource_sharing == "Enabled"
    return quota_table(plan.teams, plan.capacity, instances_of(plan), lend_unallocated=lend)


def _pools(spec: Environment) -> tuple[NodePool, ...]:
    return spec.autoscaling.node_pools if spec.autoscaling else ()


def _node_class_of(spec: Environment) -> dict[str, str]:
    classes = spec.autoscaling.node_classes if spec.autoscaling else ()
    return {group: node_class.name for node_class in classes for group in node_class.instance_groups}


def _zones(network: Network) -> tuple[ZonePlan, ...]:
    if network.existing is not None:
        subnets = network.existing.subnets
        return tuple(ZonePlan(zone, None, subnets[zone]) for zone in sorted(subnets))
    named = {zone.availability_zone: zone.node_cidr for zone in network.zones}
    return tuple(ZonePlan(zone, named[zone], None, _inside(named[zone], network.vpc_cidr)) for zone in sorted(named))


def _inside(cidr: str, vpc_cidr: str | None) -> bool:
    try:
        return vpc_cidr is not None and ipaddress.IPv4Network(cidr).subnet_of(ipaddress.IPv4Network(vpc_cidr))
    except ValueError:
        return False


def _network(spec: Environment, zones: tuple[ZonePlan, ...]) -> NetworkPlan:
    network, existing = spec.network, spec.network.existing
    makes_none = existing is not None or spec.cluster.existing
    gateways = {"Single": min(1, len(zones)), "PerZone": len(zones), "None": 0}[network.nat_gateways]
    endpoints = set(network.endpoints) | (set(_CLOSED) if network.closed else set())
    if network.closed and spec.observability is not None and spec.observability.grafana:
        endpoints.add(_CLOSED_GRAFANA)
    return NetworkPlan(
        vpc_id=existing.vpc_id if existing else None,
        zones=zones,
        nat_gateways=0 if makes_none or network.closed else gateways,
        endpoints=() if makes_none else tuple(sorted(endpoints)),
    )


def _group_zones(group: InstanceGroupBase, zones: tuple[ZonePlan, ...]) -> tuple[str, ...]:
    if group.availability_zone is not None:
        return (group.availability_zone,)
    named = group.override_vpc_config.subnets if group.override_vpc_config else ()
    # Subnets that network.existing doesn't list are in unknown zones.
    known = tuple(zone.availability_zone for zone in zones if zone.subnet_id in named)
    return known or tuple(zone.availability_zone for zone in zones)


def _node_pool(spec: NodePool, groups: tuple[GroupPlan, ...]) -> NodePoolPlan:
    own = [group for group in groups if group.node_class == spec.node_class]
    requirements = [(each.key, each.operator, each.values) for each in spec.requirements]
    types = matching_types({name for group in own for name in group.spec.types}, requirements)
    zones = {zone for group in own for zone in group.zones}
    for key, operator, values in requirements:
        if operator == "In" and key == ZONE_KEY:
            zones &= set(values)
    # For an existing cluster, the zones are only known if the file declares them.
    reached = [group for group in own if not group.zones or zones.intersection(group.zones)]
    kept = {name for group in reached for name in group.spec.types if name in types}
    return NodePoolPlan(spec, tuple(sorted(kept)), tuple(sorted(zones)))


def _topology(spec: Environment) -> bool:
    if spec.governance is not None and spec.governance.installed:
        return False
    stated = spec.governance.topology_aware_scheduling if spec.governance else None
    return stated == "Enabled" if stated is not None else spec.karpenter is None


def _capacity(groups: tuple[GroupPlan, ...], pools: tuple[NodePoolPlan, ...]) -> dict[str, TypeCapacity]:
    return type_capacities(
        [GroupCapacity(g.spec.name, tuple(g.spec.types), g.spec.instance_count, g.autoscaled) for g in groups],
        [PoolCapacity(pool.spec.name, pool.instance_types, pool.spec.limits) for pool in pools],
        _effective_types((name for group in groups for name in group.spec.types), groups),
    )


def _teams(
    organization: Organization, environment: str, capacity: Mapping[str, TypeCapacity], groups: tuple[GroupPlan, ...]
) -> tuple[TeamPlan, ...]:
    spec = organization.environments[environment]
    governance = spec.governance or Governance()
    counts = _share_counts(governance, capacity)
    teams_by_name = {team.name: team for team in organization.teams}
    teams = [
        _team(
            _overridden(teams_by_name[name], governance.overrides.get(name, TeamOverride()), spec),
            made_role_arn(organization.organization, environment, spec, teams_by_name[name]),
            tuple(_quota_resources(name, quota_resources, environment, counts)),
            governance.quota_names.get(name),
        )
        for name, quota_resources in sorted(governance.allocations.items())
        if name in teams_by_name
    ]
    if governance.shared_pool is not None:
        teams.append(_shared_pool(governance, teams, capacity, _effective_types(capacity, groups)))
    return tuple(sorted(teams, key=lambda team: team.name))


def _overridden(team: Team, override: TeamOverride, environment: Environment) -> Team:
    """Return the team as it shares in one environment, with the members that the environment admits."""
    update = {name: value for name, value in override if value is not None}
    members = team.members if override.members is None else override.members
    update["member_role"] = member_role_of(team, override)
    update["members"] = tuple(dict.fromkeys(member for member in members if admits(environment, member)))
    return team.model_copy(update=update)


def _share_counts(governance: Governance, capacity: Mapping[str, TypeCapacity]) -> dict[tuple[str, int], int]:
    """Return (team, index of the quota resource) → instances, for all quota resources with a share."""
    shares: dict[tuple[str, bool], dict[tuple[str, int], Fraction]] = {}
    for team, quota_resources in governance.allocations.items():
        for index, quota_resource in enumerate(quota_resources):
            if quota_resource.share is not None:
                shares.setdefault((quota_resource.instance_type, quota_resource.elastic), {})[team, index] = share_of(
                    quota_resource.share
                )
    counts: dict[tuple[str, int], int] = {}
    for (name, elastic), holders in shares.items():
        known = capacity.get(name)
        total = 0 if known is None else (known.maximum or 0) if elastic else known.permanent
        keys = {f"{team}\0{index:06d}": (team, index) for team, index in holders}
        by_key = {key: holders[pair] for key, pair in keys.items()}
        counts.update({keys[key]: count for key, count in apportion(total, by_key).items()})
    return counts


def share_of(text: str) -> Fraction:
    """Return `40%` as the fraction 2/5."""
    return Fraction(text.removesuffix("%")) / 100


def _quota_resources(
    team: str,
    quota_resources: tuple[ComputeQuotaResource, ...],
    environment: str,
    counts: Mapping[tuple[str, int], int],
) -> Iterable[QuotaResource]:
    for index, stated in enumerate(quota_resources):
        yield replace(
            resource_of(stated, counts.get((team, index))),
            elastic=stated.elastic,
            future=stated.future,
            share=None if stated.share is None else share_of(stated.share),
            path=("environments", environment, "governance", "allocations", team, index),
        )


def _team(team: Team, made_role: str | None, quota_resources: tuple[QuotaResource, ...], named: str | None) -> TeamPlan:
    """Return the plan of a team; made_role: ARN of the role that the program creates, if the team has one."""
    if team.member_role is None or made_role is None:
        return TeamPlan(team, quota_resources, named=named)
    team = team.model_copy(update={"members": (*team.members, made_role)})
    return TeamPlan(team, quota_resources, named=named, made_role=made_role)


def _shared_pool(
    governance: Governance,
    teams: list[TeamPlan],
    capacity: Mapping[str, TypeCapacity],
    instances: Mapping[str, InstanceType],
) -> TeamPlan:
    """Return the pool as a team: all unallocated capacity, all of it lent."""
    pool = governance.shared_pool or SharedPool()
    return TeamPlan(
        Team(name=pool.name, fair_share_weight=pool.fair_share_weight, sharing=Sharing(strategy="Lend")),
        tuple(unallocated(teams, capacity, instances)),
        is_shared_pool=True,
        named=governance.quota_names.get(pool.name),
    )


def unallocated(
    teams: Iterable[TeamPlan], capacity: Mapping[str, TypeCapacity], instances: Mapping[str, InstanceType]
) -> list[QuotaResource]:
    """Return a shared pool's resources, one for each instance type with remaining capacity.

    The pool gets what no static quota needs of the permanent instances, within the maximum minus elastic quota. It
    gets whole instances, or accelerators, vCPU and memory if teams reserve parts. Types without accelerators are for
    add-ons, unless a team has static quota of them.
    """
    quota: dict[str, list[QuotaResource]] = {}
    for team in teams:
        for quota_resource in team.quota_resources:
            quota.setdefault(quota_resource.instance_type, []).append(quota_resource)
    pool = []
    for name, available in capacity.items():
        of_type, instance, catalogued = quota.get(name, []), instances.get(name), find_instance_type(name)
        static = [each for each in of_type if not each.elastic]
        if not static and catalogued is not None and catalogued.accelerators == 0:
            continue
        limits = [(static, available.permanent)]
        if available.maximum is not None:
            limits.append((of_type, available.maximum))
        left = _left(name, limits, instance)
        if left is not None:
            pool.append(left)
    return pool


def _left(
    name: str, limits: Iterable[tuple[list[QuotaResource], int]], instance: InstanceType | None
) -> QuotaResource | None:
    """Return the remaining amount of a type within each limit, from the reserved amounts and numbers of instances."""
    whole: list[int] = []
    parts: list[list[Fraction]] = []
    unit = [] if instance is None else [Fraction(one or 0) for one in dimensions_of(instance)[1:]]
    for taken, of in limits:
        free = of - sum(each.count or 0 for each in taken)
        fractions = [] if instance is None else [(each, instance) for each in taken if each.count is None]
        used = [Fraction(amount or 0) for amount in reserve(fractions)[1:]]
        parts.append([one * free - amount for one, amount in zip(unit, used, strict=False)])
        whole.append(min([free, *(int(left / one) for left, one in zip(parts[-1], unit, strict=True) if one)]))
    count = max(min(whole), 0)
    if unit and unit[1] and unit[2]:
        accelerators, vcpu, memory, slices = (math.floor(min(left)) for left in zip(*parts, strict=True))
        if unit[3]:
            # A job can't use an accelerator that partitions divide.
            accelerators = min(accelerators, int(slices * unit[0] / unit[3]))
        is_more = accelerators > count * unit[0] if unit[0] else vcpu > count * unit[1] and memory > count * unit[2]
        if is_more and min(vcpu, memory) > 0:
            taken_accelerators = accelerators if unit[0] else None
            return QuotaResource(
                name, accelerators=taken_accelerators, v_cpu=Fraction(vcpu), memory_in_gib=Fraction(memory)
            )
    return QuotaResource(name, count=count) if count else None
