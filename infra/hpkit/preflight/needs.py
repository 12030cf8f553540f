"""A stack's needs in numbers: instances, network interfaces, volumes, and resources with a quota.

They are counted in a recording of the program, so that a component's resources are counted without an edit here. Only
needs that no program registers are read from the plan: the nodes that Karpenter can add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hpkit.catalog import find_instance_type
from hpkit.plan.capacity import pool_instances
from hpkit.plan.model import NodePoolPlan, Plan

if TYPE_CHECKING:
    from hpkit.program.recording import RecordedResource, Recording

__all__ = [
    "FlexibleNeed",
    "InstanceNeed",
    "InterfaceNeed",
    "RegisteredGroup",
    "count_registered",
    "instance_needs",
    "interface_endpoints",
    "interface_need",
    "interfaces_per_node",
    "made_role_names",
    "registered_groups",
    "total_need",
    "volume_need",
    "zones_of_gateways",
]

# EKS creates two to four network interfaces of its control plane in the VPC (EKS user guide, network requirements).
_CONTROL_PLANE_INTERFACES: Final = 4


@dataclass(frozen=True, slots=True)
class RegisteredGroup:
    """An instance group of the HyperPod cluster as the program registers it; Karpenter sets the count if autoscaled."""

    name: str
    instance_types: tuple[str, ...]
    count: int
    spot: bool
    autoscaled: bool
    volume_gib: int | None


@dataclass(frozen=True, slots=True)
class InstanceNeed:
    """Instances of one type: permanent without Karpenter, and the maximum with it; None if no NodePool limits it."""

    instance_type: str
    spot: bool
    permanent: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class FlexibleNeed:
    """A group of fixed size whose instances may be of several types."""

    group: str
    instance_types: tuple[str, ...]
    spot: bool
    count: int


@dataclass(frozen=True, slots=True)
class InterfaceNeed:
    """Network interfaces of nodes, of the network and of EKS control planes; complete: there can be no more of them."""

    nodes: int
    network: int
    control_planes: int
    complete: bool

    @property
    def total(self) -> int:
        """All of them."""
        return self.nodes + self.network + self.control_planes


def count_registered(recording: Recording, type_token: str) -> int:
    """Return the number of resources of a type, such as `aws:ec2/eip:Eip`."""
    return sum(1 for _ in _of_type(recording, type_token))


def zones_of_gateways(recording: Recording) -> dict[str, int]:
    """Return the number of NAT gateways by the zone of their subnets."""
    counts: dict[str, int] = {}
    for gateway in _of_type(recording, "aws:ec2/natGateway:NatGateway"):
        (subnet,) = gateway.uses["subnetId"]
        zone = _zone(recording.resources[subnet])
        counts[zone] = counts.get(zone, 0) + 1
    return counts


def interface_endpoints(recording: Recording) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the name of each interface endpoint's service, with the zones of the endpoint's subnets."""
    return tuple(
        (
            endpoint.inputs["serviceName"],
            tuple(sorted(_zone(recording.resources[each]) for each in endpoint.uses["subnetIds"])),
        )
        for endpoint in _of_type(recording, "aws:ec2/vpcEndpoint:VpcEndpoint")
        if endpoint.inputs["vpcEndpointType"] == "Interface"
    )


def made_role_names(recording: Recording) -> tuple[str, ...]:
    """Return the names of the IAM roles that the program creates."""
    return tuple(sorted(each.inputs["name"] for each in _of_type(recording, "aws:iam/role:Role")))


def registered_groups(recording: Recording) -> tuple[RegisteredGroup, ...]:
    """Return the instance groups of the HyperPod cluster, restricted ones too: the quotas of the account count them."""
    return tuple(
        _group(group, autoscaled=group["instanceGroupName"] in (cluster.inputs.get("autoscaledInstanceGroups") or ()))
        for cluster in _of_type(recording, "hyperpod:index:Cluster")
        for member in ("instanceGroups", "restrictedInstanceGroups")
        for group in cluster.inputs.get(member) or ()
    )


def instance_needs(recording: Recording) -> tuple[tuple[InstanceNeed, ...], tuple[FlexibleNeed, ...]]:
    """Return the needs by type and capacity type, and those of flexible groups, which any of their types can meet."""
    fixed: dict[tuple[str, bool], int] = {}
    pool_limits: dict[tuple[str, bool], int | None] = {}
    flexible = []
    for group in registered_groups(recording):
        if group.autoscaled:
            for name in group.instance_types:
                fixed.setdefault((name, group.spot), 0)
        elif len(group.instance_types) == 1:
            key = (group.instance_types[0], group.spot)
            fixed[key] = fixed.get(key, 0) + group.count
        else:
            flexible.append(FlexibleNeed(group.name, group.instance_types, group.spot, group.count))
    for pool in recording.plan.node_pools:
        for key in _pool_types(recording.plan, pool):
            pool_limits[key] = _sum((pool_limits.get(key, 0), _pool_limit(pool, key[0])))
    needs = tuple(
        InstanceNeed(*key, permanent=count, maximum=_sum((count, pool_limits.get(key, 0))))
        for key, count in sorted(fixed.items())
    )
    return needs, tuple(flexible)


