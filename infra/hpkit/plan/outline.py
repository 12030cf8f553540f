"""The plan as a tree of the resources it comes to, for people and for tools."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hpkit.config.autoscaling import WarmPool
from hpkit.plan.given import makes_bucket, makes_karpenter_role, makes_node_role
from hpkit.plan.model import GroupPlan, Plan, QuotaRow, TeamPlan
from hpkit.plan.names import bucket_name, role_name

__all__ = ["Outline", "outline"]

# Known only to AWS; as long as an account's number, since a long name is cut to what the number leaves.
_ACCOUNT = "<account-id>"
_FIRST_ZONES = ("first", "second")


@dataclass(frozen=True, slots=True)
class Outline:
    """One resource (kind is its API's name) or, with an empty kind, a heading; detail says what matters of it."""

    kind: str
    name: str
    detail: str = ""
    children: tuple["Outline", ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Return the tree as plain values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "detail": self.detail,
            "children": [child.as_dict() for child in self.children],
        }

    def count(self) -> int:
        """Return the number of resources in the tree, headings not counted."""
        return (1 if self.kind else 0) + sum(child.count() for child in self.children)


def outline(plan: Plan) -> Outline:
    """Return the tree of everything that the plan's program creates."""
    parts = (
        Outline("", "network", children=tuple(_network(plan))),
        Outline("", "storage", children=tuple(_storage(plan))),
        Outline("", "identity", children=tuple(_identity(plan))),
        Outline("", "eks", children=tuple(_eks(plan))),
        Outline("", "hyperpod", children=tuple(_hyperpod(plan))),
        Outline("", "autoscaling", children=tuple(_autoscaling(plan))),
        Outline("", "governance", children=tuple(_governance(plan))),
        Outline("", "observability", children=tuple(_observability(plan))),
    )
    return Outline("", plan.stack, plan.spec.region, tuple(part for part in parts if part.children))


def _network(plan: Plan) -> Iterator[Outline]:
    network = plan.network
    if network.vpc_id is not None:
        return
    yield Outline("ec2.Vpc", plan.stack, plan.spec.network.vpc_cidr or "")
    for which in _FIRST_ZONES:
        yield Outline("ec2.Subnet", f"control-plane-<{which} zone>", f"in the region's {which} zone")
    for zone in network.zones:
        yield Outline("ec2.Subnet", f"nodes-{zone.availability_zone}", zone.node_cidr or "")
    for name, where in _gateways(plan):
        yield Outline("ec2.Subnet", name, f"public, {where}")
        yield Outline("ec2.NatGateway", name, where)
    for endpoint in network.endpoints:
        yield Outline("ec2.VpcEndpoint", f"endpoint-{endpoint}")
    yield Outline("ec2.SecurityGroup", f"{plan.stack}-nodes", "all traffic to and from itself (EFA)")
    if any(endpoint != "s3" for endpoint in network.endpoints):
        yield Outline("ec2.SecurityGroup", f"{plan.stack}-endpoints", "HTTPS from nodes")


def _gateways(plan: Plan) -> list[tuple[str, str]]:
    """Return name and place of every NAT gateway; a single one never moves, so it does not follow the nodes."""
    if not plan.network.nat_gateways:
        return []
    if plan.spec.network.nat_gateways == "Single":
        return [("nat", "in the region's first zone")]
    zones = sorted(zone.availability_zone for zone in plan.network.zones)
    return [(f"nat-{zone}", f"in {zone}") for zone in zones]


def _storage(plan: Plan) -> Iterator[Outline]:
    if makes_bucket(plan):
        yield Outline("s3.Bucket", bucket_name(plan, _ACCOUNT), "lifecycle scripts")
    lustre = plan.spec.storage.lustre if plan.spec.storage else None
    if lustre is not None:
        size = f"{lustre.storage_capacity_gib} GiB, {lustre.per_unit_storage_throughput} MB/s for each TiB"
        yield Outline("fsx.LustreFileSystem", plan.stack, f"{size}, in {lustre.availability_zone}")


def _identity(plan: Plan) -> Iterator[Outline]:
    if plan.spec.eks.existing is None:
        yield Outline("iam.Role", role_name(plan, "control-plane"), "the EKS control plane")
    if makes_node_role(plan):
        yield Outline("iam.Role", role_name(plan, "nodes"), "execution role of the instance groups")
    if makes_karpenter_role(plan):
        yield Outline("iam.Role", role_name(plan, "karpenter"), "lets managed Karpenter add and delete nodes")


def _eks(plan: Plan) -> Iterator[Outline]:
    eks = plan.spec.eks
    if eks.existing is None:
        reach = "public, restricted" if eks.endpoint.public else "private"
        yield Outline("kms.Key", plan.stack, "Kubernetes secrets and control-plane logs")
        kept = f"control-plane logs, {eks.log_retention_days} days"
        yield Outline("cloudwatch.LogGroup", f"/aws/eks/{plan.stack}/cluster", kept)
        yield Outline("eks.Cluster", plan.stack, f"Kubernetes {eks.version}, {reach}")
    teams: dict[str, list[str]] = {principal: [] for principal in eks.administrators}
    for team in plan.teams:
        for member in team.members:
            teams.setdefault(member, []).append(team.name)
    for principal, names in sorted(teams.items(), key=lambda each: (each[0] not in eks.administrators, each[0])):
        parts = ["administrator"] if principal in eks.administrators else []
        parts += [f"data scientist of {', '.join(names)}"] if names else []
        yield Outline("eks.AccessEntry", principal, "; ".join(parts))
    for addon in plan.addons:
        yield Outline("eks.Addon", addon.name, addon.version or "EKS's default version")


def _hyperpod(plan: Plan) -> Iterator[Outline]:
    groups = tuple(Outline("", group.spec.name, _group_detail(group)) for group in plan.groups)
    recovery = plan.spec.cluster.node_recovery
    chart = plan.spec.cluster.dependencies
    if chart is not None:
        yield Outline("helm.Release", "hyperpod-dependencies", f"{chart.chart} {chart.version}")
    yield Outline(
        "hyperpod.Cluster",
        plan.spec.cluster.name,
        f"continuous provisioning, node recovery {recovery}",
        groups,
    )


def _group_detail(group: GroupPlan) -> str:
    spec = group.spec
    count = "Karpenter" if group.autoscaled else str(spec.instance_count)
    kind = " | ".join(spec.types)
    spot = ", Spot" if spec.capacity_type == "Spot" else ""
    return f"{count} × {kind} in {', '.join(group.zones) or 'no zone'}{spot}"


def _autoscaling(plan: Plan) -> Iterator[Outline]:
    autoscaling = plan.spec.autoscaling
    if autoscaling is None:
        return
    for node_class in sorted(autoscaling.node_classes, key=lambda each: each.name):
        yield Outline("HyperpodNodeClass", node_class.name, ", ".join(sorted(node_class.instance_groups)))
    for pool in plan.node_pools:
        limits = ", ".join(f"{key} {value}" for key, value in sorted(pool.spec.limits.items())) or "no limits"
        yield Outline("NodePool", pool.spec.name, f"{', '.join(pool.instance_types) or 'no type'}; {limits}")
        if pool.spec.warm_pool is not None:
            yield Outline("Deployment", f"warm-pool-{pool.spec.name}", _warm(pool.spec.warm_pool))
    if autoscaling.keda is not None:
        yield Outline("helm.Release", "keda")


def _warm(pool: WarmPool) -> str:
    return f"{pool.replicas} × {', '.join(f'{key} {value}' for key, value in sorted(pool.requests.items()))}"


def _governance(plan: Plan) -> Iterator[Outline]:
    if plan.policy is None:
        return
    policy = plan.policy
    detail = (
        f"{policy.task_prioritization}, fair share {policy.fair_share}, idle sharing {policy.idle_resource_sharing}"
    )
    classes = tuple(
        Outline("", each.name, f"weight {each.weight}")
        for each in sorted(policy.priority_classes, key=lambda each: -each.weight)
    )
    yield Outline("hyperpod.ClusterSchedulerConfig", plan.policy_name, detail, classes)
    for team in plan.teams:
        yield Outline("hyperpod.ComputeQuota", team.quota_name, _team_detail(team), tuple(_team_parts(team)))


def _team_parts(team: TeamPlan) -> Iterator[Outline]:
    for row in team.rows:
        yield Outline("", row.instance_type, _row_detail(row))


def _team_detail(team: TeamPlan) -> str:
    pool = "shared pool, " if team.is_shared_pool else ""
    limit = f" {team.borrow_limit} %" if team.borrow_limit is not None else ""
    return f"{pool}{team.strategy}{limit}, weight {team.fair_share_weight}, {team.namespace}"


def _row_detail(row: QuotaRow) -> str:
    parts = []
    if row.count is not None:
        parts.append(f"{row.count} instances")
    if row.accelerators is not None:
        parts.append(f"{row.accelerators} accelerators")
    if row.partition is not None:
        parts.append(f"{row.partition.count} × {row.partition.type}")
    if row.v_cpu is not None:
        parts.append(f"{_number(row.v_cpu)} vCPU")
    if row.memory_in_gib is not None:
        parts.append(f"{_number(row.memory_in_gib)} GiB")
    if row.share is not None:
        parts.append(f"{_number(row.share * 100)} %")
    return ", ".join(parts) + (", elastic" if row.elastic else "")


def _number(value: Fraction) -> str:
    return f"{float(value):g}"


def _observability(plan: Plan) -> Iterator[Outline]:
    wanted = plan.spec.observability
    if wanted is None:
        return
    if wanted.prometheus:
        yield Outline("amp.Workspace", plan.stack)
    if wanted.grafana:
        yield Outline("iam.Role", role_name(plan, "grafana"), "Managed Grafana reads metrics")
        yield Outline("grafana.Workspace", plan.stack)
