"""CLU, the instance groups: types, counts, zones, storage, labels, health checks, and updates."""

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Iterator

from hpkit.catalog import CLOUDWATCH, TASK_GOVERNANCE, find_instance_type, find_nearest, is_offered, is_zone_id
from hpkit.catalog.group_constraints import group_problems, patch_problems, type_problems
from hpkit.checks.cron import aws_schedule_problem
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.cluster import BatchSize, ClusterEbsVolumeConfig, InstanceGroup, InstanceGroupBase
from hpkit.config.reading.document import Path
from hpkit.plan.endpoint import RANGE_PREFIXES, awaited_groups
from hpkit.text.formatting import listing, plural
from hpkit.text.spelling import near

__all__ = ["RULES", "addresses_needed"]

# Letters of a key's name, and of the domain before its slash.
_MOST_NAME, _MOST_PREFIX = 63, 253

_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_API = "SageMaker API: CreateCluster"
_MANUAL = "SageMaker HyperPod developer guide"
_RESERVED = (
    "kubernetes.io/", "k8s.io/", "sagemaker.amazonaws.com/", "eks.amazonaws.com/", "k8s.aws/", "karpenter.sh/",
)  # fmt: skip
# AWS keeps the first four addresses and the last of every subnet.
_RESERVED_ADDRESSES = 5
# P5 on EKS: 50 for pods and 31 for EFA, the most that the guide documents for a node.
_MOST_ADDRESSES = 81
_LARGEST_PREFIX, _SMALLEST_PREFIX = RANGE_PREFIXES
_MULTITHREADED = 2
# DaemonSet pods on every node: vpc-cni, kube-proxy, pod identity, health monitoring, device plugin, EFA plugin.
_PODS_A_NODE = 6
# CoreDNS 2, training and MPI operators 2, job restart and patching 2.
_PODS_OF_THE_CLUSTER = 6
_PODS_OF_ADDONS = {TASK_GOVERNANCE: 1, "amazon-sagemaker-hyperpod-observability": 3, CLOUDWATCH: 2}
# Tests of communication between nodes; InstanceStress tests each node alone.
_CHECKS_BETWEEN_NODES = ("InstanceConnectivity", "MultiNodeTrainingValidation")
_CRON = "Amazon EventBridge user guide, cron expressions"
# Of the 60 minutes to two hours that the pages of the guide name.
_DEEP_CHECK_MINUTES = 120
_LEAST_MEMORY, _PERCENT = 20, 100


def _override(context: Context) -> Iterator[Issue]:
    for where, group in context.groups:
        path = (*where, "overrideVpcConfig")
        override = group.override_vpc_config
        if override is None:
            continue
        if context.spec.network.existing is None:
            yield Issue(
                path,
                f"group `{group.name}` uses the subnets {listing(list(override.subnets))}, but hpkit creates the "
                "network",
                "Set availabilityZone instead. Or set network.existing to the network of these subnets.",
            )
        elsewhere = [
            f"{zone.subnet_id} in {zone.availability_zone}"
            for zone in context.plan.network.zones
            if zone.subnet_id in override.subnets and group.availability_zone not in (None, zone.availability_zone)
        ]
        if elsewhere:
            yield Issue(
                path,
                f"availabilityZone of group `{group.name}` is {group.availability_zone}, but its overrideVpcConfig "
                f"names {listing(elsewhere)}",
                "Remove availabilityZone: with overrideVpcConfig, it's only for subnets that the network doesn't list.",
            )


def addresses_needed(context: Context, zone: str) -> tuple[int, list[str], dict[str, int]]:
    """Return the addresses that nodes in a zone can use, their sources, and nodes with types of unknown usage."""
    need, parts = 0, []
    unknown: dict[str, int] = {}
    for group in context.plan.all_groups:
        if zone not in group.zones:
            continue
        nodes = group.spec.instance_count
        if group.autoscaled:
            # A limit bounds all types and zones of a pool together; the smallest bound is the honest one here.
            nodes = min(
                (
                    known.maximum - known.permanent
                    for name in group.spec.types
                    if (known := context.plan.capacity.get(name)) and known.maximum is not None
                ),
                default=0,
            )
        each = [(name, context.instances.get(name)) for name in group.spec.types]
        figures = [instance.addresses for _, instance in each if instance and instance.addresses is not None]
        open_ended = [name for name, instance in each if instance and instance.addresses is None]
        if open_ended and nodes:
            unknown[open_ended[0]] = unknown.get(open_ended[0], 0) + nodes
        elif figures and nodes:
            need += max(figures) * nodes
            parts.append(f"{group.spec.name} {nodes} × {max(figures)}")
    return need, parts, unknown


