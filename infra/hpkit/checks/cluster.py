"""CLU, the cluster: name, region, dependencies chart, instance groups, and restricted instance groups."""

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hpkit.catalog import (
    TASK_GOVERNANCE,
    aws_regions,
    dependencies_chart,
    find_instance_type,
    find_nearest,
    is_offered,
    is_zone_id,
    regions,
)
from hpkit.checks.cron import aws_schedule_problem
from hpkit.checks.rule import Context, Issue, Rule, groups_of
from hpkit.checks.storage import not_of_lustre
from hpkit.config.autoscaling import NodePool
from hpkit.config.cluster import BatchSize, ClusterEbsVolumeConfig, FSxLustreConfig, InstanceGroup, InstanceGroupBase
from hpkit.config.document import Path
from hpkit.config.network import Zone
from hpkit.config.organization import Environment
from hpkit.config.suggest import explained
from hpkit.plan.dependencies import chart_images, is_regional, unmirrored_images
from hpkit.plan.derive import derive
from hpkit.plan.hosts import awaited_groups, taints_against_addons
from hpkit.plan.model import GroupPlan, Plan
from hpkit.plan.registry import region_of_registry
from hpkit.plan.subnets import RANGE_PREFIXES
from hpkit.text.formatting import listing
from hpkit.text.plural import plural
from hpkit.text.spelling import near

__all__ = ["RULES", "addresses_needed", "is_same_cluster", "less_than_stated", "second_governance"]

_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_API = "SageMaker API: CreateCluster"
_CONTRACT = "hpkit configuration reference"
_ECR = "Amazon ECR user guide, interface VPC endpoints"
_MOST_GROUPS_IN_CONSOLE = 20
_MANUAL = "SageMaker HyperPod developer guide"
_NOVA = 'SageMaker developer guide, "Creating a HyperPod EKS cluster with restricted instance group (RIG)"'
_NOVA_TERRAFORM = (
    "awslabs/awsome-distributed-training, Terraform modules for HyperPod on EKS, restricted instance groups"
)
_FSX = "Amazon FSx API reference, UpdateFileSystem (PERSISTENT_2)"
_AUTOSCALING = f"SageMaker HyperPod developer guide, autoscaling with Karpenter; {_NOVA_TERRAFORM}"
# AWS's Terraform modules install none of these with restricted groups.
_NOT_BESIDE_RESTRICTED = (
    TASK_GOVERNANCE,
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-hyperpod-inference",
)
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
_PODS_OF_ADDONS = {
    TASK_GOVERNANCE: 1,
    "amazon-sagemaker-hyperpod-observability": 3,
    "amazon-cloudwatch-observability": 2,
}
# Tests of communication between nodes; InstanceStress tests each node alone.
_CHECKS_BETWEEN_NODES = ("InstanceConnectivity", "MultiNodeTrainingValidation")
_COREDNS = "Amazon EKS user guide, CoreDNS; Kubernetes documentation, taints and tolerations"
_CRON = "Amazon EventBridge user guide, cron expressions"
# Of the 60 minutes to two hours that the pages of the guide name.
_DEEP_CHECK_MINUTES = 120
_LEAST_MEMORY, _PERCENT = 20, 100
# Letters of a key's name, and of the domain before its slash.
_MOST_NAME, _MOST_PREFIX = 63, 253


def _number_of_groups(context: Context) -> Iterator[Issue]:
    count = len(context.groups)
    if count > _MOST_GROUPS_IN_CONSOLE:
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"the cluster has {count} instance groups; the guide's limit is {_MOST_GROUPS_IN_CONSOLE}, though the "
            "API allows 100",
            "Merge groups, or ask AWS support before you rely on more.",
        )


def _chart_is_pinned(context: Context) -> Iterator[Issue]:
    dependencies = context.spec.cluster.dependencies
    if dependencies.chart is None:
        return
    path: Path = (*context.path, "cluster", "dependencies", "chart")
    if not dependencies.is_in_repository:
        unverified = ", and the sha256 next to it isn't verified" if dependencies.sha256 else ""
        yield Issue(
            path,
            f"{dependencies.chart} comes from a registry, where a version can be overwritten{unverified}",
            f"Run `helm pull {dependencies.chart} --version {dependencies.version}`, commit the .tgz to the "
            "repository, and set "
            "`chart` and `sha256` for it.",
            policy="helm-charts-pinned",
        )
    elif dependencies.sha256 is None:
        yield Issue(
            path,
            f"the chart {dependencies.chart} has no sha256, so changes to it would be deployed unnoticed",
            f"Set `sha256` to the output of `hpkit catalog hash-chart {dependencies.chart}`.",
        )


