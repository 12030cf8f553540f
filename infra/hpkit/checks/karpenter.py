"""KAR: managed Karpenter."""

from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.config.autoscaling import NodePool, WarmPool
from hpkit.config.cluster import InstanceGroup
from hpkit.config.document import Path
from hpkit.plan.capacity import ARCHITECTURE_KEY, INSTANCE_TYPE_KEY, pods_on, pool_instances
from hpkit.plan.derive import ZONE_KEY
from hpkit.plan.model import NodePoolPlan

__all__ = ["RULES"]

_GUIDE = "SageMaker HyperPod developer guide, autoscaling on EKS"
_ECR = "Amazon ECR user guide, interface VPC endpoints (public repositories have none)"
_PUBLIC = ("public.ecr.aws/", "docker.io/", "ghcr.io/", "quay.io/", "registry.k8s.io/", "gcr.io/")
_MOST_GROUPS = 10
_KEYS = (INSTANCE_TYPE_KEY, ZONE_KEY, ARCHITECTURE_KEY)
_OPERATORS = ("In", "Exists")


def _owned(context: Context) -> list[tuple[InstanceGroup, str, Path]]:
    """Return group, NodeClass and path of every group that Karpenter owns."""
    return [
        (group.spec, group.node_class, context.group_paths[group.spec.name])
        for group in context.plan.groups
        if group.node_class is not None
    ]


def _node_class_groups(context: Context) -> Iterator[Issue]:
    classes = context.spec.autoscaling.node_classes if context.spec.autoscaling else ()
    claimed: dict[str, str] = {}
    for index, node_class in enumerate(classes):
        path: Path = (*context.path, "autoscaling", "nodeClasses", index, "instanceGroups")
        names = node_class.instance_groups
        if not names or len(names) > _MOST_GROUPS:
            yield Issue(
                path,
                f"the NodeClass {node_class.name} names {len(names)} groups, and takes 1–{_MOST_GROUPS}",
                "Name at least one group." if not names else "Split it into several NodeClasses.",
            )
        for position, name in enumerate(names):
            if name not in context.group_paths:
                yield Issue(
                    (*path, position),
                    f"the NodeClass {node_class.name} names the group `{name}`, which does not exist "
                    f"(groups: {listing(sorted(context.group_paths))})",
                    "Name an instance group of this environment.",
                )
            elif name in claimed:
                yield Issue(
                    (*path, position),
                    f"the group {name} is in the NodeClass {claimed[name]} already",
                    "Let one NodeClass own it.",
                )
            claimed.setdefault(name, node_class.name)


def _fit_for_karpenter(context: Context) -> Iterator[Issue]:
    for group, node_class, path in _owned(context):
        if group.instance_count > 0:
            yield Issue(
                (*path, "instanceCount"),
                f"{group.name} has instanceCount {group.instance_count}, and the NodeClass {node_class} owns its count",
                "Write instanceCount: 0; Karpenter adds the nodes.",
            )
        if group.min_instance_count:
            yield Issue(
                (*path, "minInstanceCount"),
                f"{group.name} has minInstanceCount {group.min_instance_count}, and starts at 0 under Karpenter",
                "Remove minInstanceCount.",
            )
        if group.deep_health_checks:
            yield Issue(
                (*path, "deepHealthChecks"),
                f"{group.name} has deep health checks (60–90 minutes a node), which Karpenter's groups may not have",
                "Remove deepHealthChecks, or take the group out of the NodeClass.",
            )
        if group.training_plan_arn:
            yield Issue(
                (*path, "trainingPlanArn"),
                f"{group.name} uses a training plan, which Karpenter's groups may not",
                "Take the group out of the NodeClass.",
            )


def _one_zone(context: Context) -> Iterator[Issue]:
    for group in context.plan.groups:
        if group.autoscaled and len(set(group.zones)) > 1:
            yield Issue(
                context.group_paths[group.spec.name],
                f"{group.spec.name} spans the zones {listing(list(group.zones))}, and a group of a NodeClass has one",
                "Set availabilityZone; make one group per zone.",
            )