def _groups(context: Context) -> Iterator[tuple[InstanceGroup, Path]]:
    for index, group in enumerate(context.spec.cluster.instance_groups):
        yield group, (*context.path, "cluster", "instanceGroups", index)


def _zone_has_subnet(context: Context) -> Iterator[Issue]:
    zones = [zone.availability_zone for zone in context.plan.network.zones]
    if len({is_zone_id(zone) for zone in zones}) > 1:
        # NET004 reports zones by ID and by name in one network.
        return
    for path, group in context.groups:
        zone = group.availability_zone
        if zone is None or zone in (*zones, *context.zones_meant):
            continue
        if zone_name := context.zone_of_region(zone):
            yield Issue(
                (*path, "availabilityZone"),
                f"group `{group.name}` is in {zone}, which isn't in {context.spec.region}",
                f"Use `{zone_name}`.",
            )
        elif zones:
            # A network without any zone is NET003's.
            yield Issue(
                (*path, "availabilityZone"),
                f"group `{group.name}` is in {zone}, where the network has no subnet (zones: "
                f"{listing(zones) or 'none'})",
                _zone_meant(zone, zones),
            )


def _zone_meant(zone: str, zones: list[str]) -> str:
    ends = [each for each in zones if each.endswith(zone)]
    if len(ends) == 1:
        return f"Use `{ends[0]}`."
    if len(begin := [each for each in zones if each.startswith(zone)]) > 1:
        return f"Add the zone's letter: {listing(begin)}."
    likely = near(zone, zones)
    # Zones of one region differ by a letter, so another zone is as likely as a typo.
    if likely is not None and zone[:-1] != likely[:-1]:
        return f"Did you mean `{likely}`?"
    return "Add the zone to the network, or move the group."


def _subnet_size(context: Context) -> Iterator[Issue]:
    # A limit with a wrong unit doesn't determine the number of nodes.
    if context.limits_have_wrong_units:
        return
    for index, zone in enumerate(context.spec.network.zones):
        try:
            network = ipaddress.IPv4Network(zone.node_cidr)
        except ValueError:
            continue
        if network.prefixlen > _SMALLEST_PREFIX:  # NET001 reports ranges that are malformed or that AWS rejects.
            continue
        addresses = network.num_addresses - _RESERVED_ADDRESSES
        path = (*context.path, "network", "zones", index, "nodeCidr")
        need, parts, unknown = addresses_needed(context, zone.availability_zone)
        size_text = f"the subnet {zone.node_cidr} in {zone.availability_zone} has {addresses} addresses"
        if need > addresses:
            yield Issue(
                path,
                f"{size_text}, but its groups can use {need} ({listing(parts)})",
                "Give the zone a larger nodeCidr of at most /16 (a subnet can't grow later), move groups to another "
                "zone, or lower limits of its NodePools.",
            )
        elif need + _MOST_ADDRESSES * sum(unknown.values()) > addresses:
            yield Issue(
                path,
                f"{size_text}; its groups use at least {need}, and the catalog doesn't know how many addresses "
                f"{listing([f'{count} × {name}' for name, count in sorted(unknown.items())])} use",
                f"Reserve {_MOST_ADDRESSES} addresses per node in the zone, the largest number of any known type.",
                "warning",
            )


