"""Clusters, quotas and Karpenter's objects as a stack registers them, in the terms of hpkit's arithmetic.

It doesn't count restricted instance groups: they serve one kind of workload, and AWS describes no quotas on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hpkit.catalog import InstanceType, find_instance_type
from hpkit.plan.capacity import (
    GroupCapacity,
    Partition,
    PoolCapacity,
    QuotaResource,
    TypeCapacity,
    matching_types,
    type_capacities,
)
from hpkit.plan.model import exact
from hpkit_policies.model import UNKNOWN, Resource, of_type

__all__ = [
    "CLUSTER",
    "NODE_CLASS",
    "NODE_POOL",
    "QUOTA",
    "Capacity",
    "Quota",
    "cluster_capacity",
    "instance_groups",
    "instance_types",
    "known_types",
    "node_class_owners",
    "parse_quota",
    "quotas_by_cluster",
]

CLUSTER: Final = "hyperpod:index:Cluster"
QUOTA: Final = "hyperpod:index:ComputeQuota"
NODE_CLASS: Final = "kubernetes:karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass"
NODE_POOL: Final = "kubernetes:karpenter.sh/v1:NodePool"


@dataclass(frozen=True, slots=True)
class Quota:
    """A team's quota: known quota resources, and the types with an unknown part (None: everything is unknown).

    elastic and future: the types whose quota may rely on Karpenter, and those that no group provides yet.
    """

    resource: Resource
    team: str
    quota_resources: tuple[QuotaResource, ...]
    unknown_types: tuple[str | None, ...]
    elastic: frozenset[str]
    future: frozenset[str]


@dataclass(frozen=True, slots=True)
class Capacity:
    """A cluster's capacity of each type; unknown_types: types with an unknown amount (None: any type)."""

    by_type: Mapping[str, TypeCapacity]
    unknown_types: frozenset[str | None]

    def is_known(self, name: str) -> bool:
        """Return whether everything that determines a type's capacity is known."""
        return not self.unknown_types & {name, None}


def instance_groups(cluster: Resource) -> list[Mapping[str, Any]] | None:
    """Return a cluster's known instance groups, or None if the list itself isn't known."""
    groups = cluster.get_or_unknown("instanceGroups", [])
    return None if groups is UNKNOWN else [group for group in groups if isinstance(group, Mapping)]