def _chart_is_stated_whole(context: Context) -> Iterator[Issue]:
    dependencies = context.spec.cluster.dependencies
    path: Path = (*context.path, "cluster", "dependencies")
    of_own = {"chart": dependencies.chart, "version": dependencies.version, "sha256": dependencies.sha256}
    others = [key for key, value in of_own.items() if value is not None]
    if dependencies.installed:
        others += ["imageRegistry"] if dependencies.image_registry is not None else []
        others += ["values"] if dependencies.values else []
        if others:
            yield Issue(
                (*path, "installed"),
                f"`installed` means that the cluster already has the chart, but {listing(others)} applies to a chart "
                "that hpkit installs",
                "Remove `installed`, or remove the other keys.",
            )
    elif others and dependencies.chart is None:
        yield Issue(
            (*path, others[0]),
            f"{listing(others)} applies to your own chart, but no chart is set; hpkit's chart is already pinned",
            "Set `chart`, or remove the other keys.",
        )
    elif dependencies.chart is not None and dependencies.version is None:
        yield Issue(
            (*path, "chart"), f"the chart {dependencies.chart} has no version", "Set `version` to the chart's version."
        )


def _images_are_mirrored(context: Context) -> Iterator[Issue]:
    for issue in _unreachable_images(context):
        yield replace(issue, other=(*context.path, "network", "closed"), other_name="`closed`")


def _unreachable_images(context: Context) -> Iterator[Issue]:
    dependencies, region = context.spec.cluster.dependencies, context.spec.region
    if not context.spec.network.closed:
        return
    if context.spec.autoscaling is not None and context.spec.autoscaling.keda is not None:
        yield Issue(
            (*context.path, "autoscaling", "keda"),
            "the network is closed, but KEDA's images come from ghcr.io",
            "Remove keda, and install its chart with images from your own registry.",
        )
    if dependencies.installed:
        return
    path: Path = (*context.path, "cluster", "dependencies")
    if dependencies.image_registry is None:
        sources = [each.source(region) for each in chart_images(context.spec)] if dependencies.is_kits else []
        hosts = sorted({name.partition("/")[0] for name in sources if not is_regional(name, region)})
        yield Issue(
            path,
            "the network is closed, but nodes would pull images of the dependencies chart from "
            f"{listing(hosts) if hosts else 'registries that the chart sets'}",
            f"Run `hpkit aws images --stack {context.plan.stack} --mirror`, then set the registry that they are in: "
            f"`dependencies: {{imageRegistry: ACCOUNT.dkr.ecr.{region}.amazonaws.com}}`.",
        )
        return
    elsewhere = region_of_registry(dependencies.image_registry)
    if elsewhere not in (None, region):
        yield Issue(
            (*path, "imageRegistry"),
            f"the network is closed, and its endpoint only reaches registries in {region}; "
            f"{dependencies.image_registry} "
            f"is in {elsewhere}",
            f"Run `hpkit aws images --stack {context.plan.stack} --mirror` for a registry in {region}, and set "
            "imageRegistry to it.",
        )
    if dependencies.is_kits:
        for image in unmirrored_images(context.spec):
            yield Issue(
                (*path, "imageRegistry"),
                f"nodes need {image.source(region)}, but the network doesn't reach it, and the chart has no value to "
                "change its registry",
                f"Keep a copy of the chart in the repository, use the mirrored image in its part {image.subchart}, "
                "and set `chart` to the copy.",
            )


def _values_of_parts(context: Context) -> Iterator[Issue]:
    wanted = context.spec.cluster.dependencies
    chart_values = dependencies_chart().values
    for key in wanted.values if wanted.is_kits else ():
        if key in chart_values:
            continue
        likely = near(key, chart_values)
        part_names = listing(sorted(chart_values), len(chart_values))
        yield Issue(
            (*context.path, "cluster", "dependencies", "values", key),
            f"the chart {dependencies_chart().name} has no part and no value `{key}`, and ignores it",
            f"Did you mean `{likely}`?" if likely else f"Remove it. The chart's parts are {part_names}.",
            None if likely else "warning",
        )


def _override(context: Context) -> Iterator[Issue]:
    for where, group in context.groups:
        path = (*where, "overrideVpcConfig")
        override = group.override_vpc_config
        if override is None:
            continue
        if context.spec.network.existing is None:
            yield Issue(
                path,
                f"{group.name} uses the subnets {listing(list(override.subnets))}, but hpkit creates the network",
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
                f"availabilityZone of {group.name} is {group.availability_zone}, but its overrideVpcConfig names "
                f"{listing(elsewhere)}",
                "Remove availabilityZone: next to overrideVpcConfig, it's only for subnets that the network doesn't "
                "list.",
            )


def _region(context: Context) -> Iterator[Issue]:
    region, path = context.spec.region, (*context.path, "region")
    governed = context.spec.governance is not None
    offered = [each.name for each in regions() if each.task_governance or not governed]
    if region not in aws_regions():
        zones = sorted(
            {zone.availability_zone for zone in context.plan.network.zones if not is_zone_id(zone.availability_zone)}
        )
        of_zones = {zone[:-1] for zone in zones} & set(offered)
        likely = of_zones.pop() if len(of_zones) == 1 else near(region, offered)
        fix = f"Did you mean `{likely}`?" if likely else f"Use one of {listing(offered, len(offered))}."
        if likely and (others := [zone for zone in zones if zone[:-1] != likely]):
            fix = f"Did you mean `{likely}`? Also replace its zones, such as {others[0]} with {likely}{others[0][-1]}."
        yield Issue(path, f"AWS has no region `{region}`", fix)
    elif not context.knows_region:
        yield Issue(
            path,
            f"according to the catalog, HyperPod on EKS isn't available in {region}",
            f"Use one of {listing(offered, len(offered))}.",
        )


