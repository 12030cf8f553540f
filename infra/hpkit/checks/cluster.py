"""CLU, the cluster: name, region, restricted instance groups, and who creates and governs it."""

from collections.abc import Iterator

from hpkit.catalog import TASK_GOVERNANCE, aws_regions, is_zone_id, regions
from hpkit.checks.rule import Context, Issue, Rule, groups_of
from hpkit.checks.storage import not_of_lustre
from hpkit.config.models.cluster import FSxLustreConfig, InstanceGroupBase
from hpkit.config.models.organization import Environment
from hpkit.config.reading.document import Path
from hpkit.plan.derive import derive
from hpkit.plan.model import GroupPlan, Plan
from hpkit.text.formatting import listing, plural
from hpkit.text.spelling import near

__all__ = ["RULES", "is_same_cluster", "less_than_stated", "second_governance"]

_API = "SageMaker API: CreateCluster"
_CONTRACT = "hpkit configuration reference"
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
        f"with restricted groups, the cluster has {listing(unusual)}; AWS's Terraform modules omit these, and AWS "
        "doesn't document whether the service accepts them",
        "Ask AWS support before you pay for nodes, or test with one small group. Then waive this rule.",
    )


def _restricted_autoscaling(context: Context) -> Iterator[Issue]:
    if context.spec.karpenter is not None and context.plan.restricted_groups:
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
                f"group `{group.name}` has no file system: neither environmentConfig nor "
                "restrictedInstanceGroupsConfig is set",
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
        f"environments `{name}` and `{other_name}` both govern the cluster `{environment.cluster.name}` in "
        f"{environment.region}, and each `pulumi up` "
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
        environments = context.organization.environments
        is_known = context.spec.account and any(environments[each].account for each in same_clusters)
        yield Issue(
            (*context.path, "cluster", "name"),
            f"`{context.environment}` and {listing(same_clusters)} both have a cluster `{name}` in "
            f"{context.spec.region}; cluster "
            "names are unique in an account and region",
            f"Use `{name}-{context.environment}`, or give the environments different accounts.",
            # Without an account, the environments can be in different ones.
            None if is_known else "warning",
        )


def _one_governs(context: Context) -> Iterator[Issue]:
    """Compare with all other environments, because each can be deployed separately."""
    for name, other in context.organization.environments.items():
        second = second_governance(context.spec, other, context.environment, name)
        if name != context.environment and second is not None:
            where: Path = ("environments", name, "governance")
            yield Issue((*context.path, "governance"), *second, other=where, other_name=f"`governance` of {name}")


def less_than_stated(own: Plan, stated: Plan, own_name: str, name: str) -> Iterator[Issue]:
    """Yield where a cluster is smaller than the environment that governs it declares."""
    if not _governs(stated.spec, own.spec):
        return
    fix = f"Restore it here. Or lower `cluster` and the quotas of `{name}` too, and deploy {stated.stack} first."
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
                f"`{own_name}`, which creates the cluster, has no group `{group.spec.name}`, but `{name}` declares "
                f"{group.spec.instance_count} × {types}"
            )
            short = (*path, "cluster", "instanceGroups"), message
        if short is not None:
            other = (*where, "cluster", "instanceGroups", places[group.spec.name])
            yield Issue(*short, fix, other=other, other_name=f"`{group.spec.name}` of `{name}`")
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
                f"Karpenter adds at most {existing.maximum} × {instance_type}, but `{name}` declares {needed.maximum}",
                fix,
                other=(*where, "autoscaling"),
                other_name=f"`autoscaling` of `{name}`",
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
    """Return where and how a group at a path has less than another environment declares for it."""
    if set(own.types) != set(stated.spec.types):
        has, states = (" or ".join(sorted(group.types)) for group in (own, stated.spec))
        return path, f"group `{own.name}` has {has}, but `{name}` declares {states}"
    if not stated.autoscaled and own.instance_count < stated.spec.instance_count:
        has = plural(own.instance_count, "instance")
        return (
            *path,
            "instanceCount",
        ), f"group `{own.name}` has {has}, but `{name}` declares {stated.spec.instance_count}"
    return None


_KARPENTER = ("autoscaling",)
_ADOPT = " To turn Karpenter on for a cluster that runs, adopt it: `hpkit aws adopt`."


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
    quota_resources = [each for team in context.plan.teams for each in team.quota_resources]
    created: dict[tuple[str, ...], bool] = {
        ("network",): "network" in spec.model_fields_set,
        ("storage",): spec.storage is not None
        and not (spec.storage.model_fields_set <= {"lustre", "local_disk"} and (has_file_system or lustre is None)),
        ("storage", "lustre", "dataRepositories"): lustre is not None
        and has_file_system
        and bool(lustre.data_repositories),
        ("storage", "lustre", "rootSquash"): lustre is not None and has_file_system and lustre.root_squash is not None,
        ("observability",): spec.observability is not None,
        ("inference",): spec.inference is not None,
        ("spaces",): spec.spaces is not None,
        ("operators",): bool(spec.operators),
        ("autoscaling", "keda"): keda is not None,
        # It declares what Karpenter can add, for elastic quota; an `up` compares it with the cluster.
        ("autoscaling",): spec.karpenter is not None and not any(each.elastic for each in quota_resources),
        ("cluster", "dependencies"): "dependencies" in spec.cluster.model_fields_set,
        **{("addons", name): name != TASK_GOVERNANCE for name in spec.addons},
    }
    for section in (section for section, is_stated in created.items() if is_stated):
        yield Issue(
            (*context.path, *section),
            f"`{'.'.join(section)}` belongs to the stack or tool that manages the cluster {spec.cluster.name}",
            "Remove it, or if it's a default, set it to `null`. Or remove `existing`, and let this stack create the "
            f"cluster.{_ADOPT if section == _KARPENTER else ''}",
            other=path,
            other_name="`existing`",
        )


RULES = (
    Rule("CLU024", "error", "HyperPod on EKS is available in the region.", f"{_MANUAL}, regions", _region),
    Rule("CLU029", "error", "Cluster names are unique in a region.", _API, _clusters_apart),
    Rule(
        "CLU038",
        "warning",
        "Teams don't rely on restricted instance groups, which quotas don't count.",
        _NOVA_TERRAFORM,
        _restricted_without_quota,
    ),
    Rule(
        "CLU039",
        "warning",
        "Clusters with restricted instance groups have no features that AWS omits there.",
        _NOVA_TERRAFORM,
        _beside_restricted,
    ),
    Rule(
        "CLU040",
        "error",
        "Restricted instance groups aren't combined with managed Karpenter.",
        _AUTOSCALING,
        _restricted_autoscaling,
    ),
    Rule(
        "CLU041",
        "error",
        "Restricted instance groups have a file system with a valid size and throughput.",
        f"{_NOVA}; {_FSX}",
        _restricted_environment,
    ),
    Rule(
        "CLU048",
        "error",
        "The environment of an existing cluster has only access and governance.",
        _CONTRACT,
        _existing,
    ),
    Rule("CLU050", "error", "One environment governs each cluster.", _CONTRACT, _one_governs, waivable=False),
    Rule(
        "CLU051",
        "error",
        "A governed cluster has the groups and settings that its environment declares.",
        _CONTRACT,
        _has_what_is_governed,
        waivable=False,
    ),
)