def _type_is_offered(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        for index, name in enumerate(group.types):
            if find_instance_type(name) is None:
                flexible = isinstance(group, InstanceGroup) and not group.instance_type
                where = (*path, "instanceTypes", index) if flexible else (*path, "instanceType")
                yield _not_offered(where, name)
    governance = context.spec.governance
    for team, quota_resources in (governance.allocations if governance else {}).items():
        for index, quota_resource in enumerate(quota_resources):
            if find_instance_type(quota_resource.instance_type) is None:
                path = (*context.path, "governance", "allocations", team, index, "instanceType")
                yield _not_offered(path, quota_resource.instance_type)


def _not_offered(path: Path, name: str) -> Issue:
    names = find_nearest(name)
    also = f" Similar types: {listing(list(names[1:]))}." if len(names) > 1 else ""
    fix = f"Did you mean `{names[0]}`?{also}" if names else "Choose a type that `hpkit catalog instances` lists."
    return Issue(path, f"HyperPod doesn't offer the instance type `{name}`", fix)


def _threads(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        single = [name for name, threads in _threads_of(group).items() if threads == 1]
        if group.threads_per_core == _MULTITHREADED and single:
            yield Issue(
                (*path, "threadsPerCore"),
                f"group `{group.name}` requests 2 threads per core, but {listing(single)} has only 1",
                "Use `1`, or remove the key.",
            )


def _threads_unknown(context: Context) -> Iterator[Issue]:
    counted: dict[str, set[str]] = defaultdict(set)
    allocations = context.spec.governance.allocations if context.spec.governance else {}
    for team, quota_resources in allocations.items():
        for quota_resource in quota_resources:
            if quota_resource.v_cpu is not None:
                counted[quota_resource.instance_type].add(team)
    for group, path in _groups(context):
        threads = _threads_of(group)
        if group.threads_per_core is not None:
            continue
        if len(set(threads.values())) > 1:
            yield Issue(
                (*path, "instanceTypes"),
                f"the types of group `{group.name}` have different threads per core "
                f"({listing([f'{name} {count}' for name, count in threads.items()])}); AWS doesn't document which "
                "number the service uses, so their vCPUs aren't certain",
                "Set `threadsPerCore: 1`, which all types support and which halves the vCPUs of those with 2. Or "
                "put them in separate groups.",
            )
            continue
        for name in (each for each in group.types if threads.get(each) == _MULTITHREADED and each in counted):
            yield Issue(
                (*path, "instanceType" if group.instance_type else "instanceTypes"),
                f"group `{group.name}` doesn't set threadsPerCore, whose default AWS doesn't document, and quotas "
                f"count vCPUs of {name} ({', '.join(sorted(counted[name]))}); with 1, half of them exist",
                f"Set `threadsPerCore: {_MULTITHREADED}`. If the group exists, set what `aws sagemaker "
                "describe-cluster` reports.",
            )


def _threads_of(group: InstanceGroupBase) -> dict[str, int]:
    known = {name: find_instance_type(name) for name in group.types}
    return {name: found.threads_per_core for name, found in known.items() if found and found.threads_per_core}


def _room_for_addons(context: Context) -> Iterator[Issue]:
    static = [group for group in context.plan.groups if not group.autoscaled and group.spec.instance_count]
    # A type that HyperPod doesn't offer is CLU003's, and the pods that it takes follow from that.
    if not static or any(find_instance_type(name) is None for group in static for name in group.spec.types):
        return
    room, parts = 0, []
    unknown: list[str] = []
    for group in static:
        limits = [context.instances[name].max_pods for name in group.spec.types if name in context.instances]
        known_limits = [limit for limit in limits if limit is not None]
        if not known_limits or len(known_limits) < len(group.spec.types):
            unknown += group.spec.types
            continue
        room += (min(known_limits) - _PODS_A_NODE) * group.spec.instance_count
        parts.append(f"{group.spec.name} {group.spec.instance_count} × {min(known_limits)}")
    need = _PODS_OF_THE_CLUSTER + sum(_PODS_OF_ADDONS.get(addon.name, 0) for addon in context.plan.addons)
    if room < need and unknown:
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"the add-ons run {need} pods, and the known static groups can run {max(room, 0)} of them; the catalog "
            f"doesn't know how many pods {listing(sorted(set(unknown)))} can run",
            "Add a static group of a type whose pod limit is known (`hpkit catalog instances`), such as ml.m5.4xlarge.",
        )
    elif room < need:
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"the add-ons run {need} pods, but the static groups can run {max(room, 0)} of them ({listing(parts)} "
            f"pods at most, less {_PODS_A_NODE} DaemonSet pods per node)",
            "Raise `instanceCount` of a static group, or choose a type that can run more pods.",
        )