def _restricted_without_quota(context: Context) -> Iterator[Issue]:
    if context.spec.governance is None or not context.plan.restricted_groups:
        return
    counts: dict[str, int] = {}
    for group in context.plan.restricted_groups:
        counts[group.spec.instance_type] = counts.get(group.spec.instance_type, 0) + group.spec.instance_count
    yield Issue(
        (*context.path, "cluster", "restrictedInstanceGroups"),
        f"no queue can use the {listing([f'{count} × {name}' for name, count in sorted(counts.items())])} of "
        "restricted groups: AWS doesn't document that task governance counts them, and its Terraform modules don't "
        "combine the two",
        "If teams share only the ordinary groups, waive this rule. Otherwise give the restricted groups a separate "
        "cluster.",
    )


def _beside_restricted(context: Context) -> Iterator[Issue]:
    if not context.plan.restricted_groups:
        return
    addons = [addon.name for addon in context.plan.addons if addon.name in _NOT_BESIDE_RESTRICTED]
    unusual = ["ordinary groups", "continuous provisioning", *addons]
    yield Issue(
        (*context.path, "cluster", "restrictedInstanceGroups"),
        f"next to restricted groups, the cluster has {listing(unusual)}; AWS's Terraform modules omit these, and AWS "
        "doesn't document whether the service accepts them",
        "Ask AWS support before you pay for nodes, or test with one small group. Then waive this rule.",
    )


def _restricted_autoscaling(context: Context) -> Iterator[Issue]:
    if context.spec.autoscaling is not None and context.plan.restricted_groups:
        names = [group.spec.name for group in context.plan.restricted_groups]
        yield Issue(
            (*context.path, "autoscaling"),
            f"managed Karpenter doesn't work with restricted instance groups ({listing(names)})",
            "Remove autoscaling, or give the restricted groups a separate cluster.",
        )


def _restricted_environment(context: Context) -> Iterator[Issue]:
    cluster, path = context.spec.cluster, (*context.path, "cluster")
    shared = cluster.restricted_instance_groups_config
    if shared is not None and not cluster.restricted_instance_groups:
        yield Issue(
            (*path, "restrictedInstanceGroupsConfig"),
            "`restrictedInstanceGroupsConfig` requires restricted groups, and the cluster has none",
            "Remove it, or add restrictedInstanceGroups.",
        )
    elif shared is not None:
        config = shared.shared_environment_config.fsx_lustre_config
        yield from _sizes(
            config, (*path, "restrictedInstanceGroupsConfig", "sharedEnvironmentConfig", "fSxLustreConfig")
        )
    for index, group in enumerate(cluster.restricted_instance_groups):
        where = (*path, "restrictedInstanceGroups", index)
        if group.environment_config is not None:
            yield from _sizes(
                group.environment_config.fsx_lustre_config, (*where, "environmentConfig", "fSxLustreConfig")
            )
        elif shared is None:
            yield Issue(
                where,
                f"{group.name} has no file system: neither environmentConfig nor restrictedInstanceGroupsConfig is set",
                "Add environmentConfig with the size and throughput that the Nova recipe requires.",
            )


def _sizes(config: FSxLustreConfig, path: Path) -> Iterator[Issue]:
    throughput = config.per_unit_storage_throughput
    return not_of_lustre((*path, "sizeInGiB"), config.size_in_gib, (*path, "perUnitStorageThroughput"), throughput)


def is_same_cluster(environment: Environment, other: Environment) -> bool:
    """Return whether two environments have a cluster with the same name, region and, if known, account."""
    accounts = {each.account for each in (environment, other) if each.account}
    return (environment.cluster.name, environment.region) == (other.cluster.name, other.region) and len(accounts) < 2


def second_governance(
    environment: Environment, other: Environment, name: str, other_name: str
) -> tuple[str, str] | None:
    """Return a message and a fix if two environments govern one cluster that one of them doesn't create."""
    if environment.governance is None or other.governance is None or not is_same_cluster(environment, other):
        return None
    if not environment.cluster.existing and not other.cluster.existing:
        return None
    message = (
        f"{name} and {other_name} both govern the cluster {environment.cluster.name} in {environment.region}, and "
        "each `pulumi up` "
        "would remove the other's teams from the admission policies"
    )
    # Without a stated account, it's unknown whether the accounts differ.
    is_known = environment.account and other.account
    return message, "Keep `governance` in one of these environments." + (
        "" if is_known else " Or, if their accounts differ, set `account` in both."
    )


def _clusters_apart(context: Context) -> Iterator[Issue]:
    same_clusters = [
        name
        for name, other in context.organization.environments.items()
        if name < context.environment and not other.cluster.existing and is_same_cluster(context.spec, other)
    ]
    if same_clusters:
        name = context.spec.cluster.name
        yield Issue(
            (*context.path, "cluster", "name"),
            f"{context.environment} and {listing(same_clusters)} both have a cluster {name} in {context.spec.region}; "
            "cluster "
            "names are unique in an account and region",
            f"Use `{name}-{context.environment}`, or give the environments different accounts.",
        )


