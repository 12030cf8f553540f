"""The plan as a tree of the resources it comes to, for people and for tools."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hpkit.plan.model import GroupPlan, Plan, QuotaRow, TeamPlan

__all__ = ["Outline", "outline"]


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
        Outline("", "storage", children=(Outline("s3.Bucket", f"sagemaker-{plan.stack}-lifecycle"),)),
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
    for zone in network.zones:
        yield Outline("ec2.Subnet", f"nodes-{zone.availability_zone}", zone.node_cidr or "")
    for index in range(network.nat_gateways):
        yield Outline("ec2.NatGateway", f"nat-{network.zones[index].availability_zone}")
    for endpoint in network.endpoints:
        yield Outline("ec2.VpcEndpoint", endpoint)
    yield Outline("ec2.SecurityGroup", "nodes", "all traffic to and from itself (EFA)")


def _identity(plan: Plan) -> Iterator[Outline]:
    yield Outline("iam.Role", f"{plan.stack}-nodes", "execution role of the instance groups")
    if plan.spec.autoscaling is not None:
        yield Outline("iam.Role", f"{plan.stack}-karpenter", "lets managed Karpenter add and delete nodes")


def _eks(plan: Plan) -> Iterator[Outline]:
    eks = plan.spec.eks
    if eks.existing is None:
        reach = "public, restricted" if eks.endpoint.public else "private"
        yield Outline("eks.Cluster", plan.stack, f"Kubernetes {eks.version}, {reach}")
    for principal in eks.administrators:
        yield Outline("eks.AccessEntry", principal, "administrator")
    for addon in plan.addons:
        yield Outline("eks.Addon", addon.name, addon.version or "EKS's default version")


def _hyperpod(plan: Plan) -> Iterator[Outline]:
    groups = tuple(Outline("", group.spec.name, _group_detail(group)) for group in plan.groups)
    recovery = plan.spec.cluster.node_recovery
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
    if autoscaling.keda is not None:
        yield Outline("helm.Chart", "keda")


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
    yield Outline("hyperpod.ClusterSchedulerConfig", plan.stack, detail, classes)
    for team in plan.teams:
        yield Outline("hyperpod.ComputeQuota", team.name, _team_detail(team), tuple(_team_parts(team)))


def _team_parts(team: TeamPlan) -> Iterator[Outline]:
    for row in team.rows:
        yield Outline("", row.instance_type, _row_detail(row))
    for member in team.members:
        yield Outline("eks.AccessEntry", member, team.namespace)


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
    if wanted.cloudwatch:
        yield Outline("cloudwatch.LogGroup", plan.stack)
    if wanted.prometheus:
        yield Outline("amp.Workspace", plan.stack)
    if wanted.grafana:
        yield Outline("grafana.Workspace", plan.stack)