def _labels_and_taints(context: Context) -> Iterator[Issue]:
    yield from _lengths_of_keys(context)
    for group, path in _groups(context):
        stated = {"kubernetesConfig": {"taints": group.taints}, "onStartDeepHealthChecks": group.deep_health_checks}
        for problem in group_problems(stated):
            yield Issue((*path, "taints"), f"group `{group.name}` {problem.message}", problem.fix)
        keys: list[tuple[str, Path]] = [(key, (*path, "labels", key)) for key in group.labels]
        keys += [(taint.key, (*path, "taints", index, "key")) for index, taint in enumerate(group.taints)]
        for key, where in keys:
            prefix = next((each for each in _RESERVED if _has_prefix(key, each)), None)
            if prefix:
                yield Issue(
                    where,
                    f"group `{group.name}`: the key `{key}` has the reserved prefix {prefix}",
                    "Use your own prefix.",
                )


def _lengths_of_keys(context: Context) -> Iterator[Issue]:
    for owner, path in context.node_settings:
        keys: list[tuple[str, Path]] = [(key, (*path, "labels", key)) for key in owner.labels]
        keys += [(taint.key, (*path, "taints", index, "key")) for index, taint in enumerate(owner.taints)]
        for key, place in keys:
            prefix, _, name = key.rpartition("/")
            if len(name) > _MOST_NAME or len(prefix) > _MOST_PREFIX:
                yield Issue(
                    place,
                    f"a key of `{owner.name}` is too long: Kubernetes allows {_MOST_PREFIX} characters before the "
                    f"slash, and {_MOST_NAME} in the name",
                    "Shorten it.",
                )