def _one_governs(context: Context) -> Iterator[Issue]:
    """Compare with all other environments, because each can be deployed separately."""
    for name, other in context.organization.environments.items():
        second = second_governance(context.spec, other, context.environment, name)
        if name != context.environment and second is not None:
            where: Path = ("environments", name, "governance")
            yield Issue((*context.path, "governance"), *second, other=where, other_name=f"`governance` of {name}")


def less_than_stated(own: Plan, stated: Plan, own_name: str, name: str) -> Iterator[Issue]:
    """Yield what an environment that creates a cluster has less of than the environment that governs it states."""
    if not _governs(stated.spec, own.spec):
        return
    fix = f"Restore it here. Or lower `cluster` and the quotas of {name} too, and deploy {stated.stack} first."
    path, where = [("environments", plan.environment) for plan in (own, stated)]
    # Of two groups of one name, the first counts, as in `Context.group_paths`.
    groups = {group.name: (place, group) for place, group in reversed(groups_of(own.spec, path))}
    places = {group.name: index for index, group in enumerate(stated.spec.cluster.instance_groups)}
    for group in stated.groups:
        if group.spec.name in groups:
            short = _short_group(*groups[group.spec.name], group, name)
        else:
            types = " or ".join(sorted(group.spec.types))
            message = (
                f"{own_name} has no group {group.spec.name}, but {name} states {group.spec.instance_count} × {types}"
            )
            short = (*path, "cluster", "instanceGroups"), message
        if short is not None:
            other = (*where, "cluster", "instanceGroups", places[group.spec.name])
            yield Issue(*short, fix, other=other, other_name=f"{group.spec.name} of {name}")
    for instance_type, needed in stated.capacity.items():
        existing = own.capacity.get(instance_type)
        if (
            needed.pools
            and needed.maximum
            and existing is not None
            and (existing.maximum or needed.maximum) < needed.maximum
        ):
            yield Issue(
                (*path, "autoscaling" if own.spec.autoscaling else "cluster"),
                f"Karpenter adds at most {existing.maximum} × {instance_type}, but {name} states {needed.maximum}",
                fix,
                other=(*where, "autoscaling"),
                other_name=f"`autoscaling` of {name}",
            )


def _has_what_is_governed(context: Context) -> Iterator[Issue]:
    """Compare the cluster that this environment creates with what others state for it."""
    for name, other in context.organization.environments.items():
        if _governs(other, context.spec):
            yield from less_than_stated(context.plan, derive(context.organization, name), context.environment, name)


def _governs(stated: Environment, own: Environment) -> bool:
    """Return whether an environment governs the cluster that another one creates."""
    is_governed = stated.cluster.existing and stated.governance is not None and not own.cluster.existing
    return is_governed and is_same_cluster(own, stated)


def _short_group(path: Path, own: InstanceGroupBase, stated: GroupPlan, name: str) -> tuple[Path, str] | None:
    """Return where and how a group at a path has less than another environment states for it."""
    if set(own.types) != set(stated.spec.types):
        has, states = (" or ".join(sorted(group.types)) for group in (own, stated.spec))
        return path, f"{own.name} has {has}, but {name} states {states}"
    if not stated.autoscaled and own.instance_count < stated.spec.instance_count:
        has = plural(own.instance_count, "instance")
        return (*path, "instanceCount"), f"{own.name} has {has}, but {name} states {stated.spec.instance_count}"
    return None


