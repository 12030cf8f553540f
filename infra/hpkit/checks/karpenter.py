"""KAR: managed Karpenter."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hpkit.catalog.group_constraints import karpenter_problems
from hpkit.checks.cron import DAYS, MONTHS, Field, no_such_day, wrong_field
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.autoscaling import NodePool, Requirement, WarmPool
from hpkit.config.models.cluster import InstanceGroup
from hpkit.config.reading.document import Path
from hpkit.plan.capacity import (
    ARCHITECTURE_KEY,
    INSTANCE_TYPE_KEY,
    LIMIT_RESOURCES,
    POD_RESOURCES,
    is_resource,
    limits_of,
    pods_on,
    pool_instances,
    quantity,
    unit_problem,
)
from hpkit.plan.derive import ZONE_KEY
from hpkit.plan.endpoint import taints_against_addons
from hpkit.plan.model import NodePoolPlan
from hpkit.text.formatting import listing, plural, seconds_in
from hpkit.text.spelling import did_you_mean, near

__all__ = ["RULES"]

_GUIDE = "SageMaker HyperPod developer guide, autoscaling on EKS"
_NODE_POOLS = "Karpenter documentation, NodePools"
_CRD = "Karpenter's CRD of NodePool, karpenter.sh/v1"
_COREDNS = "Amazon EKS user guide, CoreDNS; Kubernetes documentation, taints and tolerations"
_MOST_GROUPS = 10
_KEYS = (INSTANCE_TYPE_KEY, ZONE_KEY, ARCHITECTURE_KEY)
_OPERATORS = ("In", "Exists")
_POLICY_OF_GROUPS: Final = "karpenter-groups-fit"
_OS_KEY: Final = "kubernetes.io/os"
# Until a new node is ready, so many seconds go by, or more: what lives no longer does no work.
_TO_COME: Final = 600
_CRON: Final = "Karpenter documentation, disruption budgets; robfig/cron, ParseStandard"
# Each field of a schedule.
_FIELDS: Final[tuple[Field, ...]] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("days of the month", 1, 31, ()),
    ("months", 1, 12, MONTHS),
    ("days of the week", 0, 6, DAYS),
)


def _owned(context: Context) -> list[tuple[InstanceGroup, str, Path]]:
    """Return group, NodeClass and path of every group that Karpenter owns."""
    return [
        (group.spec, group.node_class, context.group_paths[group.spec.name])
        for group in context.plan.groups
        if group.node_class is not None
    ]


def _node_class_groups(context: Context) -> Iterator[Issue]:
    autoscaling = context.spec.autoscaling
    classes = autoscaling.node_classes if autoscaling else ()
    if autoscaling is not None and not classes and autoscaling.keda is None:
        yield Issue(
            (*context.path, "autoscaling"),
            "`autoscaling` has neither nodeClasses nor keda, so nothing scales",
            "Add `nodeClasses` for Karpenter, or `keda` with a source. Or remove autoscaling.",
        )
    elif autoscaling is not None and not classes and autoscaling.cluster_role is not None:
        yield Issue(
            (*context.path, "autoscaling", "clusterRole"),
            "clusterRole has no effect without nodeClasses, because Karpenter is off",
            "Add `nodeClasses`, or remove clusterRole.",
        )
    claimed: dict[str, str] = {}
    for index, node_class in enumerate(classes):
        path: Path = (*context.path, "autoscaling", "nodeClasses", index, "instanceGroups")
        names = node_class.instance_groups
        if not names or len(names) > _MOST_GROUPS:
            yield Issue(
                path,
                f"the NodeClass `{node_class.name}` has {plural(len(names), 'group')}; the limit is 1–{_MOST_GROUPS}",
                "Add at least one group." if not names else "Split it into several NodeClasses.",
            )
        for position, name in enumerate(names):
            if name not in context.group_paths:
                yield Issue(
                    (*path, position),
                    f"the NodeClass `{node_class.name}` names the group `{name}`, which doesn't exist (groups: "
                    f"{listing(sorted(context.group_paths))})",
                    did_you_mean(
                        name, context.group_paths.keys() - set(names), "Use an instance group of this environment."
                    ),
                )
            elif name in claimed:
                yield Issue(
                    (*path, position),
                    f"the group `{name}` is already in the NodeClass `{claimed[name]}`",
                    "Keep it in one NodeClass.",
                )
            claimed.setdefault(name, node_class.name)


def _fit_for_karpenter(context: Context) -> Iterator[Issue]:
    for group, node_class, path in _owned(context):
        settings = {
            "instanceCount": group.instance_count,
            "minInstanceCount": group.min_instance_count,
            "onStartDeepHealthChecks": group.deep_health_checks,
            "trainingPlanArn": group.training_plan_arn,
            "overrideVpcConfig": group.override_vpc_config and {"subnets": group.override_vpc_config.subnets},
        }
        for problem in karpenter_problems(settings):
            key = "deepHealthChecks" if problem.path == ("onStartDeepHealthChecks",) else problem.path[0]
            message = f"group `{group.name}`, which the NodeClass `{node_class}` uses, {problem.message}"
            yield Issue((*path, key), message, problem.fix, policy=_POLICY_OF_GROUPS)


def _one_zone(context: Context) -> Iterator[Issue]:
    for group in context.plan.groups:
        if group.autoscaled and len(set(group.zones)) > 1:
            yield Issue(
                context.group_paths[group.spec.name],
                f"group `{group.spec.name}` spans the zones {listing(list(group.zones))}; a group of a NodeClass must "
                "be in one zone",
                "Set availabilityZone, and create one group per zone.",
            )


def _is_met_by_nothing(requirement: Requirement) -> bool:
    """Report requirements that are wrong regardless of the groups (KAR004)."""
    return (
        requirement.key not in _KEYS
        or requirement.operator not in _OPERATORS
        or (requirement.operator == "In") != bool(requirement.values)
        or (requirement.key == ARCHITECTURE_KEY and bool(set(requirement.values) - {"amd64"}))
    )


def _requirements(context: Context) -> Iterator[Issue]:
    for planned, place in context.node_pools:
        pool = planned.spec
        for position, requirement in enumerate(pool.requirements):
            path = (*place, "requirements", position)
            if requirement.key not in _KEYS:
                # Before the slash many keys are alike.
                ends = {key.rpartition("/")[2]: key for key in _KEYS}
                likely = near(requirement.key.rpartition("/")[2], ends)
                fix = f"Did you mean `{ends[likely]}`?" if likely else f"Use one of {listing(list(_KEYS))}."
                if requirement.key == "karpenter.sh/capacity-type":
                    fix = "Remove it: HyperPod ignores it. To use Spot nodes, set capacityType of their group."
                elif requirement.key.startswith("karpenter.k8s.aws/"):
                    fix = f"List the types in a requirement with the key {INSTANCE_TYPE_KEY}."
                elif requirement.key == "kubernetes.io/os":
                    fix = "Remove it: all HyperPod nodes run Linux."
                yield Issue(
                    (*path, "key"), f"NodePool `{pool.name}`: HyperPod doesn't support the key `{requirement.key}`", fix
                )
            if requirement.operator not in _OPERATORS:
                yield Issue(
                    (*path, "operator"),
                    f"NodePool `{pool.name}`: the operator `{requirement.operator}` isn't one of "
                    f"{listing(list(_OPERATORS))}",
                    did_you_mean(requirement.operator, _OPERATORS, "Use In with values, or Exists without values."),
                )
            elif (requirement.operator == "In") != bool(requirement.values):
                yield Issue(
                    (*path, "values"),
                    f"NodePool `{pool.name}`: {requirement.operator} has {plural(len(requirement.values), 'value')}",
                    "Use In with at least one value, or Exists with none.",
                )
            if requirement.key == ARCHITECTURE_KEY and set(requirement.values) - {"amd64"}:
                yield Issue(
                    (*path, "values"),
                    f"NodePool `{pool.name}`: {listing(sorted(requirement.values))} isn't supported; Karpenter on "
                    "HyperPod runs only amd64",
                    "Use `[amd64]`.",
                )


def _requirements_and_labels(context: Context) -> Iterator[Issue]:
    yield from _requirements(context)
    for planned, path in context.node_pools:
        pool = planned.spec
        for key in pool.labels:
            # As Karpenter's CRD has it: mykarpenter.sh is also rejected, and a key without a prefix that ends this way.
            own = key.partition("/")[0].endswith("karpenter.sh")
            if (own and key != "karpenter.sh/capacity-type") or key == "kubernetes.io/hostname":
                yield Issue(
                    (*path, "labels", key),
                    f"NodePool `{pool.name}`: the label `{key}` is reserved for Karpenter or the kubelet, and "
                    "Karpenter's API rejects it",
                    "Remove it, or use your own prefix.",
                )


def _labels_match(context: Context) -> Iterator[Issue]:
    for planned, path in context.node_pools:
        pool, types = planned.spec, planned.instance_types
        had = {INSTANCE_TYPE_KEY: types, ZONE_KEY: planned.zones, ARCHITECTURE_KEY: ("amd64",), _OS_KEY: ("linux",)}
        for key, value in pool.labels.items():
            # Without any type or zone, the requirements match no group.
            if key in had and had[key] and value not in had[key]:
                yield Issue(
                    (*path, "labels", key),
                    f"NodePool `{pool.name}`: Karpenter treats labels as requirements, and none of its nodes has "
                    f"`{key}: {value}` ({listing(sorted(had[key]))}), so it would never add a node",
                    "Remove it: nodes get this label automatically. To narrow types and zones, use requirements.",
                )


def _groups_match(context: Context) -> Iterator[Issue]:
    autoscaling = context.spec.autoscaling
    if autoscaling is None:
        return
    classes = {node_class.name: node_class for node_class in autoscaling.node_classes}
    for planned, path in context.node_pools:
        pool = planned.spec
        node_class = classes.get(pool.node_class)
        if node_class is None:
            yield Issue(
                (*path, "nodeClass"),
                f"NodePool `{pool.name}` names the NodeClass `{pool.node_class}`, which doesn't exist (classes: "
                f"{listing(sorted(classes))})",
                did_you_mean(pool.node_class, classes, "Use one of nodeClasses."),
            )
        # KAR001 reports missing groups, and KAR004 requirements that nothing meets.
        elif (
            not planned.instance_types
            and node_class.instance_groups
            and context.group_paths.keys() >= set(node_class.instance_groups)
            and not any(map(_is_met_by_nothing, pool.requirements))
        ):
            groups = [group for group in context.plan.groups if group.spec.name in node_class.instance_groups]
            have = sorted(
                {f"{name} in {zone}" for group in groups for name in group.spec.types for zone in group.zones}
            )
            yield Issue(
                (*path, "requirements"),
                f"the requirements of NodePool `{pool.name}` match no group of NodeClass `{pool.node_class}` "
                f"({listing(have) or 'no group'})",
                _type_meant(pool, {name for group in groups for name in group.spec.types}),
            )


def _type_meant(pool: NodePool, types: set[str]) -> str:
    for requirement in pool.requirements:
        if requirement.key == INSTANCE_TYPE_KEY and not types & set(requirement.values):
            for value in requirement.values:
                if likely := near(value, types):
                    return f"Replace `{value}` with `{likely}`."
    return "Widen the requirements, or add a group that meets them."


def _system_capacity(context: Context) -> Iterator[Issue]:
    yield from _home_of_system_pods(context)
    groups = context.plan.groups
    # An existing EKS cluster can have its own nodes, which preflight looks for.
    if context.spec.eks.existing is None and not context.plan.has_static_nodes:
        owned = f", {sum(group.autoscaled for group in groups)} managed by Karpenter" if context.spec.karpenter else ""
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"no static group has nodes ({plural(len(groups), 'group')}{owned}), so CoreDNS and the add-ons can't run",
            "Add a small group with an `instanceCount` of at least 1 that isn't in a NodeClass."
            if owned
            else "Set `instanceCount` of a group to at least 1.",
        )


def _home_of_system_pods(context: Context) -> Iterator[Issue]:
    static = [group.spec for group in context.plan.groups if not group.autoscaled and group.spec.instance_count]
    closed = {group.name: taints_against_addons(group) for group in static}
    if static and all(closed.values()):
        taints_text = listing([f"{name}: {listing(keys)}" for name, keys in closed.items()])
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"every group with nodes has a taint ({taints_text}) that CoreDNS and the add-ons don't tolerate, so they "
            "can't run",
            "Remove the taints of one group, or add a small group without taints.",
        )


def _pool_limits(context: Context) -> Iterator[Issue]:
    for planned, path in context.node_pools:
        if not planned.spec.limits:
            yield Issue(
                path,
                f"NodePool `{planned.spec.name}` has no limits, so neither the nodes that Karpenter adds nor their "
                "cost are bounded",
                "Add `limits` for a resource of its nodes, such as nvidia.com/gpu or cpu.",
                policy="nodepool-limits",
            )
    rows = [row for team in context.plan.teams for row in team.quota_resources]
    elastic = {row.instance_type for row in rows if row.elastic}
    for planned, path in context.node_pools:
        instances = [context.instances[name] for name in planned.instance_types if name in context.instances]
        named = [each for each in planned.spec.limits if is_resource(each, LIMIT_RESOURCES)]
        # KAR013 reports resources that no node has.
        if named == list(planned.spec.limits) and named and instances:
            # CAP002 reports types with elastic quota; nothing can be checked with unknown values.
            free = [
                instance.name
                for instance in instances
                if pool_instances(planned.spec.limits, instance) is None
                and instance.accelerators is not None
                and instance.name not in elastic
            ]
            if free:
                yield Issue(
                    (*path, "limits"),
                    f"the limits of NodePool `{planned.spec.name}` ({_shown(planned.spec.limits)}) don't apply to "
                    f"{listing(free)}, so its nodes aren't bounded",
                    "Add a limit for a resource that `hpkit catalog instances` lists for this type.",
                )


def _spot(context: Context) -> Iterator[Issue]:
    for group, node_class, path in _owned(context):
        if group.capacity_type == "Spot":
            yield Issue(
                (*path, "capacityType"),
                f"group `{group.name}` is Spot and in the NodeClass {node_class}; AWS's pages contradict each other on "
                "whether Karpenter's groups can use Spot",
                "Set `capacityType: OnDemand`. Or test it before you rely on it, then waive this rule and state the "
                "reason.",
            )


def _node_recovery(context: Context) -> Iterator[Issue]:
    recovery = context.spec.cluster.node_recovery
    if context.spec.karpenter is not None and recovery != "Automatic":
        yield Issue(
            (*context.path, "cluster", "nodeRecovery"),
            f"nodeRecovery is {recovery}, but Karpenter on HyperPod requires Automatic",
            "Set `nodeRecovery: Automatic`.",
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
                f"group `{group.name}` has the Arm type {listing(arm)}; the NodeClass {node_class} supports only amd64",
                "Use an x86 type, or remove the group from the NodeClass.",
                policy=_POLICY_OF_GROUPS,
            )


def _warm_pools(context: Context) -> Iterator[tuple[NodePoolPlan, WarmPool, Path]]:
    for pool, path in context.node_pools:
        if pool.spec.warm_pool is not None:
            yield pool, pool.spec.warm_pool, (*path, "warmPool")


def _warm_pool_fits(context: Context) -> Iterator[Issue]:
    for pool, warm, path in _warm_pools(context):
        instances = [context.instances[name] for name in pool.instance_types if name in context.instances]
        requests_text = listing([f"{key} {value}" for key, value in sorted(warm.requests.items())])
        pods = {instance.name: pods_on(warm.requests, instance) for instance in instances}
        if not instances or None in pods.values() or context.limits_have_wrong_units:
            continue
        if not any(pods.values()):
            yield Issue(
                (*path, "requests"),
                f"a placeholder pod of NodePool `{pool.spec.name}` requests {requests_text}, which none of its types "
                f"can provide ({listing(sorted(pods))})",
                "Request at most what one node provides, less what the system needs.",
            )
            continue
        nodes = [(pool_instances(pool.spec.limits, instance), pods[instance.name] or 0) for instance in instances]
        most = sum(count * each for count, each in nodes if count is not None)
        if all(count is not None for count, _ in nodes) and warm.replicas > most:
            yield Issue(
                (*path, "replicas"),
                f"NodePool `{pool.spec.name}` has room for {plural(most, 'placeholder pod')} ({requests_text}), but "
                f"`replicas` is {warm.replicas}",
                f"Set `replicas: {most}` or less, or raise the pool's limits." if most else "Raise the pool's limits.",
            )


def _known_resources(context: Context) -> Iterator[Issue]:
    for planned, path in context.node_pools:
        pool = planned.spec
        for resource in pool.limits:
            if not is_resource(resource, LIMIT_RESOURCES):
                yield _unknown_resource(
                    (*path, "limits", resource),
                    f"a limit of NodePool `{pool.name}`",
                    resource,
                    LIMIT_RESOURCES,
                    "has no effect",
                )
        for resource in pool.warm_pool.requests if pool.warm_pool else ():
            if not is_resource(resource, POD_RESOURCES):
                yield _unknown_resource(
                    (*path, "warmPool", "requests", resource),
                    f"a request of the placeholder pods of NodePool `{pool.name}`",
                    resource,
                    POD_RESOURCES,
                    "keeps them pending forever",
                )


def _unknown_resource(path: Path, setting: str, resource: str, known: Sequence[str], effect: str) -> Issue:
    likely = _resource_meant(resource, known)
    fix = f"Did you mean `{likely}`?" if likely else f"Use one of {listing(list(known), len(known))}."
    return Issue(path, f"{setting} is for `{resource}`, which no node has, so it {effect}", fix)


def _resource_meant(resource: str, resources: Sequence[str]) -> str | None:
    word = resource.lower().rpartition("/")[2]
    inside = next((each for each in resources if word and word.rstrip("s") in each.rpartition("/")[2]), None)
    return inside if len(word) > 2 and inside else near(resource, resources)


def _limits_hold_a_node(context: Context) -> Iterator[Issue]:
    for pool, path in context.node_pools:
        instances = [context.instances[name] for name in pool.instance_types if name in context.instances]
        counts = [pool_instances(pool.spec.limits, instance) for instance in instances]
        if not instances or context.limits_have_wrong_units or any(count != 0 for count in counts):
            continue
        smallest = min(instances, key=lambda instance: (instance.accelerators or 0, instance.vcpu or 0, instance.name))
        needs = {
            resource: amount
            for resource, amount in limits_of(smallest, 1).items()
            if resource in pool.spec.limits and quantity(pool.spec.limits[resource]) < quantity(amount)
        }
        yield Issue(
            (*path, "limits"),
            f"the limits of NodePool `{pool.spec.name}` ({_shown(pool.spec.limits)}) are smaller than one node "
            f"({listing([instance.name for instance in instances])}), so Karpenter can't add any",
            f"Raise them to at least {_shown(needs)}, the size of one {smallest.name}.",
        )


def _nodes_limit(context: Context) -> Iterator[Issue]:
    for pool, path in context.node_pools:
        if set(pool.spec.limits) == {"nodes"}:
            yield Issue(
                (*path, "limits"),
                f"only `nodes` limits NodePool `{pool.spec.name}`, and Karpenter can exceed it when many pods are "
                "pending at once",
                "Add a limit for a resource: cpu, memory or nvidia.com/gpu.",
            )


def _shown(limits: Mapping[str, str]) -> str:
    return listing([f"{resource} {limit}" for resource, limit in sorted(limits.items())])


def _sources_of_keda(context: Context) -> Iterator[Issue]:
    keda = context.spec.autoscaling.keda if context.spec.autoscaling else None
    if keda is None:
        return
    path: Path = (*context.path, "autoscaling", "keda")
    stated: list[str] = [name for name in ("cloudwatch", "prometheus", "sqs") if name in keda.model_fields_set]
    if keda.role is not None and stated:
        yield Issue(
            path,
            f"keda has the role {keda.role}, so {listing(stated)}, which only applies to hpkit's role, has no effect",
            f"Remove {listing(stated)} and grant that role the permissions, or remove role.",
        )
    workspace = context.spec.observability is not None and context.spec.observability.prometheus
    if keda.role is None and not (keda.cloudwatch or (keda.prometheus and workspace) or keda.sqs):
        yield Issue(
            path,
            "keda has no source: neither CloudWatch metrics, nor Managed Prometheus, nor a queue",
            "Add a source, or remove keda.",
        )
    elif keda.role is None and keda.prometheus and "prometheus" in stated and not workspace:
        yield Issue(
            (*path, "prometheus"),
            f"keda uses Managed Prometheus, but `{context.environment}` has none",
            "Set `observability.prometheus: true`, or remove prometheus here.",
        )


def _schedules(context: Context) -> Iterator[Issue]:
    for planned, path in context.node_pools:
        pool = planned.spec
        for index, budget in enumerate(pool.disruption.budgets):
            place: Path = (*path, "disruption", "budgets", index)
            if (budget.schedule is None) != (budget.duration is None):
                key, other = ("schedule", "duration") if budget.duration is None else ("duration", "schedule")
                example = "duration: 8h" if budget.duration is None else "schedule: 0 9 * * mon-fri"
                yield Issue(
                    (*place, key),
                    f"a budget of NodePool `{pool.name}` has the {key} `{budget.schedule or budget.duration}` but no "
                    f"{other}; Karpenter's API requires both or neither",
                    f"Set `{example}`, or another {other}. Or remove {key}, and the budget always applies.",
                )
            texts = (budget.schedule or "").split()
            wrong = wrong_field(texts, _FIELDS)
            if wrong is not None:
                text, (field, least, most, names) = wrong
                names_text = f", or {names[0]}–{names[-1]}" if names else ""
                yield Issue(
                    (*place, "schedule"),
                    f"a budget of NodePool `{pool.name}` has `{text}` for {field}; valid values are "
                    f"{least}–{most}{names_text}. "
                    "With this schedule, Karpenter disrupts no node",
                    "Write minute, hour, day of the month, month, day of the week, such as `0 9 * * mon-fri`.",
                )
            elif len(texts) == len(_FIELDS) and texts[4] in ("*", "?") and no_such_day(texts[2], texts[3]):
                yield Issue(
                    (*place, "schedule"),
                    f"a budget of NodePool `{pool.name}` starts on day {texts[2]} of month {texts[3]}, a date that "
                    "doesn't exist",
                    "Use a valid date, such as `0 9 1 * *`.",
                )
            if budget.duration is not None and not any(digit in budget.duration for digit in "123456789"):
                yield Issue(
                    (*place, "duration"),
                    f"a budget of NodePool `{pool.name}` has a duration of {budget.duration}, so it never applies",
                    "Use `8h` or another duration above zero.",
                )


def _units(context: Context) -> Iterator[Issue]:
    for planned, path in context.node_pools:
        pool = planned.spec
        requests = pool.warm_pool.requests if pool.warm_pool else {}
        amounts: list[tuple[str, Path, Mapping[str, str]]] = [
            ("limits", (*path, "limits"), pool.limits),
            ("warmPool.requests", (*path, "warmPool", "requests"), requests),
        ]
        for key, place, quantities in amounts:
            for resource, amount in quantities.items():
                if (problem := unit_problem(resource, amount)) is not None:
                    reason, fix = problem
                    yield Issue(
                        (*place, resource), f"{key} of NodePool `{pool.name}` has `{resource}: {amount}`: {reason}", fix
                    )


def _lifetimes(context: Context) -> Iterator[Issue]:
    for planned, path in context.node_pools:
        pool = planned.spec
        if not any(digit in pool.expire_after for digit in "123456789") and pool.expire_after != "Never":
            yield Issue(
                (*path, "expireAfter"),
                f"nodes of NodePool `{pool.name}` expire after {pool.expire_after}, so Karpenter would replace each "
                "node immediately",
                "Use `Never`, or a duration such as 720h.",
            )
        elif pool.expire_after != "Never" and seconds_in(pool.expire_after) < _TO_COME:
            yield Issue(
                (*path, "expireAfter"),
                f"nodes of NodePool `{pool.name}` expire after {pool.expire_after}, but take minutes to start, so "
                "Karpenter would replace them before they do any work",
                "Use `Never`, or a duration such as 720h.",
                "warning",
            )


RULES = (
    Rule(
        "KAR001",
        "error",
        "`autoscaling` has NodeClasses or KEDA. A NodeClass has 1–10 existing groups, each in one NodeClass.",
        _GUIDE,
        _node_class_groups,
        waivable=False,
    ),
    Rule(
        "KAR002",
        "error",
        "Groups of a NodeClass start at 0 in one subnet, and have no deep health checks or training plan.",
        _GUIDE,
        _fit_for_karpenter,
    ),
    Rule("KAR003", "error", "Groups of a NodeClass are in one zone.", _GUIDE, _one_zone),
    Rule(
        "KAR004",
        "error",
        "Requirements and labels of NodePools use keys and operators that HyperPod supports.",
        f"{_GUIDE}; {_CRD}",
        _requirements_and_labels,
    ),
    Rule(
        "KAR005",
        "error",
        "NodePools use an existing NodeClass, and match one of its groups.",
        f"{_GUIDE}; Karpenter's source, NewNodeClaimTemplate",
        _groups_match,
        _labels_match,
        waivable=False,
    ),
    Rule(
        "KAR006",
        "error",
        "A static group has nodes, and no taints, for CoreDNS and the add-ons.",
        f"{_GUIDE}; {_COREDNS}",
        _system_capacity,
    ),
    Rule("KAR007", "warning", "NodePools have limits.", "Karpenter documentation, NodePools", _pool_limits),
    Rule("KAR008", "warning", "Groups of a NodeClass are on-demand.", _GUIDE, _spot),
    Rule("KAR009", "error", "Autoscaling requires `nodeRecovery: Automatic`.", _GUIDE, _node_recovery),
    Rule("KAR010", "error", "Groups of a NodeClass don't use Arm types.", _GUIDE, _no_arm),
    Rule(
        "KAR011",
        "error",
        "The placeholder pods of a warm pool fit its NodePool.",
        "Kubernetes documentation, node overprovisioning",
        _warm_pool_fits,
    ),
    Rule("KAR013", "error", "Limits and requests are for resources that nodes have.", _NODE_POOLS, _known_resources),
    Rule("KAR014", "warning", "A NodePool's limits are large enough for a node.", _NODE_POOLS, _limits_hold_a_node),
    Rule(
        "KAR017",
        "warning",
        "NodePools are limited by more than their number of nodes.",
        "Karpenter issues 2657 and 2915",
        _nodes_limit,
    ),
    Rule(
        "KAR020",
        "error",
        "A budget's schedule matches at least one real time, and has a positive duration.",
        f"{_CRD}; {_CRON}",
        _schedules,
    ),
    Rule(
        "KAR021",
        "error",
        "Quantities of a NodePool have units that fit the resource.",
        "Kubernetes documentation, extended resources; resource units in Kubernetes",
        _units,
        waivable=False,
    ),
    Rule(
        "KAR022",
        "error",
        "Nodes of a NodePool live long enough to do work.",
        "Karpenter documentation, expireAfter",
        _lifetimes,
    ),
    Rule(
        "KAR023",
        "error",
        "KEDA has at least one source, and its sources apply to hpkit's role.",
        "hpkit configuration reference",
        _sources_of_keda,
    ),
)