def total_need(recording: Recording, *, spot_only: bool = False) -> tuple[int, int | None]:
    """Return the instances of the whole cluster: permanent without Karpenter, and the maximum with it."""
    groups = [group for group in registered_groups(recording) if group.spot or not spot_only]
    permanent = sum(group.count for group in groups if not group.autoscaled)
    pool_total: int | None = 0
    for pool in recording.plan.node_pools:
        names = {name for name, spot in _pool_types(recording.plan, pool) if spot or not spot_only}
        limits = [_pool_limit(pool, name) for name in sorted(names)]
        # A limit applies to all types of a pool together: the smallest type alone allows the most nodes.
        most = None if None in limits else max((limit for limit in limits if limit is not None), default=0)
        pool_total = _sum((pool_total, most))
    return permanent, _sum((permanent, pool_total))


def interface_need(recording: Recording) -> InterfaceNeed:
    """Return the network interfaces that the stack uses.

    Where no NodePool limits Karpenter, only the permanent nodes count.
    """
    needs, flexible = instance_needs(recording)
    counts: list[tuple[tuple[str, ...], int]] = [(need.instance_types, need.count) for need in flexible]
    counts += [((need.instance_type,), need.permanent if need.maximum is None else need.maximum) for need in needs]
    names = [name for types, _ in counts for name in types]
    all_known = all((instance := find_instance_type(name)) and instance.efa_interfaces is not None for name in names)
    endpoints = _of_type(recording, "aws:ec2/vpcEndpoint:VpcEndpoint")
    gateways = count_registered(recording, "aws:ec2/natGateway:NatGateway")
    return InterfaceNeed(
        nodes=sum(count * max(map(interfaces_per_node, types), default=1) for types, count in counts),
        # An interface endpoint has one in each of its subnets; a gateway endpoint is a route and names no subnet.
        network=gateways + sum(len(each.inputs.get("subnetIds") or ()) for each in endpoints),
        control_planes=_CONTROL_PLANE_INTERFACES * count_registered(recording, "aws:eks/cluster:Cluster"),
        complete=all_known and all(need.maximum is not None for need in needs),
    )


def interfaces_per_node(instance_type: str) -> int:
    """Return the network interfaces of a node: one per EFA interface, or one if the catalog has none."""
    instance = find_instance_type(instance_type)
    return (instance.efa_interfaces or 1) if instance else 1


def volume_need(recording: Recording) -> int | None:
    """Return the size of the largest extra volume of a node in GiB, None if no group has one."""
    return max((group.volume_gib for group in registered_groups(recording) if group.volume_gib), default=None)


def _of_type(recording: Recording, type_token: str) -> Iterator[RecordedResource]:
    return (each for each in recording.resources.values() if each.type == type_token)


def _zone(subnet: RecordedResource) -> str:
    zone: str = subnet.inputs.get("availabilityZone") or subnet.inputs["availabilityZoneId"]
    return zone


def _group(group: Mapping[str, Any], *, autoscaled: bool) -> RegisteredGroup:
    types = [group["instanceType"]] if "instanceType" in group else group["instanceRequirements"]["instanceTypes"]
    storage = group.get("instanceStorageConfigs", ())
    sizes = (each.get("ebsVolumeConfig", {}).get("volumeSizeInGB") for each in storage)
    volumes = [int(size) for size in sizes if size is not None]
    return RegisteredGroup(
        name=group["instanceGroupName"],
        instance_types=tuple(dict.fromkeys(types)),
        count=int(group["instanceCount"]),
        spot="spot" in group.get("capacityRequirements", {}),
        autoscaled=autoscaled,
        volume_gib=max(volumes, default=None),
    )


def _pool_types(plan: Plan, pool: NodePoolPlan) -> Iterable[tuple[str, bool]]:
    """Return the (type, spot) pairs that a NodePool can add; only the plan resolves its requirements."""
    return sorted(
        {
            (name, group.spec.capacity_type == "Spot")
            for group in plan.groups
            if group.node_class == pool.spec.node_class
            for name in group.spec.types
            if name in pool.instance_types
        }
    )


def _pool_limit(pool: NodePoolPlan, instance_type: str) -> int | None:
    instance = find_instance_type(instance_type)
    return None if instance is None else pool_instances(pool.spec.limits, instance)


def _sum(parts: Iterable[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total