def _existing(context: Context) -> Iterator[Issue]:
    spec = context.spec
    path: Path = (*context.path, "cluster", "existing")
    lustre = spec.storage.lustre if spec.storage else None
    has_file_system = lustre is not None and lustre.existing is not None
    if has_file_system and not spec.cluster.existing:
        yield Issue(
            (*context.path, "storage", "lustre", "existing"),
            f"this environment creates the cluster {spec.cluster.name}, so it also creates its file system",
            "Remove it, and let this stack create a file system. Or set cluster.existing.",
        )
    if not spec.cluster.existing:
        return
    if spec.eks.existing is None:
        yield Issue(
            path,
            f"the cluster {spec.cluster.name} exists, but `eks` describes a new EKS cluster",
            "Set eks.existing.name to the EKS cluster that orchestrates it.",
        )
    if spec.governance is None:
        yield Issue(
            path,
            f"the cluster {spec.cluster.name} exists, so this environment would create nothing without governance",
            "Add `governance`, or remove the environment.",
        )
    keda = spec.autoscaling.keda if spec.autoscaling else None
    created: dict[tuple[str, ...], bool] = {
        ("network",): "network" in spec.model_fields_set,
        ("storage",): spec.storage is not None
        and not (spec.storage.model_fields_set <= {"lustre", "local_disk"} and (has_file_system or lustre is None)),
        ("observability",): spec.observability is not None,
        ("inference",): spec.inference is not None,
        ("spaces",): spec.spaces is not None,
        ("autoscaling", "keda"): keda is not None,
        ("cluster", "dependencies"): "dependencies" in spec.cluster.model_fields_set,
        **{("addons", name): name != TASK_GOVERNANCE for name in spec.addons},
    }
    for section in (section for section, is_stated in created.items() if is_stated):
        yield Issue(
            (*context.path, *section),
            f"`{'.'.join(section)}` belongs to the stack or tool that manages the cluster {spec.cluster.name}",
            "Remove it, or if it's a default, set it to `null`. Or remove `existing`, and let this stack create the "
            "cluster.",
            other=path,
            other_name="`existing`",
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
                    known.maximum - known.guaranteed
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
    for path, group in context.groups:
        zone = group.availability_zone
        if zone is None or zone in (*zones, *context.zones_meant):
            continue
        if zone_name := context.zone_of_region(zone):
            yield Issue(
                (*path, "availabilityZone"),
                f"{group.name} is in {zone}, which isn't in {context.spec.region}",
                f"Use `{zone_name}`.",
            )
        elif zones:
            # A network without any zone is NET003's.
            yield Issue(
                (*path, "availabilityZone"),
                f"{group.name} is in {zone}, where the network has no subnet (zones: {listing(zones) or 'none'})",
                _zone_meant(zone, zones),
            )


def _zone_meant(zone: str, zones: list[str]) -> str:
    ends = [each for each in zones if each.endswith(zone)]
    if len(ends) == 1:
        return f"Use `{ends[0]}`."
    hint = explained(zone)
    if hint is not None:
        return hint[1]
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
                _room_in_zone(context, zone),
            )
        elif need + _MOST_ADDRESSES * sum(unknown.values()) > addresses:
            yield Issue(
                path,
                f"{size_text}; its groups use at least {need}, and the catalog doesn't know how many addresses "
                f"{listing([f'{count} × {name}' for name, count in sorted(unknown.items())])} use",
                f"Reserve {_MOST_ADDRESSES} addresses per node in the zone, the largest number of any known type.",
                "warning",
            )


def _room_in_zone(context: Context, zone: Zone) -> str:
    """Return how to make the groups in a zone fit: with its range, or with the limits of Karpenter's nodes."""
    classes = {
        group.node_class for group in context.plan.groups if group.autoscaled and zone.availability_zone in group.zones
    }
    pools = [pool.spec for pool in context.plan.node_pools if pool.spec.node_class in classes and pool.spec.limits]
    limits = [f"{pool.name} ({', '.join(f'{key}: {limit}' for key, limit in pool.limits.items())})" for pool in pools]
    lower = f"ower limits of the {'NodePool' if len(limits) == 1 else 'NodePools'} {listing(limits)}" if limits else ""
    if ipaddress.IPv4Network(zone.node_cidr).prefixlen <= _LARGEST_PREFIX:
        return f"L{lower}." if lower else "Move groups to another zone: the largest subnet in AWS is /16."
    larger = "Give the zone a larger nodeCidr; a subnet can't grow later."
    return f"{larger} Or l{lower}." if lower else larger