def _has_prefix(key: str, reserved: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and (domain + "/" == reserved or domain.endswith("." + reserved[:-1]))


def _one_style(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        types = {"instanceType": group.instance_type, "instanceTypes": group.instance_types}
        for problem in type_problems({key: value for key, value in types.items() if value}, "instanceTypes"):
            yield Issue(path, f"group `{group.name}` {problem.message}", problem.fix)
        repeated = sorted(name for name, times in Counter(group.instance_types).items() if times > 1)
        if len(group.instance_types) > 20 or repeated:
            yield Issue(
                (*path, "instanceTypes"),
                f"group `{group.name}` lists "
                + (plural(len(group.instance_types), "type") if not repeated else f"{listing(repeated)} twice"),
                "List 1–20 different types.",
            )


def _counts(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        for problem in group_problems(
            {"minInstanceCount": group.min_instance_count, "instanceCount": group.instance_count}
        ):
            yield Issue((*path, *problem.path), f"group `{group.name}` {problem.message}", problem.fix)


def _patching(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        patch = group.auto_patch.model_dump(by_alias=True, exclude_none=True) if group.auto_patch else {}
        if "deploymentConfig" in patch:
            patch["deploymentConfig"] = {"rollingUpdatePolicy": patch["deploymentConfig"]}
        for problem in patch_problems(patch):
            yield Issue((*path, "autoPatch", *problem.path), f"group `{group.name}` {problem.message}", problem.fix)


def _time_for_deep_checks(context: Context) -> Iterator[Issue]:
    groups, minutes = awaited_groups(context.plan), context.plan.spec.cluster.nodes_ready_minutes
    if groups and all(group.deep_health_checks for group in groups) and minutes < _DEEP_CHECK_MINUTES:
        yield Issue(
            (*context.path, "cluster"),
            f"`up` waits {minutes} min for nodes, but all groups that can run the add-ons "
            f"({listing([group.name for group in groups])}) have deep health checks, which take up to "
            f"{_DEEP_CHECK_MINUTES} min",
            f"Set `nodesReadyMinutes: {_DEEP_CHECK_MINUTES}`, or add a small group without deep health checks.",
            "warning",
        )


def _purchase(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        if group.training_plan_arn is not None and group.capacity_type == "Spot":
            yield Issue(
                (*path, "capacityType"),
                f"group `{group.name}` is Spot, but uses a training plan, which is reserved and prepaid capacity",
                "Set `capacityType: OnDemand`, or remove trainingPlanArn.",
            )


def _type_is_in_region(context: Context) -> Iterator[Issue]:
    region = context.spec.region
    for path, group in context.groups:
        for index, name in enumerate(group.types):
            if is_offered(name, region):
                continue
            flexible = isinstance(group, InstanceGroup) and not group.instance_type
            short = name.removeprefix("ml.")
            yield Issue(
                (*path, "instanceTypes", index) if flexible else (*path, "instanceType"),
                f"group `{group.name}` has the type {name}; according to the catalog, EC2 doesn't offer it in {region}",
                "Choose another type or region. To check with EC2: `aws ec2 describe-instance-type-offerings "
                f"--region {region} --filters Name=instance-type,Values={short}`.",
            )


def _deep_checks(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        types = [instance for name in group.types if (instance := find_instance_type(name)) is not None]
        plain = [instance.name for instance in types if instance.accelerators == 0]
        without_efa = [instance.name for instance in types if instance.accelerators and instance.efa_interfaces == 0]
        between_nodes: list[str] = [check for check in group.deep_health_checks if check in _CHECKS_BETWEEN_NODES]
        if group.deep_health_checks and plain:
            yield Issue(
                (*path, "deepHealthChecks"),
                f"group `{group.name}` has deep health checks, which test GPUs, Trainium, and EFA; {listing(plain)} "
                "has neither GPUs nor Trainium",
                "Remove deepHealthChecks.",
            )
        elif between_nodes and without_efa:
            others = [check for check in group.deep_health_checks if check not in between_nodes]
            yield Issue(
                (*path, "deepHealthChecks"),
                f"group `{group.name}` has {listing(between_nodes)}, and tests between nodes require EFA; "
                f"{listing(without_efa)} has none",
                f"Use `[{', '.join(others)}]`." if others else "Remove deepHealthChecks.",
            )


def _interfaces(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        interface = group.network_interface if isinstance(group, InstanceGroup) else None
        types = [instance for name in group.types if (instance := find_instance_type(name)) is not None]
        without_efa = [instance.name for instance in types if instance.efa_interfaces == 0]
        if interface is not None and without_efa:
            yield Issue(
                (*path, "networkInterface"),
                f"group `{group.name}` has a network interface of type {interface.interface_type}, and EC2 has no EFA "
                f"for {listing(without_efa)}",
                "Remove networkInterface, or use instance types with EFA.",
            )


def _batches(context: Context) -> Iterator[Issue]:
    for size, path in _batch_sizes(context):
        if size.type == "CAPACITY_PERCENTAGE" and size.value > _PERCENT:
            yield Issue(
                (*path, "value"),
                f"the update replaces {size.value}% of a group at a time; the maximum is {_PERCENT}",
                f"Use `{_PERCENT}` or less.",
            )


def _batch_sizes(context: Context) -> Iterator[tuple[BatchSize, Path]]:
    for group, path in _groups(context):
        for key, update in (("autoPatch", group.auto_patch), ("scheduledUpdate", group.scheduled_update)):
            rolling = update.deployment_config if update else None
            if rolling is None:
                continue
            yield rolling.maximum_batch_size, (*path, key, "deploymentConfig", "maximumBatchSize")
            if rolling.rollback_maximum_batch_size is not None:
                place = (*path, key, "deploymentConfig", "rollbackMaximumBatchSize")
                yield rolling.rollback_maximum_batch_size, place


def _schedules(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        update = group.scheduled_update
        problem = aws_schedule_problem(update.schedule_expression, context.today) if update else None
        if problem is not None:
            yield Issue((*path, "scheduledUpdate", "scheduleExpression"), *problem)


def _storage(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        for index, storage in enumerate(group.instance_storage_configs):
            where = (*path, "instanceStorageConfigs", index, "ebsVolumeConfig")
            yield from _own_key(group, storage.ebs_volume_config, where)
        for problem in group_problems(group.model_dump(by_alias=True, include={"instance_storage_configs"})):
            yield Issue((*path, *problem.path), f"group `{group.name}` {problem.message}", problem.fix)


def _own_key(group: InstanceGroupBase, volume: ClusterEbsVolumeConfig, path: Path) -> Iterator[Issue]:
    if volume.volume_kms_key_id is not None and not isinstance(group, InstanceGroup):
        yield Issue(
            (*path, "volumeKmsKeyId"),
            f"group `{group.name}` is a restricted instance group, for which HyperPod doesn't support your own KMS "
            "keys",
            "Remove volumeKmsKeyId.",
        )


def _one_zone(context: Context) -> Iterator[Issue]:
    # In an existing network, its owner decides where the groups run.
    for group in context.plan.groups if context.spec.network.existing is None else ():
        chosen = group.spec.override_vpc_config is not None
        if group.autoscaled or chosen or len(group.zones) < 2 or group.spec.instance_count < 2:
            continue
        yield Issue(
            context.group_paths[group.spec.name],
            f"group `{group.spec.name}` spans {listing(list(group.zones))}: its {group.spec.instance_count} instances "
            "can be in different zones, where distributed work is slower and its traffic is billed",
            f"Add `availabilityZone: {group.zones[0]}`, or create one group per zone.",
        )


RULES = (
    Rule(
        "CLU001",
        "error",
        "Groups are in a zone where the network has a subnet.",
        _GUIDE,
        _zone_has_subnet,
        waivable=False,
    ),
    Rule("CLU002", "error", "Subnets have enough addresses for their groups.", _GUIDE, _subnet_size),
    Rule("CLU003", "error", "HyperPod offers the instance type.", _API, _type_is_offered),
    Rule("CLU004", "warning", "The static groups can run the add-ons' pods.", _GUIDE, _room_for_addons),
    Rule(
        "CLU005",
        "error",
        "Labels and taints have short, unreserved keys, and groups with deep health checks have no taints.",
        f"{_GUIDE}; Kubernetes documentation, labels and selectors: syntax",
        _labels_and_taints,
    ),
    Rule(
        "CLU006",
        "error",
        "A group has either instanceType or up to 20 instanceTypes.",
        _API,
        _one_style,
        waivable=False,
    ),
    Rule("CLU007", "error", "minInstanceCount is at most instanceCount.", _API, _counts),
    Rule(
        "CLU008",
        "error",
        "Updates of nodes have a valid schedule, batch size, and drain policy.",
        f"{_API}; {_CRON}",
        _patching,
        _batches,
        _schedules,
    ),
    Rule(
        "CLU013", "error", "overrideVpcConfig requires network.existing, and matches the group's zone.", _API, _override
    ),
    Rule("CLU014", "error", "All types of a group support its threads per core.", _API, _threads),
    Rule(
        "CLU015",
        "warning",
        "A group sets its threads per core if its types differ in them, or if a quota counts its vCPUs.",
        _API,
        _threads_unknown,
    ),
    Rule("CLU025", "error", "A group uses either Spot or a training plan.", _API, _purchase),
    Rule(
        "CLU026",
        "error",
        "Deep health checks and EFA fit the instance types, and `up` waits for the checks.",
        f"{_MANUAL}, deep health checks; Amazon EC2 User Guide, Elastic Fabric Adapter: supported instance types",
        _deep_checks,
        _interfaces,
        _time_for_deep_checks,
    ),
    Rule(
        "CLU042",
        "warning",
        "Static groups are in one zone.",
        "AWS Machine Learning Blog, auto scaling on SageMaker HyperPod",
        _one_zone,
    ),
    Rule(
        "CLU045",
        "warning",
        "EC2 offers the group's instance types in the region.",
        "Amazon EC2 API, DescribeInstanceTypeOfferings",
        _type_is_in_region,
    ),
    Rule(
        "CLU047",
        "error",
        "HyperPod accepts the nodes' storage settings.",
        f"{_MANUAL}, customer managed AWS KMS key encryption for SageMaker HyperPod",
        _storage,
    ),
)