def _requirements(context: Context) -> Iterator[Issue]:
    for index, pool in enumerate(_node_pools(context)):
        for position, requirement in enumerate(pool.requirements):
            path: Path = (
                *context.path, "autoscaling", "nodePools", index, "requirements", position,
            )  # fmt: skip
            if requirement.key not in _KEYS:
                fix = f"Use one of {listing(list(_KEYS))}."
                if requirement.key == "karpenter.sh/capacity-type":
                    fix = "Set capacityType on the instance group: HyperPod ignores this requirement."
                yield Issue((*path, "key"), f"{pool.name}: HyperPod does not support the key `{requirement.key}`", fix)
            if requirement.operator not in _OPERATORS:
                yield Issue(
                    (*path, "operator"),
                    f"{pool.name}: the operator `{requirement.operator}` is not one of {listing(list(_OPERATORS))}",
                    "Write In with values, or Exists without.",
                )
            elif (requirement.operator == "In") != bool(requirement.values):
                yield Issue(
                    (*path, "values"),
                    f"{pool.name}: {requirement.operator} with {len(requirement.values)} values",
                    "Give In at least one value, and Exists none.",
                )
            if requirement.key == ARCHITECTURE_KEY and set(requirement.values) - {"amd64"}:
                yield Issue(
                    (*path, "values"),
                    f"{pool.name}: {listing(sorted(requirement.values))}; Karpenter on HyperPod runs amd64 only",
                    "Write [amd64].",
                )


def _pools_match(context: Context) -> Iterator[Issue]:
    autoscaling = context.spec.autoscaling
    if autoscaling is None:
        return
    classes = {node_class.name: node_class for node_class in autoscaling.node_classes}
    derived = {pool.spec.name: pool for pool in context.plan.node_pools}
    for index, pool in enumerate(autoscaling.node_pools):
        path: Path = (*context.path, "autoscaling", "nodePools", index)
        node_class = classes.get(pool.node_class)
        if node_class is None:
            yield Issue(
                (*path, "nodeClass"),
                f"{pool.name} names the NodeClass `{pool.node_class}`, which does not exist "
                f"(classes: {listing(sorted(classes))})",
                "Name one of nodeClasses.",
            )
        elif not derived[pool.name].instance_types:
            groups = [group for group in context.plan.groups if group.spec.name in node_class.instance_groups]
            have = sorted(
                {f"{name} in {zone}" for group in groups for name in group.spec.types for zone in group.zones}
            )
            yield Issue(
                (*path, "requirements"),
                f"the requirements of {pool.name} match none of the groups of {pool.node_class} "
                f"({listing(have) or 'no group'})",
                "Widen the requirements, or add a group that meets them.",
            )


def _system_capacity(context: Context) -> Iterator[Issue]:
    groups = context.plan.groups
    if context.spec.autoscaling is not None and all(
        group.autoscaled or group.spec.instance_count == 0 for group in groups
    ):
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"no group has nodes of its own ({len(groups)} groups, Karpenter owns "
            f"{sum(group.autoscaled for group in groups)}): CoreDNS and the add-ons would have none to run on",
            "Add a small group with instanceCount of at least 1 that no NodeClass names.",
        )


def _pool_limits(context: Context) -> Iterator[Issue]:
    for index, pool in enumerate(_node_pools(context)):
        if not pool.limits:
            yield Issue(
                (*context.path, "autoscaling", "nodePools", index),
                f"{pool.name} has no limits: nothing bounds what Karpenter may add, or its cost",
                "Add limits, such as {nvidia.com/gpu: 16}.",
            )


def _spot(context: Context) -> Iterator[Issue]:
    for group, node_class, path in _owned(context):
        if group.capacity_type == "Spot":
            yield Issue(
                (*path, "capacityType"),
                f"{group.name} is Spot and in the NodeClass {node_class}; of the service's pages one allows that "
                "and one says on-demand only",
                "Put an on-demand group beside it in the NodeClass, and try it before you count on it.",
            )


def _node_recovery(context: Context) -> Iterator[Issue]:
    recovery = context.spec.cluster.node_recovery
    if context.spec.autoscaling is not None and recovery != "Automatic":
        yield Issue(
            (*context.path, "cluster", "nodeRecovery"),
            f"autoscaling with nodeRecovery {recovery}; Karpenter on HyperPod needs Automatic",
            "Write nodeRecovery: Automatic.",
        )