def instance_types(group: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the instance types of a group, or None if they aren't known."""
    requirements = group.get("instanceRequirements") or {}
    type_names = [group.get("instanceType")]
    if type_names == [None] and requirements is not UNKNOWN:
        types = requirements.get("instanceTypes") or []
        type_names = [types] if types is UNKNOWN else list(types)
    return None if UNKNOWN in (*type_names, requirements) else tuple(name for name in type_names if name)


def node_class_owners(resources: Sequence[Resource]) -> dict[str, Resource]:
    """Return group → the HyperpodNodeClass that names it, the first of several."""
    owners: dict[str, Resource] = {}
    for node_class in of_type(resources, NODE_CLASS):
        names = node_class.get_or_unknown("spec.instanceGroups", [])
        for name in [] if names is UNKNOWN else names:
            if isinstance(name, str):
                owners.setdefault(name, node_class)
    return owners


def _owned_groups(cluster: Resource, resources: Sequence[Resource]) -> set[str]:
    """Return the groups whose count Karpenter manages: a NodeClass contains them, or the cluster marks them."""
    stated = cluster.get_or_unknown("autoscaledInstanceGroups", [])
    return {*node_class_owners(resources), *(() if stated is UNKNOWN else stated)}


def known_types(cluster: Resource, type_names: Sequence[str]) -> dict[str, InstanceType]:
    """Return the types in the catalog, with the vCPUs that the cluster's groups have.

    If two groups of a type differ in threads per core, both count as the smaller one.
    """
    threads: dict[str, list[int]] = {}
    for group in instance_groups(cluster) or []:
        stated = group.get("threadsPerCore")
        if stated is None or stated is UNKNOWN:
            continue
        for name in instance_types(group) or ():
            threads.setdefault(name, []).append(int(stated))
    instances = {name: find_instance_type(name) for name in type_names}
    return {
        name: instance.with_threads(min(threads[name]) if name in threads else None)
        for name, instance in instances.items()
        if instance is not None
    }


def cluster_capacity(cluster: Resource, resources: Sequence[Resource]) -> Capacity:
    """Return a cluster's capacity of each type, with what Karpenter can add within the stack's NodePools."""
    owned, unknown = _owned_groups(cluster, resources), set[str | None]()
    groups: list[GroupCapacity] = []
    listed = instance_groups(cluster)
    if listed is None:
        return Capacity({}, frozenset({None}))
    for group in listed:
        types, count = instance_types(group), group.get("instanceCount") or 0
        name = str(group.get("instanceGroupName"))
        if types is None:
            unknown.add(None)
            continue
        if count is UNKNOWN and name not in owned:
            unknown.update(types)
        groups.append(GroupCapacity(name, types, 0 if count is UNKNOWN else int(count), name in owned))
    instances = known_types(cluster, [name for group in groups for name in group.instance_types])
    pools = _pools(groups, resources)
    return Capacity(type_capacities(groups, pools, instances), frozenset(unknown))


def _pools(groups: Sequence[GroupCapacity], resources: Sequence[Resource]) -> list[PoolCapacity]:
    owners = node_class_owners(resources)
    autoscaled = [group for group in groups if group.autoscaled]
    pools = []
    for pool in of_type(resources, NODE_POOL):
        node_class = pool.get_or_unknown("spec.template.spec.nodeClassRef.name", UNKNOWN)
        own = [group for group in autoscaled if group.name in owners and _named(owners[group.name]) == node_class]
        limits = pool.get_or_unknown("spec.limits", {})
        if node_class is UNKNOWN:
            own, limits = autoscaled, UNKNOWN
        types = matching_types({name for group in own for name in group.instance_types}, _requirements(pool))
        # An unknown limit bounds nothing: the maximum is then unknown too, and nothing is reported.
        known = {} if limits is UNKNOWN else {key: str(value) for key, value in limits.items() if value is not UNKNOWN}
        pools.append(PoolCapacity(pool.name, tuple(sorted(types)), known))
    return pools


def _named(node_class: Resource) -> Any:
    return node_class.get_or_unknown("metadata.name", node_class.name)


def _requirements(pool: Resource) -> list[tuple[str, str, Sequence[str]]]:
    found = pool.get_or_unknown("spec.template.spec.requirements", [])
    rows = (
        [] if found is UNKNOWN else [row for row in found if isinstance(row, Mapping) and UNKNOWN not in row.values()]
    )
    return [(str(row.get("key")), str(row.get("operator")), row.get("values") or []) for row in rows]


def quotas_by_cluster(resources: Sequence[Resource]) -> tuple[dict[str, list[Quota]], list[Resource]]:
    """Return URN of a cluster → its quotas, and the quotas of clusters that the stack does not have."""
    clusters = of_type(resources, CLUSTER)
    matched: dict[str, list[Quota]] = {cluster.urn: [] for cluster in clusters}
    elsewhere = []
    for resource in of_type(resources, QUOTA):
        cluster = _find_cluster(resource, clusters)
        if cluster is None:
            elsewhere.append(resource)
        else:
            matched[cluster.urn].append(parse_quota(resource))
    return matched, elsewhere


def _find_cluster(quota: Resource, clusters: Sequence[Resource]) -> Resource | None:
    """Match by ARN; if one isn't known yet, by the ARN's source, or else the only cluster."""
    arn = quota.get_or_unknown("clusterArn")
    by_arn = [cluster for cluster in clusters if arn is not UNKNOWN and cluster.get_or_unknown("clusterArn") == arn]
    sources = quota.property_dependencies.get("clusterArn") or quota.dependencies
    by_source = [cluster for cluster in clusters if cluster.urn in sources]
    if by_arn or by_source:
        return (by_arn or by_source)[0]
    unmade = [cluster for cluster in clusters if cluster.get_or_unknown("clusterArn", UNKNOWN) is UNKNOWN]
    return clusters[0] if len(clusters) == 1 and (arn is UNKNOWN or unmade) else None


def parse_quota(resource: Resource) -> Quota:
    """Return one quota in the terms of the arithmetic."""
    team = resource.get_or_unknown("computeQuotaTarget.teamName", resource.name)
    quota_resources = resource.get_or_unknown("computeQuotaConfig.computeQuotaResources", [])
    known_resources: list[QuotaResource] = []
    unknown: list[str | None] = []
    for quota_resource in [UNKNOWN] if quota_resources is UNKNOWN else quota_resources:
        parsed = None if quota_resource is UNKNOWN else _quota_resource(quota_resource)
        if parsed is None:
            name = None if quota_resource is UNKNOWN else quota_resource.get("instanceType")
            unknown.append(None if name is UNKNOWN else name)
        else:
            known_resources.append(parsed)
    elastic, future = (_stated_types(resource, name) for name in ("elasticInstanceTypes", "futureInstanceTypes"))
    team_name = resource.name if team is UNKNOWN else team
    return Quota(resource, team_name, tuple(known_resources), tuple(unknown), elastic, future)


def _stated_types(resource: Resource, name: str) -> frozenset[str]:
    stated = resource.get_or_unknown(name, [])
    return frozenset() if stated is UNKNOWN else frozenset(each for each in stated if isinstance(each, str))


def _quota_resource(quota_resource: Mapping[str, Any]) -> QuotaResource | None:
    partition = quota_resource.get("acceleratorPartition")
    inner = partition.values() if isinstance(partition, Mapping) else ()
    if UNKNOWN in (*quota_resource.values(), *inner) or not quota_resource.get("instanceType"):
        return None
    return QuotaResource(
        instance_type=quota_resource["instanceType"],
        count=quota_resource.get("count"),
        accelerators=quota_resource.get("accelerators"),
        v_cpu=exact(quota_resource.get("vCpu")),
        memory_in_gib=exact(quota_resource.get("memoryInGiB")),
        partition=Partition(partition["type"], partition["count"]) if partition else None,
    )
