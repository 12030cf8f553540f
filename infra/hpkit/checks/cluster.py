"""CLU: instance groups and what they need."""

import ipaddress
from collections.abc import Iterator, Sequence

from hpkit.catalog import TASK_GOVERNANCE, dependencies_chart, find_instance_type, find_nearest
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.cluster import InstanceGroup, InstanceGroupBase
from hpkit.config.document import Path
from hpkit.config.network import Zone
from hpkit.config.suggest import explained
from hpkit.plan.dependencies import chart_images, is_regional, unmirrored_images
from hpkit.plan.registry import region_of_registry
from hpkit.plan.subnets import RANGE_PREFIXES
from hpkit.text.formatting import listing
from hpkit.text.plural import plural
from hpkit.text.spelling import near

__all__ = ["RULES", "addresses_needed"]

_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_API = "SageMaker API: CreateCluster"
_CONTRACT = "hpkit configuration reference"
_ECR = "Amazon ECR user guide, interface VPC endpoints (no public repositories; an endpoint is of one region)"
_RESERVED = (
    "kubernetes.io/", "k8s.io/", "sagemaker.amazonaws.com/", "eks.amazonaws.com/", "k8s.aws/", "karpenter.sh/",
)  # fmt: skip
# AWS keeps the first four addresses and the last of every subnet.
_RESERVED_ADDRESSES = 5
# P5 on EKS: 50 for pods and 31 for EFA, the most that the guide documents for a node.
_MOST_ADDRESSES = 81
_LARGEST_PREFIX, _SMALLEST_PREFIX = RANGE_PREFIXES
_MOST_GROUPS_IN_CONSOLE = 20
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


def addresses_needed(context: Context, zone: str) -> tuple[int, list[str], dict[str, int]]:
    """Return the addresses that nodes of a zone can take, what they come from, and nodes of types of unknown need."""
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
        if meant := context.zone_of_region(zone):
            yield Issue(
                (*path, "availabilityZone"),
                f"{group.name} is in {zone}, which isn't in {context.spec.region}",
                f"Use `{meant}`.",
            )
        elif zones:
            # A network without any zone is NET003's.
            yield Issue(
                (*path, "availabilityZone"),
                f"{group.name} is in {zone}, where the network has no subnet (zones: {listing(zones) or 'none'})",
                _zone_meant(zone, zones),
            )


def _zone_meant(zone: str, zones: list[str]) -> str:
    hint = explained(zone)
    if hint is not None:
        return hint[1]
    likely = near(zone, zones)
    # Zones of one region differ by a letter, and so another zone is as likely meant as a misspelt one.
    if likely is not None and zone[:-1] != likely[:-1]:
        return f"Did you mean `{likely}`?"
    return "Add the zone to the network, or move the group."


def _subnet_size(context: Context) -> Iterator[Issue]:
    # Nodes that a limit with a wrong unit allows aren't what is meant.
    if context.limits_have_wrong_units:
        return
    for index, zone in enumerate(context.spec.network.zones):
        try:
            network = ipaddress.IPv4Network(zone.node_cidr)
        except ValueError:
            continue
        if network.prefixlen > _SMALLEST_PREFIX:  # NET001 says what AWS takes, and what is no range.
            continue
        addresses = network.num_addresses - _RESERVED_ADDRESSES
        path = (*context.path, "network", "zones", index, "nodeCidr")
        need, parts, unknown = addresses_needed(context, zone.availability_zone)
        what = f"the subnet {zone.node_cidr} in {zone.availability_zone} has {addresses} addresses"
        if need > addresses:
            yield Issue(
                path,
                f"{what}, but its groups can use {need} ({listing(parts)})",
                _room_in_zone(context, zone),
            )
        elif need + _MOST_ADDRESSES * sum(unknown.values()) > addresses:
            yield Issue(
                path,
                f"{what}; {need} of them are in use, and the catalog doesn't know how many "
                f"{listing([f'{count} × {name}' for name, count in sorted(unknown.items())])} use",
                f"Reserve {_MOST_ADDRESSES} addresses per node in the zone, the largest number of any known type.",
                "warning",
            )