def _type_is_offered(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        for index, name in enumerate(group.types):
            if find_instance_type(name) is None:
                flexible = isinstance(group, InstanceGroup) and not group.instance_type
                where = (*path, "instanceTypes", index) if flexible else (*path, "instanceType")
                yield _not_offered(where, name, group.name)
    governance = context.spec.governance
    provided = [name for name in sorted(context.plan.capacity) if find_instance_type(name) is not None]
    for team, quota_resources in (governance.allocations if governance else {}).items():
        for index, quota_resource in enumerate(quota_resources):
            if find_instance_type(quota_resource.instance_type) is None:
                path = (*context.path, "governance", "allocations", team, index, "instanceType")
                yield _not_offered(path, quota_resource.instance_type, f"the allocation of {team}", provided)


def _not_offered(path: Path, name: str, owner: str, provided: Sequence[str] = ()) -> Issue:
    likely = [each for each in find_nearest(name) if each in provided]
    names = (*likely, *(each for each in find_nearest(name) if each not in likely))
    also = f" ({listing(list(names[1:]))})" if len(names) > 1 else ""
    fix = f"Did you mean `{names[0]}`{also}?" if names else "Choose a type that `hpkit catalog instances` lists."
    return Issue(path, f"{owner} has the type `{name}`, which HyperPod doesn't offer", fix)


def _threads(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        single = [name for name, threads in _threads_of(group).items() if threads == 1]
        if group.threads_per_core == _MULTITHREADED and single:
            yield Issue(
                (*path, "threadsPerCore"),
                f"{group.name} requests 2 threads per core, but {listing(single)} has only 1",
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
                f"the types of {group.name} have different threads per core "
                f"({listing([f'{name} {count}' for name, count in threads.items()])}); AWS doesn't document which "
                "number the service uses, so their vCPUs aren't certain",
                "Set `threadsPerCore: 1`, which all types support and which halves the vCPUs of those with 2. Or "
                "put them in separate groups.",
            )
            continue
        for name in (each for each in group.types if threads.get(each) == _MULTITHREADED and each in counted):
            yield Issue(
                (*path, "instanceType" if group.instance_type else "instanceTypes"),
                f"{group.name} doesn't set threadsPerCore, whose default AWS doesn't document, and quotas count "
                f"vCPUs of {name} ({', '.join(sorted(counted[name]))}); with 1, half of them exist",
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
            "Raise instanceCount of a static group, or choose a type that can run more pods.",
        )


def _labels_and_taints(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        if group.taints and group.deep_health_checks:
            yield Issue(
                (*path, "taints"),
                f"{group.name} has {plural(len(group.taints), 'custom taint')} and deep health checks; the service "
                "rejects the combination",
                "Remove the taints, or remove deepHealthChecks.",
            )
        keys: list[tuple[str, Path]] = [(key, (*path, "labels", key)) for key in group.labels]
        keys += [(taint.key, (*path, "taints", index, "key")) for index, taint in enumerate(group.taints)]
        for key, where in keys:
            prefix = next((each for each in _RESERVED if _has_prefix(key, each)), None)
            if prefix:
                yield Issue(
                    where,
                    f"{group.name}: the key `{key}` has the reserved prefix {prefix}",
                    "Use your own prefix.",
                )


def _has_prefix(key: str, reserved: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and (domain + "/" == reserved or domain.endswith("." + reserved[:-1]))


def _one_style(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        if bool(group.instance_type) == bool(group.instance_types):
            yield Issue(
                path,
                f"{group.name} has both instanceType and instanceTypes"
                if group.instance_type
                else f"{group.name} has neither instanceType nor instanceTypes",
                "Set one of the two.",
            )
        if len(group.instance_types) > 20 or len(set(group.instance_types)) < len(group.instance_types):
            yield Issue(
                (*path, "instanceTypes"),
                f"{group.name} lists {len(group.instance_types)} types, {len(set(group.instance_types))} of them "
                "different; the limit is 1–20 different types",
                "List each type once, and at most 20 types.",
            )


def _counts(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        if group.min_instance_count is not None and group.min_instance_count > group.instance_count:
            yield Issue(
                (*path, "minInstanceCount"),
                f"`minInstanceCount` of {group.name} is {group.min_instance_count}, but `instanceCount` is only "
                f"{group.instance_count}",
                "Lower minInstanceCount, or raise instanceCount.",
            )


def _patching(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        patch = group.auto_patch
        if patch is None:
            continue
        drains = patch.patching_strategy == "DrainFirst"
        if patch.drain_policy is not None and not drains:
            yield Issue(
                (*path, "autoPatch", "drainPolicy"),
                f"{group.name} has a drainPolicy with {patch.patching_strategy}; drainPolicy requires DrainFirst",
                "Remove drainPolicy, or set patchingStrategy: DrainFirst with deploymentConfig.maximumBatchSize.",
            )
        if drains and patch.deployment_config is None:
            yield Issue(
                (*path, "autoPatch"),
                f"{group.name} uses DrainFirst without a maximumBatchSize",
                "Add deploymentConfig.maximumBatchSize.",
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


def _time_for_deep_checks(context: Context) -> Iterator[Issue]:
    groups, minutes = awaited_groups(context.plan), context.plan.spec.cluster.nodes_ready_minutes
    if groups and all(group.deep_health_checks for group in groups) and minutes < _DEEP_CHECK_MINUTES:
        yield Issue(
            (*context.path, "cluster"),
            f"`up` waits {minutes} min for nodes, but all groups that can run the add-ons "
            f"({listing([group.name for group in groups])}) have deep health checks, which take up to "
            f"{_DEEP_CHECK_MINUTES} min",
            f"Set `nodesReadyMinutes: {_DEEP_CHECK_MINUTES}`, or add a small group without deep health checks.",
        )


def _purchase(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        if group.training_plan_arn is not None and group.capacity_type == "Spot":
            yield Issue(
                (*path, "capacityType"),
                f"{group.name} is Spot, but uses a training plan, which is reserved and prepaid capacity",
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
                f"{group.name} has the type {name}; according to the catalog, EC2 doesn't offer it in {region}",
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
                f"{group.name} has deep health checks, which test GPUs, Trainium, and EFA; {listing(plain)} has "
                "neither GPUs nor Trainium",
                "Remove deepHealthChecks.",
            )
        elif between_nodes and without_efa:
            others = [check for check in group.deep_health_checks if check not in between_nodes]
            yield Issue(
                (*path, "deepHealthChecks"),
                f"{group.name} has {listing(between_nodes)}, and tests between nodes require EFA; "
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
                f"{group.name} has a network interface of type {interface.interface_type}, and EC2 has no EFA for "
                f"{listing(without_efa)}",
                "Remove networkInterface, or use instance types with EFA.",
            )


def _percentages(context: Context) -> Iterator[Issue]:
    cluster = context.spec.cluster
    tiered = cluster.tiered_storage
    percent = tiered.instance_memory_allocation_percentage if tiered else None
    if percent is not None and percent < _LEAST_MEMORY:
        yield Issue(
            (*context.path, "cluster", "tieredStorage", "instanceMemoryAllocationPercentage"),
            f"checkpoints use {percent}% of the nodes' memory; the service accepts {_LEAST_MEMORY}–{_PERCENT}",
            f"Use `{_LEAST_MEMORY}` or more.",
        )
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


def _taints_differ(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        taints = [(taint.key, taint.effect) for taint in group.taints]
        for position, (key, effect) in enumerate(taints):
            if (key, effect) in taints[:position]:
                yield Issue(
                    (*path, "taints", position),
                    f"{group.name} has the taint {key} with {effect} twice; a Kubernetes node can have it only once",
                    "Remove one, or change its effect.",
                )


def _lengths_of_keys(context: Context) -> Iterator[Issue]:
    for holder, key, path in _keys_on_nodes(context):
        prefix, _, name = key.rpartition("/")
        part, most = (name, _MOST_NAME) if len(name) > _MOST_NAME else (prefix, _MOST_PREFIX)
        if len(part) > most:
            where = "after" if part == name and prefix else "before" if prefix else "in"
            yield Issue(
                path,
                f"a key of {holder} has {len(part)} characters {where} the {'slash' if prefix else 'name'}; the limit "
                f"in Kubernetes is {most}",
                f"Shorten it to {most} characters.",
            )


def _keys_on_nodes(context: Context) -> Iterator[tuple[str, str, Path]]:
    """Yield whose it is, key and path of each label and taint that nodes get by their group or their NodePool."""
    places: list[tuple[InstanceGroup | NodePool, Path]] = list(_groups(context))
    pools = context.spec.autoscaling.node_pools if context.spec.autoscaling else ()
    pool_path: Path = (*context.path, "autoscaling", "nodePools")
    places += [(pool, (*pool_path, index)) for index, pool in enumerate(pools)]
    for owner, path in places:
        for key in owner.labels:
            yield owner.name, key, (*path, "labels", key)
        for index, taint in enumerate(owner.taints):
            yield owner.name, taint.key, (*path, "taints", index, "key")


def _storage(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        volumes: list[bool] = []
        for index, storage in enumerate(group.instance_storage_configs):
            where = (*path, "instanceStorageConfigs", index)
            storage_types = list(storage.model_dump(by_alias=True, exclude_none=True))
            if len(storage_types) != 1:
                yield Issue(
                    where,
                    f"entry {index + 1} of {group.name} has {listing(storage_types) or 'no storage'}; it must have "
                    "exactly one",
                    "Set one of ebsVolumeConfig, fsxLustreConfig and fsxOpenZfsConfig in each entry.",
                )
            volume = storage.ebs_volume_config
            if volume is None:
                continue
            volumes.append(volume.root_volume)
            yield from _volume(group, volume, (*where, "ebsVolumeConfig"))
        if len(volumes) != len(set(volumes)):
            yield Issue(
                (*path, "instanceStorageConfigs"),
                f"{group.name} has {len(volumes)} EBS volumes; HyperPod accepts one root volume and one additional "
                "volume",
                "Keep one entry with `rootVolume: true`, and one without.",
            )
        yield from _mounts(group, (*path, "instanceStorageConfigs"))


def _mounts(group: InstanceGroupBase, path: Path) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, storage in enumerate(group.instance_storage_configs):
        for key, system in (
            ("fsxLustreConfig", storage.fsx_lustre_config),
            ("fsxOpenZfsConfig", storage.fsx_open_zfs_config),
        ):
            folder = system.mount_path if system else None
            if folder in seen:
                yield Issue(
                    (*path, index, key, "mountPath"),
                    f"{group.name} mounts two file systems at {folder}, so one hides the other",
                    "Use another folder.",
                )
            if folder:
                seen.add(folder)


def _volume(group: InstanceGroupBase, volume: ClusterEbsVolumeConfig, path: Path) -> Iterator[Issue]:
    if volume.root_volume and volume.volume_size_in_gb is not None:
        yield Issue(
            (*path, "volumeSizeInGB"), "AWS sets the size of the root volume", "Remove volumeSizeInGB from this entry."
        )
    if volume.root_volume and volume.volume_kms_key_id is None:
        yield Issue(
            path,
            f"the root volume of {group.name} has no volumeKmsKeyId; without it, AWS's key is used anyway",
            "Set volumeKmsKeyId to your key, or remove this entry.",
        )
    if not volume.root_volume and volume.volume_size_in_gb is None:
        yield Issue(path, f"the additional volume of {group.name} has no size", "Set volumeSizeInGB, such as 500.")
    if volume.volume_kms_key_id is not None and not isinstance(group, InstanceGroup):
        yield Issue(
            (*path, "volumeKmsKeyId"),
            f"{group.name} is a restricted instance group, for which HyperPod doesn't support your own KMS keys",
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
            f"{group.spec.name} spans {listing(list(group.zones))}: its {group.spec.instance_count} instances can be "
            "in different zones, where distributed work is slower and its traffic is billed",
            f"Add `availabilityZone: {group.zones[0]}`, or create one group per zone.",
        )


RULES = (
    Rule("CLU009", "warning", "A cluster has at most 20 groups.", _GUIDE, _number_of_groups),
    Rule("CLU010", "error", "The dependencies chart is in the repository, and has a sha256.", _CONTRACT,
         _chart_is_pinned),
    Rule("CLU011", "error", "The file of a dependencies chart in the repository exists.", _CONTRACT, waivable=False),
    Rule("CLU012", "error", "The sha256 of a dependencies chart in the repository matches.", _CONTRACT,
         waivable=False),
    Rule("CLU013", "error", "overrideVpcConfig requires network.existing, and matches the group's zone.", _API,
         _override),
    Rule("CLU016", "error", "In a closed network, nodes can pull the images of charts.", _ECR,
         _images_are_mirrored),
    Rule("CLU043", "error", "Values of the dependencies chart belong to one of its parts.",
         "SageMaker HyperPod CLI, Helm chart: Chart.yaml and values.yaml", _values_of_parts),
    Rule("CLU017", "error", "A dependencies chart is hpkit's, is already installed, or has a name and a version.",
         _CONTRACT, _chart_is_stated_whole, waivable=False),
    Rule("CLU024", "error", "HyperPod on EKS is available in the region.", f"{_MANUAL}, regions", _region),
    Rule("CLU038", "warning", "Teams don't rely on restricted instance groups, which quotas don't count.",
         _NOVA_TERRAFORM, _restricted_without_quota),
    Rule("CLU039", "warning", "Clusters with restricted instance groups have no features that AWS omits there.",
         _NOVA_TERRAFORM, _beside_restricted),
    Rule("CLU040", "error", "Restricted instance groups aren't combined with managed Karpenter.", _AUTOSCALING,
         _restricted_autoscaling),
    Rule("CLU041", "error", "Restricted instance groups have a file system with a valid size and throughput.",
         f"{_NOVA}; {_FSX}", _restricted_environment),
    Rule("CLU029", "warning", "Cluster names are unique in a region.", _API, _clusters_apart),
    Rule("CLU048", "error", "The environment of an existing cluster has only access and governance.", _CONTRACT,
         _existing),
    Rule("CLU050", "error", "One environment governs each cluster.", _CONTRACT, _one_governs, waivable=False),
    Rule("CLU051", "error", "A governed cluster has the groups and settings that its environment states.", _CONTRACT,
         _has_what_is_governed, waivable=False),
    Rule("CLU001", "error", "Groups are in a zone where the network has a subnet.", _GUIDE, _zone_has_subnet,
         waivable=False),
    Rule("CLU002", "error", "Subnets have enough addresses for their groups.", _GUIDE, _subnet_size),
    Rule("CLU003", "error", "HyperPod offers the instance type.", _API, _type_is_offered),
    Rule("CLU004", "warning", "The static groups can run the add-ons' pods.", _GUIDE, _room_for_addons),
    Rule("CLU005", "error",
         "Groups with deep health checks have no custom taints, and labels and taints use no reserved prefix.", _GUIDE,
         _labels_and_taints),
    Rule("CLU006", "error", "A group has either instanceType or up to 20 instanceTypes.", _API, _one_style,
         waivable=False),
    Rule("CLU007", "error", "minInstanceCount is at most instanceCount.", _API, _counts),
    Rule("CLU008", "error", "A drain policy requires DrainFirst, and DrainFirst requires a batch size.", _API,
         _patching),
    Rule("CLU014", "error", "All types of a group support its threads per core.", _API, _threads),
    Rule("CLU015", "warning",
         "A group sets its threads per core if its types differ in them, or if a quota counts its vCPUs.", _API,
         _threads_unknown),
    Rule("CLU045", "warning", "EC2 offers the group's instance types in the region.",
         "Amazon EC2 API, DescribeInstanceTypeOfferings", _type_is_in_region),
    Rule("CLU030", "error", "Taints of a group differ in key or effect.", "Kubernetes API, Node: validation of taints",
         _taints_differ),
    Rule("CLU044", "error", "Keys of labels and taints are short enough for Kubernetes.",
         "Kubernetes documentation, labels and selectors: syntax", _lengths_of_keys),
    Rule("CLU042", "warning", "Static groups are in one zone.", "AWS Machine Learning Blog, auto scaling on "
         "SageMaker HyperPod", _one_zone),
    Rule("CLU023", "error", "CoreDNS and the add-ons can run on a group with nodes.", _COREDNS,
         _home_of_system_pods),
    Rule("CLU046", "warning", "The time limit for nodes covers deep health checks.",
         f"{_MANUAL}, deep health checks", _time_for_deep_checks),
    Rule("CLU025", "error", "A group uses either Spot or a training plan.", _API, _purchase),
    Rule("CLU026", "error", "Deep health checks fit the group's instance types.",
         f"{_MANUAL}, deep health checks",
         _deep_checks),
    Rule("CLU049", "error", "Instance types of a group with networkInterface have EFA.",
         "Amazon EC2 User Guide, Elastic Fabric Adapter: supported instance types", _interfaces),
    Rule("CLU047", "error", "HyperPod accepts the nodes' storage settings.",
         f"{_MANUAL}, customer managed AWS KMS key encryption for SageMaker HyperPod", _storage),
    Rule("CLU027", "error", "Percentages are within the range that the service accepts.",
         f"{_MANUAL}, managed tiered checkpointing",
         _percentages),
    Rule("CLU028", "error", "An update's schedule is a valid AWS cron expression.", _CRON, _schedules),
)  # fmt: skip