def _no_arm(context: Context) -> Iterator[Issue]:
    for group, node_class, path in _owned(context):
        arm = [
            name
            for name in group.types
            if (known := context.instances.get(name)) is not None and known.architecture == "arm64"
        ]
        if arm:
            yield Issue(
                (*path, "instanceType" if group.instance_type else "instanceTypes"),
                f"{group.name} has {listing(arm)}, which is Arm; the NodeClass {node_class} takes amd64 only",
                "Use an x86 type, or take the group out of the NodeClass.",
            )


def _warm_pools(context: Context) -> Iterator[tuple[NodePoolPlan, WarmPool, Path]]:
    order = {pool.name: index for index, pool in enumerate(_node_pools(context))}
    for pool in context.plan.node_pools:
        if pool.spec.warm_pool is not None:
            path: Path = (*context.path, "autoscaling", "nodePools", order[pool.spec.name], "warmPool")
            yield pool, pool.spec.warm_pool, path


def _node_pools(context: Context) -> tuple[NodePool, ...]:
    return context.spec.autoscaling.node_pools if context.spec.autoscaling else ()


def _warm_pool_fits(context: Context) -> Iterator[Issue]:
    for pool, warm, path in _warm_pools(context):
        known = [context.instances[name] for name in pool.instance_types if name in context.instances]
        asked = listing([f"{key} {value}" for key, value in sorted(warm.requests.items())])
        pods = {instance.name: pods_on(warm.requests, instance) for instance in known}
        if not known or None in pods.values():
            continue
        if not any(pods.values()):
            yield Issue(
                (*path, "requests"),
                f"a placeholder pod of {pool.spec.name} asks for {asked}, and none of its types has that "
                f"({listing(sorted(pods))})",
                "Ask for what one node has, less what the system needs.",
            )
            continue
        nodes = [(pool_instances(pool.spec.limits, instance), pods[instance.name] or 0) for instance in known]
        most = sum(count * each for count, each in nodes if count is not None)
        if all(count is not None for count, _ in nodes) and warm.replicas > most:
            yield Issue(
                (*path, "replicas"),
                f"{pool.spec.name} keeps {warm.replicas} placeholder pods of {asked}, and its limits "
                f"let at most {most} stand",
                f"Write at most {most} replicas, or raise the pool's limits.",
            )


def _warm_pool_image(context: Context) -> Iterator[Issue]:
    for pool, warm, path in _warm_pools(context):
        if context.spec.network.closed and warm.image.startswith(_PUBLIC):
            yield Issue(
                (*path, "image"),
                f"the network is closed, and the placeholder pods of {pool.spec.name} come from {warm.image}",
                "Copy the image to an ECR repository of this account and name it here.",
            )


RULES = (
    Rule("KAR001", "error", "A NodeClass names 1–10 groups that exist, each in one NodeClass.", _GUIDE,
         _node_class_groups),
    Rule("KAR002", "error", "A group of a NodeClass starts at 0, without deep health checks or training plan.", _GUIDE,
         _fit_for_karpenter),
    Rule("KAR003", "error", "A group of a NodeClass stands in one zone.", _GUIDE, _one_zone),
    Rule("KAR004", "error", "A NodePool requirement has a key and an operator that HyperPod supports.", _GUIDE,
         _requirements),
    Rule("KAR005", "error", "A NodePool names a NodeClass and matches one of its groups.", _GUIDE, _pools_match),
    Rule("KAR006", "error", "Some group keeps nodes for add-ons and CoreDNS.", _GUIDE, _system_capacity),
    Rule("KAR007", "warning", "A NodePool has limits.", "Karpenter documentation, NodePools", _pool_limits),
    Rule("KAR008", "warning", "A group of a NodeClass is on-demand.", _GUIDE, _spot),
    Rule("KAR009", "error", "Autoscaling stands with nodeRecovery Automatic.", _GUIDE, _node_recovery),
    Rule("KAR010", "error", "No group of a NodeClass is of an Arm type.", _GUIDE, _no_arm),
    Rule("KAR011", "error", "The placeholder pods of a warm pool fit its NodePool.",
         "Kubernetes documentation, node overprovisioning", _warm_pool_fits),
    Rule("KAR012", "error", "In a closed network, a warm pool's image is in a registry that nodes reach.", _ECR,
         _warm_pool_image),
)  # fmt: skip