def _room_in_zone(context: Context, zone: Zone) -> str:
    """Say what to change for the groups of a zone to fit: its range, or the limits that let Karpenter add nodes."""
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


def _not_offered(path: Path, name: str, who: str, provided: Sequence[str] = ()) -> Issue:
    likely = [each for each in find_nearest(name) if each in provided]
    names = (*likely, *(each for each in find_nearest(name) if each not in likely))
    also = f" ({listing(list(names[1:]))})" if len(names) > 1 else ""
    fix = f"Did you mean `{names[0]}`{also}?" if names else "Choose a type that `hpkit catalog instances` lists."
    return Issue(path, f"{who} has the type `{name}`, which HyperPod doesn't offer", fix)


def _threads(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        single = [name for name, threads in _threads_of(group).items() if threads == 1]
        if group.threads_per_core == _MULTITHREADED and single:
            yield Issue(
                (*path, "threadsPerCore"),
                f"{group.name} requests 2 threads per core, but {listing(single)} has only 1",
                "Use `1`, or remove the key.",
            )


def _threads_differ(context: Context) -> Iterator[Issue]:
    for group, path in _groups(context):
        threads = _threads_of(group)
        if group.threads_per_core is None and len(set(threads.values())) > 1:
            yield Issue(
                (*path, "instanceTypes"),
                f"the types of {group.name} have different threads per core "
                f"({listing([f'{name} {count}' for name, count in threads.items()])}); AWS doesn't document which "
                "number the service uses, so their vCPUs aren't certain",
                "Set `threadsPerCore: 1`, which all types support and which halves the vCPUs of those with 2. Or "
                "put them in separate groups.",
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
        known = [limit for limit in limits if limit is not None]
        if not known or len(known) < len(group.spec.types):
            unknown += group.spec.types
            continue
        room += (min(known) - _PODS_A_NODE) * group.spec.instance_count
        parts.append(f"{group.spec.name} {group.spec.instance_count} × {min(known)}")
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
    wanted = context.spec.cluster.dependencies
    if wanted.chart is None:
        return
    path: Path = (*context.path, "cluster", "dependencies", "chart")
    if not wanted.is_in_repository:
        beside = ", and the sha256 next to it isn't verified" if wanted.sha256 else ""
        yield Issue(
            path,
            f"{wanted.chart} comes from a registry, where a version can be overwritten{beside}",
            f"Run `helm pull {wanted.chart} --version {wanted.version}`, commit the .tgz to the repository, and set "
            "`chart` and `sha256` for it.",
            policy="helm-charts-pinned",
        )
    elif wanted.sha256 is None:
        yield Issue(
            path,
            f"the chart {wanted.chart} has no sha256, so changes to it would be deployed unnoticed",
            f"Set `sha256` to the output of `hpkit catalog hash-chart {wanted.chart}`.",
        )


def _chart_is_stated_whole(context: Context) -> Iterator[Issue]:
    wanted = context.spec.cluster.dependencies
    path: Path = (*context.path, "cluster", "dependencies")
    of_own = {"chart": wanted.chart, "version": wanted.version, "sha256": wanted.sha256}
    beside = [key for key, value in of_own.items() if value is not None]
    if wanted.installed:
        beside += ["imageRegistry"] if wanted.image_registry is not None else []
        beside += ["values"] if wanted.values else []
        if beside:
            yield Issue(
                (*path, "installed"),
                f"`installed` means that the cluster already has the chart, but {listing(beside)} applies to a chart "
                "that the kit installs",
                "Remove `installed`, or remove the other keys.",
            )
    elif beside and wanted.chart is None:
        yield Issue(
            (*path, beside[0]),
            f"{listing(beside)} applies to your own chart, but no chart is set; the kit's chart is already pinned",
            "Set `chart`, or remove the other keys.",
        )
    elif wanted.chart is not None and wanted.version is None:
        yield Issue(
            (*path, "chart"), f"the chart {wanted.chart} has no version", "Set `version` to the chart's version."
        )


def _images_are_mirrored(context: Context) -> Iterator[Issue]:
    wanted, region = context.spec.cluster.dependencies, context.spec.region
    if not context.spec.network.closed:
        return
    if context.spec.autoscaling is not None and context.spec.autoscaling.keda is not None:
        yield Issue(
            (*context.path, "autoscaling", "keda"),
            "the network is closed, but KEDA's images come from ghcr.io",
            "Remove keda, and install its chart with images from your own registry.",
        )
    if wanted.installed:
        return
    path: Path = (*context.path, "cluster", "dependencies")
    if wanted.image_registry is None:
        sources = [each.source(region) for each in chart_images(context.spec)] if wanted.is_kits else []
        hosts = sorted({name.partition("/")[0] for name in sources if not is_regional(name, region)})
        yield Issue(
            path,
            "the network is closed, but nodes would pull images of the dependencies chart from "
            f"{listing(hosts) if hosts else 'registries that the chart sets'}",
            f"Run `hpkit aws images --stack {context.plan.stack} --mirror`, then set the registry that they are in: "
            f"`dependencies: {{imageRegistry: ACCOUNT.dkr.ecr.{region}.amazonaws.com}}`.",
        )
        return
    elsewhere = region_of_registry(wanted.image_registry)
    if elsewhere not in (None, region):
        yield Issue(
            (*path, "imageRegistry"),
            f"the network is closed, and its endpoint only reaches registries in {region}; {wanted.image_registry} "
            f"is in {elsewhere}",
            f"Run `hpkit aws images --stack {context.plan.stack} --mirror` for a registry in {region}, and set "
            "imageRegistry to it.",
        )
    if wanted.is_kits:
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
    known = dependencies_chart().values
    for key in wanted.values if wanted.is_kits else ():
        if key in known:
            continue
        likely = near(key, known)
        there = listing(sorted(known), len(known))
        yield Issue(
            (*context.path, "cluster", "dependencies", "values", key),
            f"the chart {dependencies_chart().name} has no part and no value `{key}`, and ignores it",
            f"Did you mean `{likely}`?" if likely else f"Remove it. The chart's parts are {there}.",
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
                f"{group.name} uses the subnets {listing(list(override.subnets))}, but the kit creates the network",
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


RULES = (
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
    Rule("CLU009", "warning", "A cluster has at most 20 groups.", _GUIDE, _number_of_groups),
    Rule("CLU010", "error", "The dependencies chart is in the repository, and has a sha256.", _CONTRACT,
         _chart_is_pinned),
    Rule("CLU011", "error", "The file of a dependencies chart in the repository exists.", _CONTRACT, waivable=False),
    Rule("CLU012", "error", "The sha256 of a dependencies chart in the repository matches.", _CONTRACT,
         waivable=False),
    Rule("CLU013", "error", "overrideVpcConfig requires network.existing, and matches the group's zone.", _API,
         _override),
    Rule("CLU014", "error", "All types of a group support its threads per core.", _API, _threads),
    Rule("CLU015", "warning", "All types of a group have the same threads per core, or the group sets the number.",
         _API,
         _threads_differ),
    Rule("CLU016", "error", "In a closed network, nodes can pull the images of charts.", _ECR,
         _images_are_mirrored),
    Rule("CLU043", "error", "Values of the dependencies chart belong to one of its parts.",
         "SageMaker HyperPod CLI, Helm chart: Chart.yaml and values.yaml", _values_of_parts),
    Rule("CLU017", "error", "A dependencies chart is the kit's, has a name and a version, or is already installed.",
         _CONTRACT, _chart_is_stated_whole, waivable=False),
)  # fmt: skip
