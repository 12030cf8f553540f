"""CLU: restricted instance groups, and what does not go with them."""

from collections.abc import Iterator

from hpkit.catalog import TASK_GOVERNANCE
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.checks.storage import not_of_lustre
from hpkit.config.cluster import FSxLustreConfig
from hpkit.config.document import Path
from hpkit.text.formatting import listing

__all__ = ["RULES"]

_NOVA = 'SageMaker developer guide, "Creating a HyperPod EKS cluster with restricted instance group (RIG)"'
_NOVA_TERRAFORM = (
    "awslabs/awsome-distributed-training, Terraform modules for HyperPod on EKS, restricted instance groups"
)
_FSX = "Amazon FSx API reference, UpdateFileSystem (PERSISTENT_2)"
_AUTOSCALING = f"SageMaker HyperPod developer guide, autoscaling with Karpenter; {_NOVA_TERRAFORM}"
# AWS's Terraform modules install none of these beside restricted groups.
_NOT_BESIDE_RESTRICTED = (
    TASK_GOVERNANCE,
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-hyperpod-inference",
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
    beside = ["ordinary groups", "continuous provisioning", *addons]
    yield Issue(
        (*context.path, "cluster", "restrictedInstanceGroups"),
        f"next to restricted groups, the cluster has {listing(beside)}; AWS's Terraform modules omit these, and AWS "
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


RULES = (
    Rule("CLU038", "warning", "Teams don't rely on restricted instance groups, which quotas don't count.",
         _NOVA_TERRAFORM, _restricted_without_quota),
    Rule("CLU039", "warning", "Clusters with restricted instance groups have no features that AWS omits there.",
         _NOVA_TERRAFORM, _beside_restricted),
    Rule("CLU040", "error", "Restricted instance groups aren't combined with managed Karpenter.", _AUTOSCALING,
         _restricted_autoscaling),
    Rule("CLU041", "error", "Restricted instance groups have a file system with a valid size and throughput.",
         f"{_NOVA}; {_FSX}", _restricted_environment),
)  # fmt: skip
